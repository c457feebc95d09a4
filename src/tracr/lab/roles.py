"""What each component of a compiled model does: roles from a small vocabulary, and a sentence.

Both come from the program's operations and the tables of its selectors, not from names that the user chose, except that
sentences name variables by their labels.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tracr.craft.heads import Head
from tracr.ground_truth.data import FINEST, Granularity, ModelNode, merged_id
from tracr.ir.circuit import Component
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, Constant, LengthOp, Linear, Lookup, Op, PairLookup, SumLookup, Width
from tracr.ir.program import Program
from tracr.ir.selectors import CompositeNode, SelectorNode
from tracr.model.compiled import CompiledModel

__all__ = ["ROLES", "ComponentRole", "roles_of"]

ROLES = MappingProxyType(
    {
        "embed": "writes the tokens or the positions into the residual stream",
        "count": "attention whose weight on BOS encodes how many positions are selected",
        "copy": "attention to the selected position, whose value it copies",
        "copy_by_position": "attention to a position that does not depend on the tokens, whose value it copies",
        "average": "attention to all selected positions, whose values it averages",
        "decode": "neurons that turn what attention wrote into a count or a value",
        "map": "neurons that compute a function of one variable",
        "combine": "neurons that compute a function of several variables",
        "add": "neurons that compute a weighted sum",
        "clear": "neurons that remove a variable from the residual stream",
        "read_out": "reads the answer off the residual stream",
    }
)
"""The roles, each with its meaning."""

RELATIONS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
    ("==", operator.eq),
    ("!=", operator.ne),
    ("<", operator.lt),
    ("<=", operator.le),
    (">", operator.gt),
    (">=", operator.ge),
)


@dataclass(frozen=True)
class ComponentRole:
    """The roles of a component (several if it holds several groups of neurons, or merged heads), and a sentence."""

    component: str
    roles: tuple[str, ...]
    sentence: str


def roles_of(model: CompiledModel, granularity: Granularity = "head") -> dict[str, ComponentRole]:
    """The role of every node of the ground truth, by its id.

    >>> from tracr import zoo
    >>> for role in roles_of(zoo.load("hist")).values(): print(role.component, role.roles, role.sentence)
    embed ('embed',) The embedding writes tokens.
    pos_embed ('embed',) The embedding writes nothing.
    blocks.0.attn.0 ('count',) Counts the positions where tokens[key] == tokens[query], for hist.
    blocks.0.mlp ('decode',) Decodes the count hist.
    unembed ('read_out',) Reads out hist.
    """
    schedule = model.layout.schedule
    components: dict[str, Component] = {placed.name: placed.head for placed in schedule.heads()}
    components |= {placed.name: placed.group for placed in schedule.neurons()}
    shared = Counter(number for placed in schedule.heads() for number in _computed(placed.head))
    found: dict[str, list[ComponentRole]] = {}
    for node in model.ground_truth.nodes(FINEST):
        one = _role(model, node, components.get(node.id), shared)
        found.setdefault(merged_id(node, granularity), []).append(one)
    return {name: _merged(name, group) for name, group in found.items()}


def _merged(name: str, group: list[ComponentRole]) -> ComponentRole:
    roles = dict.fromkeys(role for one in group for role in one.roles)
    return ComponentRole(name, tuple(roles), " ".join(one.sentence for one in group))


def _computed(component: Component) -> list[int]:
    """The s-ops that a component computes, or helps to compute."""
    return list(dict.fromkeys(variable.node for variable, _ in component.writes if variable.node is not None))


def _role(model: CompiledModel, node: ModelNode, component: Component | None, shared: Counter[int]) -> ComponentRole:
    if component is None:
        special = (":bos", ":pad")
        written = ", ".join(name for name in node.variables if not name.endswith(special)) or "nothing"
        outputs = ", ".join(output.name for output in model.outputs)
        if node.kind == "embedding":
            return ComponentRole(node.id, ("embed",), f"The embedding writes {written}.")
        return ComponentRole(node.id, ("read_out",), f"Reads out {outputs}.")
    if node.clears:
        return ComponentRole(node.id, ("clear",), f"Clears {', '.join(node.variables)}.")
    described = []
    for number in _computed(component):
        head = isinstance(component, Head)
        role, text = _attention(model.program, number, node) if head else _neurons(model.program, number)
        part = f" (one of {shared[number]} heads that do this together)" if head and shared[number] > 1 else ""
        described.append((role, text + part))
    sentence = "; ".join(text for _, text in described)
    return ComponentRole(node.id, tuple(dict.fromkeys(role for role, _ in described)), f"{_capital(sentence)}.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _attention(program: Program, number: int, node: ModelNode) -> tuple[str, str]:
    label, op = program.sops[number].label, program.sops[number].op
    match op:
        case LengthOp():
            return "count", f"counts all positions, for {label}"
        case Width(selector=selector):
            return "count", f"counts {_where(program, selector)}, for {label}"
        case Aggregation(selector=selector, value=value, copies=True):
            copied = program.sops[value].label
            if node.attends is None:
                return "copy", f"copies {copied} from {_where(program, selector)}, as {label}"
            return "copy_by_position", f"copies {copied} from {_place(node)}, as {label}"
        case Aggregation(selector=selector, value=value):
            return "average", f"averages {program.sops[value].label} over {_where(program, selector)}, for {label}"
    return _elementwise(program, op, label)


def _place(node: ModelNode) -> str:
    assert node.attends is not None
    offset, position = node.attends.offset, node.attends.position
    if offset is None:
        return f"the position {(position or 0) - 1}"
    if offset == 0:
        return "this position"
    which = "before" if offset < 0 else "after"
    return f"the position {abs(offset)} {which}" if abs(offset) > 1 else f"the position right {which}"


def _neurons(program: Program, number: int) -> tuple[str, str]:
    label, op = program.sops[number].label, program.sops[number].op
    if isinstance(op, Width | LengthOp):
        return "decode", f"decodes the count {label}"
    if isinstance(op, Aggregation):
        return "decode", f"decodes the mean {label}"
    return _elementwise(program, op, label)


def _elementwise(program: Program, op: Op, label: str) -> tuple[str, str]:
    read = " and ".join(program.sops[number].label for number in op.inputs)
    match op:
        case Linear():
            return "add", f"computes {label}, a weighted sum of {read}"
        case PairLookup() | SumLookup():
            return "combine", f"computes {label} from {read}"
        case Lookup():
            return "map", f"computes {label} from {read}"
    return "map", f"writes {label}"


def _where(program: Program, number: int) -> str:
    """The selected positions, in words."""
    positions = "positions so far" if program.options.causal else "positions"
    return f"all {positions}" if _all(program, number) else f"the {positions} where {_condition(program, number)}"


def _all(program: Program, number: int) -> bool:
    selector = program.selectors[number]
    return isinstance(selector, SelectorNode) and bool((selector.table == 1).all())


def _condition(program: Program, number: int) -> str:
    selector = program.selectors[number]
    if isinstance(selector, CompositeNode):
        sides = [_condition(program, part) for part in selector.parts]
        return f"not {sides[0]}" if selector.kind == "not" else f"({f' {selector.kind} '.join(sides)})"
    keys, queries = program.sops[selector.keys], program.sops[selector.queries]
    relation = _relation(selector, keys.domain, queries.domain)
    if relation is None:
        return f"{selector.label}({keys.label}[key], {queries.label}[query])"
    if isinstance(queries.op, Constant) and isinstance(queries.domain, Finite):
        return f"{keys.label}[key] {relation} {queries.domain.values[0]!r}"
    return f"{keys.label}[key] {relation} {queries.label}[query]"


def _relation(selector: SelectorNode, keys: object, queries: object) -> str | None:
    """The comparison that a selector's table holds, or `None`; cells where the program raises are not compared."""
    if not isinstance(keys, Finite) or not isinstance(queries, Finite):
        return None
    for symbol, holds in RELATIONS:
        try:
            table = np.array([[holds(key, query) for key in keys.values] for query in queries.values], dtype=bool)
        except TypeError:  # values without an order
            continue
        if (table == (selector.table == 1))[selector.table >= 0].all():
            return symbol
    return None
