"""Writes the hints for the checker: of which variable each written dimension is a function. None of them is trusted.

    {"aux": {"100000": {"kind": "pair", "of": [15, 7]}},           variables that the program lacks
     "parts": {"c0.0": null, "s0.1.3": 3},                         what a head counts, or whose values it sums or copies
     "sums": {"7": [["c0.0", "c0.1"]]},                            parts that make up a width, a sum or a copy; all ways
     "layers": [{"heads": [{"9": "c0.0"}], "mlp": {"11": 7}}]}     dimension -> owner

An owner is the number of an s-op or of an `aux` variable, or a part: the count (`c0.1`) of head 1 of layer 0, or its
sum (`s0.1.3`) or copy (`p0.1.3`) of s-op 3.
"""

from __future__ import annotations

import math
import re
from typing import Any

from tracr.craft.variables import Variable
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, Lookup, PairLookup, SumLookup
from tracr.ir.ops import Linear as LinearOp
from tracr.ir.program import Program
from tracr.model.designed import DesignedModel
from tracr.rational import fraction_of

__all__ = ["hints"]

SHARE = re.compile(r"(.*_count(?:_(\d+)_)?\d+(?:_\d+)?)_share(?:_\d+)?")  # of a count that an MLP decodes
FIRST = 100_000  # the number of the first variable that the program lacks
Owner = int | str


def hints(model: DesignedModel) -> dict[str, Any]:
    """The hints for a compiled model."""
    return _Hints(model).found()


class _Hints:
    def __init__(self, model: DesignedModel) -> None:
        self.model = model
        self.program: Program = model.program
        self.by_label = {node.label: node.id for node in self.program.sops.values()}
        self.aux: dict[int, dict[str, Any]] = {}
        self.sums: dict[int, dict[int, list[str]]] = {}  # by the whole, and by the s-op whose heads make it up
        self.parts: dict[str, int | None] = {}
        self.counts: dict[str, str] = {}  # the parts that are counts, by the label of the variable that holds them

    def found(self) -> dict[str, Any]:
        layers = []
        for number, layer in enumerate(self.model.layout.layers):
            heads = [self.dimensions(head.writes, f"{number}.{place}") for place, head in enumerate(layer.heads)]
            mlp: dict[str, Owner] = {}
            for group in layer.mlps:
                mlp.update(self.dimensions(group.writes, None))
            layers.append({"heads": heads, "mlp": mlp})
        sums = {
            str(number): [list(names) for names in dict.fromkeys(map(tuple, ways.values()))]
            for number, ways in self.sums.items()
        }
        aux = {str(number): one for number, one in self.aux.items()}
        return {"aux": aux, "parts": self.parts, "sums": sums, "layers": layers}

    def dimensions(self, writes: Any, head: str | None) -> dict[str, Owner]:
        """The owner of each dimension that a component writes."""
        slots = self.model.layout.slots
        return {
            str(int(slot)): self.owner(variable, head)
            for variable, _ in writes
            for slot in slots.get(variable, ())
            if slot >= 0
        }

    def define(self, **aux: Any) -> int:
        """The number of a variable that the program lacks."""
        for number, known in self.aux.items():
            if known == aux:
                return number
        self.aux[FIRST + len(self.aux)] = aux
        return FIRST + len(self.aux) - 1

    def owner(self, variable: Variable, head: str | None) -> Owner:
        """The variable that the directions of a variable of the circuit are a function of."""
        node = variable.node
        if node is None:
            return self.owner_of_runs(variable)
        op = self.program.sops[node].op if node in self.program.sops else None
        share = SHARE.fullmatch(variable.label) if variable.scratch and head else None
        if share and head:
            return self.owner_of_share(share[1], share[2] is not None, node, op, head)
        if variable.label in self.counts and not head:
            return self.counts[variable.label]
        kind = re.search(r"_(count|part)(\d*)(_\d+)?$", variable.label) if variable.scratch else None
        if kind and isinstance(op, Aggregation):
            return self.owner_in_aggregate(kind[1], bool(kind[2]), node, op, head)
        if kind and kind[2] and head:
            return self.part("c", head, node, node, None)
        return node

    def owner_in_aggregate(self, kind: str, split: bool, node: int, op: Aggregation, head: str | None) -> Owner:
        """The owner of what several heads, or the MLP after them, compute for an aggregate."""
        if head is None or not split:
            return self.define(kind="width", selector=op.selector) if kind == "count" and not split else node
        if self.copies(op):
            return self.part("p", head, node, node, op.value)
        if kind == "count":
            return self.part("c", head, node, self.define(kind="width", selector=op.selector), None)
        return self.part("s", head, node, self.define(kind="sum", selector=op.selector, of=op.value), op.value)

    def owner_of_share(self, label: str, one_value: bool, node: int, op: Any, head: str) -> Owner:
        """The owner of a share that is decoded to a count: of selected keys, or of those with one value (a mean)."""
        whole = node
        if isinstance(op, Aggregation) and one_value:
            whole = self.define(kind="units", selector=op.selector, of=op.value, **self.units(op.value))
        elif isinstance(op, Aggregation):
            whole = self.define(kind="width", selector=op.selector)
        self.counts[label] = self.part("c", head, node, whole, None)
        return self.counts[label]

    def units(self, number: int) -> dict[str, float]:
        """The smallest value of an s-op, and how many units 1 is if all values are whole units above it."""
        domain = self.program.sops[number].domain
        assert isinstance(domain, Finite)
        fractions = [fraction_of(one) for one in domain.numbers.tolist()]
        least = min(fractions)
        return {"above": float(least), "times": math.lcm(*((one - least).denominator for one in fractions))}

    def copies(self, op: Aggregation) -> bool:
        """Whether the heads of a split selector copy values, not sum them (`several_heads.py`)."""
        return op.copies

    def part(self, kind: str, head: str, node: int, whole: int, source: int | None) -> str:
        """The part that a head writes for an s-op, which makes up a whole."""
        name = kind + head if source is None else f"{kind}{head}.{source}"
        self.parts[name] = source
        names = self.sums.setdefault(whole, {}).setdefault(node, [])
        if name not in names:
            names.append(name)
        return name

    def owner_of_runs(self, variable: Variable) -> Owner:
        """The runs of a function are a function of what it reads."""
        label = re.sub(r"_runs(_\d+)?$", "", variable.label)
        number = self.by_label[label]
        op = self.program.sops[number].op
        if isinstance(op, Lookup):
            return op.inner
        if not isinstance(op, (PairLookup, SumLookup, LinearOp)):
            return number
        parts = [op.fst, op.snd] if isinstance(op, PairLookup) else [term for term, _ in op.terms]
        whole = parts[0]
        for part in parts[1:]:
            whole = self.define(kind="pair", of=[whole, part])
        return whole
