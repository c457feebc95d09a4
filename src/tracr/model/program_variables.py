"""The variables of a program: where the model stores each, or why it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tracr.errors import UnknownName
from tracr.ir.ops import Attention, IndicesOp, TokensOp
from tracr.ir.switches import PassName
from tracr.model.interventions import folded, locations

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["APART", "ProgramVariable", "Variables", "behind_simpler_selectors", "variables_of"]

State = Literal["kept", "folded", "shared", "absorbed", "bypassed", "dropped"]
APART = 'compile with passes={"share": False}, or at level 0'
UNOPTIMISED = 'compile with passes={"simplify": False, "fuse": False, "sums": False}, or at level 1'
UNPRUNED = 'compile with passes={"prune": False, "constants": False}, or at level 0'
UNFACTORED = 'compile with passes={"factor": False}, or at level 1'
BYPASSED = "set the variables that it is computed from"
RECOMPILE = "compile the program again: a saved model lacks the tables of the original selectors"


@dataclass(frozen=True)
class ProgramVariable:
    """A variable of the program, and its state in the model.

    `state` is one of

    - "kept": it has dimensions of its own;
    - "folded": it has no dimensions; its readers compute it from its inputs;
    - "shared": the equal variable `instead` is computed for both and has the dimensions;
    - "absorbed": the optimiser made it part of other variables;
    - "bypassed": some reader reads its inputs instead;
    - "dropped": no component reads it, or it is a constant that became a bias.

    `hook` is the activation right after its writer; "" if it has no dimensions. `reason` says why it is not kept, and
    `hint` how to make it `settable`. `stands_for` has the equal variables that are computed with it.
    """

    label: str
    state: State
    settable: bool
    hook: str = ""
    reason: str = ""
    hint: str = field(default="", repr=False)
    instead: str = ""
    stands_for: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" in {self.hook}" if self.hook else ""
        also = f", also stands for {', '.join(self.stands_for)}" if self.stands_for else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.label}: {self.state}{where}{also}{why}" + ("" if self.settable else "; cannot be set")


class Variables(Mapping[str, ProgramVariable]):
    """Every variable of a program by its label."""

    def __init__(self, found: Mapping[str, ProgramVariable]) -> None:
        self._found = dict(found)

    def __getitem__(self, label: str) -> ProgramVariable:
        try:
            return self._found[label]
        except (KeyError, TypeError):  # an unhashable object is not a label
            names = ", ".join(self._found) or "none"
            raise UnknownName(f"the program has no variable {label!r}", hint=f"it has {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"Variables({len(self)}, {len(self.missing)} of them not kept)"

    @property
    def missing(self) -> dict[str, str]:
        """The variables without dimensions of their own, each with the reason."""
        return {label: one.reason for label, one in self.items() if one.reason}

    @property
    def settable(self) -> tuple[str, ...]:
        """The variables that `run(set=...)` can set."""
        return tuple(label for label, one in self.items() if one.settable)

    def show(self) -> str:
        """The variables as text, one line each."""
        return "\n".join(map(str, self.values()))

    def __str__(self) -> str:
        return self.show()


def variables_of(model: DesignedModel) -> Variables:
    """The state of every s-op of the program, and of those that the compiler added."""
    traced = [node.label for node in model.graph.nodes if not node.is_selector]
    labels = dict.fromkeys([*traced, *(node.label for node in model.program.sops.values())])
    listing = _Listing(model)
    return Variables({label: listing.variable(label) for label in labels})


class _Listing:
    def __init__(self, model: DesignedModel) -> None:
        self.model, self.shared = model, model.program.shared
        self.nodes = {node.label: node for node in model.program.sops.values()}
        self.absorbed = model.circuit.rewriting.absorbed
        self.bypassed = _bypassed(model)
        self.known, self.folded = locations(model.program, model.layout), folded(model.program, model.layout)

    def variable(self, label: str) -> ProgramVariable:
        """The state of one variable."""
        first = self.shared.get(label)
        if first in self.nodes and label not in self.nodes:
            settable = self._state(first)[1]
            reason = f"it is computed once with {first}, under that name"
            return ProgramVariable(label, "shared", settable, "", reason, APART, first)
        state, settable, reason, hint = self._state(label)
        hook = self.known[label].hook if label in self.known else ""
        also = tuple(other for other, own in self.shared.items() if own == label)
        return ProgramVariable(label, state, settable, hook, reason, hint, stands_for=also)

    def _state(self, label: str) -> tuple[State, bool, str, str]:
        """The state of a variable that is not shared, whether it can be set, why it is not kept, and a hint."""
        if label in self.bypassed:
            return "bypassed", False, *self.bypassed[label]
        if label in self.absorbed:
            return "absorbed", False, f"the optimiser made it {self.absorbed[label]}", UNOPTIMISED
        if label in self.known:
            return "kept", True, "", ""
        if label in self.folded:
            obstacle, hint = self.folded[label].obstacle(self.model.layout)
            made_of = ", ".join(self.folded[label].made_of) or "a constant"
            return "folded", not obstacle, obstacle or f"its readers read it from {made_of}", hint
        node = self.nodes.get(label)
        if node is not None and node.domain.size == 1:
            return "dropped", False, "it is a constant, and a bias of its readers", UNPRUNED
        if node is not None and isinstance(node.op, TokensOp | IndicesOp) and self.model.options.on(PassName.FACTOR):
            return "dropped", False, "the embedding writes only functions of it, or nothing reads it", UNFACTORED
        return "dropped", False, "nothing reads it", UNPRUNED


def _bypassed(model: DesignedModel) -> dict[str, tuple[str, str]]:
    """The s-ops that some selector ignores if they are set, each with the reason and a hint.

    A program compiled in this process also has its original form, which shows whether a selector follows an
    intervention. For a loaded program, the graph shows which selectors were simplified. The variables that these depend
    on cannot be set, except the tokens: setting tokens is the same as giving another input.
    """
    program = model.program
    if program.written is not None:
        return {
            program.shared.get(label, label): (f"{selector} compares what it is computed from", BYPASSED)
            for label, selector in program.bypassed.items()
        }
    return {
        label: (f"the selector of {reader} was simplified by facts that hold on every input", RECOMPILE)
        for label, reader in behind_simpler_selectors(model).items()
    }


def behind_simpler_selectors(model: DesignedModel) -> dict[str, str]:
    """The variables, without the tokens, that heads with a simplified selector depend on; each with one such reader."""
    program, nodes, found = model.program, model.graph.nodes, dict[str, str]()
    tokens = {node.label for node in program.sops.values() if isinstance(node.op, TokensOp)}
    for node in program.sops.values():
        if isinstance(node.op, Attention) and node.id < len(nodes) and _simplified(model, node.id, node.op):
            written = {nodes[number].label for number in _below(node.id, lambda number: nodes[number].children)}
            read = _below(node.id, lambda number: program.children(program.sops[number]))
            behind = {program.shared.get(label, label) for label in written} | {program.sops[one].label for one in read}
            found.update(dict.fromkeys(sorted(behind - tokens), node.label))
    return found


def _simplified(model: DesignedModel, number: int, op: Attention) -> bool:
    """Whether a selector compares other s-ops than its expression does, or was replaced by the causal mask."""
    program, graph = model.program, model.graph
    ids = {node.label: node.id for node in program.sops.values()}

    def first(one: int) -> int | None:
        label = graph.nodes[one].label
        return ids.get(program.shared.get(label, label))

    written: set[tuple[int | None, int | None]] = set()
    stack = [graph.nodes[number].children[0]]
    while stack:
        one = stack.pop()
        keys_queries = graph.nodes[one].children
        if all(graph.nodes[child].is_selector for child in keys_queries):
            stack.extend(keys_queries)
        else:
            written.add((first(keys_queries[0]), first(keys_queries[1])))
    literals = program.literals(op.selector)
    masked = program.options.causal and any(literal.table.all() for literal in literals)
    return masked or {(literal.keys, literal.queries) for literal in literals} != written


def _below(start: int, children: Callable[[int], Sequence[int]]) -> set[int]:
    """All nodes that a node depends on."""
    found: set[int] = set()
    stack = list(children(start))
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack.extend(children(number))
    return found
