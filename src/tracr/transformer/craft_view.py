"""A level-0 model in the original Tracr's form: sub-layers over labelled spaces, and the graph of the program.

Directions and nodes have the names of the residual stream's labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.nodes import EXPR, ID, MODEL_BLOCK, OUTPUT_BASIS, VALUE_SET
from tracr.craft.bases import BasisDirection, VectorSpaceWithBasis, direct_sum
from tracr.craft.heads import Head
from tracr.craft.linear import LinearMap
from tracr.craft.mlps import MLP as Neurons
from tracr.craft.transformers import MLP, AttentionHead, MultiAttentionHead, SeriesWithResiduals
from tracr.craft.variables import Number, Variable
from tracr.craft.vectorspace_fns import Linear, ScalarBilinear
from tracr.errors import InputError
from tracr.extras import need
from tracr.ir.domains import Finite
from tracr.ir.layout import Direction
from tracr.model.compiled import CompiledModel

__all__ = ["craft_model", "program_graph"]

Array = NDArray[np.float64]
Spaces = dict[Variable, VectorSpaceWithBasis]
Block = MultiAttentionHead | MLP


def craft_model(model: CompiledModel) -> SeriesWithResiduals:
    """The sub-layers that are not no-ops, in order."""
    spaces = _spaces(model)
    blocks: list[Block] = []
    for _, components in model.schedule.sublayers():
        heads = [_head(part, spaces, model.options.causal) for part in components if isinstance(part, Head)]
        neurons = [part for part in components if isinstance(part, Neurons)]
        blocks += [MultiAttentionHead(heads)] if heads else []
        blocks += [_neurons(neurons, spaces)] if neurons else []
    return SeriesWithResiduals(blocks)


def program_graph(model: CompiledModel, blocks: Sequence[Block]) -> Any:
    """The program as a networkx.DiGraph, with edges from expressions to their readers.

    A node has its id and its expression; nodes of s-ops also have their values, their directions and the sub-layer (one
    of `blocks`) that writes them.
    """
    if not model.expressions:
        raise InputError("a loaded model has no expressions", hint="compile the program again")
    graph = need("networkx", "graph").DiGraph()
    spaces = {variable.node: space for variable, space in _spaces(model).items() if not variable.scratch}
    for number, (node, expr) in enumerate(zip(model.graph.nodes, model.expressions, strict=True)):
        graph.add_node(node.label, **{ID: node.label, EXPR: expr})
        graph.add_edges_from((model.graph.nodes[child].label, node.label) for child in node.children)
        if number not in model.program.sops:
            continue
        domain, space = model.program.sops[number].domain, spaces.get(number)
        if isinstance(domain, Finite):
            graph.nodes[node.label][VALUE_SET] = set(domain.values)
        if space is not None:
            graph.nodes[node.label][OUTPUT_BASIS] = space.basis
            for block in blocks:
                if not _written(block).isdisjoint(space.basis):
                    graph.nodes[node.label][MODEL_BLOCK] = block
    return graph


def _written(block: Block) -> set[BasisDirection]:
    maps = [block.snd] if isinstance(block, MLP) else [head.w_ov for head in block.heads()]
    return {direction for one in maps for direction in one.output_space.basis}


def _spaces(model: CompiledModel) -> Spaces:
    """The directions of every variable, in order."""
    found: dict[Variable, list[BasisDirection]] = {}
    for direction in model.layout.directions:
        found.setdefault(direction.variable, []).append(_direction(direction))
    return {variable: VectorSpaceWithBasis(basis) for variable, basis in found.items()}


def _direction(direction: Direction) -> BasisDirection:
    """The basis direction with the label as its text."""
    name, colon, text = direction.label.rpartition(":")
    if not colon:
        return BasisDirection(direction.label)
    value = direction.value
    if value is None or isinstance(value, Number):  # BOS, PAD and None are named by their text
        return BasisDirection(name, text)
    named = BasisDirection(direction.variable.label, value)
    return named if str(named) == direction.label else BasisDirection(name, text)


def _read(linears: Sequence[LinearMap], spaces: Spaces) -> tuple[VectorSpaceWithBasis, Array]:
    """The space that linear maps read, and their matrices side by side."""
    variables = list(dict.fromkeys(variable for linear in linears for variable in linear.blocks))
    rows = [
        np.hstack([linear.blocks.get(variable, np.zeros((variable.size, linear.width))) for linear in linears])
        for variable in variables
    ]
    width = sum(linear.width for linear in linears)
    return direct_sum(*(spaces[variable] for variable in variables)), np.vstack([np.zeros((0, width)), *rows])


def _write(parts: Sequence[Iterable[tuple[Variable, Array]]], spaces: Spaces) -> tuple[VectorSpaceWithBasis, Array]:
    """The space that components write, and their matrices one above the other."""
    written = [dict(part) for part in parts]
    variables = list(dict.fromkeys(variable for part in written for variable in part))
    heights = [len(next(iter(part.values()))) for part in written]
    columns = [
        np.vstack([part.get(v, np.zeros((height, v.size))) for part, height in zip(written, heights, strict=True)])
        for v in variables
    ]
    return direct_sum(*(spaces[variable] for variable in variables)), np.hstack(columns)


def _head(head: Head, spaces: Spaces, causal: bool) -> AttentionHead:
    query, key, value = ((_read([linear], spaces)) for linear in (head.query, head.key, head.value))
    written, matrix = _write([head.writes], spaces)
    return AttentionHead(
        ScalarBilinear(query[0], key[0], query[1] @ key[1].T),
        Linear(value[0], written, value[1] @ matrix),
        causal=causal,
    )


def _neurons(parts: Sequence[Neurons], spaces: Spaces) -> MLP:
    read, into = _read([part.read for part in parts], spaces)
    written, out_of = _write([part.writes for part in parts], spaces)
    neurons = VectorSpaceWithBasis.from_values("neuron", range(into.shape[1]))
    return MLP(Linear(read, neurons, into), Linear(neurons, written, out_of))
