"""The roles and the sentence of every head and every group of neurons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tracr.craft.heads import Head
from tracr.craft.variables import Variable
from tracr.explaining.formulas import calls, examples, formula_of, said
from tracr.explaining.roles import Explanation
from tracr.explaining.selections import positional, selected
from tracr.ir.circuit import Component
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, Constant, IndicesOp, LengthOp, Linear, Positions, TokensOp, Width
from tracr.ir.program import Program, SOpNode
from tracr.ir.schedule import Schedule

__all__ = ["embedded", "explanations"]

Said = tuple[str, str]


def explanations(program: Program, schedule: Schedule) -> dict[str, Explanation]:
    """What every head and every group of neurons does, by its name ("blocks.0.attn.0", "blocks.0.mlp.0")."""
    first = ((placed.head, number) for placed in schedule.heads() for number in _computed(placed.head))
    shared = Counter(number for head, number in first if not _backs_up(head, number))
    components: dict[str, Component] = {placed.name: placed.head for placed in schedule.heads()}
    components |= {placed.name: placed.group for placed in schedule.neurons()}
    found = {name: _explained(program, component, shared) for name, component in components.items()}
    bare = {name: component for name, component in components.items() if not found[name].roles}
    return found | {name: _helping(program, component, components.values()) for name, component in bare.items()}


def _helping(program: Program, component: Component, others: Iterable[Component]) -> Explanation:
    """A component that writes no s-op: it prepares a table for the component that reads it."""
    written = {variable for variable, _ in component.writes}
    readers = [number for one in others if written & {*one.reads} for number in _computed(one)]
    for_whom = ", ".join(program.sops[number].label for number in dict.fromkeys(readers))
    read = [one for one in component.reads if one.node is not None]
    if all(one.scratch for one in read):  # attention wrote them
        return Explanation(("decode",), f"sorts the sum of {len(read)} counts into ranges, for {for_whom}")
    labels = list(dict.fromkeys(program.sops[one.node].label for one in read if one.node is not None))
    role = "combine" if len(labels) > 1 else "map"
    return Explanation((role,), f"sorts the values of {' and '.join(labels)} into ranges, for {for_whom}")


def embedded(program: Program, variable: Variable) -> str:
    """A variable that the embedding writes: its label, and the formula of a function of tokens or positions."""
    if variable.node is None:
        return variable.label
    node = program.sops[variable.node]
    if isinstance(node.op, TokensOp | IndicesOp):
        return variable.label
    if isinstance(node.op, Constant) and isinstance(node.domain, Finite):
        return f"{variable.label} ({said(node.domain.values[0])} everywhere)"
    text = formula_of(program, node) or examples(program, node)
    return f"{variable.label} ({text})" if text else variable.label


def _computed(component: Component) -> list[int]:
    """The s-ops that a component computes, or helps to compute."""
    return list(dict.fromkeys(variable.node for variable, _ in component.writes if variable.node is not None))


def _explained(program: Program, component: Component, shared: Counter[int]) -> Explanation:
    if not isinstance(component, Head) and component.clears:
        return Explanation(("clear",), f"clears {', '.join(variable.label for variable, _ in component.clears)}")
    texts: list[Said] = []
    for number in _computed(component):
        node = program.sops[number]
        if isinstance(component, Head):
            role, text = _attention(program, node)
            together = f", as one of {shared[number]} heads" if shared[number] > 1 else ""
        else:
            written = [one for one, _ in component.writes if one.node == number]
            read = [one for one in component.reads if one.node is not None]
            role, text = _recoded(node, read, written) or _neurons(program, node, written)
            together = ""
        texts.append((role, text + (f", if {node.label} is missing" if _backs_up(component, number) else together)))
    return Explanation(tuple(dict.fromkeys(role for role, _ in texts)), "; ".join(text for _, text in texts))


def _backs_up(component: Component, number: int) -> bool:
    """Whether a component computes an s-op again, if it is missing: it reads the s-op itself and other variables."""
    read = [one for one in component.reads if one.node is not None]
    own = [one for one in read if one.node == number and not one.scratch]
    return 0 < len(own) < len(read)


def _attention(program: Program, node: SOpNode) -> Said:
    label = node.label
    match node.op:
        case LengthOp():
            return "count", f"counts, for {label}, all positions"
        case Width(selector=selector):
            return "count", f"counts, for {label}, {selected(program, selector)}"
        case Aggregation(selector=selector, value=value, copies=True):
            role = "copy_by_position" if positional(program, selector) else "copy"
            copied = program.sops[value].label
            return role, f"copies {copied} from {selected(program, selector)}{_or_else(program, node)}, as {label}"
        case Aggregation(selector=selector):
            return "average", f"finds, for {label}, {_mean(program, node)}{_or_else(program, node)}"
    return _elementwise(program, node)


def _mean(program: Program, node: SOpNode) -> str:
    """A mean in words; that of truth values is a share."""
    assert isinstance(node.op, Aggregation)
    value, where = program.sops[node.op.value], selected(program, node.op.selector)
    if _is_condition(value):
        return f"the share of true {value.label} among {where}"
    return f"the mean of {value.label} over {where}"


def _or_else(program: Program, node: SOpNode) -> str:
    """The value of an aggregate where nothing is selected, if that can be."""
    assert isinstance(node.op, Aggregation)
    return "" if program.selectors[node.op.selector].always else f" ({said(node.op.default)} if there is none)"


def _recoded(node: SOpNode, read: list[Variable], written: list[Variable]) -> Said | None:
    """Neurons that write a variable which is already there, in another code or with a backup; `None` for others.

    A mean that attention wrote as a number is not there yet: what neurons make of it is its value.
    """
    if not read or any(one.node != node.id or one.scratch for one in read) or any(one.scratch for one in written):
        return None
    if len(read) > 1:
        return "combine", f"takes {node.label}, or its backup where {node.label} is missing"
    if read[0].numerical:
        return _from_number(node, written)
    if any(one.numerical for one in written):
        return "map", f"turns the code of {node.label} into a number"
    if read[0].compact or any(one.compact for one in written):
        return "map", f"writes {node.label} in another code"
    return "map", f"rounds the code of {node.label} to 0 and 1"


def _from_number(node: SOpNode, written: list[Variable]) -> Said | None:
    """Neurons that read a variable as a number and write its code; `None` for others."""
    if isinstance(node.op, Aggregation) or any(one.numerical for one in written):
        return None
    return "map", f"turns the number {node.label} into its code"


def _neurons(program: Program, node: SOpNode, written: list[Variable]) -> Said:
    label = node.label
    helpers = all(variable.scratch for variable in written)
    match node.op:
        case LengthOp():
            return "decode", f"turns the count of all positions into {label}"
        case Width(selector=selector):
            return "decode", f"turns the count of {selected(program, selector)} into {label}"
        case Aggregation(selector=selector) if helpers:
            return "decode", f"turns the count of {selected(program, selector)} into a number, for {label}"
        case Aggregation(selector=selector, value=value, copies=True):
            where = selected(program, selector)
            return "decode", f"turns what was copied of {program.sops[value].label} from {where} into {label}"
        case Aggregation():
            return "decode", f"turns {_mean(program, node)} into {label}"
    return _elementwise(program, node)


def _elementwise(program: Program, node: SOpNode) -> Said:
    label, inputs = node.label, [program.sops[number].label for number in node.op.inputs]
    text = formula_of(program, node)
    if isinstance(node.op, Linear):
        return "add", f"computes {label} = {text}"
    if isinstance(node.op, Constant | Positions) or not inputs:
        table = examples(program, node)
        return "map", f"writes {label}{f', by position: {table}' if table else ''}"
    role = "compare" if _is_condition(node) else "combine" if len(inputs) > 1 else "map"
    table = examples(program, node)
    told = f": {table}" if table and (text is None or calls(node)) else ""
    if text is None:
        return role, f"looks up {label} by {' and '.join(inputs)}{told}"
    return role, f"computes {label}{': whether' if role == 'compare' else ' ='} {text}{told}"


def _is_condition(node: SOpNode) -> bool:
    """Whether the values of an s-op are truth values."""
    return isinstance(node.domain, Finite) and node.domain.kinds == {bool}
