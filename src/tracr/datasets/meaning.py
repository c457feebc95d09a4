"""A key for the meaning of a program, computed from its tabulated graph: equal graphs have equal keys.

Every node is hashed with the nodes it reads, children first. Names, numbering, sharing and unused nodes do not matter.
Tables are put in a canonical form: values in a fixed order instead of codes, without values that do not occur, and
with the two inputs of a pair in a fixed order. Encodings and other facts that the compiler found about a node are left
out. Two programs with different keys may still compute the same, in different ways.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InternalError
from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import Constant, IndicesOp, LengthOp, Linear, PairLookup, Role, SumLookup, TokensOp
from tracr.ir.program import InferredNode, Tables
from tracr.ir.selectors import CompositeNode, SelectorNode
from tracr.saving.values_json import encode_value
from tracr.values import Value, is_number

__all__ = ["meaning", "plain_text"]

Part = str | bytes
DIGEST = 16  # bytes


def meaning(program: Tables) -> str:
    """The key of a tabulated program: 32 hexadecimal digits, the same in every process.

    >>> import tracr
    >>> from tracr.rasp import rasp
    >>> first = tracr.compile(rasp.Map(lambda x: x == "a", rasp.tokens), "ab", 3).program
    >>> second = tracr.compile((rasp.tokens != "b").named("other"), "ab", 3, level=0).program
    >>> meaning(first) == meaning(second)
    True
    """
    keys: dict[int, str] = {}
    for node in program.sops.values():
        keys[node.id] = _sop_key(program, node, keys)
    options = program.options
    head = [[plain_text(token) for token in options.vocab], options.max_seq_len, options.causal, list(program.lengths)]
    return _digest(json.dumps(head), *(keys[output] for _, output in program.outputs))


def _digest(*parts: Part) -> str:
    """A hash of several parts, each with its length, so that different parts give different hashes."""
    state = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(f"{len(data)}:".encode())
        state.update(data)
    return state.hexdigest()


def _sop_key(program: Tables, node: InferredNode, keys: dict[int, str]) -> str:
    match node.op:
        case TokensOp() | IndicesOp() | LengthOp():
            return _digest(type(node.op).__name__)
        case Constant():
            assert isinstance(node.domain, Finite)
            return _digest("constant", plain_text(node.domain.values[0]))
        case PairLookup(fst=fst, snd=snd, table=table):
            if keys[fst] > keys[snd]:
                fst, snd, table = snd, fst, table.T
            rows, order = _axis(program.sops[fst].domain)
            columns, across = _axis(program.sops[snd].domain)
            results = _results(node.domain, table[order][:, across])
            return _digest("pair", keys[fst], keys[snd], rows, columns, *results)
        case Linear(terms=terms, constant=constant):
            summands = sorted((keys[term], plain_text(factor)) for term, factor in terms)
            return _digest("linear", plain_text(constant), json.dumps(summands))
        case SumLookup():
            raise InternalError("a function of a sum is the optimiser's: compare programs before they are optimised")
        case op:
            parts = [part for name in op.roles() for part in _field_parts(program, node, name, keys)]
            return _digest(op.kind, *parts)


def _field_parts(program: Tables, node: InferredNode, name: str, keys: dict[int, str]) -> Sequence[Part]:
    """The parts of the key that a field gives; the text of a function gives none, its table does."""
    role, content = node.op.roles()[name], getattr(node.op, name)
    match role:
        case Role.INPUT | Role.ATTENDED:
            return (keys[content],)
        case Role.SELECTOR:
            return (_selector_key(program, content, keys),)
        case Role.TABLE:
            axes = [_axis(program.sops[number].domain) for number in node.inputs]
            ordered = content[np.ix_(*(order for _, order in axes))] if axes else content
            return (*(values for values, _ in axes), *_results(node.domain, ordered))
        case Role.TERMS:
            return [part for number, factor in content for part in (keys[number], plain_text(factor))]
        case Role.NUMBER | Role.DEFAULT:
            return (plain_text(content),)
        case Role.POINTS:
            return (_axis(content)[0],)
        case Role.FUNCTION | Role.FLAG:
            return ()
        case _:
            assert_never(role)


def _selector_key(program: Tables, number: int, keys: dict[int, str]) -> str:
    """The key of a selector. Combinations of selectors are compared as they are written."""
    found: dict[int, str] = {}
    for part in program.parts(number):
        if isinstance(part, CompositeNode):
            found[part.id] = _digest(part.kind, *sorted(found[inner] for inner in part.parts))
        else:
            found[part.id] = _literal_key(program, part, keys)
    return found[number]


def _literal_key(program: Tables, node: SelectorNode, keys: dict[int, str]) -> str:
    rows, order = _axis(program.sops[node.queries].domain)
    columns, across = _axis(program.sops[node.keys].domain)
    table = np.ascontiguousarray(node.table[order][:, across])
    return _digest("selector", keys[node.queries], keys[node.keys], rows, columns, table.astype("i1").tobytes())


def _axis(domain: Domain) -> tuple[str, NDArray[np.intp]]:
    """The values along an axis of a table as text, and the order of codes that sorts them."""
    assert isinstance(domain, Finite)
    return _sorted(domain.values)


@functools.lru_cache(maxsize=1024)
def _sorted(values: tuple[Value, ...]) -> tuple[str, NDArray[np.intp]]:
    texts = [plain_text(value) for value in values]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return json.dumps([texts[code] for code in order]), np.array(order, dtype=np.intp)


def _results(domain: Domain, table: NDArray[Any]) -> tuple[Part, Part, Part]:
    """A table of codes, as the values that occur in it, its shape, and their places; errors keep their codes."""
    assert isinstance(domain, Finite)
    codes, places = np.unique(table, return_inverse=True)
    texts = [plain_text(domain.values[code]) if code >= 0 else "" for code in codes.tolist()]
    rank = {text: place for place, text in enumerate(sorted({text for text in texts if text}))}
    renamed = [rank[text] if text else int(code) for code, text in zip(codes.tolist(), texts, strict=True)]
    cells = np.array(renamed, dtype="<i4")[places.reshape(-1)]
    return json.dumps(list(rank)), json.dumps(table.shape), cells.tobytes()


@functools.lru_cache(maxsize=4096)
def plain_text(value: Value) -> str:
    """A value as text, the same for equal values: `True`, `1` and `1.0` are one value."""
    return json.dumps(encode_value(_plain(value)))


def _plain(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, frozenset):
        return frozenset(map(_plain, value))
    if is_number(value):
        return int(value) if value == int(value) else float(value)
    return value
