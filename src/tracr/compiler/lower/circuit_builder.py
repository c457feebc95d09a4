"""The circuit under construction: its components, and the variables that hold each s-op."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.compiler.lower.bits import Codebook
from tracr.compiler.program.encodings import check_one_hot
from tracr.compiler.program.linear_tables import chosen_sums
from tracr.compiler.program.matching import tolerances
from tracr.compiler.selectors.head_plans import Plan, Reader, choose_plan
from tracr.craft.linear import LinearMap, NumberRead, read_bits, read_code, read_number, read_through
from tracr.craft.lookups import look_up, look_up_bits
from tracr.craft.mlps import MLP, Units
from tracr.craft.numerics import CLEAN, EXACT, Noise, U, dyadic_grid
from tracr.craft.variables import NUMBER, Array, Number, Variable
from tracr.errors import InternalError
from tracr.ir.budget import FLOAT, Budget
from tracr.ir.circuit import Circuit, Component, Embedded
from tracr.ir.domains import Codes, Finite, Interval
from tracr.ir.ops import PAIR, UNREACHED, IndicesOp, PairLookup
from tracr.ir.program import Program, SOpNode
from tracr.ir.selectors import CompositeNode, SelectorNode
from tracr.ir.switches import OptionName, SwitchName
from tracr.nearness import apart
from tracr.rasp.annotations import Encoding
from tracr.values import Value, is_number

__all__ = ["CircuitBuilder"]


class CircuitBuilder:
    """The circuit so far. Only the methods of this class change it; the other files of this package call them."""

    def __init__(self, program: Program) -> None:
        self.program, self._given = program, program
        self.format = program.options.format
        self.budget = Budget(program.options.max_memory, program.nbytes)
        self.codebook = Codebook(program)
        self.sums = chosen_sums(program)
        self._embedded: list[Embedded] = []
        self._embedded_codes: dict[int, tuple[NDArray[np.integer], bool]] = {}
        self._components: list[Component] = []
        self._variables: dict[int, Variable] = {}
        self._views: dict[tuple[int, bytes], Variable] = {}
        self._attention: dict[object, tuple[LinearMap, LinearMap]] = {}
        self._plans: dict[tuple[int, Reader, int], Plan | None] = {}
        self._clean: dict[Variable, Variable] = {}
        self._numbers: dict[int, Variable] = {}
        self._choices: list[str] = []
        self._labels = {node.label for node in program.sops.values()} | {"one", "tokens", "indices"}

    def circuit(self) -> Circuit:
        """The circuit of everything that was added."""
        written = dict.fromkeys(variable for part in self._components for variable, _ in part.writes)
        outputs = tuple((name, self._variables[output]) for name, output in self.program.outputs)
        return Circuit.of(self._given, self._embedded, written, self._components, outputs, self._choices)

    def variable(self, number: int) -> Variable:
        """The variable that holds an s-op."""
        return self._variables[number]

    def holds(self, node: SOpNode, variable: Variable) -> None:
        """Record which variable holds an s-op."""
        self._variables[node.id] = variable

    def is_embedded(self, variable: Variable) -> bool:
        """Whether the embedding writes a variable."""
        return any(source.variable is variable for source in self._embedded)

    def writer(self, variable: Variable) -> Component:
        """The component that writes a variable."""
        return next(part for part in self._components if part.writes[0][0] is variable)

    def view(self, number: int, told: NDArray[Any], make: Callable[[], Variable]) -> Variable:
        """Another variable for an s-op, made once for each way to tell its values apart: classes (`told`) or codes."""
        key = number, told.tobytes()
        if key not in self._views:
            self._views[key] = make()
        return self._views[key]

    def attention(
        self, same: Hashable, make: Callable[[], tuple[LinearMap, LinearMap]], what: str
    ) -> tuple[LinearMap, LinearMap]:
        """The queries and keys of a head, made once for all heads with the `same` pattern."""
        if same not in self._attention:
            self._attention[same] = make()
            self.budget.hold(sum(side.nbytes for side in self._attention[same]), f"the head of {what}")
        return self._attention[same]

    @cached_property
    def tolerances(self) -> dict[int, float]:
        """The error allowed for each s-op, if it is more than usual."""
        return tolerances(self.program, self.sums) if self.on(OptionName.MATCH) and not self.format.short else {}

    def on(self, name: SwitchName) -> bool:
        """Whether a pass or an option that has a switch is on."""
        return self.program.options.on(name)

    def slope(self, label: str) -> float:
        """How far the steps of the neurons that write a variable reach beyond its values; 0 for plateaus."""
        soft = self.program.options.soft
        return 0.0 if soft is None else soft.slope_of(label)

    @property
    def leaks(self) -> bool:
        """Whether the error bounds include attention on keys that are not selected, because the model is softened."""
        soft = self.program.options.soft
        return soft is not None and soft.bounded

    @property
    def default_logit(self) -> float:
        """The logit of BOS for a head that attends to BOS only if it selects nothing."""
        return -self.program.options.gap / 2

    def plan(self, node: SOpNode, selector: int, reader: Reader, width: int) -> Plan:
        """The heads of a selector for one reader."""
        key = selector, reader, width
        if key not in self._plans:
            longest = self.program.options.max_seq_len
            split = selector in self.program.stored.split
            self._plans[key] = choose_plan(
                self.program.selectors, selector, reader, longest, width, compact=self.on(OptionName.RANK), split=split
            )
        plan = self._plans[key]
        if plan is None:
            raise InternalError(f"there are no heads for the selector of {node.label}")
        chosen = self.program.selectors[selector]
        pairs = [] if isinstance(chosen, CompositeNode) else self._pairs_of(chosen)
        if pairs:
            cost = plan.cost + 2 * sum(pairs)
            self._choices.append(f"{chosen.label} for {node.label}: product space of {sum(pairs)} pairs, cost {cost}")
        elif plan.kind != "one head" or isinstance(chosen, CompositeNode):
            self._choices.append(f"{chosen.label} for {node.label}: {plan}")
        return plan

    def _pairs_of(self, selector: SelectorNode) -> list[int]:
        """The numbers of values of those keys and queries that `infer` made of pairs."""
        sides = [self.program.sops[number] for number in dict.fromkeys((selector.keys, selector.queries))]
        return [side.domain.size for side in sides if isinstance(side.op, PairLookup) and side.op.function == PAIR]

    def fresh_label(self, label: str) -> str:
        """An unused label."""
        unique, number = label, 2
        while unique in self._labels:
            unique, number = f"{label}_{number}", number + 1
        self._labels.add(unique)
        return unique

    def space(self, node: SOpNode, *, exact: bool = False) -> Variable:
        """The variable of an s-op, before its error is known.

        Bits leave no margin for errors, so they are used only if the variable is known to be written exactly.
        """
        domain = node.domain
        values: tuple[Value | Number, ...]
        codebook = None
        if node.encoding is Encoding.NUMERICAL:
            values = (NUMBER, None) if domain.maybe_none else (NUMBER,)
        else:
            assert isinstance(domain, Finite)
            values = domain.values
            if exact and node.id in self.codebook.domains:
                codebook = self.codebook.codes(domain)
            else:
                check_one_hot(node, len(values), self.program.options)
                self.need(len(values), len(values), f"{len(values):,} values, each a direction of the model", node)
        low, high = domain.ends if domain.numeric else (0.0, 1.0)
        return Variable(node.label, node.encoding, values, low=low, high=high, node=node.id, codebook=codebook)

    def told_apart(self, node: SOpNode, codes: Codes) -> Codes:
        """Codes of an s-op, with values that differ only by rounding made one if it is stored as a number."""
        if node.encoding is Encoding.CATEGORICAL or isinstance(node.domain, Interval):
            return codes
        ordered, _ = node.domain.ascending
        different = apart(node.domain.numbers[ordered])
        if different.all():
            return codes
        representative = np.arange(len(node.domain))
        representative[ordered] = ordered[different][np.cumsum(different) - 1]
        return np.where(codes >= 0, representative[np.maximum(codes, 0)], codes).astype(np.int32)

    def rows(self, node: SOpNode, space: Variable, codes: NDArray[np.integer]) -> Array:
        """The coordinates of each code; zero for ERROR and UNREACHED."""
        assert isinstance(node.domain, Finite)
        values, zeros = len(node.domain), -UNREACHED  # negative codes index from the end: rows of zeros
        self.need(values + codes.size, space.size, f"the code of {codes.size:,} cells", node)
        table: Array = np.zeros((values + zeros, space.size))
        if space.codebook is not None:
            table[:values] = space.codebook
        elif space.values is node.domain.values:
            np.fill_diagonal(table, 1.0)
        else:
            table[:values] = space.codes(node.domain.values)
        rows: Array = table[codes]
        return rows

    def embed(self, node: SOpNode, codes: NDArray[np.integer], *, by_token: bool = False) -> None:
        """Let the embedding write an s-op: a code for each token, or for each position."""
        space = self.space(node, exact=True)
        table = self.rows(node, space, codes)
        self._embedded_codes[node.id] = codes, by_token
        inexact = space.numerical and not self.format.short and bool((table.astype(np.float32) != table).any())
        noise = Noise(error=U * float(np.abs(table).max())) if inexact else self.exact(space)
        variable = space.with_noise(noise)
        self.holds(node, variable)
        self.budget.hold(table.nbytes, f"the embedding of {node.label}", node)
        self._embedded.append(Embedded(variable, table if by_token else None, None if by_token else table))

    def embed_table(self, node: SOpNode, inner: int, table: Codes) -> bool:
        """Let the embedding write a table of an s-op, if it writes that s-op too; return whether it does."""
        if inner not in self._embedded_codes:
            return False
        codes, by_token = self._embedded_codes[inner]
        self.embed(node, np.where(codes >= 0, table[codes], codes), by_token=by_token)
        return True

    def embed_inputs(self) -> None:
        """Embed tokens and positions: the paper's models have them even if the program does not use them."""
        there = {source.variable.label for source in self._embedded}
        options = self.program.options
        for label, values in (("tokens", options.vocab), ("indices", tuple(range(options.max_seq_len)))):
            if label not in there:
                what = f"{len(values):,} {label}, each a direction of the model"
                self.budget.hold(FLOAT * len(values) ** 2, what)
                table = np.eye(len(values))
                variable = Variable(label, Encoding.CATEGORICAL, values)
                by_token = label == "tokens"
                self._embedded.append(Embedded(variable, table if by_token else None, None if by_token else table))

    def positions(self) -> int:
        """The number of an s-op that is the position; if none is there yet, it is added, without a node."""
        for node in self.program.sops.values():
            if isinstance(node.op, IndicesOp) and node.id in self._variables:
                return node.id
        values = tuple(range(self.program.options.max_seq_len))
        labels = {node.label for node in self.program.sops.values()}
        label = self.fresh_label("positions") if "indices" in labels else "indices"
        number = max(self.program.sops) + 1
        node = SOpNode(number, label, label, "", IndicesOp(), Finite(values), None, Encoding.CATEGORICAL)
        self.program = replace(self.program, sops={**self.program.sops, number: node})
        self._variables[number] = Variable(label, Encoding.CATEGORICAL, values)
        self._embedded.append(Embedded(self._variables[number], None, np.eye(len(values))))
        return number

    def exact(self, space: Variable) -> Noise:
        """No noise; a number stored exactly lies on the grid of its values. A short format may round the values."""
        domain = None if space.node is None else self.program.sops[space.node].domain
        if not space.numerical or not isinstance(domain, Finite):
            return EXACT
        grid = dyadic_grid(domain.numbers.tolist(), self.format)
        if grid or not self.format.short:
            return Noise(grid=grid)
        return Noise(error=float(np.abs(self.format.nearest(domain.numbers) - domain.numbers).max(initial=0.0)))

    def write_mlp(self, space: Variable, units: Units, what: str) -> Variable:
        """Add an MLP that writes `space`; return the variable with its noise."""
        noise = units.noise
        if noise.error == 0.0 and space.numerical:
            noise = self.exact(space)
        variable = space.with_noise(noise)
        self.add(MLP(variable.label, units.read, ((variable, units.write),), what, units.as_linear), units.read)
        return variable

    def add(self, component: Component, *maps: LinearMap) -> None:
        """Add a component to the circuit; `maps` are its maps that it does not share with other components."""
        size = sum(linear.nbytes for linear in maps) + sum(matrix.nbytes for _, matrix in component.writes)
        self.budget.hold(size, f"the matrices of {component.label}")
        self._components.append(component)

    @property
    def count(self) -> int:
        """How many components were added."""
        return len(self._components)

    def delay(self, since: int, variable: Variable) -> None:
        """Let the components added after the first `since` wait for a variable: they read it with weights of 0."""
        for place in range(since, len(self._components)):
            first, *others = (component := self._components[place]).maps
            if variable not in first.blocks:
                first = LinearMap({**first.blocks, variable: np.zeros((variable.size, first.width))}, first.width)
            self._components[place] = component.with_maps([first, *others])

    def need(self, rows: int, columns: int, what: str, node: SOpNode, times: int = 1) -> None:
        """Refuse a matrix, or several of the same size, that does not fit into the memory."""
        self.budget.need(FLOAT * times * rows * columns, what, node)

    def number(self, number: int) -> NumberRead:
        """An s-op as a number; a rough one-hot code is cleaned first.

        Bits are read as a number if the number is linear in them; else an MLP converts them.
        """
        variable = self._variables[number]
        if not variable.compact:
            return read_number(variable if variable.numerical else self.cleaned(variable), self.format)
        return self._number_in_bits(variable) or read_number(self._decoded(number, variable), self.format)

    def rough_number(self, number: int) -> NumberRead:
        """An s-op as a number, for a reader that rounds: a one-hot code is read without cleaning."""
        variable = self._variables[number]
        return self.number(number) if variable.compact else read_number(variable, self.format)

    def _number_in_bits(self, variable: Variable) -> NumberRead | None:
        places = [self.codebook.numbers[value] for value in variable.values if not isinstance(value, Number)]
        return read_bits(variable, np.array(places), self.format)

    def _decoded(self, number: int, variable: Variable) -> Variable:
        """A code in bits, decoded to a number, with a flag for each value that is not a number."""
        if number not in self._numbers:
            node = self.program.sops[number]
            others = tuple(value for value in variable.values if not is_number(value))
            label = self.fresh_label(f"{node.label}_number")
            numbers = [float(value) for value in variable.values if is_number(value)]
            low, high = min(numbers, default=0.0), max(numbers, default=0.0)
            space = Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=number)
            assert variable.codebook is not None
            rows = self.rows(node, space, np.arange(len(variable.values)))
            units = look_up_bits(read_code(variable), variable.codebook, rows, self.format)
            self._numbers[number] = self.write_mlp(space, units, f"{node.label} as a number")
        return self._numbers[number]

    def cleaned(self, variable: Variable) -> Variable:
        """The same one-hot code with its cold coordinates exactly zero, which attention over several keys needs."""
        if variable.noise.cold == 0.0 and variable.noise.error <= CLEAN:
            return variable
        if variable not in self._clean:
            label = self.fresh_label(f"{variable.label}_clean")
            space = Variable(label, Encoding.CATEGORICAL, variable.values, node=variable.node)
            read, soft = partial(read_through, variable), self.slope(label) > 0
            units = look_up(read, np.eye(variable.size), variable.noise, merge=False, soft=soft, to=self.format)
            self._clean[variable] = self.write_mlp(space, units, f"{variable.label}, rounded to 0 and 1")
        return self._clean[variable]
