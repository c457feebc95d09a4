"""The compiler on one page: six steps, each a pure function from one frozen value to the next.

    step                     from          to             file
    1 trace                  SOp           Graph          trace.py
    2 infer                  Graph         Typed          infer.py
    3 translate              Typed         Circuit        translate.py; from level 1 on then pruned, prune.py
    4 assign to layers       Circuit       Schedule       schedule.py
    5 construct              Schedule      Construction   construct.py
    6 assemble               Construction  Parameters     assemble.py

Every intermediate value has `verify()`, run here at each border, and `show()`.
"""

from __future__ import annotations

from tracr.compiler.assemble import assemble
from tracr.compiler.construct import construct
from tracr.compiler.infer import infer
from tracr.compiler.options import Options
from tracr.compiler.prune import prune
from tracr.compiler.schedule import assign_to_layers
from tracr.compiler.trace import Graph, Outputs, trace
from tracr.compiler.translate import translate
from tracr.compiler.typed import Typed
from tracr.model.compiled import CompiledModel
from tracr.model.saved_graph import SavedGraph

__all__ = ["compile_program", "compile_typed"]


def compile_program(outputs: Outputs, options: Options) -> CompiledModel:
    """A transformer that computes the outputs."""
    graph = trace(outputs)
    graph.verify()
    typed = infer(graph, options)
    typed.verify()
    return compile_typed(graph, typed)


def compile_typed(graph: Graph | SavedGraph, typed: Typed, source: str = "") -> CompiledModel:
    """Steps 3 to 6, which call nothing of the user's: also how a saved model is rebuilt from its tables."""
    options = typed.options
    circuit = translate(typed)
    circuit.verify()
    if options.level >= 1:
        circuit = prune(circuit)
        circuit.verify()
    schedule = assign_to_layers(circuit, merge_heads=options.level >= 1)
    schedule.verify()
    construction = construct(schedule, options)
    construction.verify()
    parameters = assemble(construction, options)
    return CompiledModel(options, graph, typed, circuit, schedule, construction, parameters, source)
