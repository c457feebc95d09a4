"""The meaning of every dimension of the residual stream, with its writer and its readers."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Bit, Feature, Number, Variable
from tracr.errors import TracrError, UnknownName
from tracr.ir.circuit import Component
from tracr.ir.layout import ALWAYS, Direction, Layout
from tracr.rasp.annotations import Encoding
from tracr.values import Value, short_repr

__all__ = ["Dimension", "Residual", "residual_of", "time_of"]

AFTER = {"hook_resid_pre": -1, "hook_resid_mid": 0, "hook_resid_post": 1}


@dataclass(frozen=True)
class Dimension:
    """The contents of a dimension: label, variable, value (`None` also for a number or a bit), writer and readers.

    `bit`, if not `None`, is the index of a bit of the value's number: the dimension holds +1 for 0, -1 for 1. At level
    2 a dimension may have different contents at different times: each is there from sub-layer `since` until before
    sub-layer `until` (the embedding is -1, attention of layer l is 2l, its MLP 2l + 1). `number` is its index in
    `Residual.dimensions`.
    """

    index: int
    label: str
    variable: str
    encoding: Encoding
    value: Value
    is_number: bool
    writer: str
    readers: tuple[str, ...]
    bit: int | None = None
    since: int = -1
    until: int = ALWAYS
    number: int = 0

    def held(self, time: int) -> bool:
        """Whether the dimension has these contents after a sub-layer."""
        return self.since <= time < self.until


def time_of(hook: str) -> int:
    """The sub-layer right before an activation of the residual stream.

    >>> time_of("hook_embed"), time_of("blocks.1.hook_resid_pre"), time_of("blocks.1.hook_resid_post")
    (-1, 1, 3)
    """
    if not isinstance(hook, str):
        raise UnknownName(
            f"{short_repr(hook)} is not an activation", hint="write 'blocks.0.hook_resid_post', for example"
        )
    if hook in ("hook_embed", "hook_pos_embed"):
        return -1
    parts = hook.split(".")
    if len(parts) == 3 and parts[0] == "blocks" and parts[1].isdecimal() and parts[2] in AFTER:
        return 2 * int(parts[1]) + AFTER[parts[2]]
    raise UnknownName(
        f"{hook!r} is not an activation of the residual stream", hint="write 'blocks.0.hook_resid_post', for example"
    )


@dataclass(frozen=True)
class Residual:
    """The labelled residual stream: look a dimension up by index or label, a variable with `of`.

    At level 2 a dimension may have several contents, one after the other. `dimensions` lists all of them; `at` lists
    the contents in one activation.
    """

    dimensions: tuple[Dimension, ...]

    @property
    def labels(self) -> list[str]:
        """The label of each dimension; for a dimension with several contents, all their labels in order."""
        found: list[list[Dimension]] = [[] for _ in range(len(self))]
        for dimension in self.dimensions:
            found[dimension.index].append(dimension)
        ordered = (sorted(turns, key=lambda dimension: dimension.since) for turns in found)
        return [" | ".join(dimension.label for dimension in turns) for turns in ordered]

    def __len__(self) -> int:
        return max((dimension.index for dimension in self.dimensions), default=-1) + 1

    def at(self, hook: str) -> list[Dimension | None]:
        """The contents of each dimension in an activation, such as "blocks.0.hook_resid_post"; `None` if empty."""
        time = time_of(hook)
        found: list[Dimension | None] = [None] * len(self)
        for dimension in self.dimensions:
            if dimension.held(time):
                found[dimension.index] = dimension
        return found

    @property
    def shared(self) -> bool:
        """Whether some dimension has several contents, one after the other."""
        return len(self.dimensions) > len(self)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self.dimensions)

    def __getitem__(self, key: int | str) -> Dimension:
        if isinstance(key, str):
            for dimension in self.dimensions:
                if dimension.label == key:
                    return dimension
            raise TracrError(f"the residual stream has no dimension {key!r}", hint=f"it has {', '.join(self.labels)}")
        try:
            index = range(len(self))[operator.index(key)]
        except (TypeError, IndexError):
            raise UnknownName(
                f"the residual stream has no dimension {short_repr(key)}",
                hint=f"it has {len(self)} dimensions, counted from 0; or use a label",
            ) from None
        turns = [dimension for dimension in self.dimensions if dimension.index == index]
        if len(turns) > 1:
            order = sorted(turns, key=lambda dimension: dimension.since)
            raise TracrError(
                f"dimension {key} holds {', then '.join(dimension.label for dimension in order)}",
                hint="use the label of one of them, or residual.at(hook)",
            )
        return turns[0]

    def of(self, variable: str) -> tuple[Dimension, ...]:
        """The dimensions of one variable."""
        known = isinstance(variable, str)
        found = tuple(dimension for dimension in self.dimensions if known and dimension.variable == variable)
        if not found:
            names = dict.fromkeys(dimension.variable for dimension in self.dimensions)
            raise TracrError(
                f"no variable {short_repr(variable)} in the residual stream", hint=f"it has {', '.join(names)}"
            )
        return found

    def indices(self, variable: str) -> list[int]:
        """The numbers of the dimensions of one variable."""
        return [dimension.index for dimension in self.of(variable)]

    def __str__(self) -> str:
        return self.show()

    def show(self) -> str:
        """One line per dimension."""
        width = max((len(dimension.label) for dimension in self.dimensions), default=0)
        return "\n".join(
            f"{dimension.index:4d}  {dimension.label:<{width}}  written by {dimension.writer or '-'}, "
            f"read by {', '.join(dimension.readers) or '-'}"
            + (f", cleared by blocks.{dimension.until // 2}.mlp" if dimension.until < ALWAYS else "")
            for dimension in self.dimensions
        )


def residual_of(layout: Layout) -> Residual:
    """The labelled residual stream; writers and readers are collected from the maps that become weights."""
    schedule, ends = layout.schedule, _Ends()
    for source in schedule.embedded:
        for place in range(source.variable.size):
            ends.writers[source.variable, place] = "embed" if source.by_token is not None else "pos_embed"
    for sublayer in schedule.sublayers():
        for place, component in enumerate(sublayer.components):
            name = f"blocks.{sublayer.layer}.{sublayer.kind}"
            ends.note(f"{name}.{place}" if isinstance(component, Head) else name, component)
    for linear in schedule.unembedded:
        ends.note_reads("unembed", linear)
    special = {BOS: schedule.options.bos, PAD: schedule.options.pad}
    dimensions = (_dimension(number, direction, ends, special) for number, direction in enumerate(layout.directions))
    return Residual(tuple(dimensions))


class _Ends:
    """The writer and the readers of each direction, under the names of the ground truth."""

    def __init__(self) -> None:
        self.writers: dict[tuple[Variable, int], str] = {}
        self.readers: dict[tuple[Variable, int], list[str]] = {}

    def note(self, name: str, component: Component) -> None:
        """Note the directions that a component writes and reads; clearing a direction is not reading it."""
        for variable, matrix in component.writes:
            for place in np.flatnonzero(matrix.any(axis=0)).tolist():
                self.writers[variable, place] = name
        if isinstance(component, Head):
            for part, linear in zip("qkv", component.maps, strict=True):
                self.note_reads(f"{name}.{part}", linear)
        elif not component.clears:
            self.note_reads(name, component.read)

    def note_reads(self, name: str, linear: LinearMap) -> None:
        """Note the directions that a map reads."""
        for variable, block in linear.blocks.items():
            for place in np.flatnonzero(block.any(axis=1)).tolist():
                names = self.readers.setdefault((variable, place), [])
                if name not in names:
                    names.append(name)


def _dimension(number: int, direction: Direction, ends: _Ends, special: Mapping[Variable, Value]) -> Dimension:
    """A direction as users see it: the directions of BOS and PAD are values of the tokens."""
    key = (direction.variable, direction.place)
    variable, value = direction.variable, direction.value
    label, encoding, writer = variable.label, variable.encoding, ends.writers.get(key, "")
    if variable in special:
        label, encoding, writer, value = "tokens", Encoding.CATEGORICAL, "embed", special[variable]
    return Dimension(
        direction.slot,
        direction.label,
        label,
        encoding,
        None if isinstance(value, Number | Bit | Feature) else value,
        isinstance(value, Number),
        "embed" if variable is ONE else writer,
        tuple(ends.readers.get(key, ())),
        value.place if isinstance(value, Bit) else None,
        direction.since,
        direction.until,
        number,
    )
