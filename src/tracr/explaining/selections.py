"""The positions that a selector selects, in words: "the positions with the same token".

The words come from the selector's table, not from the text of its predicate: they are the same however it was written.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.explaining.formulas import said
from tracr.ir.domains import Finite
from tracr.ir.ops import Constant, IndicesOp, TokensOp
from tracr.ir.program import Program, SOpNode
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode
from tracr.values import Value

__all__ = ["Relation", "noun", "positional", "relation", "selected"]

ALL, NONE = "all", "none"
PLACE = "at place "
HERE = "if here "
OWN = "if this position's number "
EXCEPT = "except those "
PLACED = re.compile(r"(at place|given by) |this one( on)?$|at this place$")  # words that say where positions are
ENDED = re.compile(r"(\d+ before|before|up to) this one")  # words of positions none of which come later
AT_LEAST = "at least "
MOST = 6  # selectors of a combination that is simplified
FEW = 4  # values that are listed
RELATIONS: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("==", operator.eq),
    ("!=", operator.ne),
    ("<", operator.lt),
    ("<=", operator.le),
    (">", operator.gt),
    (">=", operator.ge),
)
VERBS = {
    "==": "equals",
    "!=": "differs from",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
SAME = {
    "==": "with the same {}",
    "!=": "with another {}",
    "<": "with a smaller {}",
    "<=": "whose {} is not larger",
    ">": "with a larger {}",
    ">=": "whose {} is not smaller",
}
PLACES = {
    "==": "at this place",
    "!=": "other than this one",
    "<": "before this one",
    "<=": "up to this one",
    ">": "after this one",
    ">=": "from this one on",
}


@dataclass(frozen=True)
class Relation:
    """A key is selected if `key SYMBOL query + offset` holds; for "near", if they differ by at most `offset`."""

    symbol: str
    offset: int = 0


def selected(program: Program, number: int) -> str:
    """The positions that a selector selects.

    >>> import tracr
    >>> from tracr.rasp import programs
    >>> model = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=5)
    >>> [selected(model.program, number) for number in model.program.selectors]
    ['the positions with the same token']
    """
    chosen = program.selectors[number]
    words = _words(program, number)
    so_far = " so far" if program.options.causal and not ENDED.match(words.removeprefix(AT_LEAST)) else ""
    if words == ALL:
        return f"all positions{so_far}"
    if words == NONE:
        return "no position"
    if words == PLACES["=="]:
        return "this position"
    if chosen.at_most_one:
        return f"position {words.removeprefix(PLACE)}" if words.startswith(PLACE) else f"the position {words}"
    return f"the positions{so_far} {words}"


def noun(node: SOpNode) -> str:
    """A variable, as a noun in the singular."""
    match node.op:
        case TokensOp():
            return "token"
        case IndicesOp():
            return "position"
        case _:
            return node.label


def positional(program: Program, number: int) -> bool:
    """Whether a selector compares functions of the position only."""
    known: dict[int, bool] = {}

    def fixed(one: int) -> bool:
        if one not in known:
            node = program.sops[one]
            inputs = node.op.inputs
            known[one] = isinstance(node.op, IndicesOp | Constant) or node.op.kind == "positions"
            if inputs and not node.op.selectors:
                known[one] = all(map(fixed, inputs))
        return known[one]

    return all(fixed(side) for part in program.literals(number) for side in (part.keys, part.queries))


def relation(program: Program, selector: SelectorNode) -> Relation | None:
    """The relation that a selector's table holds, if it is one; cells where the program raises are not compared."""
    keys, queries = program.sops[selector.keys].domain, program.sops[selector.queries].domain
    if not isinstance(keys, Finite) or not isinstance(queries, Finite):
        return None
    valid, chosen = selector.table >= 0, selector.table == 1
    for found, table in _candidates(keys, queries):
        if (table == chosen)[valid].all():
            return found
    return None


def _candidates(keys: Finite, queries: Finite) -> Iterator[tuple[Relation, NDArray[np.bool_]]]:
    for symbol, holds in RELATIONS:
        try:
            table = [[bool(holds(key, query)) for key in keys.values] for query in queries.values]
        except TypeError:  # values without an order
            continue
        yield Relation(symbol), np.array(table, dtype=bool)
    if keys.numeric and queries.numeric and not keys.maybe_none and not queries.maybe_none:
        yield from _with_offsets(keys.numbers[None, :] - queries.numbers[:, None])


def _with_offsets(apart: NDArray[np.float64]) -> Iterator[tuple[Relation, NDArray[np.bool_]]]:
    """Relations of numbers with an offset; `apart` is the key minus the query."""
    differences = {int(one) for one in np.unique(apart) if float(one).is_integer() and one}
    offsets = sorted(differences, key=lambda one: (abs(one), one))
    yield from ((Relation("==", offset), apart == offset) for offset in offsets)
    yield from ((Relation("near", offset), np.abs(apart) <= offset) for offset in offsets if offset > 0)
    for offset in offsets:
        yield Relation("<=", offset), apart <= offset
        yield Relation(">=", offset), apart >= offset


def _words(program: Program, number: int) -> str:
    """What is said of the selected positions, after the word "positions"; `ALL` or `NONE`."""
    chosen = program.selectors[number]
    if isinstance(chosen, CompositeNode):
        return _combined(program, chosen)
    if (chosen.table[chosen.table >= 0] == 1).all():
        return ALL
    if not (chosen.table == 1).any():
        return NONE
    keys, queries = program.sops[chosen.keys], program.sops[chosen.queries]
    one_sided = _one_sided(chosen, keys, queries)
    if one_sided is not None:
        return one_sided
    found = relation(program, chosen)
    if found is None:
        return _listed(chosen, keys, queries)
    if keys.id == queries.id:
        return _among_places(found) if isinstance(keys.op, IndicesOp) else _among(found, noun(keys))
    return _between(found, keys, queries)


def _combined(program: Program, chosen: CompositeNode) -> str:
    """The words for a combination: where the positions are, then what they hold, then conditions on this position."""
    simple = _simplified(program, chosen)
    if simple is not None:
        return simple
    sides = [(_words(program, part), program.selectors[part]) for part in _parts(program, chosen)]
    if chosen.kind == "not":
        ((words, part),) = sides
        return {ALL: NONE, NONE: ALL}.get(words, f"{EXCEPT}{_bracketed(words, part, chosen)}")
    neutral, strong = (ALL, NONE) if chosen.kind == "and" else (NONE, ALL)
    if any(words == strong for words, _ in sides):
        return strong
    sides = [(words, part) for words, part in sides if words != neutral]
    if len(sides) < 2:
        return sides[0][0] if sides else neutral
    texts = [_bracketed(words, part, chosen) for words, part in sides]
    return _all_of(texts) if chosen.kind == "and" else _any_of(texts)


def _parts(program: Program, chosen: CompositeNode) -> Iterator[int]:
    """The parts of a combination; those of parts of the same kind in their place."""
    for number in chosen.parts:
        part = program.selectors[number]
        if isinstance(part, CompositeNode) and part.kind == chosen.kind != "not":
            yield from _parts(program, part)
        else:
            yield number


def _bracketed(words: str, inner: Selector, outer: CompositeNode) -> str:
    """The words for a part of a combination; in brackets if it is a combination of another kind."""
    mixed = isinstance(inner, CompositeNode) and inner.kind != outer.kind and inner.kind != "not"
    return f"({words})" if mixed else words


def _all_of(texts: list[str]) -> str:
    """Several conditions on the selected positions."""
    placed = [words for words in texts if PLACED.search(words) and not words.startswith((HERE, OWN, EXCEPT, "("))]
    last = [words for words in texts if words.startswith((HERE, OWN, EXCEPT))]
    other = [words for words in texts if words not in placed and words not in last]
    return " ".join(filter(None, [" and ".join(placed), " and ".join(other), *last]))


def _any_of(texts: list[str]) -> str:
    """Alternatives; those with "not" come last."""
    told = [f"not {words.removeprefix(EXCEPT)}" if words.startswith(EXCEPT) else words for words in texts]
    return " or ".join(sorted(told, key=lambda words: words.startswith("not ")))


def _simplified(program: Program, chosen: CompositeNode) -> str | None:
    """The words for a combination that is always the same, or that depends on one of its selectors only; else `None`.

    Selectors are taken as independent: what follows from their tables is not seen.
    """
    literals = list(dict.fromkeys(_literals(program, chosen)))
    if len(literals) > MOST:
        return None
    rows = list(itertools.product((False, True), repeat=len(literals)))
    table = {row: _holds(program, chosen, dict(zip(literals, row, strict=True))) for row in rows}
    matter = [
        place
        for place in range(len(literals))
        if any(table[row] != table[(*row[:place], not row[place], *row[place + 1 :])] for row in rows)
    ]
    if not matter:
        return ALL if table[rows[0]] else NONE
    if len(matter) > 1:
        return None
    words = _words(program, literals[matter[0]])
    if table[rows[-1]]:  # it holds where all do
        return words
    return {ALL: NONE, NONE: ALL}.get(words, f"{EXCEPT}{words}")


def _literals(program: Program, selector: CompositeNode) -> Iterator[int]:
    """The numbers of the plain selectors of a combination."""
    for number in selector.parts:
        part = program.selectors[number]
        if isinstance(part, CompositeNode):
            yield from _literals(program, part)
        else:
            yield number


def _holds(program: Program, selector: CompositeNode, given: dict[int, bool]) -> bool:
    """Whether a combination selects, given whether its plain selectors do."""
    sides = []
    for number in selector.parts:
        part = program.selectors[number]
        sides.append(_holds(program, part, given) if isinstance(part, CompositeNode) else given[number])
    return {"not": not sides[0], "and": all(sides), "or": any(sides)}[selector.kind]


def _one_sided(chosen: SelectorNode, keys: SOpNode, queries: SOpNode) -> str | None:
    """The words for a table that depends on the keys only, or on the queries only."""
    table = chosen.table
    for rows, node, here in ((table, keys, False), (table.T, queries, True)):
        known = np.where((rows >= 0).any(axis=0), rows.max(axis=0), -1)
        if isinstance(node.domain, Finite) and ((rows == known) | (rows < 0)).all():
            if isinstance(node.op, IndicesOp) and not here and (known == 1).sum() == 1:
                return f"{PLACE}{int(np.flatnonzero(known == 1)[0])}"
            told = condition(node, known == 1)
            if not here:
                return f"{_whose(node)} {subject(node)} {told}"
            if isinstance(node.op, IndicesOp):
                return f"{OWN}{told}"
            return f"{HERE}{'the token' if isinstance(node.op, TokensOp) else noun(node)} {told}"
    return None


def _whose(node: SOpNode) -> str:
    return "where" if isinstance(node.domain, Finite) and node.domain.kinds <= {bool} else "whose"


def subject(node: SOpNode) -> str:
    """What is compared of a position: its number, its token or a variable."""
    return "number" if isinstance(node.op, IndicesOp) else noun(node)


def condition(node: SOpNode, holds: NDArray[np.bool_]) -> str:
    """The condition that a variable has one of the values marked, after the name of the variable."""
    assert isinstance(node.domain, Finite)
    values = node.domain.values
    inside, outside = ([values[code] for code in np.flatnonzero(side)] for side in (holds, ~holds))
    if node.domain.kinds <= {bool} and len(inside) == 1:
        return f"is {'true' if inside[0] else 'false'}"
    bound = _bound(node.domain, holds) if len(inside) > 1 and len(outside) > 1 else ""
    if bound:
        return f"is {bound}"
    if len(outside) < len(inside) and len(outside) <= FEW:
        return f"is not {_either(outside)}"
    return f"is {_either(inside)}"


def _bound(domain: Finite, holds: NDArray[np.bool_]) -> str:
    """The bound of the numbers marked, if they are the largest or the smallest; else an empty text."""
    if not domain.numeric or domain.maybe_none:
        return ""
    codes, yes, no = np.flatnonzero(holds), domain.numbers[holds], domain.numbers[~holds]
    if yes.min() > no.max():
        return f"at least {said(domain.values[codes[yes.argmin()]])}"
    return f"at most {said(domain.values[codes[yes.argmax()]])}" if yes.max() < no.min() else ""


def _either(values: list[Value]) -> str:
    texts = [said(value) for value in values[:FEW]]
    if len(values) > FEW:
        return f"one of {', '.join(texts)}, ... ({len(values)} values)"
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _among_places(found: Relation) -> str:
    """The words for positions compared with positions."""
    symbol, offset = found.symbol, found.offset
    if symbol == "near":
        return f"at most {offset} away from this one"
    if not offset:
        return PLACES[symbol]
    which, far = ("before" if offset < 0 else "after"), abs(offset)
    if symbol == "==":
        return f"right {which} this one" if far == 1 else f"{far} {which} this one"
    if (symbol == "<=") == (offset < 0):
        return f"at least {far} {which} this one"
    return f"up to {far} {which} this one" if symbol == "<=" else f"from {far} {which} this one on"


def _among(found: Relation, name: str) -> str:
    """The words for the values of one variable, compared with each other."""
    symbol, offset = found.symbol, found.offset
    if symbol == "near":
        return f"whose {name} differs by at most {offset}"
    if not offset:
        return SAME[symbol].format(name)
    far = f"{abs(offset)} {'less' if offset < 0 else 'more'}"
    least = {"==": "", "<=": "at most ", ">=": "at least "}[symbol]
    return f"whose {name} is {least}{far}"


def _between(found: Relation, keys: SOpNode, queries: SOpNode) -> str:
    """The words for the values of two variables."""
    symbol, offset = found.symbol, found.offset
    own = f"this position's {subject(queries)}"
    if symbol == "near":
        return f"whose {subject(keys)} differs from {own} by at most {offset}"
    if isinstance(keys.op, IndicesOp) and symbol == "==" and not offset:
        return f"given by {queries.label}"
    if offset and symbol == "==":
        return f"whose {subject(keys)} is {abs(offset)} {'less' if offset < 0 else 'more'} than {own}"
    if offset:
        own = f"{own} {'-' if offset < 0 else '+'} {abs(offset)}"
    return f"whose {subject(keys)} {VERBS[symbol]} {own}"


def _listed(chosen: SelectorNode, keys: SOpNode, queries: SOpNode) -> str:
    """The words for any other table: the first few queries, each with the keys that it selects."""
    assert isinstance(keys.domain, Finite) and isinstance(queries.domain, Finite)
    rows = [(query, np.flatnonzero(row == 1)) for query, row in zip(queries.domain.values, chosen.table, strict=True)]
    rows = [(query, found) for query, found in rows if len(found)]
    texts = []
    for query, found in rows[:3]:
        few = [said(keys.domain.values[place]) for place in found[:3].tolist()]
        texts.append(f"{said(query)}: {', '.join(few)}{', ...' if len(found) > 3 else ''}")
    rest = "; ..." if len(rows) > 3 else ""
    return f"whose {subject(keys)} fits this position's {subject(queries)} ({'; '.join(texts)}{rest})"
