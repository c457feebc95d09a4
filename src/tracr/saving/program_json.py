"""The tabulated program, its options and its graph as JSON; the tables as separate integer arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, assert_never, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.program.linear_tables import sum_of
from tracr.errors import Diagnostic, FormatError, InternalError
from tracr.ir.domains import Domain, Finite, Interval
from tracr.ir.graph import Graph, Node
from tracr.ir.ops import (
    ERROR,
    KINDS,
    UNREACHED,
    Constant,
    IndicesOp,
    LengthOp,
    Op,
    Role,
    TokensOp,
)
from tracr.ir.options import Options, as_vocabulary
from tracr.ir.program import Program, SOpNode, Stored
from tracr.ir.selectors import CompositeNode, Kind, Selector, SelectorNode
from tracr.ir.softness import Softness
from tracr.nearness import same_value
from tracr.rasp.annotations import Encoding
from tracr.saving.json_reader import Reader
from tracr.saving.values_json import encode_value
from tracr.values import Value

__all__ = ["graph_json", "options_json", "program_json", "program_tables", "read_graph", "read_options", "read_program"]

Tables = dict[str, NDArray[Any]]
ENCODINGS = {encoding.value: encoding for encoding in Encoding}


# Options


NEWER = (
    "output_first",
    "max_memory",
    "soft",
    "dtype",
)  # options that older folders lack; written only if they are not the default


def options_json(options: Options) -> dict[str, Any]:
    """Every option under its name."""
    found = {field.name: getattr(options, field.name) for field in fields(Options)}
    found = {name: value for name, value in found.items() if name not in NEWER or value != getattr(Options, name)}
    vocab = [encode_value(token) for token in found.pop("vocab")]
    passes, soft = list(found.pop("passes")), found.pop("soft", None)
    others = {name: encode_value(value) for name, value in found.items()}
    return {"vocab": vocab, "passes": passes, **others, **({"soft": _soft_json(soft)} if soft else {})}


def _soft_json(soft: Softness) -> dict[str, Any]:
    gaps, slopes = ([[encode_value(label), number] for label, number in part] for part in (soft.gaps, soft.slopes))
    return {"gap": soft.gap, "gaps": gaps, "slopes": slopes, "shown": soft.shown, "error": soft.error}


def _read_soft(reader: Reader) -> Softness:
    given = reader.object(("gap", "gaps", "slopes", "shown", "error"))

    def named(name: str) -> tuple[tuple[str, float], ...]:
        pairs = [place.items(count=2) for place in given[name].items()]
        return tuple((label.text(), float(number.number())) for label, number in pairs)

    gap, error = (float(given[name].number()) for name in ("gap", "error"))
    return Softness(gap, named("gaps"), named("slopes"), given["shown"].text(), error)


def read_options(reader: Reader) -> Options:
    """Read the options written by `options_json`."""
    given = reader.object({field.name for field in fields(Options)} - set(NEWER), NEWER)
    vocab = given["vocab"].values()
    if as_vocabulary(vocab) != vocab:
        given["vocab"].fail("has a token twice")
    passes = tuple(place.text() for place in given["passes"].items())
    others = {
        field.name: _read_option(given[field.name], field.default)
        for field in fields(Options)
        if field.name in given and field.name not in ("vocab", "passes", "soft")
    }
    if "soft" in given:
        others["soft"] = _read_soft(given["soft"])
    if len(set(passes)) < len(passes):
        given["passes"].fail("has a name twice")
    return Options(vocab, **others, passes=passes)  # which puts them into the order they have today


def _read_option(reader: Reader, default: object) -> Any:
    """Read an option of the type of its default; options without a default are integers."""
    if isinstance(default, bool):
        return reader.boolean()
    if isinstance(default, float):
        return reader.number()
    return reader.value() if isinstance(default, str) else reader.integer()


# The graph


def graph_json(graph: Graph) -> dict[str, Any]:
    """Nodes as [label, kind, children], and the outputs."""
    nodes = [[encode_value(node.label), node.kind, list(node.children)] for node in graph.nodes]
    return {"nodes": nodes, "outputs": [[encode_value(name), output] for name, output in graph.outputs]}


def read_graph(reader: Reader) -> Graph:
    """Read the graph written by `graph_json`."""
    given = reader.object(("nodes", "outputs"))
    nodes = []
    for place in given["nodes"].items():
        label, kind, children = place.items(count=3)
        nodes.append(Node(label.text(), kind.text(), tuple(child.integer() for child in children.items())))
    graph = Graph(tuple(nodes), _read_outputs(given["outputs"]))
    try:
        graph.verify()
    except InternalError as error:
        raise FormatError(error.diagnostic.what) from None
    return graph


def _read_outputs(reader: Reader) -> tuple[tuple[str, int], ...]:
    outputs = []
    for place in reader.items():
        name, output = place.items(count=2)
        outputs.append((name.text(), output.integer()))
    return tuple(outputs)


# The tabulated program


def program_json(program: Program) -> dict[str, Any]:
    """The program as JSON, without the options and the tables."""
    chosen = program.stored
    stored: dict[str, Any] = {"split": list(chosen.split), "sums": list(chosen.sums), "few_bits": chosen.few_bits}
    if chosen.backups:
        stored["backups"] = list(chosen.backups)
    return {
        **({"stored": stored} if chosen != Stored() else {}),
        **({"shared": [list(map(encode_value, pair)) for pair in program.shared.items()]} if program.shared else {}),
        "lengths": list(program.lengths),
        "outputs": [[encode_value(name), output] for name, output in program.outputs],
        "sops": [_sop_json(node) for node in program.sops.values()],
        "selectors": [_selector_json(node) for node in program.selectors.values()],
        "warnings": _diagnostics(program.warnings),
        **({"assumptions": _diagnostics(program.assumptions)} if program.assumptions else {}),
    }


def program_tables(program: Program) -> Tables:
    """The tables, by the names that `read_program` uses."""
    tables: Tables = {}
    for node in program.sops.values():
        if node.op.cells is not None:
            tables[f"sops.{node.id}"] = np.ascontiguousarray(node.op.cells, dtype=np.int32)
    for selector in program.selectors.values():
        if isinstance(selector, SelectorNode):
            tables[f"selectors.{selector.id}"] = np.ascontiguousarray(selector.table, dtype=np.int8)
    return tables


def _sop_json(node: SOpNode) -> dict[str, Any]:
    roles = node.op.roles()
    op = {name: _field_json(role, getattr(node.op, name)) for name, role in roles.items() if role is not Role.TABLE}
    return {
        "id": node.id,
        "label": encode_value(node.label),
        "source": encode_value(node.source),
        "origin": encode_value(str(node.origin)),
        "op": {"kind": node.op.kind, **op},
        "domain": _domain_json(node.domain),
        "wish": None if node.wish is None else node.wish.value,
        "encoding": node.encoding.value,
    }


def _field_json(role: Role, content: Any) -> Any:
    """The JSON of a field of an operation, unless it is a table."""
    match role:
        case Role.TERMS:
            return [[number, _number(factor)] for number, factor in content]
        case Role.NUMBER:
            return _number(content)
        case Role.POINTS:
            return _domain_json(content)
        case Role.INPUT | Role.ATTENDED | Role.SELECTOR | Role.DEFAULT | Role.FUNCTION | Role.FLAG:
            return encode_value(content)
        case Role.TABLE:
            raise InternalError("tables are not saved as JSON")
        case _:
            assert_never(role)


def _selector_json(node: Selector) -> dict[str, Any]:
    own: dict[str, Any] = (
        {"keys": node.keys, "queries": node.queries}
        if isinstance(node, SelectorNode)
        else {"kind": node.kind, "parts": list(node.parts)}
    )
    return {
        "id": node.id,
        "label": encode_value(node.label),
        "source": encode_value(node.source),
        "origin": encode_value(str(node.origin)),
        **own,
        "counts": [int(count) for count in node.counts],
    }


def _domain_json(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Finite):
        twins = [[code, [encode_value(twin) for twin in twins]] for code, twins in sorted(domain.twins.items())]
        return {"kind": "finite", "values": [encode_value(value) for value in domain.values], "twins": twins}
    return {
        "kind": "interval",
        "low": _number(domain.low),
        "high": _number(domain.high),
        "maybe_none": domain.maybe_none,
        "reason": encode_value(domain.reason),
    }


def _number(number: float) -> float:
    """A numpy number as a Python number."""
    return number if type(number) is int else float(number)


def read_program(reader: Reader, tables: Mapping[str, NDArray[Any]], options: Options) -> Program:
    """Read the program written by `program_json` and `program_tables`."""
    optional = ("stored", "shared", "assumptions")
    given = reader.object(("lengths", "outputs", "sops", "selectors", "warnings"), optional)
    left = dict(tables)
    sops: dict[int, SOpNode] = {}
    selectors: dict[int, Selector] = {}
    for place in given["sops"].items():
        node = _read_sop(place, left)
        if node.id in sops:
            place.fail(f"has the number of another s-op, {node.id}")
        sops[node.id] = node
    for place in given["selectors"].items():
        selector = _read_selector(place, left, selectors)
        if selector.id in selectors:
            place.fail(f"has the number of another selector, {selector.id}")
        selectors[selector.id] = selector
    if left:
        raise FormatError(f"there are tables without an s-op or selector: {', '.join(map(repr, sorted(left)[:5]))}")
    low, high = given["lengths"].items(count=2)
    longest = high.integer(1, options.max_seq_len)
    warnings = _read_diagnostics(given["warnings"])
    assumptions = _read_diagnostics(given["assumptions"]) if "assumptions" in given else ()
    outputs = _read_outputs(given["outputs"])
    pairs = [place.items(count=2) for place in given["shared"].items()] if "shared" in given else []
    shared = {label.text(): first.text() for label, first in pairs}
    lengths = low.integer(1, longest), longest
    program = Program(options, sops, selectors, outputs, lengths, Stored(), warnings, assumptions, shared)
    _check(program, given["sops"])
    return replace(program, stored=_read_stored(given["stored"], program)) if "stored" in given else program


def _diagnostics(found: Sequence[Diagnostic]) -> list[list[Any]]:
    return [[encode_value(part) for part in (one.expression, one.what, one.hint)] for one in found]


def _read_diagnostics(reader: Reader) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(*(part.text() for part in place.items(count=3))) for place in reader.items())


def _read_stored(reader: Reader, program: Program) -> Stored:
    given = reader.object(("split", "sums", "few_bits"), optional=("backups",))
    split, sums = (tuple(place.integer() for place in given[name].items()) for name in ("split", "sums"))
    if any(number not in program.selectors for number in split):
        given["split"].fail("names a selector that does not exist")
    if any(number not in program.sops or sum_of(program, program.sops[number]) is None for number in sums):
        given["sums"].fail("names a table that is not a sum")
    backups = tuple(place.integer() for place in given["backups"].items()) if "backups" in given else ()
    if any(number not in program.sops for number in backups) or len(set(backups)) < len(backups):
        given["backups"].fail("names a variable that does not exist, or one twice")
    return Stored(split, sums, given["few_bits"].boolean(), backups)


def _check(program: Program, reader: Reader) -> None:
    """Check that every number is that of a node, and that the domains of the inputs are those of the options."""
    names = [name for name, _ in program.outputs]
    if not names or len(set(names)) < len(names) or any(output not in program.sops for _, output in program.outputs):
        reader.fail("and the outputs do not fit together")
    shortest, longest = program.lengths
    sources: dict[type, Sequence[Value]] = {
        TokensOp: program.options.vocab,
        IndicesOp: range(program.options.max_seq_len),
        LengthOp: range(shortest, longest + 1),
    }
    for node in program.sops.values():
        if any(selector not in program.selectors for selector in node.op.selectors):
            reader.fail(f"has {node.label} read a selector that does not exist")
        if any(child not in program.sops for child in program.children(node)):
            reader.fail(f"has {node.label} read an s-op that does not exist")
        _check_values(node, sources.get(type(node.op)), reader)
    program.verify()


def _check_values(node: SOpNode, expected: Sequence[Value] | None, reader: Reader) -> None:
    """Check that an input has exactly its values, and a constant one value."""
    values = node.domain.values if isinstance(node.domain, Finite) else None
    if expected is not None and (values is None or len(values) != len(expected) or values != tuple(expected)):
        reader.fail(f"gives {node.label} values that are not those of the input")
    if isinstance(node.op, Constant) and (values is None or len(values) != 1):
        reader.fail(f"gives the constant {node.label} not exactly one value")


def _read_sop(reader: Reader, tables: Tables) -> SOpNode:
    given = reader.object(("id", "label", "source", "origin", "op", "domain", "wish", "encoding"))
    number = given["id"].integer()
    wish = given["wish"]
    return SOpNode(
        number,
        given["label"].text(),
        given["source"].text(),
        given["origin"].text(),
        _read_op(given["op"], f"sops.{number}", tables),
        _read_domain(given["domain"]),
        None if wish.data is None else ENCODINGS[wish.choice(ENCODINGS)],
        ENCODINGS[given["encoding"].choice(ENCODINGS)],
    )


def _read_op(reader: Reader, name: str, tables: Tables) -> Op:
    kind = reader.data.get("kind") if isinstance(reader.data, dict) else None
    make = KINDS[Reader(kind, f"{reader.where}.kind").choice(KINDS)]
    roles = make.roles()
    given = reader.object({"kind", *(field for field, role in roles.items() if role is not Role.TABLE)})
    found: dict[str, Any] = {
        field: _take(tables, name, np.int32) if role is Role.TABLE else _read_field(role, given[field])
        for field, role in roles.items()
    }
    return make(**found)


def _read_field(role: Role, reader: Reader) -> Any:
    """Read a field written by `_field_json`."""
    match role:
        case Role.INPUT | Role.ATTENDED | Role.SELECTOR:
            return reader.integer()
        case Role.TERMS:
            pairs = [term.items(count=2) for term in reader.items()]
            return tuple((number.integer(), factor.number()) for number, factor in pairs)
        case Role.NUMBER:
            return reader.number()
        case Role.POINTS:
            points = _read_domain(reader)
            if not isinstance(points, Finite) or not points.numeric:
                reader.fail("does not list numbers")
            return points
        case Role.DEFAULT:
            return reader.value()
        case Role.FUNCTION:
            return reader.text()
        case Role.FLAG:
            return reader.boolean()
        case Role.TABLE:
            raise InternalError("tables are not saved as JSON")
        case _:
            assert_never(role)


def _read_selector(reader: Reader, tables: Tables, known: Mapping[int, Selector]) -> Selector:
    composite = isinstance(reader.data, dict) and "kind" in reader.data
    own = ("kind", "parts") if composite else ("keys", "queries")
    given = reader.object(("id", "label", "source", "origin", *own, "counts"))
    number = given["id"].integer()
    counts = tuple(count.integer() for count in given["counts"].items())
    if list(counts) != sorted(set(counts)):
        given["counts"].fail("is not in ascending order")
    label, source, origin = (given[name].text() for name in ("label", "source", "origin"))
    if composite:
        kind = given["kind"].choice(get_args(Kind))
        parts = tuple(part.integer() for part in given["parts"].items(count=1 if kind == "not" else 2))
        if not known.keys() >= set(parts):  # earlier ones only, so that none is part of itself
            given["parts"].fail("names a selector that is not before it")
        return CompositeNode(number, label, source, origin, counts, cast(Kind, kind), parts)
    table = _take(tables, f"selectors.{number}", np.int8)
    if table.max(initial=0) > 1:
        reader.fail("has a table with cells that are neither 0 nor 1")
    keys, queries = given["keys"].integer(), given["queries"].integer()
    return SelectorNode(number, label, source, origin, counts, keys, queries, table)


def _take(tables: Tables, name: str, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    if name not in tables:
        raise FormatError(f"there is no table {name}")
    table = tables.pop(name)
    if table.dtype != dtype:
        raise FormatError(f"table {name} is of type {table.dtype}, not {np.dtype(dtype)}")
    if table.min(initial=ERROR) < UNREACHED:
        raise FormatError(f"table {name} has cells without a meaning")
    return table


def _stands_for(value: Value, twin: Value) -> bool:
    """Whether a twin equals its value, up to rounding."""
    return same_value(value, twin)


def _read_domain(reader: Reader) -> Domain:
    kind = reader.data.get("kind") if isinstance(reader.data, dict) else None
    if Reader(kind, f"{reader.where}.kind").choice(("finite", "interval")) == "interval":
        given = reader.object(("kind", "low", "high", "maybe_none", "reason"))
        low, high = (given[name].number() for name in ("low", "high"))
        return Interval(low, high, given["maybe_none"].boolean(), given["reason"].text())
    given = reader.object(("kind", "values", "twins"))
    values, twins = given["values"].values(), {}
    for place in given["twins"].items():
        code, others = place.items(count=2)
        place_of = code.integer(0, len(values) - 1)
        twins[place_of] = others.values()
        if not all(_stands_for(values[place_of], twin) for twin in twins[place_of]):
            others.fail("differ from the value they represent")
    domain = Finite(values, MappingProxyType(twins))
    if len(set(values)) != len(values):
        given["values"].fail("has a value twice")
    return domain
