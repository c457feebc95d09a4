"""Step 2: infer the values of every s-op, and tabulate every function over them.

The result is the program as data (`Typed`): from here on nothing calls the user's functions. Domains are supersets of
what occurs; `facts.py` says how they are kept small. A finite set is demanded only where a nonlinear reader stands;
other numbers may be an interval.
"""

from __future__ import annotations

from tracr.compiler.encode import choose_encodings
from tracr.compiler.inference import Inference, infer_node
from tracr.compiler.options import Options
from tracr.compiler.share import share
from tracr.compiler.trace import Graph
from tracr.compiler.typed import Typed
from tracr.errors import CompileError
from tracr.rasp.expressions import ConstantSelector, ConstantSOp

__all__ = ["infer"]


def infer(graph: Graph, options: Options) -> Typed:
    """Domains, tables and encodings for everything in the graph."""
    inference = Inference(options, accepted_lengths(graph, options.max_seq_len), len(graph.nodes))
    for node in graph.nodes:
        infer_node(node.expr, inference, node)
    typed = Typed(
        options,
        inference.sops,
        inference.selectors,
        graph.outputs,
        inference.lengths,
        tuple(inference.reporter.found),
    )
    return choose_encodings(share(typed, inference.canon if options.level >= 1 else {}))


def accepted_lengths(graph: Graph, longest: int) -> tuple[int, int]:
    """The shortest and longest input: constants of a fixed length accept no other."""
    shortest = 1
    for node in graph.nodes:
        if isinstance(node.expr, ConstantSOp | ConstantSelector):
            own = len(node.expr.value)
            shortest = max(shortest, own) if node.expr.check_length else shortest
            longest = min(longest, own)
    if shortest > longest:
        raise CompileError(
            f"no input has a length that all constants of the program have values for, up to {longest}",
            hint="pass max_seq_len=the constants' length, or write them as functions of rasp.indices",
        )
    return shortest, longest
