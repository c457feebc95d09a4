"""The pass `infer`: finds the values of every s-op, and tabulates every function over them.

The result is the program as data (`Inferred`): later passes do not call the user's functions. Domains may contain
values that never occur; `facts.py` explains how they are kept small. Values must be listed only if a nonlinear reader
needs them; other numbers may be an interval.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.compiler.frontend.rules import Inference, infer_node
from tracr.compiler.frontend.rules.as_written import as_written
from tracr.compiler.frontend.rules.weighted_sums import linear_form
from tracr.compiler.frontend.trace import TracedGraph
from tracr.errors import CompileError
from tracr.ir.inferred import Inferred
from tracr.ir.options import Options
from tracr.rasp.annotations import ENCODING, Encoding
from tracr.rasp.expressions import Aggregate, ConstantSelector, ConstantSOp

__all__ = ["infer"]


def infer(traced: TracedGraph, options: Options, near: float = 0.0) -> Inferred:
    """Domains and tables for the traced program; numbers that are `near` each other are treated as one value."""
    lengths = accepted_lengths(traced, options.max_seq_len)
    if lengths[1] != options.max_seq_len:
        options = replace(options, max_seq_len=lengths[1])
    inference = Inference(options, lengths, len(traced.nodes), read_nonlinearly(traced), near)
    for node in traced.nodes:
        infer_node(node.expr, inference, node)
    return Inferred(
        options,
        inference.sops,
        inference.selectors,
        traced.outputs,
        inference.lengths,
        same=inference.same,
        warnings=tuple(inference.reporter.found),
        assumptions=tuple(inference.reporter.assumed),
        shared={},
        bypassed={inference.sops[number].label: selector for number, selector in inference.bypassed.items()},
        written=as_written(traced, inference),
    )


def read_nonlinearly(traced: TracedGraph) -> frozenset[int]:
    """The nodes whose values must be listed, because a nonlinear operation, a selector or a one-hot code needs them."""
    needed: set[int] = set()
    for node in reversed(traced.nodes):
        if node.expr.annotation(ENCODING) is Encoding.CATEGORICAL:
            needed.add(node.id)
        linear = linear_form(node.expr) is not None or isinstance(node.expr, Aggregate)
        if not linear or node.id in needed:
            needed.update(node.children)
    return frozenset(needed)


def accepted_lengths(traced: TracedGraph, longest: int) -> tuple[int, int]:
    """The shortest and longest input; constants of a fixed length accept only that length."""
    shortest = 1
    for node in traced.nodes:
        if isinstance(node.expr, (ConstantSOp, ConstantSelector)):
            own = len(node.expr.value)
            shortest = max(shortest, own) if node.expr.check_length else shortest
            longest = min(longest, own)
    if shortest > longest:
        raise CompileError(
            f"no input length up to {longest} fits all constants of the program",
            hint="pass max_seq_len=the constants' length, or write them as functions of rasp.indices",
        )
    return shortest, longest
