"""Random RASP programs. They are typed, to be meaningful, and seeded, to be reproducible.

A program grows step by step. Every step reads s-ops from the pool of earlier ones, which can share work, and adds a
new one. The pool records for each s-op the kind of its values, whether it may be `None`, and roughly how many values
it takes. With these facts, no program is drawn that the interpreter raises on or that has far too large tables.

>>> random_program(7)("abca") == random_program(7)("abca")
True
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracr.arguments import flag, whole
from tracr.errors import ExpressionError
from tracr.rasp import random_functions as fn
from tracr.rasp.combine import selector_and, selector_not, selector_or
from tracr.rasp.expressions import (
    Aggregate,
    LinearSequenceMap,
    Map,
    RASPExpr,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    length,
    tokens,
)
from tracr.rasp.functions import Comparison
from tracr.rasp.interpreter import DefaultRASPEvaluator
from tracr.rasp.random_functions import ValueKind, kind_of
from tracr.rasp.random_pool import NUMBERS, Limits, NothingFitsError, Pool, PoolSelector, PoolSOp
from tracr.rasp.size import ProgramSize, SharedSizes
from tracr.rasp.traversal import topological
from tracr.values import Value, short_repr

__all__ = ["random_inputs", "random_program"]

Operator = Callable[[Any, Any], Any]

EQUALITY: list[Operator] = [operator.eq, operator.ne]
ORDER: list[Operator] = [operator.lt, operator.le, operator.gt, operator.ge]
LOGIC: list[Operator] = [operator.and_, operator.or_]
ARITHMETIC: list[Operator] = [operator.add, operator.sub, operator.mul]
DIVISION: list[Operator] = [operator.truediv, operator.floordiv, operator.mod]
NUMERIC: list[Operator] = [max, min, fn.distance]
TRIES, RESTARTS = 1_000, 10  # s-ops drawn before a program is started again; and how often it is started again
PROBES = 6  # inputs on which a drawn s-op is evaluated
INTERPRETER = DefaultRASPEvaluator()
MOST = 1_000_000  # ops and positions: a larger number is taken for a mistake
SMOOTH: list[Callable[[Any], Any]] = [abs, fn.square, fn.inverse, fn.reciprocal_or_none]


def random_program(
    rng: np.random.Generator | int | Sequence[int],
    *,
    max_ops: int = 6,
    vocab: Sequence[Value] = ("a", "b", "c"),
    max_seq_len: int = 5,
    causal: bool = False,
    composite: bool = True,
    max_mean_depth: int = 2,
    max_values: int = 500,
    min_ops: int = 0,
    min_depth: int = 0,
    max_depth: int | None = None,
    min_selectors: int = 0,
    max_selectors: int | None = None,
    printable: bool = False,
) -> SOp:
    """A random program over `vocab` with at most `max_ops` s-ops, not counting inputs, constants and selectors.

    Args:
        rng: a generator, or the seed of one (an integer or several); the same seed gives the same program.
        max_ops: how many s-ops are drawn at most; meant to be small (numbers may grow sixfold with each).
        vocab: the tokens of the inputs: numbers, strings or a mixture.
        max_seq_len: the length of the longest input, which bounds the number of values a mean can have.
        causal: whether it will be evaluated causally; if so, it does not read `length`.
        composite: whether boolean selectors may have operands over different inputs.
        max_mean_depth: how deep means of means may nest.
        max_values: a nonlinear s-op reads at most roughly this many values, or pairs of values.
        min_ops: how many s-ops the program has at least.
        min_depth, max_depth: the length of the longest chain of s-ops, as `size.py` counts it.
        min_selectors, max_selectors: how many `Select`s it has.
        printable: never merge selectors into lambdas, so that the program can be printed (`datasets.to_python`).

    >>> program = random_program(4, vocab=[1, 2, 3], max_seq_len=4)
    >>> [len(program(xs)) for xs in random_inputs(4, [1, 2, 3], max_seq_len=4, count=4)]
    [4, 3, 2, 1]
    """
    for name, value in (
        ("max_seq_len", max_seq_len),
        ("min_ops", min_ops),
        ("max_ops", max_ops),
        ("min_depth", min_depth),
        ("min_selectors", min_selectors),
    ):
        whole(name, value, most=MOST, error=ExpressionError)
    for name, most_of in (("max_depth", max_depth), ("max_selectors", max_selectors)):
        whole(name, 0 if most_of is None else most_of, most=MOST, error=ExpressionError)
    flag("composite", composite, error=ExpressionError)
    limits = Limits(tuple(vocab), max_seq_len, composite, max_mean_depth, max_values)
    least = ProgramSize(min_ops, min_depth, min_selectors)
    most = ProgramSize(max_ops, max_ops if max_depth is None else max_depth, _or_any(max_selectors))
    _check_range(least, most)
    generator = _generator(rng)
    for _ in range(RESTARTS):
        drawing = _Drawing(generator, limits, least, most, printable)
        program = drawing.program(max_ops, [indices, tokens] if causal else [indices, length, tokens])
        if program is not None:
            return program
    raise ExpressionError(
        f"no random program of at least {least} and at most {most} was found",
        hint="leave more room between the smallest and the largest numbers",
    )


def _generator(seed: object) -> np.random.Generator:
    """The random number generator of a seed."""
    try:
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ExpressionError(
            f"a seed must be a non-negative integer, several of them, or a generator, not {short_repr(seed)}",
            hint="write seed=1, for example",
        ) from None


def _or_any(most: int | None) -> int:
    return sys.maxsize if most is None else most


def _check_range(least: ProgramSize, most: ProgramSize) -> None:
    """Refuse limits that no program satisfies."""
    for name in ("ops", "depth", "selectors"):
        low, high = getattr(least, name), getattr(most, name)
        if not 0 <= low <= high:
            raise ExpressionError(f"no program has at least {low} and at most {high} {name}", hint=f"raise max_{name}")
    if least.selectors and not most.depth:
        raise ExpressionError("a program without s-ops has no selectors", hint="raise max_ops and max_depth")


def random_inputs(
    rng: np.random.Generator | int, vocab: Sequence[Value], max_seq_len: int, count: int
) -> list[list[Value]]:
    """`count` inputs whose lengths run from `max_seq_len` down to 1, repeatedly; half of them use few different tokens.

    >>> [len(xs) for xs in random_inputs(0, "abc", max_seq_len=3, count=5)]
    [3, 2, 1, 3, 2]
    """
    rng = np.random.default_rng(rng)
    inputs = []
    for number in range(count):
        few = rng.permutation(len(vocab))[: 2 if rng.random() < 0.5 else None]
        size = max_seq_len - number % max_seq_len
        inputs.append([vocab[int(token)] for token in rng.choice(few, size)])
    return inputs


def _exceeds(larger: ProgramSize, smaller: ProgramSize) -> bool:
    """Whether a size is at least another in every measure."""
    return larger.ops >= smaller.ops and larger.depth >= smaller.depth and larger.selectors >= smaller.selectors


@functools.lru_cache(maxsize=8)
def _probes(limits: Limits) -> list[list[Value]]:
    """The inputs on which a drawn s-op must vary."""
    return random_inputs(0, limits.vocab, limits.max_seq_len, PROBES)


class _Drawing(Pool):
    """A program while it is being drawn; every rule below adds one s-op to the pool."""

    def __init__(
        self, rng: np.random.Generator, limits: Limits, least: ProgramSize, most: ProgramSize, printable: bool
    ) -> None:
        super().__init__(rng, limits)
        self.least, self.most, self.printable = least, most, printable
        self.sizes = SharedSizes()
        self.evaluated: list[dict[RASPExpr, Any]] = [{} for _ in range(PROBES)]

    def keep(self, item: PoolSOp) -> None:
        """Add an s-op to the pool; it can be read if it leaves room for its reader."""
        self.items.append(item)
        size = self.sizes.of(item.sop)
        if size.ops < self.most.ops and size.depth < self.most.depth:
            self.readable.append(item)

    def program(self, max_ops: int, inputs: Sequence[SOp]) -> SOp | None:
        """Draw up to `max_ops` s-ops and return the last; if none was drawn (rarely), an input or a constant.

        Drawing continues while the last s-op is smaller than required; `None` after too many draws.
        """
        for sop in inputs:
            item = PoolSOp(sop, ValueKind.NUMBER, self.limits.max_seq_len, distinct=sop is indices)
            if sop is tokens:
                item = PoolSOp(sop, kind_of(self.limits.vocab), len(self.limits.vocab), none=None in self.limits.vocab)
            self.keep(self.annotated(item) if self.chance(0.2) else item)
        smallest = 0 in (max_ops, self.most.depth)
        if smallest or (self.chance(0.03) and self.least == ProgramSize(0, 0, 0)):
            return self.one_of([*self.items, self.constant()]).sop
        rules = [self.map, self.infix, self.sequence_map, self.linear, self.width, self.aggregate, self.aggregate]
        steps = int(self.rng.integers(1, max_ops + 1))
        tries = 0
        while steps > 0 or not _exceeds(self.sizes.of(self.items[-1].sop), self.least):
            tries += 1
            if tries > TRIES:
                return None
            try:
                item = self.one_of(rules)()
            except NothingFitsError:
                continue
            if _exceeds(self.most, self.sizes.of(item.sop)) and (self.chance(0.1) or self.varies(item)):
                kept = self.annotated(item)
                self.note_copy(item.sop, kept.sop)
                self.keep(kept)
                steps -= 1
        return self.items[-1].sop

    def note_copy(self, sop: SOp, copy: SOp) -> None:
        """A copy with another name or encoding has the values of its original, where these are known."""
        for known in self.evaluated if copy is not sop else ():
            if sop in known:
                known[copy] = known[sop]

    def varies(self, item: PoolSOp) -> bool:
        """Whether the s-op takes more than one value on a few inputs; other s-ops are mostly drawn again."""
        found: set[Value] = set()
        for xs, known in zip(_probes(self.limits), self.evaluated, strict=True):
            for expr in topological([item.sop], known):
                known[expr] = INTERPRETER.evaluate_one(expr, xs, [known[child] for child in expr.children])
            found.update(known[item.sop])
            if len(found) > 1:
                return True
        return False

    # Elementwise s-ops.

    def function(self, kind: ValueKind) -> tuple[Callable[[Any], Value], tuple[Value, ...]]:
        """A function that takes every value of this kind, and the values it gives."""
        to = self.one_of([ValueKind.NUMBER, ValueKind.NUMBER, ValueKind.STRING, ValueKind.BOOLEAN])
        stepwise = kind.numeric and self.chance(0.6)
        options = [self.value(kind), *(self.numbers if stepwise else self.limits.vocab)]
        inputs: Any = list(dict.fromkeys(self.one_of(options) for _ in range(3)))
        values = [self.value(to) for _ in range(len(inputs) + 1)]
        if self.chance(0.2):
            values[0] = None
        if stepwise:
            return fn.Steps(tuple(sorted(inputs)), tuple(values)), tuple(values)
        return fn.Table(tuple(zip(inputs, values[1:], strict=True)), values[0]), tuple(values)

    def map(self) -> PoolSOp:
        """A table or a step function of anything, or a smooth function of a number."""
        item = self.pick(self.small)
        simplify = self.chance(0.7)
        if item.kind.numeric and self.chance(0.25):
            smooth = self.one_of(SMOOTH)
            none = item.none or smooth is fn.reciprocal_or_none
            return PoolSOp(Map(smooth, item.sop, simplify), ValueKind.NUMBER, item.size, none, item.means)
        f, values = self.function(item.kind)
        return PoolSOp(Map(f, item.sop, simplify), kind_of(values), len(values), item.none or None in values)

    def operators(self, fst: ValueKind, snd: ValueKind) -> tuple[Operator, ValueKind]:
        """An operator that never raises between these kinds, and the kind of its results."""
        groups = [(EQUALITY, ValueKind.BOOLEAN)]
        if fst.ordered_with(snd):
            groups.append((ORDER, ValueKind.BOOLEAN))
        if fst is snd is ValueKind.BOOLEAN:
            groups.append((LOGIC, ValueKind.BOOLEAN))
        if fst is snd is ValueKind.STRING:
            groups.append(([operator.add], ValueKind.STRING))
        if fst.numeric and snd.numeric:
            groups += [(ARITHMETIC, ValueKind.NUMBER)] * 2
        group, kind = self.one_of(groups)
        return self.one_of(group), kind

    def infix(self) -> PoolSOp:
        """An operator between an s-op and a constant, on either side; division; `~` or a minus sign."""
        item = self.pick(self.small)
        if item.kind.numeric and self.chance(0.15):
            boolean = item.kind is ValueKind.BOOLEAN
            return replace(item, sop=~item.sop if boolean else -item.sop)
        constant = self.value(item.kind)
        if item.kind.numeric and constant and self.chance(0.2):
            return replace(item, sop=self.one_of(DIVISION)(item.sop, constant), kind=ValueKind.NUMBER, distinct=False)
        apply, kind = self.operators(item.kind, kind_of([constant]))
        sop = apply(constant, item.sop) if self.chance(0.3) else apply(item.sop, constant)
        if kind is ValueKind.BOOLEAN:
            return PoolSOp(sop, kind, 2, item.none)
        return replace(item, sop=sop, kind=kind, distinct=item.distinct and apply is not operator.mul)

    def sequence_map(self) -> PoolSOp:
        """An operator or a function of two s-ops."""
        fst, snd = self.pair()
        size, none, means = fst.size * snd.size, fst.none or snd.none, max(fst.means, snd.means)
        if self.chance(0.25):
            (f, us), (g, vs) = self.function(fst.kind), self.function(snd.kind)
            none = none or None in us or None in vs
            if kind_of(us).ordered_with(kind_of(vs)):
                return self.sum_of_functions(SequenceMap(fn.Sum(f, g), fst.sop, snd.sop), us, vs, none)
        if snd.kind.numeric and self.chance(0.3):
            otherwise = None if self.chance(0.2) else self.value(fst.kind)
            sop = SequenceMap(fn.When(self.one_of(NUMBERS), otherwise), fst.sop, snd.sop)
            return PoolSOp(sop, fst.kind, fst.size + 1, none or otherwise is None, fst.means)
        if fst.kind.numeric and snd.kind.numeric and self.chance(0.3):
            sop = SequenceMap(self.one_of(NUMERIC), fst.sop, snd.sop)
            return PoolSOp(sop, ValueKind.NUMBER, size, none, means)
        apply, kind = self.operators(fst.kind, snd.kind)
        boolean = kind is ValueKind.BOOLEAN
        return PoolSOp(apply(fst.sop, snd.sop), kind, 2 if boolean else size, none, 0 if boolean else means)

    @staticmethod
    def sum_of_functions(sop: SOp, us: Sequence[Value], vs: Sequence[Value], none: bool) -> PoolSOp:
        """The sum of two functions with these results."""
        kind = kind_of(us)
        return PoolSOp(sop, ValueKind.NUMBER if kind.numeric else kind, len(us) * len(vs), none)

    def linear(self) -> PoolSOp:
        """A weighted sum of two s-ops; it is linear, so their tables may be of any size."""
        fst, snd = (self.pick(lambda item: item.kind.numeric) for _ in range(2))
        sop = LinearSequenceMap(fst.sop, snd.sop, self.one_of(NUMBERS), self.one_of(NUMBERS))
        return PoolSOp(sop, ValueKind.NUMBER, fst.size * snd.size, fst.none or snd.none, max(fst.means, snd.means))

    # Selectors and their readers.

    def select(self, keys: PoolSOp, queries: PoolSOp) -> PoolSelector:
        """A predicate that does not raise on these keys and queries, `None` included."""
        constant = self.value(keys.kind)
        options: list[tuple[Operator, bool]] = [
            (fn.same, keys.distinct),
            (fn.differ, False),
            (fn.KeyIs(constant), keys.distinct),
            (fn.KeyIs(constant, negated=True), False),
            (fn.Either((constant,), (self.value(queries.kind),)), False),
        ]
        if keys.kind.numeric and queries.kind.numeric:
            offset = fn.Offset(self.one_of([-2, -1, 1, 2]))
            options += [(offset, keys.distinct), (fn.Near(self.one_of([0.5, 1, 2])), False)]
        if keys.none:
            options.append((fn.key_is_none, False))
        if not (keys.none or queries.none) and self.chance(0.7):
            options = [(Comparison.EQ, keys.distinct), (Comparison.NEQ, False), (Comparison.TRUE, False)]
            options.append((Comparison.FALSE, True))
            if keys.kind.ordered_with(queries.kind):
                options += [(order, False) for order in (Comparison.LT, Comparison.LEQ, Comparison.GT, Comparison.GEQ)]
        predicate, single = self.one_of(options)
        return PoolSelector(Select(keys.sop, queries.sop, predicate), single)

    def fetch(self) -> PoolSelector:
        """A selector of at most one key: an index equal to the query, or a step away from it."""
        keys = self.pick(lambda item: item.distinct)
        queries = self.pick(lambda item: item.kind.numeric and self.small(item))
        options: list[Operator] = [fn.same, fn.Offset(self.one_of([-1, 1]))]
        if not (keys.none or queries.none):
            options += [Comparison.EQ] * 2
        predicate = self.one_of(options)
        return PoolSelector(Select(keys.sop, queries.sop, predicate), single=True)

    def combined(self, fst: PoolSelector, snd: PoolSelector) -> PoolSelector:
        """A boolean combination."""
        simplify = self.chance(0.5) and not self.printable
        kind = self.one_of(("and", "or", "not", "nested"))
        if kind == "and":
            return PoolSelector(selector_and(fst.selector, snd.selector, simplify), fst.single or snd.single)
        if kind == "or":
            return PoolSelector(selector_or(fst.selector, snd.selector, simplify), False)
        if kind == "not":
            return PoolSelector(selector_not(snd.selector, simplify), False)
        return PoolSelector(~(fst.selector & snd.selector) | fst.selector, False)

    def choice(self) -> PoolSelector:
        """One of the selectors drawn before, or a new one, or a boolean combination."""
        if self.choices and self.chance(0.2):
            return self.one_of(self.choices)
        keys, queries = self.pair()
        chosen = self.fetch() if self.chance(0.3) else self.select(keys, queries)
        while self.chance(0.3):
            if not self.limits.composite:
                chosen = self.combined(self.select(keys, queries), self.select(keys, queries))
                break
            chosen = self.combined(self.select(*self.pair()), chosen)
        self.choices.append(chosen)
        return chosen

    def width(self) -> PoolSOp:
        return PoolSOp(SelectorWidth(self.choice().selector), ValueKind.NUMBER, self.limits.max_seq_len + 1)

    def aggregate(self) -> PoolSOp:
        """A mean of numbers, or any value where at most one is selected."""
        choice, depth, n = self.choice(), self.limits.max_mean_depth, self.limits.max_seq_len
        item = self.pick(lambda item: choice.single or (item.kind.numeric and not item.none and item.means < depth))
        kind, size, means = item.kind, item.size + 1, item.means
        if not choice.single:
            kind, means = ValueKind.NUMBER, item.means + 1
            size = item.size * (item.size if item.means else n * n // 2 + 1)
        odd = size <= self.limits.max_values and self.chance(0.15)
        default = None if self.chance(0.4) else self.value(self.one_of(list(ValueKind)) if odd else kind)
        if default is not None:
            kind = kind.joined(kind_of([default]))
        sop = Aggregate(choice.selector, item.sop, default)
        return PoolSOp(sop, kind, size, item.none or default is None, means)
