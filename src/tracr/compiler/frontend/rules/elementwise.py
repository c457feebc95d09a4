"""Infer elementwise operations: tables over the values, or pairs of values, that can occur; weighted sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracr.compiler.frontend.rules.facts import SHAPE, TOKENS, align, at_codes, groups_of
from tracr.compiler.frontend.rules.state import Cells, Inference, infer_node
from tracr.compiler.frontend.rules.tabulate import Caller, tabulate, tabulate_pairs, tabulate_sum
from tracr.compiler.frontend.rules.weighted_sums import Form, linear_form
from tracr.compiler.frontend.trace import TracedNode
from tracr.errors import LimitError
from tracr.ir.budget import CALL, CELL, FLOAT
from tracr.ir.domains import Codes, Domain, Interval
from tracr.ir.ops import ERROR, Aggregation, Linear, Lookup, PairLookup
from tracr.rasp.annotations import Encoding
from tracr.rasp.expressions import LinearSequenceMap, Map, RASPExpr, SequenceMap
from tracr.rasp.function_text import function_text

__all__ = ["add_pairs"]


@infer_node.register
def _(expr: Map, inference: Inference, node: TracedNode) -> None:
    (inner,) = node.children
    form = _natural_linear(inference, node)
    if form is not None and isinstance(inference.sops[inner].domain, Interval):
        _add_linear_interval(inference, node, form)
        return
    domain = inference.listed(inner, expr)
    facts = inference.facts[inner]
    caller = inference.caller(node, expr.f, reachable=facts.exact)
    inference.budget.need(CALL * len(domain), f"is tabulated on {len(domain):,} values", expr)
    table, values = tabulate(caller, domain, facts.occurring(len(domain)))
    injective, groups = _injective(table, len(values)), facts.groups
    inference.add(
        node.id,
        node.label,
        expr,
        Lookup(inner, table, function_text(expr.f)) if form is None else Linear(((inner, form[0][0]),), form[1]),
        values,
        key=(facts.canon, table.tobytes()),
        leaves=facts.leaves,
        joint=(lambda: at_codes(table, facts.joint)) if facts.tabulated else None,
        groups=lambda: groups_of(table, len(values), groups),
        distinct=injective and facts.distinct,
        root=facts.root if injective else None,
        determines=facts.determines if injective else frozenset(),
    )


def _injective(table: Codes, values: int) -> bool:
    """Whether all reached cells hold different values, and no cell is an error."""
    return np.count_nonzero(table >= 0) == values and not (table == ERROR).any()


def _natural_linear(inference: Inference, node: TracedNode) -> Form | None:
    """The linear form of `node`, if its inputs are numbers by nature (means, sums) or annotated numerical."""
    form = linear_form(node.expr)
    if form is None:
        return None
    inputs = [inference.sops[child] for child in node.children]
    if not all(source.domain.numeric for source in inputs):
        return None
    if any(isinstance(source.domain, Interval) for source in inputs) or isinstance(node.expr, LinearSequenceMap):
        return form
    natural = any(
        isinstance(source.op, Linear)
        or (isinstance(source.op, Aggregation) and not source.op.copies)
        or source.wish is Encoding.NUMERICAL
        for source in inputs
    )
    return form if natural and all(source.wish is not Encoding.CATEGORICAL for source in inputs) else None


def _add_linear_interval(inference: Inference, node: TracedNode, form: Form) -> None:
    factors, constant = form
    low = high = constant
    maybe_none, reasons = False, []
    for child, factor in zip(node.children, factors, strict=True):
        domain = inference.sops[child].domain
        low += min(factor * end for end in domain.ends)
        high += max(factor * end for end in domain.ends)
        maybe_none |= domain.maybe_none
        reasons += [domain.reason] if isinstance(domain, Interval) else []
    terms = tuple(zip(node.children, factors, strict=True))
    reason = reasons[0] if reasons else "which combines too many values to be listed"
    inference.add(
        node.id,
        node.label,
        node.expr,
        Linear(terms, constant),
        Interval(low, high, maybe_none, reason),
        key=(tuple((inference.facts[child].canon, factor) for child, factor in terms), constant),
    )


@infer_node.register
def _(expr: SequenceMap, inference: Inference, node: TracedNode) -> None:
    form = _natural_linear(inference, node)
    fst, snd = node.children
    if form is not None and any(isinstance(inference.sops[child].domain, Interval) for child in node.children):
        _add_linear_interval(inference, node, form)
        return
    for child in (fst, snd):
        inference.listed(child, expr)
    most = min(20 * inference.most_values(node.id), inference.options.max_cells)
    if form is not None and inference.count_pairs(fst, snd) > most:
        _add_linear_interval(inference, node, form)
        return
    add_pairs(inference, node.id, node.label, expr, expr.f, (fst, snd), form)


def _check_pairs(inference: Inference, expr: RASPExpr, inputs: tuple[int, int], *, calls: bool) -> None:
    """Refuse a table of too many pairs of values, before it is made."""
    count, limit = inference.count_pairs(*inputs), inference.options.max_cells
    first, second = (inference.sops[number].domain.size for number in inputs)
    what = f"needs a table of {count:,} pairs of values ({first:,} by {second:,})"
    if calls and count > limit:
        raise LimitError(
            what,
            expression=expr,
            hint=f"map the inputs to fewer values first, or raise max_cells (now {limit:,})",
        )
    inference.budget.need((CALL if calls else 4 * FLOAT) * count + CELL * first * second, what, expr)


def _exactly_added(form: Form | None, domains: tuple[Domain, Domain]) -> Form | None:
    """The form, unless its terms are so large that float64 is no longer exact on integers."""
    if form is None:
        return None
    sizes = [abs(factor) * max(map(abs, domain.ends)) for factor, domain in zip(form[0], domains, strict=True)]
    return form if max(sizes) < 2**52 else None


def add_pairs(
    inference: Inference,
    number: int,
    label: str,
    expr: RASPExpr,
    f: Callable[..., Any],
    inputs: tuple[int, int],
    form: Form | None = None,
    *,
    keep_none: bool = False,
) -> None:
    """A function of two s-ops, tabulated on the pairs that can occur."""
    fst, snd = inputs
    facts = inference.facts[fst], inference.facts[snd]
    domains = inference.listed(fst, expr), inference.listed(snd, expr)
    _check_pairs(inference, expr, inputs, calls=form is None)
    pairs = inference.pairs(fst, snd, expr)
    aligned = align(*facts)
    exact = aligned is not None and set(aligned[0]) <= {TOKENS, SHAPE}
    form = _exactly_added(form, domains)
    caller = Caller(expr, f, inference.reporter, exact, budget=inference.budget)
    if form is None:
        table, values = tabulate_pairs(caller, *domains, pairs, keep_none=keep_none)
    else:
        table, values = tabulate_sum(caller, *domains, pairs, form[0])
    leaves, *codes = aligned or ((),)
    injective = len(pairs[0]) <= len(values) and _injective(table, len(values))
    groups = [side.groups for side in facts]
    terms = None if form is None else tuple(zip(inputs, form[0], strict=True))
    inference.add(
        number,
        label,
        expr,
        PairLookup(fst, snd, table, function_text(f)) if terms is None or form is None else Linear(terms, form[1]),
        values,
        key=(facts[0].canon, facts[1].canon, Cells(table)),
        leaves=leaves,
        joint=(lambda: at_codes(table, *codes)) if codes else None,
        groups=lambda: groups_of(table, len(values), *groups),
        distinct=injective and (facts[0].distinct or facts[1].distinct),
        determines=facts[0].determines | facts[1].determines if injective else frozenset(),
    )
