"""Infer aggregates: whether they copy or average, and which means can occur."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracr.compiler.frontend.rules.composites import implied, selection_masks
from tracr.compiler.frontend.rules.facts import GROUP_CELLS, SHAPE, Groups
from tracr.compiler.frontend.rules.means import means_by_count
from tracr.compiler.frontend.rules.products import for_reader
from tracr.compiler.frontend.rules.state import Inference, Means, infer_node
from tracr.compiler.frontend.trace import TracedNode
from tracr.craft.grouping import ascending
from tracr.errors import CompileError
from tracr.ir.domains import Codes, Domain, Finite, Interval
from tracr.ir.ops import Aggregation
from tracr.ir.program import InferredNode
from tracr.ir.selectors import Selector
from tracr.rasp.annotations import TYPED
from tracr.rasp.expressions import Aggregate
from tracr.values import is_number

__all__: list[str] = []


@infer_node.register
def _(expr: Aggregate, inference: Inference, node: TracedNode) -> None:
    selector, value = node.children
    select, source = inference.selectors[selector], inference.sops[value]
    copies, assumed = _copies(inference, node, select, source)
    width = 1 if source.domain.numeric else source.domain.size
    selector = for_reader(inference, expr.selector, selector, "copy" if copies else "mean", width)
    select = inference.selectors[selector]
    op = Aggregation(selector, value, expr.default, copies, assumed)
    key = (inference.canon[selector], inference.canon[value], repr(expr.default))
    defaults = [] if select.always else [expr.default]
    if copies:
        inference.add(node.id, node.label, expr, op, _copied(inference, node, select, source, defaults), key=key)
        return
    exact = _exact_means(inference, node, select, source)
    if exact is not None:
        listed, codes = exact
        inference.add(node.id, node.label, expr, op, listed, key=key, leaves=(SHAPE,), joint=lambda: codes)
        return
    same = repr(source.domain), select.counts, inference.most_values(node.id), repr(defaults)
    if same not in inference.means:
        inference.means[same] = _means(inference, node, select, source, defaults)
    domain, by_count = inference.means[same]

    def groups() -> Groups | None:
        found = inference.canon[select.id], inference.widths[select.id].by_shape
        return None if by_count is None else Groups(found[0], by_count, found[1])

    inference.add(node.id, node.label, expr, op, domain, key=key, groups=groups)


def _copied(
    inference: Inference, node: TracedNode, select: Selector, source: InferredNode, defaults: list[Any]
) -> Domain:
    """The domain of a copy: the values, the default and, because a mean of equal integers is a float, that float."""
    domain = source.domain
    if isinstance(domain, Finite):
        members = [r for code in range(len(domain)) for r in domain.representatives(code)]
        means = [float(r) for r in members if is_number(r)] if select.counts[-1] > 1 else []
        return inference.reporter.listed(node.expr, [*members, *means, *defaults])
    _check_defaults(node, defaults)
    return _widen(domain, defaults[0]) if defaults else domain


def _check_defaults(node: TracedNode, defaults: list[Any]) -> None:
    """Refuse a default that is neither a number nor `None`, if the values are too many to list."""
    for default in defaults:
        if not (default is None or is_number(default)):
            raise _not_a_number(node, f"the default {default!r}")


def _not_a_number(node: TracedNode, what: str) -> CompileError:
    return CompileError(
        f"averages numbers, but {what} is not a number",
        expression=node.expr,
        hint="use a number or None there, or select at most one position per query",
    )


def _widen(domain: Interval, default: object) -> Interval:
    if default is None:
        return Interval(domain.low, domain.high, True, domain.reason)
    assert is_number(default)
    low, high = min(domain.low, float(default)), max(domain.high, float(default))
    return Interval(low, high, domain.maybe_none, domain.reason)


def _copies(inference: Inference, node: TracedNode, select: Selector, source: InferredNode) -> tuple[bool, bool]:
    """Whether all values that a query selects are equal, and whether that had to be assumed."""
    if select.at_most_one:
        return True, False
    fixed = _floats(source.domain) and _fixes_value(inference, select, source)
    if source.domain.numeric and not _unaveraged(node, source.domain):
        one_value = isinstance(source.domain, Finite) and len(source.domain) == 1 and _floats(source.domain)
        return fixed or one_value, False
    assert isinstance(source.domain, Finite)
    if not fixed and not _unaveraged(node, source.domain) and any(map(is_number, source.domain.values)):
        raise CompileError(
            f"may average numbers mixed with other values ({source.domain}): a mean has no one-hot code",
            expression=node.expr,
            hint="select at most one position per query, or map the values to numbers first",
        )
    if inference.options.strict:
        raise CompileError(
            f"may select several values that have no mean, such as {source.domain.values[0]!r}",
            expression=node.expr,
            hint="select at most one position per query (refused because strict=True)",
        )
    return True, True


def _fixes_value(inference: Inference, select: Selector, source: InferredNode) -> bool:
    """Whether every query selects keys of only one value, and this value determines the value that is read."""
    return any(
        inference.facts[literal.keys].fixes(inference.facts[source.id])
        and bool(((literal.table == 1).sum(axis=1) <= 1).all())
        for literal in implied(inference, select.id)
    )


def _unaveraged(node: TracedNode, domain: Domain) -> bool:
    """Whether all values are booleans, which have no mean in the textual language."""
    if node.expr.annotation(TYPED) is None or not isinstance(domain, Finite):
        return False
    return all(type(r) is bool for code in range(len(domain)) for r in domain.representatives(code))


def _floats(domain: Domain) -> bool:
    """Whether every number is a float, so that a mean of equal ones is that number."""
    return isinstance(domain, Interval) or all(
        not is_number(value) or number == value
        for value, number in zip(domain.values, domain.numbers.tolist(), strict=True)
    )


def _exact_means(
    inference: Inference, node: TracedNode, select: Selector, source: InferredNode
) -> tuple[Finite, Codes] | None:
    """The mean for every (position, length), if selector and integer values depend on nothing else."""
    facts = inference.facts[source.id]
    domain = source.domain
    if not isinstance(domain, Finite) or not facts.tabulated or not {SHAPE}.issuperset(facts.leaves):
        return None
    if not all(isinstance(value, int) for value in domain.values) or np.abs(domain.numbers).max() > 2**40:
        return None
    chosen = selection_masks(inference, select.id)
    codes = np.broadcast_to(facts.joint, inference.shape.lengths.shape)
    if chosen is None or codes.min(initial=0) < 0:
        return None
    values: list[Any] = []
    start = 0
    for mask in chosen:
        here = domain.numbers[codes[start : start + len(mask)]]
        held = [domain.values[code] for code in codes[start : start + len(mask)]]
        start += len(mask)
        totals, counts = mask @ here, mask.sum(axis=1)
        for row, total, count in zip(mask, totals.tolist(), counts.tolist(), strict=True):
            if count == 1:
                values.append(held[int(row.argmax())])
            else:
                values.append(total / count if count else node.expr.default)  # type: ignore[attr-defined]
    found = inference.reporter.listed(node.expr, values)
    return found, np.array([found.index[value] for value in values], dtype=np.int32)


def _means(
    inference: Inference, node: TracedNode, select: Selector, source: InferredNode, defaults: list[Any]
) -> Means:
    """All means that the head can produce, by the number of selected keys; an interval if they are too many."""
    domain, limit = source.domain, inference.most_values(node.id)
    size = f"more than {limit:,}"
    if isinstance(domain, Finite):
        counts = [count for count in select.counts if count > 0]
        numbers = [value for value in domain.values if is_number(value)]
        by_count = means_by_count(numbers, counts, limit) if numbers else None
        if by_count is not None:
            averaged = [by_count[count] for count in counts if count > 1]
            several: list[float] = ascending(np.concatenate(averaged)).tolist() if averaged else []
            if len(several) <= limit:
                listed = inference.reporter.listed(node.expr, [*several, *_singles(domain, by_count), *defaults])
                return listed, _mean_codes(domain, listed, by_count, defaults)
            size = f"{len(several):,}"
    _check_defaults(node, defaults)
    low, high = domain.ends
    interval = Interval(low, high, domain.maybe_none or None in defaults, f"which are {size} different means")
    for default in defaults:
        interval = _widen(interval, default)
    return interval, None


def _singles(domain: Finite, by_count: dict[int, Any]) -> list[Any]:
    """The values themselves, if a query can select just one key: the mean of one integer is that integer."""
    return [r for code in range(len(domain)) for r in domain.representatives(code)] if 1 in by_count else []


def _mean_codes(
    domain: Finite, listed: Finite, by_count: dict[int, Any], defaults: list[Any]
) -> dict[int, Codes] | None:
    if sum(len(means) for means in by_count.values()) > GROUP_CELLS:
        return None
    numbers = listed.numbers[listed.of_numbers]
    if len(listed.index) > len(listed):  # some values have twins
        codes = {
            n: np.array([listed.index[mean] for mean in means.tolist()], np.int32) for n, means in by_count.items()
        }
    else:
        codes = {count: np.searchsorted(numbers, means).astype(np.int32) for count, means in by_count.items()}
    if 1 in codes and domain.maybe_none:
        codes[1] = np.append(codes[1], np.int32(listed.index[None]))
    if defaults:
        codes[0] = np.array([listed.index[defaults[0]]], dtype=np.int32)
    return codes
