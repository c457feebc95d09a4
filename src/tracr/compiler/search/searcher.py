"""Runs passes and measures rivals. The results are kept: a rival that is chosen is not compiled again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracr.compiler.layers.assign import depth
from tracr.compiler.residual.assemble import check_size
from tracr.compiler.residual.lay_out import narrowest_width
from tracr.errors import CompileError, TracrError
from tracr.ir.circuit import Circuit
from tracr.ir.layout import Layout
from tracr.ir.options import Options
from tracr.ir.passes import Pass
from tracr.ir.program import Program
from tracr.ir.search import Measured, Search, Trial
from tracr.ir.size import Size, size_of
from tracr.ir.switches import PassName

__all__ = ["Searcher"]

REDUCED = (PassName.LOWER, PassName.FOLD, PassName.PRUNE)
NARROWING = (PassName.FACTOR, PassName.SCHEDULE, PassName.SOLVE)  # may make a model smaller than its measured size
IN_LAYERS = (PassName.ASSIGN, PassName.STACK, PassName.MERGE_HEADS, PassName.SHARE_NEURONS)


class Searcher:
    """The search of one compilation: the passes, their results so far, and the record of the trials.

    The remembered circuits take at most an eighth of the memory. Beyond that, the circuits of all programs except the
    current one are forgotten, and made again if they are needed.
    """

    def __init__(self, passes: Sequence[Pass], options: Options) -> None:
        self.options = options
        self._passes = {one.name: one for one in passes}
        self._made: dict[tuple[PassName, int], tuple[Any, Any]] = {}  # by identity; the pair keeps the input alive
        self._uncounted: list[Circuit] = []
        self._bytes = 0
        self._sizes: dict[Program, Size] = {}
        self._trials: list[Trial] = []

    def run(self, name: PassName, value: Any) -> Any:
        """The result of a pass for a value, computed once."""
        key = name, id(value)
        made = self._made.get(key)
        if made is not None:
            return made[1]
        result = self._passes[name].run(value, self)
        self._made[key] = value, result
        if isinstance(result, Circuit) and result is not value:
            self._uncounted.append(result)
        return result

    def through(self, names: Iterable[PassName], value: Any, options: Options | None = None) -> Any:
        """The result of several passes for a value; passes that are off are skipped."""
        for name in names:
            if self._passes[name].on(options or self.options):
                value = self.run(name, value)
        return value

    def forget(self, value: Any) -> None:
        """Forget all results made from a value, directly or through other results."""
        for key in self._made_of(value):
            del self._made[key]

    def measure(self, program: Program, most_layers: int | None = None) -> Measured:
        """The size of the model of a program; only its layers, if these are more than `most_layers`."""
        self._make_room(program)
        try:
            if most_layers is not None:
                layers = depth(self.through(REDUCED, program, program.options))
                if layers > most_layers:
                    return Measured(layers=layers)
            return Measured(self._size(program))
        except CompileError as error:
            return Measured(refusal=_sentence(error))

    def settle(self, program: Program) -> None:
        """End the search: refuse a program whose model is known to be too large, if no later pass can shrink it."""
        options = program.options
        self._make_room(program)
        if program in self._sizes and not any(map(options.on, NARROWING)):
            check_size(self._sizes[program], options)

    def _make_room(self, program: Program) -> None:
        """Forget all circuits except those of one program, if together they take too much memory."""
        self._bytes += sum(circuit.nbytes for circuit in self._uncounted)
        self._uncounted.clear()
        if self._bytes > program.options.max_memory // 8:
            self._made = self._made_of(program)
            circuits = {id(made): made for _, made in self._made.values() if isinstance(made, Circuit)}
            self._bytes = sum(circuit.nbytes for circuit in circuits.values())

    def _made_of(self, value: Any) -> dict[tuple[PassName, int], tuple[Any, Any]]:
        """All results made from a value, directly or through other results."""
        found = {}
        for name in PassName:
            made = self._made.get((name, id(value)))
            if made is not None:
                found[name, id(value)] = made
                found.update(self._made_of(made[1]) if made[1] is not value else {})
        return found

    def _size(self, program: Program) -> Size:
        if program not in self._sizes:
            options = program.options
            value = self.through((*REDUCED, PassName.FACTOR), program, options)
            for one in (self._passes[name] for name in IN_LAYERS):
                value = one.run(value, self) if one.on(options) else value
            self._sizes[program] = size_of(*narrowest_width(value, options))
        return self._sizes[program]

    def tried(self, step: PassName, what: str, measured: Measured, kept: bool, why: str) -> None:
        """Add a trial to the record."""
        self._trials.append(Trial(step, what, measured, kept, why))

    def record(self, layout: Layout) -> Search:
        """The trials, and the size of the model that was chosen."""
        return Search(tuple(self._trials), layout.size)


def _sentence(error: TracrError) -> str:
    return error.diagnostic.sentence
