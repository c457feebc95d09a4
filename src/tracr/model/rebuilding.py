"""From the tabulated program to the model again: steps 3 to 6 of the compiler, which call nothing of the user's."""

from __future__ import annotations

from tracr.compiler.assemble import assemble
from tracr.compiler.construct import construct
from tracr.compiler.prune import prune
from tracr.compiler.schedule import assign_to_layers
from tracr.compiler.trace import Graph
from tracr.compiler.translate import translate
from tracr.compiler.typed import Typed
from tracr.model.compiled import CompiledModel
from tracr.model.saved_graph import SavedGraph

__all__ = ["rebuild"]


def rebuild(graph: Graph | SavedGraph, typed: Typed, source: str) -> CompiledModel:
    """The model that the compiler makes of a tabulated program."""
    options = typed.options
    circuit = translate(typed)
    if options.level >= 1:
        circuit = prune(circuit)
    circuit.verify()
    schedule = assign_to_layers(circuit, merge_heads=options.level >= 1)
    schedule.verify()
    construction = construct(schedule, options)
    construction.verify()
    parameters = assemble(construction, options)
    return CompiledModel(options, graph, typed, circuit, schedule, construction, parameters, source)
