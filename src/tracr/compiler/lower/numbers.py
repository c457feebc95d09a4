"""Functions of a number: staircases and interpolations, chosen by their float32 error; one-hot codes of numbers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.classes import Classes, runs, separate
from tracr.compiler.program.encodings import check_one_hot
from tracr.craft.arithmetic import interpolate
from tracr.craft.linear import NumberRead, read_code, read_through
from tracr.craft.lookups import look_up, look_up_bits
from tracr.craft.mlps import Units
from tracr.craft.numerics import NUMBER_TOLERANCE, TOO_ROUGH
from tracr.craft.staircases import TooClose, cell_staircase, staircase
from tracr.craft.variables import Array, Variable
from tracr.errors import CompileError
from tracr.ir.domains import Codes, Finite, of_values
from tracr.ir.ops import UNREACHED
from tracr.ir.program import SOpNode, describe
from tracr.ir.switches import OptionName
from tracr.nearness import TWINS, apart, nearly_equal
from tracr.rasp.annotations import Encoding
from tracr.values import Value, value_text

__all__ = ["FunctionOfNumber", "RoundingTwins", "check_steps", "one_hot", "steps", "write_function"]

STAIRCASE = 7  # how many matrices [points, directions] exist at the same time while a staircase is made


class RoundingTwins(CompileError):
    """Two numbers that differ only by rounding would have to be told apart."""


class FunctionOfNumber:
    """An s-op (`node`) that is a function of a number: `codes[i]` is its value's code where the number is `points[i]`.

    Points that no input reaches, or on which the user's function raises, are ignored. `zero`: if the number is 0, which
    must not be a point, nothing is written.
    """

    def __init__(
        self,
        builder: CircuitBuilder,
        node: SOpNode,
        read: NumberRead,
        points: Finite,
        codes: Codes,
        *,
        zero: bool = False,
    ) -> None:
        if (codes < 0).any():
            points = of_values(tuple(value for value, code in zip(points.values, codes, strict=True) if code >= 0))
            codes = codes[codes >= 0]
        codes = builder.told_apart(node, codes)
        self.builder, self.node, self.read, self.points, self.codes = builder, node, read, points, codes
        self.space = builder.space(node)
        self.table = builder.rows(node, self.space, codes)
        if zero:
            self.points = of_values((0.0, *points.values))
            self.codes = np.concatenate([[UNREACHED], codes]).astype(np.int32)
            self.table = np.concatenate([np.zeros((1, self.space.size)), self.table])

    def direct(self) -> Units | None:
        """The smallest single layer of neurons that is precise enough; `None` if there is none."""
        if not self.space.numerical:
            units = self._steps(self.table)
            return units if units.noise.error < TOO_ROUGH and units.noise.cold < TOO_ROUGH else None
        precise = [units for units in self._candidates() if self._precise(units.noise.error)]
        return min(precise, key=lambda units: units.count, default=None)

    def _candidates(self) -> list[Units]:
        """The one-layer constructions for a numerical result."""
        candidates = []
        order, others = _split(self.points, self.table)
        if order and not (self.space.maybe_none and self.table[order, self.space.index[None]].any()):
            points, numbers = _spread_out(self.points.numbers[order], self.table[order, 0])
            if points is not None:
                to = self.builder.format
                candidates.append(interpolate(self.read, points, numbers, others, self.space.size, to))
        try:
            candidates.append(self._steps(self.table))
        except CompileError:
            if not candidates:
                raise
        return candidates

    def _steps(self, table: Array) -> Units:
        check_steps(self.builder, self.node, *table.shape)
        return steps(self.builder, self.space.label, self.node, self.read, self.points, table)

    def _precise(self, error: float) -> bool:
        """Whether an error is within the tolerance: relative to the smallest number, or the s-op's own tolerance."""
        smallest = float(np.abs(self.table[:, 0]).min(initial=np.inf))
        usual = NUMBER_TOLERANCE * max(1.0, smallest if math.isfinite(smallest) else 1.0)
        return error <= usual or error <= self.builder.tolerances.get(self.node.id, 0.0)

    def write(self, units: Units | None) -> None:
        """Add the MLP of `units`; if `units` is `None`, add two MLPs, through the runs of equal results."""
        if units is None:
            variable = self._through_runs(self.builder)
        else:
            variable = self.builder.write_mlp(self.space, units, describe(self.builder.program, self.node))
        self.builder.holds(self.node, variable)

    def _through_runs(self, builder: CircuitBuilder) -> Variable:
        """Two MLPs, without large cancellation: a one-hot code of the runs of equal results, then their values."""
        classes, _ = runs(self.points, self.codes[:, None])
        first = np.unique(classes, return_index=True)[1]
        check_steps(builder, self.node, len(classes), len(first))
        label = builder.fresh_label(f"{self.node.label}_runs")
        units = steps(builder, label, self.node, self.read, self.points, np.eye(len(first))[classes])
        if max(units.noise.error, units.noise.cold) >= TOO_ROUGH:
            raise _too_rough(self.node, units)
        space = Variable(label, Encoding.CATEGORICAL, tuple(range(len(first))), scratch=True)
        stage = builder.write_mlp(space, units, f"which of the {len(first)} runs of {self.node.label}")
        merge, soft = builder.on(OptionName.KINKS), builder.slope(self.space.label) > 0
        read = partial(read_through, stage)
        values = look_up(read, self.table[first], stage.noise, merge=merge, soft=soft, to=builder.format)
        return builder.write_mlp(self.space, values, describe(builder.program, self.node))


def write_function(
    builder: CircuitBuilder, node: SOpNode, read: NumberRead, points: Finite, codes: Codes, *, zero: bool = False
) -> None:
    """Add the MLP of a function of a number; two MLPs, if one layer is not precise enough.

    `zero`: if the number is 0, nothing is written.
    """
    function = FunctionOfNumber(builder, node, read, points, codes, zero=zero)
    function.write(function.direct())


def check_steps(builder: CircuitBuilder, node: SOpNode, points: int, directions: int) -> None:
    """Refuse a staircase that is too large, before its table is made."""
    what = f"must tell {points:,} numbers apart, for {directions:,} directions"
    builder.need(points, directions, what, node, times=STAIRCASE)


def steps(builder: CircuitBuilder, label: str, node: SOpNode, read: NumberRead, points: Finite, table: Array) -> Units:
    """A staircase from the points to the rows of `table`, for the variable `label`.

    A refusal names the points that are too close.
    """
    order, others = _split(points, table)
    try:
        if builder.format.short:
            return cell_staircase(read, points.numbers[order], table[order], others, builder.format)
        return staircase(read, points.numbers[order], table[order], others, builder.slope(label))
    except TooClose as gap:
        by_rounding = nearly_equal(gap.below, gap.above, TWINS, scale=float(np.abs(points.numbers).max()))
        raise (RoundingTwins if by_rounding else CompileError)(
            f"must tell {gap.below!r} from {gap.above!r}, but the number that {node.label} = {node.source} depends on "
            f"has an error of up to {gap.error:.1g} in {builder.format.name}",
            expression=node,
            hint="use fewer or coarser values (a shorter max_seq_len, rounding), or a comparison that does not "
            "separate neighbouring values",
        ) from None


def one_hot(builder: CircuitBuilder, number: int, classes: Classes) -> tuple[Variable, Classes]:
    """A variable with a direction for each class of values of an s-op, and the direction of each code.

    If the s-op is one-hot, these are its own directions (every value is a class); if it is a number or in bits, a
    conversion MLP writes them.
    """
    node, variable = builder.program.sops[number], builder.variable(number)
    assert isinstance(node.domain, Finite)
    if not (variable.numerical or variable.compact):
        return variable, separate(node.domain)
    return builder.view(number, classes, lambda: _converted(builder, node, classes)), classes


def _converted(builder: CircuitBuilder, node: SOpNode, classes: Classes) -> Variable:
    """Add the MLP that turns a number, or bits, into a one-hot code of classes of values."""
    variable = builder.variable(node.id)
    assert isinstance(node.domain, Finite)
    names = _class_names(node.domain, classes)
    label = builder.fresh_label(f"{node.label}_onehot")
    space = Variable(label, Encoding.CATEGORICAL, names, node=node.id)
    check_one_hot(node, len(names), builder.program.options)
    check_steps(builder, node, len(classes), len(names))
    table = np.eye(len(names))[classes]
    if variable.codebook is not None:
        units = look_up_bits(read_code(variable), variable.codebook, table, builder.format)
    else:
        units = steps(builder, label, node, builder.number(node.id), node.domain, table)
    if max(units.noise.error, units.noise.cold) >= TOO_ROUGH:
        raise _too_rough(node, units)
    return builder.write_mlp(space, units, f"one-hot code of {node.label}")


def _too_rough(node: SOpNode, units: Units) -> CompileError:
    return CompileError(
        f"needs {units.count:,} neurons whose float32 error, {units.noise.error:.2g}, is too large",
        expression=node,
        hint="use fewer or coarser values: a shorter max_seq_len, or rounding before this operation",
    )


def _class_names(domain: Finite, classes: Classes) -> tuple[Value, ...]:
    """The name of each class: its value, the range of its numbers, or the first of its values."""
    count = int(classes.max()) + 1
    first, lowest, highest = (np.zeros(count, dtype=np.intp) for _ in range(3))
    numbers = domain.ascending[0]
    first[classes[::-1]] = np.arange(len(classes))[::-1]  # the last assignment stays, so the order is reversed
    lowest[classes[numbers[::-1]]], highest[classes[numbers]] = numbers[::-1], numbers
    sizes, numeric = (np.bincount(part, minlength=count) for part in (classes, classes[numbers]))

    def name(place: int) -> Value:
        if sizes[place] == 1:
            return domain.values[int(first[place])]
        if sizes[place] == numeric[place]:
            return f"{domain.values[lowest[place]]}..{domain.values[highest[place]]}"
        return f"{value_text(domain.values[first[place]])} and {sizes[place] - 1} more"

    return tuple(map(name, range(count)))


def _split(domain: Finite, table: Array) -> tuple[list[int], dict[Value, Array]]:
    """The codes of the numbers in ascending order, and the rows of the other values."""
    order = domain.ascending[0].tolist()
    others = {domain.values[code]: table[code] for code in domain.others.tolist()}
    return order, others


def _spread_out(points: Array, numbers: Array) -> tuple[Array, Array] | tuple[None, Array]:
    """Points without near-duplicates (1/3 and 1 - 2/3); `None` if such a pair has different results."""
    if len(points) < 2:
        return points, numbers
    kept = apart(points)
    jumps = ~nearly_equal(numbers[1:], numbers[:-1])
    if (~kept[1:] & jumps).any():
        return None, numbers
    return points[kept], numbers[kept]
