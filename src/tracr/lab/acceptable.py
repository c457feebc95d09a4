"""The circuits of a model with a backup: any of them is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracr.ground_truth.edge_keys import coarsened, key_of_edge
from tracr.natural.backing_up import redundancies

if TYPE_CHECKING:
    from tracr.ground_truth.data import Granularity
    from tracr.ground_truth.scores import EdgeKey
    from tracr.model.compiled import CompiledModel

__all__ = ["acceptable_circuits"]


def acceptable_circuits(
    model: CompiledModel, needed: frozenset[EdgeKey], inputs: Sequence[Any], granularity: Granularity
) -> tuple[frozenset[EdgeKey], ...]:
    """The needed edges without those of one of the two computations, where they are enough if all others are zeros."""
    found: dict[frozenset[EdgeKey], None] = {}
    key_of = {edge: coarsened(key_of_edge(edge), granularity) for edge in model.ground_truth.edges()}
    for one in redundancies(model):
        for circuit in one.circuits("zero"):
            keys = needed & {key_of[edge] for edge in circuit}
            if one.accepts([edge for edge, key in key_of.items() if key in keys], inputs, "zero"):
                found[keys] = None
    return tuple(found)
