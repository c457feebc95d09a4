"""Step 2: infer the values of every s-op, and tabulate every function over them.

The result is the program as data (`Typed`): from here on nothing calls the user's functions. Domains are supersets of
what occurs; `facts.py` says how they are kept small. A finite set is demanded only where a nonlinear reader stands;
other numbers may be an interval.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracr.compiler.domains import Codes, Domain, Finite, Interval, finite
from tracr.compiler.encode import choose_encodings
from tracr.compiler.facts import (
    GROUP_CELLS,
    JOINT_CELLS,
    SHAPE,
    TOKENS,
    Facts,
    Groups,
    Shape,
    align,
    feasible_pairs,
    is_distinct,
    strict_order,
)
from tracr.compiler.linear import linear_form
from tracr.compiler.means import means_by_count
from tracr.compiler.options import Options
from tracr.compiler.selectors import Table, Widths, combine, complement, masks, widths
from tracr.compiler.share import share
from tracr.compiler.tabulate import Caller, Reporter, tabulate, tabulate_pairs, tabulate_predicate, tabulate_sum
from tracr.compiler.trace import Graph, Node
from tracr.compiler.typed import (
    ERROR,
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    SelectorNode,
    SOpNode,
    TokensOp,
    Typed,
    Width,
)
from tracr.errors import CompileError, ExpressionError, LimitError
from tracr.rasp.annotations import ENCODING, Encoding
from tracr.rasp.expressions import (
    Aggregate,
    ConstantSelector,
    ConstantSOp,
    Full,
    Indices,
    Length,
    LinearSequenceMap,
    Map,
    RASPExpr,
    Select,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    Tokens,
)
from tracr.rasp.values import is_number

__all__ = ["infer"]


def infer(graph: Graph, options: Options) -> Typed:
    """Domains, tables and encodings for everything in the graph."""
    inference = Inference(graph, options)
    for node in graph.nodes:
        _infer(node.expr, inference, node)
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


class Inference:
    """What has been inferred so far, and the rules that extend it."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.options = options
        self.lengths = accepted_lengths(graph, options.max_seq_len)
        self.shape = Shape.of(*self.lengths)
        self.reporter = Reporter(options.strict, [])
        self.sops: dict[int, SOpNode] = {}
        self.selectors: dict[int, SelectorNode] = {}
        self.widths: dict[int, Widths] = {}
        self.facts: dict[int, Facts] = {}
        self.canon: dict[int, int] = {}
        self._numbering: dict[object, int] = {}
        self._next_id = len(graph.nodes)

    def caller(self, node: Node, f: Callable[..., Any], reachable: bool) -> Caller:
        """The user's function, ready to be tabulated for `node`."""
        return Caller(repr(node.expr), f, self.reporter, reachable)

    def fresh_id(self) -> int:
        """An id for a node the graph does not have."""
        self._next_id += 1
        return self._next_id - 1

    def canonical(self, number: int, key: object) -> int:
        """The first node that computes the same: value numbering."""
        self.canon[number] = self._numbering.setdefault(key, number)
        return self.canon[number]

    def add(
        self,
        number: int,
        label: str,
        expr: RASPExpr,
        op: Op,
        domain: Domain,
        *,
        key: object,
        leaves: tuple[int, ...] = (),
        joint: Codes | None = None,
        groups: Groups | None = None,
        distinct: bool = False,
        determines: frozenset[int] = frozenset(),
    ) -> None:
        """Record an s-op; one without a small `joint` table becomes a leaf itself."""
        wish = expr.annotations.explicit.get(ENCODING)
        canon = self.canonical(number, (type(op).__name__, key, domain.key()))
        if joint is None and isinstance(domain, Finite) and len(domain) <= JOINT_CELLS:
            leaves, joint = (canon,), np.arange(len(domain), dtype=np.int32)
        distinct = distinct or is_distinct(leaves, joint, self.shape)
        facts = Facts(canon, leaves, joint, groups, distinct, determines | {canon})
        self.facts[number] = facts
        self.sops[number] = SOpNode(number, label, repr(expr), op, domain, wish, wish or Encoding.CATEGORICAL)

    def listed(self, number: int, reader: RASPExpr) -> Finite:
        """The finite domain of a node, which a nonlinear reader needs."""
        node = self.sops[number]
        if isinstance(node.domain, Interval):
            raise LimitError(
                f"needs every value of {node.label} = {node.source}, {node.domain.reason}",
                expression=repr(reader),
                hint=f"raise max_values (now {self.options.max_values:,}), shorten max_seq_len, "
                "or apply only linear operations (+, -, * constant) to it",
            )
        return node.domain

    def occurring(self, number: int, domain: Finite) -> Codes:
        """The codes that can occur."""
        joint = self.facts[number].joint
        if joint is None or len(joint) == len(domain):
            return np.arange(len(domain), dtype=np.int32)
        codes = np.unique(joint)
        return codes[codes >= 0].astype(np.int32)

    def groups_of(self, table: Codes, *inputs: int) -> Groups | None:
        """Groups of a tabulated function: those of its inputs, mapped through the table."""
        known = [(self.facts[number].groups, self.sops[number].domain) for number in inputs]
        selectors = {groups.selector for groups, _ in known if groups is not None}
        if len(selectors) != 1:
            return None
        (selector,) = selectors
        counts = [set(groups.by_count) for groups, _ in known if groups is not None]
        by_count, cells = {}, 0
        for count in sorted(set.intersection(*counts)):
            axes = [
                groups.by_count[count] if groups is not None else np.arange(_size(domain), dtype=np.int32)
                for groups, domain in known
            ]
            cells += int(np.prod([len(axis) for axis in axes]))
            if cells > GROUP_CELLS:
                return None
            codes = np.unique(table[np.ix_(*axes)])
            by_count[count] = codes[codes >= 0].astype(np.int32)
        return Groups(selector, by_count)


def _size(domain: Domain) -> int:
    return len(domain) if isinstance(domain, Finite) else 0


@functools.singledispatch
def _infer(expr: RASPExpr, inference: Inference, node: Node) -> None:
    raise ExpressionError(f"{expr!r} is not an expression the compiler knows", hint="use the classes of tracr.rasp")


@_infer.register
def _(expr: Tokens, inference: Inference, node: Node) -> None:
    domain = finite(inference.options.vocab, ordered=True)
    joint = np.arange(len(domain), dtype=np.int32)
    inference.add(
        node.id,
        node.label,
        expr,
        TokensOp(),
        domain,
        key=None,
        leaves=(TOKENS,),
        joint=joint,
        determines=frozenset({TOKENS}),
    )


@_infer.register
def _(expr: Indices, inference: Inference, node: Node) -> None:
    domain = finite(range(inference.options.max_seq_len), ordered=True)
    positions = inference.shape.positions
    small = len(positions) <= JOINT_CELLS
    inference.add(
        node.id,
        node.label,
        expr,
        IndicesOp(),
        domain,
        key=None,
        leaves=(SHAPE,) if small else (),
        joint=positions if small else None,
        distinct=True,
    )


@_infer.register
def _(expr: Length, inference: Inference, node: Node) -> None:
    if inference.options.causal:
        raise CompileError(
            "the length of the input depends on the future, which a causal model does not see",
            expression=repr(expr),
            hint="rasp.indices + 1 is the number of tokens so far",
        )
    shortest, longest = inference.lengths
    domain = finite(range(shortest, longest + 1), ordered=True)
    codes = (inference.shape.lengths - shortest).astype(np.int32)
    small = len(codes) <= JOINT_CELLS
    inference.add(
        node.id,
        node.label,
        expr,
        LengthOp(),
        domain,
        key=None,
        leaves=(SHAPE,) if small else (),
        joint=codes if small else None,
    )


@_infer.register
def _(expr: Full, inference: Inference, node: Node) -> None:
    joint = np.zeros((), dtype=np.int32)
    inference.add(node.id, node.label, expr, Constant(), finite([expr.fill]), key=None, joint=joint)


@_infer.register
def _(expr: ConstantSOp, inference: Inference, node: Node) -> None:
    domain = finite(expr.value)
    table = np.full(inference.options.max_seq_len, ERROR, dtype=np.int32)
    longest = min(len(table), len(expr.value))
    table[:longest] = [domain.index[value] for value in expr.value[:longest]]
    joint = table[inference.shape.positions]
    inference.add(
        node.id, node.label, expr, Positions(table), domain, key=table.tobytes(), leaves=(SHAPE,), joint=joint
    )


@_infer.register
def _(expr: Map, inference: Inference, node: Node) -> None:
    (inner,) = node.children
    form = _natural_linear(inference, node)
    if form is not None and isinstance(inference.sops[inner].domain, Interval):
        _add_linear_interval(inference, node, form)
        return
    domain = inference.listed(inner, expr)
    facts = inference.facts[inner]
    caller = inference.caller(node, expr.f, facts.exact)
    table, values = tabulate(caller, domain, inference.occurring(inner, domain))
    joint = None if facts.joint is None else np.where(facts.joint < 0, ERROR, table[facts.joint]).astype(np.int32)
    kept = table[table >= 0]
    injective = len(np.unique(kept)) == len(kept) and (table != ERROR).all()
    inference.add(
        node.id,
        node.label,
        expr,
        Lookup(inner, table) if form is None else Linear(((inner, form[0][0]),), form[1]),
        values,
        key=(facts.canon, table.tobytes()),
        leaves=facts.leaves,
        joint=joint,
        groups=inference.groups_of(table, inner),
        distinct=facts.distinct and injective,
        determines=facts.determines if injective else frozenset(),
    )


def _natural_linear(inference: Inference, node: Node) -> tuple[tuple[float, ...], float] | None:
    """The linear form of `node`, where its inputs are numbers by nature (means, sums) or asked to be."""
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


def _add_linear_interval(inference: Inference, node: Node, form: tuple[tuple[float, ...], float]) -> None:
    factors, constant = form
    low = high = constant
    maybe_none, reasons = False, []
    for child, factor in zip(node.children, factors, strict=True):
        domain = inference.sops[child].domain
        ends = _ends(domain)
        low += min(factor * end for end in ends)
        high += max(factor * end for end in ends)
        maybe_none |= domain.maybe_none
        reasons += [domain.reason] if isinstance(domain, Interval) else []
    terms = tuple(zip(node.children, factors, strict=True))
    reason = reasons[0] if reasons else "which combines too many values to be listed"
    inference.add(
        node.id,
        node.label,
        node.expr,
        Linear(terms, constant),
        Interval(low, high, 0.0, maybe_none, reason),
        key=(tuple((inference.facts[child].canon, factor) for child, factor in terms), constant),
    )


def _ends(domain: Domain) -> tuple[float, float]:
    if isinstance(domain, Interval):
        return domain.low, domain.high
    numbers = [float(value) for value in domain.values if is_number(value)]
    return min(numbers, default=0.0), max(numbers, default=0.0)


@_infer.register
def _(expr: SequenceMap, inference: Inference, node: Node) -> None:
    form = _natural_linear(inference, node)
    fst, snd = node.children
    if form is not None and any(isinstance(inference.sops[child].domain, Interval) for child in node.children):
        _add_linear_interval(inference, node, form)
        return
    domains = inference.listed(fst, expr), inference.listed(snd, expr)
    pairs = feasible_pairs(inference.facts[fst], inference.facts[snd], (len(domains[0]), len(domains[1])))
    if form is not None and len(pairs[0]) > inference.options.max_cells:
        _add_linear_interval(inference, node, form)
        return
    _add_pairs(inference, node.id, node.label, expr, expr.f, (fst, snd), pairs, form)


def _add_pairs(
    inference: Inference,
    number: int,
    label: str,
    expr: RASPExpr,
    f: Callable[..., Any],
    inputs: tuple[int, int],
    pairs: tuple[Codes, Codes],
    form: tuple[tuple[float, ...], float] | None = None,
    *,
    keep_none: bool = False,
) -> None:
    """A function of two s-ops, tabulated on the pairs that can occur."""
    fst, snd = inputs
    facts = inference.facts[fst], inference.facts[snd]
    domains = inference.listed(fst, expr), inference.listed(snd, expr)
    aligned = align(*facts)
    exact = aligned is not None and set(aligned[0]) <= {TOKENS, SHAPE}
    if form is None:
        caller = Caller(repr(expr), f, inference.reporter, exact)
        table, values = tabulate_pairs(caller, *domains, pairs, inference.options.max_cells, keep_none=keep_none)
    else:
        table, values = tabulate_sum(*domains, pairs, form[0])
    leaves: tuple[int, ...] = ()
    joint = None
    if aligned is not None:
        leaves, first, second = aligned
        reached = (first >= 0) & (second >= 0)
        joint = np.where(reached, table[first, second], ERROR).astype(np.int32)
    kept = table[table >= 0]
    injective = len(np.unique(kept)) == len(kept) and (table != ERROR).all()
    terms = None if form is None else tuple(zip(inputs, form[0], strict=True))
    inference.add(
        number,
        label,
        expr,
        PairLookup(fst, snd, table) if terms is None or form is None else Linear(terms, form[1]),
        values,
        key=(facts[0].canon, facts[1].canon, table.tobytes()),
        leaves=leaves,
        joint=joint,
        groups=inference.groups_of(table, fst, snd),
        distinct=injective and (facts[0].distinct or facts[1].distinct),
        determines=facts[0].determines | facts[1].determines if injective else frozenset(),
    )


def _add_selector(inference: Inference, node: Node, keys: int, queries: int, table: Table) -> None:
    facts = inference.facts[keys], inference.facts[queries]
    inference.canonical(node.id, ("selector", facts[0].canon, facts[1].canon, table.tobytes()))
    found = widths(table, *facts, inference.shape, inference.options.causal)
    inference.widths[node.id] = found
    inference.selectors[node.id] = SelectorNode(
        node.id, node.label, repr(node.expr), keys, queries, table, found.counts
    )


@_infer.register
def _(expr: Select, inference: Inference, node: Node) -> None:
    keys, queries = node.children
    domains = inference.listed(keys, expr), inference.listed(queries, expr)
    table = tabulate_predicate(
        inference.caller(node, expr.predicate, reachable=False), *domains, inference.options.max_cells
    )
    _add_selector(inference, node, keys, queries, table)


@_infer.register
def _(expr: ConstantSelector, inference: Inference, node: Node) -> None:
    size = inference.options.max_seq_len
    table = np.full((size, size), ERROR, dtype=np.int8)
    longest = min(size, len(expr.value))
    table[:longest, :longest] = np.array(expr.value, dtype=np.int8)[:longest, :longest]
    positions = inference.fresh_id()
    _infer(Indices(), inference, Node(positions, f"{node.label}_indices", Indices(), ()))
    _add_selector(inference, node, positions, positions, table)


@_infer.register
def _(expr: SelectorNot, inference: Inference, node: Node) -> None:
    inner = inference.selectors[node.children[0]]
    _add_selector(inference, node, inner.keys, inner.queries, complement(inner.table))


@_infer.register
def _(expr: SelectorAnd, inference: Inference, node: Node) -> None:
    _add_combination(inference, node, lambda a, b: a & b)


@_infer.register
def _(expr: SelectorOr, inference: Inference, node: Node) -> None:
    _add_combination(inference, node, lambda a, b: a | b)


def _add_combination(inference: Inference, node: Node, how: Callable[[Table, Table], Table]) -> None:
    """Over the same inputs one table; over different inputs a table over their product space.

    The paper's refactoring: keys (k1, k2) and queries (q1, q2) as pairs, computed by the MLP before the head.
    """
    fst, snd = (inference.selectors[child] for child in node.children)
    keys, key_codes = _common(inference, node, "keys", fst.keys, snd.keys)
    queries, query_codes = _common(inference, node, "queries", fst.queries, snd.queries)
    cells = len(key_codes[0]) * len(query_codes[0])
    if cells > inference.options.max_cells:
        raise LimitError(
            f"compares {len(key_codes[0]):,} pairs of keys with {len(query_codes[0]):,} pairs of queries",
            expression=repr(node.expr),
            hint=f"map keys and queries to fewer values first, or raise max_cells (now {inference.options.max_cells:,})",
        )
    first = fst.table[query_codes[0]][:, key_codes[0]]
    second = snd.table[query_codes[1]][:, key_codes[1]]
    _add_selector(inference, node, keys, queries, combine(how, first, second))


def _common(inference: Inference, node: Node, side: str, fst: int, snd: int) -> tuple[int, tuple[Codes, Codes]]:
    """An s-op that stands for both, and for each of its codes the codes of the two."""
    domains = inference.listed(fst, node.expr), inference.listed(snd, node.expr)
    codes = [np.arange(len(domain), dtype=np.int32) for domain in domains]
    if inference.facts[fst].canon == inference.facts[snd].canon:
        return fst, (codes[0], codes[0])
    if len(domains[1]) == 1:
        return fst, (codes[0], np.zeros_like(codes[0]))
    if len(domains[0]) == 1:
        return snd, (np.zeros_like(codes[1]), codes[1])
    pairs = feasible_pairs(inference.facts[fst], inference.facts[snd], (len(domains[0]), len(domains[1])))
    number = inference.fresh_id()
    label = f"{node.label}_{side}"
    expr = SequenceMap(_pair, Indices(), Indices())  # stands for the pair in messages
    _add_pairs(inference, number, label, expr, _pair, (fst, snd), pairs, keep_none=True)
    product = inference.listed(number, node.expr)
    first = np.array([domains[0].index[pair[0]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    second = np.array([domains[1].index[pair[1]] for pair in product.values], dtype=np.int32)  # type: ignore[index]
    return number, (first, second)


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    return (x, y)


@_infer.register
def _(expr: SelectorWidth, inference: Inference, node: Node) -> None:
    (selector,) = node.children
    found, select = inference.widths[selector], inference.selectors[selector]
    domain = finite(found.counts, ordered=True)
    keys, queries = inference.facts[select.keys], inference.facts[select.queries]
    ordered = not inference.options.causal and keys.canon == queries.canon and strict_order(select.table)
    joint = None
    if found.by_shape is not None:
        joint = np.searchsorted(np.array(found.counts), found.by_shape).astype(np.int32)
    by_count = {count: np.array([code], dtype=np.int32) for code, count in enumerate(found.counts)}
    inference.add(
        node.id,
        node.label,
        expr,
        Width(selector),
        domain,
        key=inference.canon[selector],
        leaves=(SHAPE,) if joint is not None else (),
        joint=joint,
        groups=Groups(inference.canon[selector], by_count),
        distinct=ordered and keys.distinct,
        determines=keys.determines if ordered else frozenset(),
    )


@_infer.register
def _(expr: Aggregate, inference: Inference, node: Node) -> None:
    selector, value = node.children
    select, source = inference.selectors[selector], inference.sops[value]
    copies, assumed = _copies(inference, node, select, source)
    op = Aggregation(selector, value, expr.default, copies, assumed)
    key = (inference.canon[selector], inference.canon[value], repr(expr.default))
    defaults = [] if select.always else [expr.default]
    if copies:
        domain: Domain = source.domain
        if isinstance(domain, Finite):
            members = [r for code in range(len(domain)) for r in domain.representatives(code)]
            domain = finite([*members, *defaults])
        elif defaults and not (expr.default is None or is_number(expr.default)):
            raise _not_a_number(node, f"the default {expr.default!r}")
        elif defaults:
            domain = _widen(domain, expr.default)
        inference.add(node.id, node.label, expr, op, domain, key=key)
        return
    exact = _exact_means(inference, select, source, expr.default)
    if exact is not None:
        domain, joint = exact
        inference.add(node.id, node.label, expr, op, domain, key=key, leaves=(SHAPE,), joint=joint)
        return
    domain, groups = _means(inference, node, select, source, defaults)
    inference.add(node.id, node.label, expr, op, domain, key=key, groups=groups)


def _not_a_number(node: Node, what: str) -> CompileError:
    return CompileError(
        f"averages numbers, but {what} is not one",
        expression=repr(node.expr),
        hint="use a number or None there, or select at most one position per query",
    )


def _widen(domain: Interval, default: object) -> Interval:
    if default is None:
        return Interval(domain.low, domain.high, domain.gap, True, domain.reason)
    assert is_number(default)
    low, high = min(domain.low, float(default)), max(domain.high, float(default))
    return Interval(low, high, 0.0, domain.maybe_none, domain.reason)


def _copies(inference: Inference, node: Node, select: SelectorNode, source: SOpNode) -> tuple[bool, bool]:
    """Whether all values a query selects are equal, and whether that had to be assumed."""
    single = select.at_most_one or (isinstance(source.domain, Finite) and len(source.domain) == 1)
    one_key = bool(((select.table == 1).sum(axis=1) <= 1).all())
    fixed = one_key and inference.facts[select.keys].fixes(inference.facts[source.id])
    if source.domain.numeric:
        return single or fixed, False
    assert isinstance(source.domain, Finite)
    if select.at_most_one:
        return True, False
    others = [value for value in source.domain.values if value is not None and not is_number(value)]
    if len(others) < len(source.domain) - int(source.domain.maybe_none) and not fixed:
        raise CompileError(
            f"may average numbers among other values ({source.domain}): a mean has no place in a one-hot code",
            expression=repr(node.expr),
            hint="select at most one position per query, or map the values to numbers first",
        )
    if inference.options.strict:
        raise CompileError(
            f"may select several values that have no mean, such as {others[0]!r}",
            expression=repr(node.expr),
            hint="select at most one position per query (refused because strict=True)",
        )
    return True, True


def _exact_means(
    inference: Inference, select: SelectorNode, source: SOpNode, default: object
) -> tuple[Finite, Codes] | None:
    """The mean for every (position, length), where selector and integer values depend on nothing else."""
    facts = inference.facts[source.id]
    domain = source.domain
    if not isinstance(domain, Finite) or facts.joint is None or not set(facts.leaves) <= {SHAPE}:
        return None
    if not all(isinstance(value, int) for value in domain.values) or np.abs(domain.numbers).max() > 2**40:
        return None
    keys, queries = inference.facts[select.keys], inference.facts[select.queries]
    chosen = masks(select.table, keys, queries, inference.shape, inference.options.causal)
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
                values.append(total / count if count else default)
    found = finite(values)
    return found, np.array([found.index[value] for value in values], dtype=np.int32)


def _means(
    inference: Inference, node: Node, select: SelectorNode, source: SOpNode, defaults: list[Any]
) -> tuple[Domain, Groups | None]:
    """All means the head can produce, listed by the number of selected keys; an interval if they are too many."""
    domain, limit = source.domain, inference.options.max_values
    counts = [count for count in select.counts if count > 0]
    low, high = _ends(domain)
    numbers = [v for v in domain.values if is_number(v)] if isinstance(domain, Finite) else []
    by_count = means_by_count(numbers, counts, limit) if numbers else None
    several = np.unique(np.concatenate([by_count[c] for c in counts if c > 1])) if by_count and counts[-1] > 1 else []
    if isinstance(domain, Finite) and by_count is not None and len(several) <= limit:
        singles = [r for code in range(len(domain)) for r in domain.representatives(code)] if 1 in by_count else []
        listed = finite([*(several.tolist() if len(several) else []), *singles, *defaults])
        return listed, _mean_groups(inference, select, domain, listed, by_count, defaults)
    if any(default is not None and not is_number(default) for default in defaults):
        raise _not_a_number(node, f"the default {defaults[0]!r}")
    size = f"more than {limit:,}" if by_count is None else f"{len(several):,}"
    maybe_none = domain.maybe_none or None in defaults
    gap = 0.0
    interval = Interval(low, high, gap, maybe_none, f"which are {size} different means")
    for default in defaults:
        interval = _widen(interval, default)
    return interval, None


def _mean_groups(
    inference: Inference,
    select: SelectorNode,
    domain: Finite,
    listed: Finite,
    by_count: dict[int, Any],
    defaults: list[Any],
) -> Groups | None:
    if sum(len(means) for means in by_count.values()) > GROUP_CELLS:
        return None
    numbers = np.array([value for value in listed.values if is_number(value)], dtype=np.float64)
    groups = {count: np.searchsorted(numbers, means).astype(np.int32) for count, means in by_count.items()}
    if 1 in groups and domain.maybe_none:
        groups[1] = np.append(groups[1], np.int32(listed.index[None]))
    if defaults:
        groups[0] = np.array([listed.index[defaults[0]]], dtype=np.int32)
    return Groups(inference.canon[select.id], groups)
