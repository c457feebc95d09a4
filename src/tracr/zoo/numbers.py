"""Functions of each number by itself: squares, signs, thresholds, divisors. One MLP computes each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import COUNTABLE, Condition
from tracr.values import Value
from tracr.zoo.entry import Entry, task

DIGITS = tuple(range(7))
SIGNED = tuple(range(-3, 4))
THRESHOLD = 3
LOWEST, HIGHEST = 2, 7


def _whole(token: Value) -> bool:
    return isinstance(token, int) and not isinstance(token, bool)


WHOLE = Condition("whole numbers", lambda vocab: all(map(_whole, vocab)))


def each(
    name: str,
    says: str,
    function: Callable[[Any], Any],
    right: Callable[[Any], Any],
    *,
    vocab: tuple[int, ...] = DIGITS,
    tokens: Condition = COUNTABLE,
) -> Entry:
    """The entry of a function of one number; `right` is the same function, written in another way."""

    def build() -> rasp.SOp:
        return rasp.Map(function, rasp.tokens).named(name)

    build.__name__ = name
    return task(
        vocab, 5, shown=vocab[1::2], tags="numbers", says=says, answers=lambda xs: [right(x) for x in xs], tokens=tokens
    )(build)


def _fibonacci(number: int) -> int:
    first, second = 0, 1
    for _ in range(number):
        first, second = second, first + second
    return first


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _prime(number: int) -> bool:
    return len(_divisors(number)) == 2


def _prime_from(number: int) -> int:
    return number if _prime(number) else _prime_from(number + 1)


def _distinct_factors(number: int) -> int:
    """By dividing: the smallest factor is prime, and is taken out."""
    found = 0
    while number > 1:
        factor = next(one for one in range(2, number + 1) if number % one == 0)
        found += 1
        while number % factor == 0:
            number //= factor
    return found


plus_one = each("plus_one", "the number plus one", lambda x: x + 1, lambda x: -~x, tokens=WHOLE)
decrement = each("decrement", "the number minus one", lambda x: x - 1, lambda x: ~-x, tokens=WHOLE)
double = each("double", "twice the number", lambda x: 2 * x, lambda x: x + x, tokens=WHOLE)
triple = each("triple", "three times the number", lambda x: 3 * x, lambda x: x + x + x, tokens=WHOLE)
square = each("square", "the square of the number", lambda x: x * x, lambda x: x**2, tokens=WHOLE)
cube = each("cube", "the cube of the number", lambda x: x * x * x, lambda x: x**3, vocab=SIGNED, tokens=WHOLE)
negate = each("negate", "the number with the other sign", lambda x: -x, lambda x: 0 - x, vocab=SIGNED, tokens=WHOLE)
absolute = each("absolute", "the number without its sign", abs, lambda x: max(x, -x), vocab=SIGNED, tokens=WHOLE)
sign = each(
    "sign",
    "the sign of the number: -1, 0 or 1",
    lambda x: (x > 0) - (x < 0),
    lambda x: x // abs(x) if x else 0,
    vocab=SIGNED,
    tokens=WHOLE,
)
factorial = each(
    "factorial",
    "the factorial of the number",
    lambda x: math.prod(range(1, x + 1)),
    math.factorial,
    vocab=DIGITS[:-1],
)
fibonacci = each(
    "fibonacci",
    "the Fibonacci number with this index; those of 0 and 1 are 0 and 1",
    _fibonacci,
    lambda x: x if x < 2 else [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89][x],
)
is_fibonacci = each(
    "is_fibonacci",
    "whether the number is a Fibonacci number",
    lambda x: x in map(_fibonacci, range(x + 2)),
    lambda x: any(math.isqrt(n) ** 2 == n for n in (5 * x * x - 4, 5 * x * x + 4) if n >= 0),
    vocab=(2, 3, 4, 6, 7, 8),
)
is_square = each(
    "is_square",
    "whether the number is the square of a whole number",
    lambda x: x in [n * n for n in range(x + 1)],
    lambda x: math.isqrt(x) ** 2 == x,
    vocab=(2, 4, 5, 8, 9, 16),
)
is_power_of_two = each(
    "is_power_of_two",
    "whether the number is a power of two, 1 included",
    lambda x: x in [2**n for n in range(x + 1)],
    lambda x: bin(x).count("1") == 1,
    vocab=(1, 2, 3, 4, 6, 8, 12),
)
divisible_by_three = each(
    "divisible_by_three",
    "whether the number can be divided by 3",
    lambda x: x % 3 == 0,
    lambda x: 3 * (x // 3) == x,
    tokens=WHOLE,
)
multiple_below = each(
    "multiple_below",
    "the largest multiple of 3 that is not above the number",
    lambda x: x - x % 3,
    lambda x: 3 * (x // 3),
    tokens=WHOLE,
)
multiple_above = each(
    "multiple_above",
    "the smallest multiple of 3 that is not below the number",
    lambda x: x + -x % 3,
    lambda x: 3 * math.ceil(x / 3),
    tokens=WHOLE,
)
prime_from = each(
    "prime_from",
    "the smallest prime number that is not below the number",
    _prime_from,
    lambda x: next(n for n in range(max(x, 2), 2 * x + 3) if all(n % one for one in range(2, n))),
)
prime_factors = each(
    "prime_factors",
    "how many different prime numbers divide the number; 0 counts as having none",
    lambda x: sum(map(_prime, _divisors(x))),
    _distinct_factors,
    vocab=(0, 1, 2, 4, 6, 12, 30),
)
digit_sum = each(
    "digit_sum",
    "the sum of the number's decimal digits",
    lambda x: x % 10 + sum(map(int, str(x // 10))),
    lambda x: sum(map(int, str(x))),
    vocab=(3, 9, 10, 12, 25, 28, 29),
)
binarize = each(
    "binarize",
    "1 for numbers from 3 on, 0 for smaller ones",
    lambda x: int(x >= THRESHOLD),
    lambda x: 0 if x < 3 else 1,
    tokens=WHOLE,
)
zero_below = each(
    "zero_below",
    "the number, or 0 if it is smaller than 3",
    lambda x: x if x >= THRESHOLD else 0,
    lambda x: 0 if x < 3 else x,
    vocab=DIGITS[1:],
    tokens=WHOLE,
)
clip = each(
    "clip",
    "the number, moved into the range from 2 to 7",
    lambda x: min(max(x, LOWEST), HIGHEST),
    lambda x: sorted((2, x, 7))[1],
    vocab=(-1, 2, 3, 5, 7, 8, 9),
    tokens=WHOLE,
)
