"""Compares the attention of each head with its selector, on one input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tracr.craft.heads import Head
    from tracr.model.designed import DesignedModel
    from tracr.model.run import Run

__all__ = ["Agreement"]

EVEN = 1e-3  # weights that differ by less, relative to the largest, count as equal

Array = NDArray[Any]
Matrix = NDArray[np.bool_]


class Agreement:
    """The heads of a run, each compared with its selector; heads that share a selector are compared together."""

    def __init__(self, model: DesignedModel, run: Run, designs: Mapping[str, Matrix]) -> None:
        self.model, self.designs = model, designs
        size = len(designs["everything"])
        self.heads: dict[tuple[int, int], Head] = {}
        self.keys: dict[tuple[int, int], Array] = {}
        for number, place, head in model.layout.schedule.heads():
            pattern = run[f"blocks.{number}.attn.hook_pattern"][0, place]
            self.heads[number, place] = head
            self.keys[number, place] = pattern[1 : size + 1, 1 : size + 1]

    def remark(self, place: tuple[int, int]) -> str:
        """One line on how the attention of a head compares with its selector; empty if it has no selector."""
        keys, design = self.keys[place], self.designs.get(self.heads[place].selector)
        if design is None:
            return ""
        attended, total = _attended(keys), keys.sum(axis=1, keepdims=True)
        if np.abs(keys - _evenly(attended) * total).max(initial=0.0) <= EVEN * keys.max(initial=0.0):
            if np.array_equal(attended, design):
                return "attends evenly to the selected keys"
            parts = [_attended(self.keys[other]).astype(int) for other in self._together(place)]
            added, everything = np.sum(parts, axis=0), self.designs["everything"]
            if np.array_equal(added, design):
                return f"one of {len(parts)} heads that add up to the selector"
            if any(np.array_equal(part, everything) and np.array_equal(2 * part - added, design) for part in parts):
                return f"one of {len(parts)} heads: all keys minus those not selected"
            if not (attended & ~design).any():
                return "attends evenly to some of the selected keys"
        share = keys / np.maximum(total, np.finfo(np.float32).tiny)
        return f"differs from the selector by {np.abs(share - _evenly(design)).max(initial=0.0):.2f}"

    def _together(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        """The heads that compute the same s-op with a head's selector."""
        own = {node for node in _nodes(self.heads[place]) if self._selector(node) == self.heads[place].selector}
        return [other for other, head in self.heads.items() if own & _nodes(head)]

    def _selector(self, node: int) -> str:
        op = self.model.program.sops[node].op
        return self.model.program.selectors[op.selectors[0]].label if op.selectors else ""


def _nodes(head: Head) -> set[int]:
    return {variable.node for variable, _ in head.writes if variable.node is not None}


def _attended(keys: Array) -> Matrix:
    return np.asarray(keys > EVEN * keys.max(initial=0.0))


def _evenly(chosen: Matrix) -> Array:
    """The same weight for every chosen key, with sum 1."""
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))
