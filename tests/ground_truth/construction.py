"""The edges that the compiler meant, from the maps of the construction."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracr
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Variable
from tracr.ir.circuit import Component

Wire = tuple[str, str, str, tuple[int, ...], bool]


def by_construction(model: tracr.DesignedModel) -> set[Wire]:
    """(writer, reader, input, slots, cancelled) of every edge, from the maps of the construction, not the weights."""
    layout, circuit = model.layout, model.circuit
    slots_of = layout.slots
    writers: dict[int, list[tuple[str, Variable, bool]]] = {}  # who adds what to a slot; whether that was cancelled
    found: set[Wire] = set()

    def live(variable: Variable, used: Any) -> list[int]:
        return [int(s) for s, u in zip(slots_of.get(variable, ()), used, strict=False) if s >= 0 and u]

    def write(name: str, variable: Variable, used: Any) -> None:
        for slot in live(variable, used):
            assert all(cancelled for _, _, cancelled in writers.setdefault(slot, []))
            writers[slot].append((name, variable, False))

    def clear(name: str, variable: Variable, used: Any) -> None:
        for slot in live(variable, used):
            writers[slot] = [*((*earlier[:2], True) for earlier in writers[slot]), (name, variable, True)]

    def read(name: str, into: str, linear: LinearMap) -> None:
        slots = {slot for variable, block in linear.blocks.items() for slot in live(variable, block.any(axis=1))}
        carried: dict[tuple[str, Variable, bool], list[int]] = {}
        for slot in sorted(slots):
            for one in writers.get(slot, ()):
                carried.setdefault(one, []).append(slot)
        found.update((writer, name, into, tuple(held), gone) for (writer, _, gone), held in carried.items())

    for source in circuit.embedded:
        table = source.by_token if source.by_token is not None else source.by_position
        assert table is not None
        write("embed" if source.by_token is not None else "pos_embed", source.variable, table.any(axis=0))
    for variable in (BOS, PAD, ONE):
        write("embed", variable, np.ones(1))
    for number, layer in enumerate(layout.layers):
        sublayers: tuple[tuple[str, tuple[Component, ...]], ...] = (("attn", layer.heads), ("mlp", layer.mlps))
        for kind, components in sublayers:
            named = [(f"blocks.{number}.{kind}.{index}", component) for index, component in enumerate(components)]
            for name, component in named:
                names = ("q", "k", "v") if isinstance(component, Head) else ("in",)
                for into, linear in zip(names, component.maps, strict=True):
                    read(name, into, linear)
            for name, component in named:
                for variable, matrix in () if isinstance(component, Head) else component.clears:
                    clear(name, variable, matrix.any(axis=0))
            for name, component in named:
                for variable, matrix in component.writes:
                    write(name, variable, matrix.any(axis=0))
    total = LinearMap({}, 0)
    for linear in circuit.unembedded:
        total = total.beside(linear)
    read("unembed", "in", total)
    return found


def check_edges(model: tracr.DesignedModel) -> None:
    edges = model.ground_truth.edges()
    found = [(edge.source, edge.target, edge.input, edge.slots, edge.cancelled) for edge in edges]
    assert len(set(found)) == len(found)
    assert set(found) == by_construction(model)
    names = [(edge.source, edge.target, edge.input, edge.variable) for edge in edges]
    assert len(set(names)) == len(names)
