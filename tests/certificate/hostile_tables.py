"""Random tables that no compiler makes, for comparing what the checker says of a program with brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.trials.meaning import Meaning
from tracr.saving.values_json import encode_value
from tracr_check.program import Program
from tracr_check.program_file import read_program
from tracr_check.variables import Env, Var, snap

Rng = np.random.Generator
POOL: list[Any] = [0, 1, 2, -1, 0.5, 1 / 3, 3.0, True, None, "a", "b", (1,), (True,), ("a", None), 2.0, 1.5]
POOL += [-0.0, Fraction(1, 2), Decimal("1.0"), complex(2, 0), b"a", frozenset({1}), frozenset({True}), 2**53 + 1]
OWN = ("tokens", "indices", "length")


@dataclass
class Tables:
    """A program as it is saved: `model.json` and its tables."""

    model: dict[str, Any]
    tables: dict[str, NDArray[Any]]

    def program(self) -> Program:
        """What the checker reads."""
        return read_program(self.model, self.tables)


def random_tables(rng: Rng) -> Tables:
    """Tables of any codes, error marks anywhere, values of several kinds, several lengths, a causal mask or none."""
    made = _Making(rng)
    for _ in range(int(rng.integers(3, 8))):
        made.add()
    return made.result()


class _Making:
    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.causal = bool(rng.random() < 0.3)
        self.longest = int(rng.integers(1, 5))
        self.high = int(rng.integers(1, min(self.longest, 3) + 1))
        self.low = int(rng.integers(1, self.high + 1))
        self.vocab = ["a", "b"] if rng.random() < 0.5 else [0, 1, 3][: int(rng.integers(1, 4))]
        self.sops: list[dict[str, Any]] = []
        self.values: list[list[Any]] = []
        self.selectors: list[dict[str, Any]] = []
        self.tables: dict[str, NDArray[Any]] = {}
        self.put({"kind": "tokens"}, self.vocab)
        self.put({"kind": "indices"}, list(range(self.longest)))
        if not self.causal:
            self.put({"kind": "length"}, list(range(self.low, self.high + 1)))

    def result(self) -> Tables:
        options = {"vocab": self.vocab, "max_seq_len": self.longest, "causal": self.causal}
        outputs = [["out", len(self.sops) - 1]]
        program = {"sops": self.sops, "selectors": self.selectors, "outputs": outputs}
        return Tables({"options": options, "program": {**program, "lengths": [self.low, self.high]}}, self.tables)

    def put(self, op: dict[str, Any], values: list[Any], table: NDArray[Any] | None = None) -> None:
        number = len(self.sops)
        interval = op.pop("interval", None)
        domain = interval or {"kind": "finite", "values": [encode_value(value) for value in values]}
        encoding = "numerical" if interval else "categorical"
        self.sops.append({"id": number, "label": f"s{number}", "op": op, "domain": domain, "encoding": encoding})
        self.values.append([] if interval else values)
        if table is not None:
            self.tables[f"sops.{number}"] = table.astype(np.int32)

    def some(self, numeric: bool = False) -> int:
        """An s-op whose values are listed; of numbers (and perhaps `None`) only."""
        fine = [n for n, values in enumerate(self.values) if values and (not numeric or all(map(_number, values)))]
        return int(self.rng.choice(fine))

    def cells(self, shape: tuple[int, ...], size: int) -> NDArray[Any]:
        table = self.rng.integers(0, size, shape)
        return np.where(self.rng.random(shape) < 0.06, self.rng.integers(-2, 0, shape), table)

    def listed(self, values: list[Any]) -> list[Any]:
        """Most of these values, in any order, some of them a little off."""
        kept = [value for value in dict.fromkeys(values) if self.rng.random() < 0.93] or values[:1]
        moved = [v + 5e-10 if type(v) is float and self.rng.random() < 0.2 else v for v in kept]
        return [moved[place] for place in self.rng.permutation(len(moved))]

    def add(self) -> None:
        rng = self.rng
        pool = [POOL[place] for place in rng.permutation(len(POOL))[: rng.integers(1, 5)]]
        pool = (
            list(dict.fromkeys(pool)) if rng.random() < 0.5 else [v for v in dict.fromkeys(pool) if _number(v)] or [0]
        )
        match rng.choice(["constant", "positions", "lookup", "pair", "linear", "points", "width", "mean", "mean"]):
            case "constant":
                self.put({"kind": "constant"}, pool[:1])
            case "positions":
                self.put({"kind": "positions"}, pool, self.cells((self.longest,), len(pool)))
            case "lookup":
                one = self.some()
                self.put({"kind": "lookup", "inner": one}, pool, self.cells((len(self.values[one]),), len(pool)))
            case "pair":
                one, two = self.some(), self.some()
                shape = len(self.values[one]), len(self.values[two])
                self.put({"kind": "pair_lookup", "fst": one, "snd": two}, pool, self.cells(shape, len(pool)))
            case "linear":
                terms, sums = self.sums()
                op = {"kind": "linear", "terms": terms, "constant": 0.0}
                self.put(op | self.interval(sums), self.listed(sums))
            case "points":
                terms, sums = self.sums()
                points = self.listed([one for one in sums if one is not None] or [0.0])
                op = {"kind": "sum_lookup", "terms": terms, "points": {"kind": "finite", "values": points}}
                self.put(op, pool, self.cells((len(points),), len(pool)))
            case "width":
                counts = [float(n) if rng.random() < 0.3 else n for n in range(self.high + 1)]
                self.put({"kind": "width", "selector": self.selector()}, self.listed(counts))
            case _:
                self.mean()

    def sums(self) -> tuple[list[Any], list[Any]]:
        """Two terms of a sum, and all sums that they can have."""
        if not any(all(map(_number, values)) for values in self.values if values):
            return [], [0.0]
        one, two = self.some(numeric=True), self.some(numeric=True)
        f, g = (float(self.rng.choice([1, -1, 2, 0.5, 1 / 3])) for _ in range(2))
        pairs = list(itertools.product(self.values[one], self.values[two]))
        sums: list[Any] = sorted({round(f * x + g * y, 12) for x, y in pairs if None not in (x, y)})
        return [[one, f], [two, g]], [*sums, *[None] * any(None in pair for pair in pairs)]

    def interval(self, numbers: list[Any]) -> dict[str, Any]:
        """Sometimes an interval instead of listed numbers."""
        known = [one for one in numbers if one is not None]
        if self.rng.random() > 0.1 or not known or max(known) - min(known) > 3:
            return {}
        ends = {"low": min(known), "high": max(known), "maybe_none": None in numbers}
        return {"interval": {"kind": "interval", **ends}}

    def mean(self) -> None:
        source = self.some()
        values = self.values[source]
        numbers = [value for value in values if _number(value) and value is not None]
        default = [*values, None, 0, (1,), 7][self.rng.integers(len(values) + 4)]
        counts = range(2, self.high + 1)
        rows = (row for n in counts for row in itertools.combinations_with_replacement(numbers, n))
        means = sorted({round(sum(row) / len(row), 12) for row in rows})
        op = {"kind": "aggregation", "selector": self.selector(), "value": source, "default": encode_value(default)}
        op |= {"assumed": bool(self.rng.random() < 0.2)}
        every = [*values, default, *(one for one in means if one not in numbers)]
        numeric = all(map(_number, every))
        self.put(op | (self.interval(every) if numeric else {}), self.listed(every))

    def selector(self) -> int:
        """A selector that is there, a new one, or a combination."""
        kind, count = self.rng.random(), len(self.selectors)
        if count and kind < 0.2:
            return int(self.rng.integers(count))
        if kind < 0.45:
            how = str(self.rng.choice(["and", "or", "or", "not"]))
            return self.combined(how, [self.selector() for _ in range(1 if how == "not" else 2)])
        if kind < 0.55:  # the positions that hold one value, numbered; sometimes not one value
            one, form = self.some(), int(self.rng.choice([0, 0, 2]))
            return self.combined("and", [self.compared(one, one, form), self.compared(1, 1, 1)])
        queries = self.some()
        return self.compared(queries, queries if self.rng.random() < 0.5 else self.some())

    def combined(self, how: str, parts: list[int]) -> int:
        """Selectors as one."""
        number = len(self.selectors)
        self.selectors.append({"id": number, "label": f"m{number}", "kind": how, "parts": parts})
        return number

    def compared(self, queries: int, keys: int, form: int | None = None) -> int:
        """A table; mostly one that compares codes."""
        number, shape = len(self.selectors), (len(self.values[queries]), len(self.values[keys]))
        here, there = np.indices(shape)
        forms = [here == there, here <= there, here > there, here == there + 1, here >= 0, self.rng.random(shape) < 0.5]
        table = forms[self.rng.integers(len(forms)) if form is None else form].astype(np.int8)
        if form is None and self.rng.random() < 0.3:
            table = np.where(self.rng.random(shape) < 0.1, self.rng.integers(-2, 0, shape), table).astype(np.int8)
        self.selectors.append({"id": number, "label": f"m{number}", "keys": keys, "queries": queries})
        self.tables[f"selectors.{number}"] = table
        return number


def _number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)


# Every input


@dataclass
class Input:
    """An input on which the program is defined: the codes of its variables, and the meaning that gave them."""

    env: Env
    meaning: Meaning
    tokens: tuple[int, ...]
    found: dict[int, list[Any]]

    def selected(self, selector: int) -> list[list[bool]]:
        """[query, key] of what a selector selects."""
        every = range(len(self.tokens))
        return [[self.meaning.selects(selector, query, key, self.found) for key in every] for query in every]

    def chosen(self, selector: int) -> NDArray[np.bool_]:
        """The same without the keys that a causal mask hides."""
        found = np.array(self.selected(selector))
        return np.tril(found) if self.meaning.causal else found


def inputs(made: Tables, program: Program) -> Iterator[Input]:
    """Every input on which the program is defined."""
    meaning = Meaning(made.model, made.tables)
    for length in range(program.lengths[0], program.lengths[1] + 1):
        for tokens in itertools.product(range(program.vocabulary), repeat=length):
            found = meaning.codes(tokens)
            if found is None:
                continue
            codes: dict[Var, Any] = {"T": tokens, "I": range(length), "L": [length - program.lengths[0]] * length}
            for number, column in found.items():
                sop = program.sops[number]
                if not sop.listed:
                    column = snap(sop, np.array([np.nan if x is None else float(x) for x in column])).tolist()
                codes[number] = column
            env = Env(length, {name: np.array(list(column), np.int64) for name, column in codes.items()})
            yield Input(env, meaning, tokens, found)
