"""The data of the explorer page, as JSON: the tabulated program, the weights, and the labels of the dimensions.

Values of any type are entries of one list, `values`: [text, number or null, the first entry that is equal]. Codes,
tables and weights are numbers; a weight matrix lists its nonzero entries. The page executes none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.certifying import shown_certificate
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Number, Variable
from tracr.errors import TracrError
from tracr.ir.domains import Domain, Finite
from tracr.ir.layout import ALWAYS, Direction
from tracr.ir.ops import Op, Role
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.ir.selectors import CompositeNode, Selector
from tracr.model.interventions import folded, locations
from tracr.model.program_variables import behind_simpler_selectors
from tracr.values import Value, is_number, value_text
from tracr.viz.explorer.listing import listing

if TYPE_CHECKING:
    from tracr.ground_truth.data import ModelNode
    from tracr.model.designed import DesignedModel
    from tracr.model.residual import Dimension

__all__ = ["FORMAT", "absorbed_variables", "page_data", "weights_json"]

FORMAT, VERSION = "tracr explorer", 1
CELL_LETTERS = {0: "0", 1: "1", -1: "e", -2: "u"}  # the cells of a selector's table
SPECIAL_TOKENS = (BOS, PAD)
KNOWN = frozenset(  # the operations that the page computes: `web/src/core/program.js`
    ["tokens", "indices", "length", "constant", "positions", "lookup", "pair_lookup", "linear", "aggregation", "width"]
)


def page_data(
    model: DesignedModel, tokens: Sequence[Value], name: str, description: str, certified: bool = True
) -> dict[str, Any]:
    """The model (for a variant, its weights along its directions), its program and the first input.

    With `certified=False` the checker is not run.
    """
    values, options, program, labelled = _Values(), model.options, model.program, model.labelled
    groups = _groups(model)
    circuit, without = _Circuit(model, groups), folded(model.program, model.layout)
    absorbed = absorbed_variables(model)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "description": description,
        "level": options.level,
        "causal": options.causal,
        "lengths": list(program.lengths),
        "sizes": {"layers": model.n_layers, "d_model": labelled.d_model, "parameters": labelled.n_parameters},
        "input": [options.vocab.index(token) for token in tokens],
        "vocab": values.ids(options.vocab),
        "words": _words(options.vocab),
        "bos": value_text(options.bos),
        "pad": value_text(options.pad),
        "sops": [
            {
                "id": node.id,
                "label": node.label,
                "op": _op_json(node.op, values),
                "domain": _domain_json(node.domain, values),
                "encoding": node.encoding.value,
                "absorbed": absorbed.get(node.label),
                "folded": list(without[node.label].made_of) if node.label in without else None,
            }
            for node in program.sops.values()
        ],
        "selectors": [_selector_json(selector) for selector in program.selectors.values()],
        "outputs": [
            {"name": output.name, "sop": number, "start": output.start, "stop": output.stop}
            for output, (_, number) in zip(model.outputs, program.outputs, strict=True)
        ],
        "lines": [vars(line) for line in listing(program, model.expressions, model.source)],
        "source": model.source,
        "certificate": _certificate_json(model) if certified else None,
        "weights": weights_json(labelled.cast(np.float32)),
        "dimensions": [_dimension_json(model, dimension) for dimension in model.residual],
        "groups": [_group_json(model, group, values) for group in groups],
        "components": circuit.components(),
        "edges": circuit.edges(),
        "none": values.id(None),
        "values": values.entries,
    }


def absorbed_variables(model: DesignedModel) -> dict[str, str]:
    """The variables that cannot be patched, because the optimiser made them part of others: what it made them."""
    compared = {label: f"part of what {reader} compares" for label, reader in behind_simpler_selectors(model).items()}
    return {**compared, **model.circuit.rewriting.absorbed}


def _certificate_json(model: DesignedModel) -> dict[str, Any] | None:
    """The verdict of the checker: its headline, and what is proved and assumed."""
    found = shown_certificate(model)
    if found is None:
        return None
    headline, *lines = str(found).split("\n")
    return {"accepted": found.accepted, "headline": headline, "lines": lines}


class _Values:
    """The list of all values, each once; values that are equal but differ in type (1 and True) are two entries."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self._ids: dict[tuple[type, str], int] = {}
        self._first: dict[Value, int] = {}

    def id(self, value: Value) -> int:
        key = (type(value), repr(value))
        if key not in self._ids:
            number = len(self.entries)
            self._ids[key] = number
            self.entries.append([value_text(value), _number(value), self._first.setdefault(value, number)])
        return self._ids[key]

    def ids(self, values: Sequence[Value]) -> list[int]:
        return [self.id(value) for value in values]


def _number(value: Value) -> float | None:
    """A number as a float, or None if a float cannot hold it."""
    try:
        return float(value) if is_number(value) else None
    except OverflowError:
        return None


def _words(vocab: Sequence[Value]) -> list[str]:
    """The words to type for tokens: their text, quoted if it is blank or also the text of another token.

    >>> _words(["a", " ", 1, "1", ("a", 2)])
    ['a', "' '", '1', "'1'", "('a', 2)"]
    """
    often = Counter(value_text(token) for token in vocab)

    def word(token: Value) -> str:
        text = value_text(token)
        return repr(token) if often[text] > 1 or not text or text != text.strip() else text

    return [word(token) for token in vocab]


# The program


def _domain_json(domain: Domain, values: _Values) -> Any:
    if isinstance(domain, Finite):
        return values.ids(domain.values)
    return {"low": float(domain.low), "high": float(domain.high), "none": domain.maybe_none}


def _op_json(op: Op, values: _Values) -> dict[str, Any]:
    if op.kind not in KNOWN:
        raise TracrError(
            f"the explorer page cannot compute the operation {op.kind!r}",
            hint="add it to web/src/core/program.js and to KNOWN in viz/explorer/data.py",
        )
    return {"kind": op.kind, **{name: _field(role, getattr(op, name), values) for name, role in op.roles().items()}}


def _field(role: Role, content: Any, values: _Values) -> Any:
    """The JSON of a field of an operation."""
    match role:
        case Role.DEFAULT:
            return values.id(content)
        case Role.TABLE:
            return content.ravel().tolist()
        case Role.TERMS:
            return [[term, float(factor)] for term, factor in content]
        case Role.NUMBER:
            return float(content)
        case Role.POINTS:
            return values.ids(content.values)
        case Role.INPUT | Role.ATTENDED | Role.SELECTOR | Role.FUNCTION | Role.FLAG:
            return content
        case _:
            assert_never(role)


def _selector_json(selector: Selector) -> dict[str, Any]:
    common = {"id": selector.id, "label": selector.label, "counts": [int(count) for count in selector.counts]}
    if isinstance(selector, CompositeNode):
        return {**common, "kind": selector.kind, "parts": list(selector.parts)}
    rows = ["".join(CELL_LETTERS[cell] for cell in row) for row in selector.table.tolist()]
    return {**common, "kind": "table", "keys": selector.keys, "queries": selector.queries, "table": rows}


# The weights


def weights_json(weights: Parameters) -> dict[str, Any]:
    """The weights of a transformer, as float32."""
    return {
        "W_E": _sparse(weights.W_E),
        "W_pos": _sparse(weights.W_pos),
        "W_U": _sparse(weights.W_U),
        "layers": [
            {field.name: _sparse(getattr(layer, field.name)) for field in fields(LayerParameters)}
            for layer in weights.layers
        ],
    }


def _sparse(array: NDArray[Any]) -> dict[str, Any]:
    """The nonzero entries: indices in the flattened array, and numbers (a float32 as a float64 is exact)."""
    flat = np.asarray(array, np.float32).ravel()
    places = np.flatnonzero(flat)
    return {"shape": list(array.shape), "at": places.tolist(), "values": [_short(x) for x in flat[places].tolist()]}


def _short(number: float) -> float:
    """A whole number as an integer, which takes fewer characters."""
    return int(number) if number == int(number) else number


# What the dimensions mean


def _groups(model: DesignedModel) -> list[tuple[Variable, ...]]:
    """The variables in the order of the residual stream; BOS and PAD with the tokens."""
    found: dict[Variable | None, list[Variable]] = {}
    tokens = next((v for v in model.layout.slots if v.label == "tokens" and v not in SPECIAL_TOKENS), None)
    for variable in model.layout.slots:
        found.setdefault(tokens if variable in SPECIAL_TOKENS else variable, []).append(variable)
    return [tuple(group) for group in found.values()]


def _dimension_json(model: DesignedModel, dimension: Dimension) -> dict[str, Any]:
    """A direction, its dimension (`slot`), and the first stage in which it is stored and the first in which it is not.

    Stages are the embedding (0) and the sub-layers after it.
    """
    return {
        "label": dimension.label,
        "slot": dimension.index,
        "from": dimension.since + 1,
        "until": dimension.until + 1 if dimension.until < ALWAYS else None,
        "special": model.layout.directions[dimension.number].variable in SPECIAL_TOKENS,
        "writer": dimension.writer,
        "readers": list(dimension.readers),
    }


def _group_json(model: DesignedModel, group: tuple[Variable, ...], values: _Values) -> dict[str, Any]:
    """The directions of a variable: their numbers, each with the value it represents; `null` for a number or a bit.

    `dropped`: the values without a direction. `codes`: the coordinates of each value, if values are stored in bits.
    """
    first = group[0]
    name = "tokens" if first in SPECIAL_TOKENS else first.label
    known = {location.variable for location in locations(model.program, model.layout).values()}
    special = {BOS: model.options.bos, PAD: model.options.pad}
    rows: list[list[Any]] = []
    places = []
    for number, direction in enumerate(model.layout.directions):
        if direction.variable is first:
            places.append(direction.place)
        if direction.variable in group:
            value = special.get(direction.variable, direction.value)
            plain = direction.variable.compact or isinstance(value, Number)
            rows.append([number, None if plain else values.id(value)])
    codes, dropped = None, []
    if first.codebook is not None:
        codes = [[values.id(v), list(map(_short, first.code(v)[places].tolist()))] for v in first.values]
    else:
        dropped = [values.id(v) for p, v in enumerate(first.values) if p not in places and not isinstance(v, Number)]
    return {
        "label": name,
        "sop": first.node,
        "scratch": first not in known and first.node is not None,
        "numerical": first.numerical and first not in SPECIAL_TOKENS,
        "constant": first is ONE,
        "rows": rows,
        "codes": codes,
        "dropped": dropped,
        "settable": first in known,
    }


class _Circuit:
    """The ground truth's nodes and edges, by number."""

    def __init__(self, model: DesignedModel, groups: list[tuple[Variable, ...]]) -> None:
        self.model = model
        self.nodes = {node.id: node for node in model.ground_truth.nodes()}
        self.number = {name: number for number, name in enumerate(self.nodes)}
        self.group = {variable: number for number, group in enumerate(groups) for variable in group}
        self.turns: dict[int, list[Direction]] = {}
        for direction in model.layout.directions:
            self.turns.setdefault(direction.slot, []).append(direction)

    def _variables(self, node: ModelNode, slots: Sequence[int]) -> list[Variable]:
        """The variables that a component writes to (or clears from) dimensions."""
        time = -1 if node.layer is None else 2 * node.layer + (node.kind == "neurons") - node.clears
        held = (next(direction for direction in self.turns[slot] if direction.held(time)) for slot in slots)
        return [direction.variable for direction in held]

    def components(self) -> list[dict[str, Any]]:
        """Every component of the model: its column, what it writes or clears, and its selector."""
        found = []
        for node in self.nodes.values():
            slots = [slot for written in node.writes for slot in written.slots]
            groups = list(dict.fromkeys(self.group[variable] for variable in self._variables(node, slots)))
            found.append(
                {
                    "id": node.id,
                    "kind": node.kind,
                    "layer": node.layer,
                    "head": node.head,
                    "neurons": node.neurons,
                    "computes": self._computes(node),
                    "writes": [] if node.clears else groups,
                    "clears": groups if node.clears else [],
                    "selector": self._selector(node.head, node.layer),
                }
            )
        return found

    def _computes(self, node: ModelNode) -> str:
        """What a component does, without its place, which the page adds."""
        if node.layer is None:
            return node.computes
        layer = self.model.layout.layers[node.layer]
        return (
            layer.heads[node.head].what if node.head is not None else layer.mlps[int(node.id.rpartition(".")[2])].what
        )

    def _selector(self, head: int | None, layer: int | None) -> int | None:
        if head is None or layer is None:
            return None
        for variable, _ in self.model.layout.layers[layer].heads[head].writes:
            op = self.model.program.sops[variable.node].op if variable.node is not None else None
            if op is not None and op.selectors:
                return op.selectors[0]
        return None

    def edges(self) -> list[dict[str, Any]]:
        """The edges: source, target and the variable they carry.

        `plumbing`: it carries nothing but BOS, PAD, the constant one and what was cleared. `cancelled`: the dimensions
        held the variable and were cleared since.
        """
        merged: dict[tuple[int, int, str, int], list[bool]] = {}
        for edge in self.model.ground_truth.edges():
            variables = self._variables(self.nodes[edge.source], edge.slots)
            key = (self.number[edge.source], self.number[edge.target], edge.input, self.group[variables[0]])
            both = merged.setdefault(key, [True, True])
            both[0] &= edge.cancelled or all(variable in (*SPECIAL_TOKENS, ONE) for variable in variables)
            both[1] &= edge.cancelled
        names = ("source", "target", "input", "group", "plumbing", "cancelled")
        return [dict(zip(names, (*key, *both), strict=True)) for key, both in merged.items()]
