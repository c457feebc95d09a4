"""The programs, sizes and inputs measured, the same for both sides. Both Pythons load this file: no imports of ours."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

SIZES = ((4, 5), (10, 10), (20, 20), (50, 50), (100, 100))
FEW = 2000  # at most this many inputs are all compared
PER_LENGTH = 128  # of more inputs, this many of each of three lengths are compared; half as many if they are long
LONG = 50

COUNTING = ("length", "hist", "hist_bos", "hist2", "has_prev", "count", "count_less_freq", "frac_prevs")
ORDERING = ("reverse", "sort_unique", "sort", "sort_composite", "sort_freq", "most_freq")
BRACKETS = ("pair_balance", "shuffle_dyck", "shuffle_dyck2", "dyck1", "dyck2", "closer")
PATTERNS = ("shift_by", "detect_pattern", "induction", "counter", "nary_sequencemap")
PROGRAMS = (*COUNTING, *ORDERING, *BRACKETS, *PATTERNS)
OURS_ONLY = frozenset(
    {"hist_bos", "hist2", "has_prev", "sort_composite", "most_freq", "dyck1", "dyck2", "closer", "induction", "counter"}
)  # the original's library has no such program

TOKENS = {
    "hist_bos": "^",
    "count": "a",
    "frac_prevs": "x",
    "pair_balance": "()",
    "shuffle_dyck": "()",
    "shuffle_dyck2": "(){}",
    "dyck1": "()",
    "dyck2": "(){}",
    "closer": "(){}",
    "detect_pattern": "ab",
}  # that a program is about; other tokens fill the vocabulary up
NUMBERS = {"sort_unique": 1, "sort": 1, "sort_composite": 1, "counter": 0, "nary_sequencemap": 0}  # from where on


@dataclass(frozen=True)
class Case:
    """A program of the library, and for which vocabulary and length."""

    program: str
    tokens: int
    length: int

    @property
    def size(self) -> tuple[int, int]:
        """Vocabulary and length."""
        return self.tokens, self.length

    @property
    def vocab(self) -> list[Any]:
        """The tokens."""
        if self.program in NUMBERS:
            first = NUMBERS[self.program]
            return list(range(first, first + self.tokens))
        wanted = TOKENS.get(self.program, "")
        return [*wanted, *(f"t{number}" for number in range(self.tokens - len(wanted)))]

    def build(self, lib: Any, rasp: Any) -> Any:
        """The program, from either side's library."""
        tokens = rasp.tokens
        if self.program == "nary_sequencemap":
            return lib.make_nary_sequencemap(majority, tokens, lib.shift_by(1, tokens), lib.shift_by(2, tokens))
        arguments: dict[str, tuple[Any, ...]] = {
            "has_prev": (tokens,),
            "count": (tokens, "a"),
            "count_less_freq": (1,),
            "reverse": (tokens,),
            "sort_unique": (tokens, tokens),
            "sort": (tokens, tokens),
            "sort_composite": (tokens, tokens),
            "sort_freq": (self.length,),
            "pair_balance": (tokens, "(", ")"),
            "shuffle_dyck": (["()"],),
            "closer": (["()", "{}"],),
            "counter": (self.tokens - 1,),
            "shift_by": (1, tokens),
            "detect_pattern": (tokens, "ab"),
        }
        if self.program == "frac_prevs":
            arguments["frac_prevs"] = ((tokens == "x").named("is_x"),)
        options = {"max_seq_len": self.length, "min_key": 1} if self.program == "sort" else {}
        make = self.program if self.program in ("shift_by", "detect_pattern") else f"make_{self.program}"
        return getattr(lib, make)(*arguments.get(self.program, ()), **options)

    @property
    def longest(self) -> int:
        """The longest inputs: keys of sort_unique are all different."""
        return min(self.length, self.tokens) if self.program == "sort_unique" else self.length

    def batch(self, count: int) -> list[list[Any]]:
        """Inputs of the greatest length, to measure speed."""
        rng = random.Random(0)
        return [self._random(rng, self.longest) for _ in range(count)]

    def inputs(self) -> list[list[list[Any]]]:
        """Inputs to compare answers on, in groups of one length; all inputs, if they are few."""
        if sum(self.tokens**length for length in range(1, self.length + 1)) <= FEW:
            every = [
                [list(row) for row in itertools.product(self.vocab, repeat=length) if self._allowed(row)]
                for length in range(1, self.length + 1)
            ]
            return [group for group in every if group]
        rng = random.Random(1)
        lengths = sorted({1, self.longest // 2, self.longest})
        each = PER_LENGTH if self.length < LONG else PER_LENGTH // 2
        return [[self._random(rng, length) for _ in range(each)] for length in lengths]

    def _allowed(self, row: tuple[Any, ...]) -> bool:
        if self.program == "sort_unique":
            return len(set(row)) == len(row)
        return self.program != "hist_bos" or (row[0] == "^" and "^" not in row[1:])

    def _random(self, rng: random.Random, length: int) -> list[Any]:
        """A random input. Half of the inputs have few different tokens, the program's own among them."""
        if self.program == "sort_unique":
            return rng.sample(self.vocab, length)
        if self.program == "hist_bos":
            return ["^", *rng.choices(self.vocab[1:], k=length - 1)]
        about = list(TOKENS.get(self.program, ""))
        few = [*about, *rng.sample(self.vocab, min(3, self.tokens))]
        return rng.choices(few if rng.random() < 0.5 else self.vocab, k=length)


def majority(x: int, y: int, z: int) -> int:
    """Whether three numbers add up to two or more."""
    return int(x + y + z >= 2)
