"""The circuit under construction: its components, and the variables that hold each s-op."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.lower.bits import Codebook
from tracr.compiler.program.encodings import check_one_hot
from tracr.compiler.program.linear_tables import chosen_sums
from tracr.compiler.program.matching import tolerances
from tracr.compiler.selectors.head_plans import Plan, Reader, choose_plan
from tracr.craft.linear import LinearMap, NumberRead, read_bits, read_code, read_number, read_through
from tracr.craft.mlps import MLP, Units, look_up, look_up_bits
from tracr.craft.numerics import CLEAN, EXACT, NEARLY_EQUAL, Noise, U, dyadic_grid
from tracr.craft.variables import NUMBER, Array, Number, Variable
from tracr.errors import InternalError
from tracr.ir.budget import FLOAT, Budget
from tracr.ir.circuit import Component, Embedded
from tracr.ir.domains import Codes, Finite, Interval
from tracr.ir.program import PAIR, UNREACHED, CompositeNode, PairLookup, Program, SelectorNode, SOpNode
from tracr.rasp.annotations import Encoding
from tracr.values import Value, is_number

__all__ = ["Translation"]


class Translation:
    """The circuit so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.budget = Budget(program.options.max_memory, program.nbytes)
        self.embedded: list[Embedded] = []
        self.embedded_codes: dict[int, tuple[NDArray[np.integer], bool]] = {}
        self.components: list[Component] = []
        self.codebook = Codebook(program)
        self.sums = chosen_sums(program)
        self.variables: dict[int, Variable] = {}
        self.views: dict[tuple[int, bytes], Variable] = {}
        self.attention: dict[object, tuple[LinearMap, LinearMap]] = {}
        self._plans: dict[tuple[int, Reader, int], Plan | None] = {}
        self._clean: dict[Variable, Variable] = {}
        self._numbers: dict[int, Variable] = {}
        self.choices: list[str] = []
        self._labels = {node.label for node in program.sops.values()} | {"one", "tokens", "indices"}

    @cached_property
    def tolerances(self) -> dict[int, float]:
        """How far off s-ops may be stored, where that is more than usual."""
        return tolerances(self.program, self.sums) if self.on("match") else {}

    def on(self, name: str) -> bool:
        """Whether a pass of the optimiser is on."""
        return self.program.options.on(name)

    @property
    def default_logit(self) -> float:
        """BOS's logit where it is attended to only if nothing else is."""
        return -self.program.options.gap / 2

    def plan(self, node: SOpNode, selector: int, reader: Reader, width: int) -> Plan:
        """The heads of a selector for a reader of it."""
        key = selector, reader, width
        if key not in self._plans:
            longest = self.program.options.max_seq_len
            split = selector in self.program.stored.split
            self._plans[key] = choose_plan(
                self.program.selectors, selector, reader, longest, width, compact=self.on("rank"), split=split
            )
        plan = self._plans[key]
        if plan is None:
            raise InternalError(f"there are no heads for the selector of {node.label}")
        chosen = self.program.selectors[selector]
        pairs = [] if isinstance(chosen, CompositeNode) else self._pairs_of(chosen)
        if pairs:
            cost = plan.cost + 2 * sum(pairs)
            self.choices.append(f"{chosen.label} for {node.label}: product space of {sum(pairs)} pairs, cost {cost}")
        elif plan.kind != "one head" or isinstance(chosen, CompositeNode):
            self.choices.append(f"{chosen.label} for {node.label}: {plan}")
        return plan

    def _pairs_of(self, selector: SelectorNode) -> list[int]:
        """How many values the keys and queries have that infer made of pairs."""
        sides = [self.program.sops[number] for number in dict.fromkeys((selector.keys, selector.queries))]
        return [side.domain.size for side in sides if isinstance(side.op, PairLookup) and side.op.function == PAIR]

    def fresh_label(self, label: str) -> str:
        """A label nothing else has."""
        unique, number = label, 2
        while unique in self._labels:
            unique, number = f"{label}_{number}", number + 1
        self._labels.add(unique)
        return unique

    def space(self, node: SOpNode, *, exact: bool = False) -> Variable:
        """The directions an s-op owns, before it is known how exactly they are filled.

        Bits, which have no margin for errors, only for what is known to be written exactly.
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
        """Codes of an s-op with values that differ by rounding only made one, where it is stored as a number anyway."""
        if node.encoding is Encoding.CATEGORICAL or isinstance(node.domain, Interval):
            return codes
        ordered, _ = node.domain.ascending
        numbers = node.domain.numbers[ordered]
        apart = np.ones(len(numbers), dtype=bool)
        apart[1:] = numbers[1:] - numbers[:-1] > NEARLY_EQUAL * np.maximum(1.0, np.abs(numbers[1:]))
        if apart.all():
            return codes
        representative = np.arange(len(node.domain))
        representative[ordered] = ordered[apart][np.cumsum(apart) - 1]
        return np.where(codes >= 0, representative[np.maximum(codes, 0)], codes).astype(np.int32)

    def rows(self, node: SOpNode, space: Variable, codes: NDArray[np.integer]) -> Array:
        """The coordinates of each value code; error and unreached cells are zero."""
        assert isinstance(node.domain, Finite)
        values, zeros = len(node.domain), -UNREACHED  # what is negative counts from the end: rows of zeros
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
        """Let the embedding write the s-op: a code for each token, or each position."""
        space = self.space(node, exact=True)
        table = self.rows(node, space, codes)
        self.embedded_codes[node.id] = codes, by_token
        inexact = space.numerical and bool((table.astype(np.float32) != table).any())
        noise = Noise(error=U * float(np.abs(table).max())) if inexact else self.exact(space)
        variable = space.with_noise(noise)
        self.variables[node.id] = variable
        self.budget.hold(table.nbytes, f"the embedding of {node.label}", node)
        self.embedded.append(Embedded(variable, table if by_token else None, None if by_token else table))

    def embed_inputs(self) -> None:
        """Tokens and positions are part of the paper's models even where the program does not use them."""
        there = {source.variable.label for source in self.embedded}
        options = self.program.options
        for label, values in (("tokens", options.vocab), ("indices", tuple(range(options.max_seq_len)))):
            if label not in there:
                what = f"{len(values):,} {label}, each a direction of the model"
                self.budget.hold(FLOAT * len(values) ** 2, what)
                table = np.eye(len(values))
                variable = Variable(label, Encoding.CATEGORICAL, values)
                by_token = label == "tokens"
                self.embedded.append(Embedded(variable, table if by_token else None, None if by_token else table))

    def exact(self, space: Variable) -> Noise:
        """No noise; a number stored exactly lies on the grid of its values."""
        domain = None if space.node is None else self.program.sops[space.node].domain
        if not space.numerical or not isinstance(domain, Finite):
            return EXACT
        return Noise(grid=dyadic_grid(domain.numbers.tolist()))

    def write_mlp(self, space: Variable, units: Units, what: str) -> Variable:
        """Add an MLP that writes `space`; the result knows its noise."""
        noise = units.noise
        if noise.error == 0.0 and space.numerical:
            noise = self.exact(space)
        variable = space.with_noise(noise)
        self.add(MLP(variable.label, units.read, ((variable, units.write),), what, units.as_linear), units.read)
        return variable

    def add(self, component: Component, *maps: LinearMap) -> None:
        """Add a component to the circuit; `maps` are those of its maps that no other component has."""
        size = sum(linear.nbytes for linear in maps) + sum(matrix.nbytes for _, matrix in component.writes)
        self.budget.hold(size, f"the matrices of {component.label}")
        self.components.append(component)

    def need(self, rows: int, columns: int, what: str, node: SOpNode, times: int = 1) -> None:
        """Refuse a matrix, or several of that size, that does not fit into the memory."""
        self.budget.need(FLOAT * times * rows * columns, what, node)

    def number(self, number: int) -> NumberRead:
        """An s-op as a number; a rough one-hot code is cleaned first.

        Bits are read as a number where that is linear in them, and turned into one by an MLP where not.
        """
        variable = self.variables[number]
        if not variable.compact:
            return read_number(variable if variable.numerical else self.cleaned(variable))
        return self._number_in_bits(variable) or read_number(self._decoded(number, variable))

    def rough_number(self, number: int) -> NumberRead:
        """An s-op as a number, for a reader that rounds: a one-hot code is read as it is."""
        variable = self.variables[number]
        return self.number(number) if variable.compact else read_number(variable)

    def _number_in_bits(self, variable: Variable) -> NumberRead | None:
        places = [self.codebook.numbers[value] for value in variable.values if not isinstance(value, Number)]
        return read_bits(variable, np.array(places))

    def _decoded(self, number: int, variable: Variable) -> Variable:
        """The number that a code in bits stands for, with a flag for each value that is none."""
        if number not in self._numbers:
            node = self.program.sops[number]
            others = tuple(value for value in variable.values if not is_number(value))
            label = self.fresh_label(f"{node.label}_number")
            numbers = [float(value) for value in variable.values if is_number(value)]
            low, high = min(numbers, default=0.0), max(numbers, default=0.0)
            space = Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=number)
            assert variable.codebook is not None
            units = look_up_bits(
                read_code(variable), variable.codebook, self.rows(node, space, np.arange(len(variable.values)))
            )
            self._numbers[number] = self.write_mlp(space, units, f"{node.label} as a number")
        return self._numbers[number]

    def cleaned(self, variable: Variable) -> Variable:
        """The same one-hot code with its cold coordinates exactly zero, as attention over several keys needs it."""
        if variable.noise.cold == 0.0 and variable.noise.error <= CLEAN:
            return variable
        if variable not in self._clean:
            label = self.fresh_label(f"{variable.label}_clean")
            space = Variable(label, Encoding.CATEGORICAL, variable.values, node=variable.node)
            units = look_up(partial(read_through, variable), np.eye(variable.size), variable.noise, merge=False)
            self._clean[variable] = self.write_mlp(space, units, f"{variable.label}, rounded to 0 and 1")
        return self._clean[variable]
