"""The pass `solve`: the best schedule by constraint solving (OR-tools CP-SAT, extra `opt`), proved if time allows.

Depth, peak live width, heads, heads × d_head and earliness are minimised in this order; each minimum is kept while the
next is minimised. The depth needs no solver: earliest placement reaches the smallest. The constraint model has a
boolean for each (component c, sub-layer t): whether c is in t or earlier. A variable is live after t if this is true of
its writer and false of one of its readers. A width (`liveness.py`) is a sum of live directions, minus the pairs that an
MLP overwrites in place; the peak is the largest width.

The solver starts from the schedule of `narrow.py`, so its result is never worse.

Determinism. One worker with a fixed seed does the same work in the same order. The limit is on that work, which CP-SAT
counts in units of about a second, not on the clock: compiling twice gives the same model on every machine. Another
version of OR-tools may find another schedule; saved models keep theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracr.compiler.layers.assign import in_sublayers
from tracr.compiler.layers.narrow import narrowest
from tracr.compiler.layers.placing import Placing, placing_of
from tracr.extras import need
from tracr.ir.circuit import Circuit
from tracr.ir.liveness import Times
from tracr.ir.schedule import LIMIT, OPTIMAL, PlacedCircuit

__all__ = ["Solution", "best_times", "solve"]

EARLINESS = 3  # the last objective, which only makes a schedule easier to read: no proof is needed


@dataclass(frozen=True)
class Solution:
    """The sub-layers of components, whether they are proved optimal, and a lower bound on the peak at this depth."""

    times: tuple[int, ...]
    optimal: bool
    fewest: int


def solve(circuit: Circuit, seconds: float) -> PlacedCircuit:
    """The best schedule found in about `seconds` seconds."""
    solution = best_times(placing_of(circuit), seconds)
    return in_sublayers(circuit, solution.times, OPTIMAL if solution.optimal else LIMIT, solution.fewest)


def best_times(placing: Placing, seconds: float) -> Solution:
    """The sub-layers of the best schedule found within `seconds`."""
    cp_model = need("ortools.sat.python.cp_model", "opt")
    times = narrowest(placing)
    goals = [placing.fewest, len(placing.patterns), 0, sum(placing.first)]
    program = _Program(cp_model, placing)
    optimal = True
    for stage, objective in enumerate(program.objectives):
        reached = placing.cost(times)[stage]
        if placing.first != placing.last and reached > goals[stage]:
            found = program.minimise(objective, times, seconds)
            seconds -= found.spent
            goals[stage] = max(goals[stage], min(found.bound, reached))
            times = min(times, found.times, key=placing.cost)
            reached = placing.cost(times)[stage]
            optimal = optimal and (reached == goals[stage] or stage == EARLINESS)
        program.model.add(objective <= reached)
    return Solution(tuple(times), optimal, goals[0])


@dataclass(frozen=True)
class _Found:
    times: list[int]
    bound: int
    spent: float


class _Program:
    """The constraints of a placing and the objectives, in OR-tools' terms."""

    def __init__(self, cp_model: Any, placing: Placing) -> None:
        self.cp_model, self.placing = cp_model, placing
        self.model = cp_model.CpModel()
        self.by_then = [
            {time: self.model.new_bool_var(f"{component} by {time}") for time in placing.window(component)[:-1]}
            for component in range(len(placing.first))
        ]
        self._order()
        self.objectives = [self._peak(), *self._heads(), self._lateness()]

    def by(self, component: int, time: int) -> Any:
        """1 if the component is in this sub-layer or earlier."""
        placing = self.placing
        if component >= len(placing.first):
            return int(component == placing.flows.embedding and time >= -1)
        if time < placing.first[component] or time >= placing.last[component]:
            return int(time >= placing.last[component])
        return self.by_then[component][time - (time - placing.first[component]) % 2]

    def at(self, component: int, time: int) -> Any:
        """1 if the component is in this sub-layer."""
        return self.by(component, time) - self.by(component, time - 1)

    def _order(self) -> None:
        for component, own in enumerate(self.by_then):
            for time, literal in own.items():
                self.model.add(literal <= self.by(component, time + 2))
            for time in self.placing.window(component):
                for other in self.placing.before[component]:
                    self.model.add(self.by(component, time) <= self.by(other, time - 1))

    def _peak(self) -> Any:
        """The largest live width."""
        flows, depth = self.placing.flows, self.placing.depth
        peak = self.model.new_int_var(0, int(flows.sizes.sum()), "peak")
        numbers = range(len(flows.sizes))
        live = [self._live(v, -1) for v in numbers]
        for time in range(-1, 2 * depth):
            before, live = live, [self._live(v, time) for v in numbers]
            new = [self.at(flows.writer[v], time) for v in numbers] if time >= 0 else [0] * len(numbers)
            dead = [before[v] + new[v] - live[v] for v in numbers]
            self.model.add(peak >= _total(flows.sizes, live) + _total(flows.sizes, dead) - self._in_place(new, dead))
        return peak

    def _in_place(self, new: list[Any], dead: list[Any]) -> Any:
        """The number of directions overwritten in place: at most the pairs that their kinds allow."""
        flows, most = self.placing.flows, int(self.placing.flows.sizes.sum())
        rough, exact = (_total(sizes, new) for sizes in flows.overwriting)
        small, integer = (_total(sizes, dead) for sizes in flows.overwritten)
        if isinstance(small + integer, int) and not small + integer:
            return 0
        on_small, on_integer, by_exact = (self.model.new_int_var(0, most, "") for _ in range(3))
        self.model.add(on_small + on_integer <= rough)
        self.model.add(by_exact <= exact)
        self.model.add(on_small <= small)
        self.model.add(on_integer + by_exact <= integer)
        return on_small + on_integer + by_exact

    def _live(self, variable: int, time: int) -> Any:
        """1 if a variable is live after a sub-layer: it is written by then, and not yet freed by all readers.

        It may also be 1 for a variable that is not live, but that makes no stream narrower. A variable read by a head
        is freed one sub-layer later; an unread variable is freed by the next MLP.
        """
        flows = self.placing.flows
        writer = flows.writer[variable]
        freeing = [(reader, 1 if self._is_head(reader) else 0) for reader in flows.readers[variable]]
        freed = [
            self.by(component, time - later)
            for component, later in freeing or [(writer, 1 if self._is_head(writer) else 2)]
        ]
        written = self.by(writer, time)
        if any(isinstance(one, int) and not one for one in freed):
            return written
        left = [one for one in freed if not isinstance(one, int)]
        if len(left) <= 1:
            return written - (left[0] if left else 1)
        live = self.model.new_bool_var(f"{variable} live after {time}")
        for one in left:
            self.model.add(live >= written - one)
        return live

    def _is_head(self, component: int) -> bool:
        return component < len(self.placing.first) and self.placing.first[component] % 2 == 0

    def _heads(self) -> tuple[Any, Any]:
        """How many heads there are, and the sum over layers of heads × d_head."""
        placing, model = self.placing, self.model
        total, sizes = 0, 0
        most = sum(placing.query_width) + sum(placing.value_width)
        for time in range(0, 2 * placing.depth, 2):
            count = model.new_int_var(0, len(placing.patterns), f"heads in {time}")
            widest = model.new_int_var(0, most, f"d_head in {time}")
            used = []
            for number, group in enumerate(placing.patterns):
                present = model.new_bool_var(f"pattern {number} in {time}")
                for head in group:
                    model.add(present >= self.at(head, time))
                model.add(widest >= placing.query_width[group[0]] * present)
                model.add(widest >= sum(placing.value_width[head] * self.at(head, time) for head in group))
                used.append(present)
            model.add(count == sum(used))
            size = model.new_int_var(0, most * len(placing.patterns), f"heads × d_head in {time}")
            model.add_multiplication_equality(size, [count, widest])
            total, sizes = total + count, sizes + size
        return total, sizes

    def _lateness(self) -> Any:
        """The sum of the sub-layer numbers of all components."""
        return sum(self.placing.last) - 2 * sum(literal for own in self.by_then for literal in own.values())

    def minimise(self, objective: Any, start: Sequence[int], seconds: float) -> _Found:
        """The best times found from the start, within the limit."""
        model = self.model
        model.minimize(objective)
        model.clear_hints()
        for own, time in zip(self.by_then, start, strict=True):
            for then, literal in own.items():
                model.add_hint(literal, int(time <= then))
        solver = self.cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = max(seconds, 0.0)
        solved = solver.solve(model) in (self.cp_model.OPTIMAL, self.cp_model.FEASIBLE)
        spent = solver.response_proto.deterministic_time
        if not solved:
            return _Found(list(start), 0, spent)
        times = [
            min((time for time, literal in own.items() if solver.value(literal)), default=last)
            for own, last in zip(self.by_then, self.placing.last, strict=True)
        ]
        return _Found(times, math.ceil(solver.best_objective_bound - 1e-6), spent)


def _total(sizes: Times, parts: Sequence[Any]) -> Any:
    """The sum of sizes times parts."""
    return sum(int(size) * part for size, part in zip(sizes, parts, strict=True) if size)
