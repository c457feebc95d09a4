"""The circuit to inject, before it has weights: dimensions by name, heads and steps by what they read and write.

Every variable is one-hot: a *group* of dimensions, one for each class of values that its readers tell apart. The
numbers here are in units of the circuit's scale: a dimension that is "on" holds 1. At BOS every variable is 0.

**Steps.** A step reads a linear function u of dimensions, which is at least `margin` or at most -`margin` on every
input, and adds `writes` if u > 0. It reads no bias: constants are coefficients of the dimension `one`. A layer norm
divides all of u by σ, and the sign of u stays.

**Heads.** The score of a query and a key is a sum of columns, each a product of two linear functions. It is 0 where the
key is selected and at most -1 where it is not. Layer norms multiply it by 1/(σ σ'), and zero stays zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "ANSWER",
    "BALANCE",
    "BOS",
    "CIRCLE",
    "HERE",
    "IN_RANGE",
    "ONE",
    "RESERVED",
    "TRIGGER",
    "ZERO",
    "Column",
    "Dim",
    "DimGroup",
    "GroupKind",
    "HeadPlan",
    "InjectedCircuit",
    "NeuronStep",
    "Neurons",
    "reach_of",
]

GroupKind = Literal["constant", "token", "position", "raw", "variable", "answer"]
Dim = tuple[str, int]
"""A dimension: the name of its group, and its place in it."""

CIRCLE, ANSWER = "circle", "answer"
"""The group that holds the cosine and the sine of the position, and the group that the logits read."""
ONE, BOS, HERE, TRIGGER, IN_RANGE = (("one", 0), ("bos", 0), ("here", 0), ("trigger", 0), ("in range", 0))
"""1 everywhere; at BOS; everywhere but at BOS; where an answer is asked for; where the program has positions."""
BALANCE, ZERO = (("balance", 0), ("zero", 0))
"""Minus the sum of the circuit's other dimensions; and a dimension that holds 0, to subtract the rounding of means."""
RESERVED = (CIRCLE, ANSWER, *(name for name, _ in (ONE, BOS, HERE, TRIGGER, IN_RANGE, BALANCE, ZERO)))
"""The names of groups that are not variables of the program."""


@dataclass(frozen=True)
class DimGroup:
    """Dimensions of one variable: `labels` say when each of them is 1."""

    name: str
    labels: tuple[str, ...]
    kind: GroupKind

    @property
    def dims(self) -> list[Dim]:
        """Its dimensions."""
        return [(self.name, place) for place in range(len(self.labels))]


@dataclass(frozen=True)
class NeuronStep:
    """Adds `writes` where the sum of `reads` is positive.

    The sum's size is at least `margin`. Where the program is defined, the sum is at most `farthest`.
    """

    reads: Mapping[Dim, float]
    margin: float
    farthest: float
    writes: Mapping[Dim, float]


@dataclass(frozen=True)
class Neurons:
    """The steps that compute a variable, in the MLP of a layer."""

    layer: int
    variable: str
    computes: str
    steps: tuple[NeuronStep, ...]


def reach_of(neurons: Iterable[Neurons]) -> dict[Dim, tuple[float, float]]:
    """The least and the most that each written dimension can hold, if any of the steps may be on."""
    found: dict[Dim, tuple[float, float]] = {}
    for part in neurons:
        for step in part.steps:
            for dim, weight in step.writes.items():
                low, high = found.get(dim, (0.0, 0.0))
                found[dim] = (low + min(weight, 0.0), high + max(weight, 0.0))
    return found


@dataclass(frozen=True)
class Column:
    """A term of a head's score: the product of a function of the query's and one of the key's dimensions."""

    query: Mapping[Dim, float]
    key: Mapping[Dim, float]


@dataclass(frozen=True)
class HeadPlan:
    """A head. It adds the mean of the dimensions `copied` (from, to) of the attended positions.

    If `share` is given, it also adds the attention paid to BOS to that dimension. BOS has the score 0 if it is counted
    with the selected keys (`counts`); otherwise BOS is attended if no key is selected.
    """

    layer: int
    variable: str
    computes: str
    columns: tuple[Column, ...]
    copied: tuple[tuple[Dim, Dim], ...]
    share: Dim | None
    counts: bool


@dataclass(frozen=True, eq=False)
class InjectedCircuit:
    """Everything that is added to the host. Embeddings say which dimensions each token and position has."""

    groups: tuple[DimGroup, ...]
    by_token: Mapping[int, Mapping[Dim, float]]
    by_position: tuple[Mapping[Dim, float], ...]
    heads: tuple[HeadPlan, ...]
    neurons: tuple[Neurons, ...]
    answers: Mapping[Dim, int]

    @property
    def layers(self) -> int:
        """The layers it needs."""
        layers = [head.layer for head in self.heads] + [part.layer for part in self.neurons]
        return 1 + max(layers, default=-1)

    @property
    def dims(self) -> list[Dim]:
        """All dimensions, in order."""
        return [dim for group in self.groups for dim in group.dims]

    def head_numbers(self, first: Sequence[int]) -> dict[str, tuple[int, int]]:
        """The layer and the number of each head, by its variable; `first` has the first number in each layer."""
        found: dict[str, tuple[int, int]] = {}
        for head in self.heads:
            found[head.variable] = (
                head.layer,
                first[head.layer] + sum(layer == head.layer for layer, _ in found.values()),
            )
        return found

    def neuron_numbers(self, first: Sequence[int]) -> list[tuple[int, int]]:
        """The first and the last neuron of each group of steps, two for each step; `first` is that of each layer."""
        found, following = [], list(first)
        for part in self.neurons:
            start = following[part.layer]
            following[part.layer] += 2 * len(part.steps)
            found.append((start, following[part.layer] - 1))
        return found
