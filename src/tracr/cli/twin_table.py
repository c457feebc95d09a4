"""The table of `tracr twin`: a row for each program, which changes as training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table

from tracr.cli.screen import Screen, plain_table

if TYPE_CHECKING:
    from tracr.natural import Progress
    from tracr.natural.many import ProgramTwins, TwinTask

__all__ = ["TwinTable"]

COLUMNS = ("program", "layers", "admitted", "steps", "seconds", "not admitted")
FEW = 3  # nodes and edges that are named


class TwinTable:
    """Programs with their twins: live on a terminal; elsewhere a line is printed when a program ends."""

    def __init__(self, layers: Mapping[str, int], seeds: int) -> None:
        self.layers, self.seeds = layers, seeds
        self.rows = {name: [str(count), "", "", "", "waiting"] for name, count in layers.items()}
        self.screen = Screen()
        self.live = Live(self._table(), console=self.screen.console, auto_refresh=False)

    def __enter__(self) -> TwinTable:
        if self.screen.console.is_terminal:
            self.live.start()
        else:
            print("\t".join(COLUMNS), flush=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self.screen.console.is_terminal:
            self.live.stop()

    def progress(self, task: TwinTask, progress: Progress) -> None:
        """Show a round of training."""
        steps = f"{progress.done:,} of {progress.steps:,}"
        admitted = f"{len(progress.admitted)} of {len(task.seeds)}"
        self._set(task.name, [admitted, steps, "", f"worst agreement {min(progress.worst):.3f}"], ended=False)

    def ended(self, made: ProgramTwins) -> None:
        """Show the end of a program."""
        steps = sorted({twin.steps for twin in made.twins})
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((steps[0], steps[-1]))) if steps else ""
        seconds = f"{made.seconds:.0f}" if made.seconds else "found" if made.twins else ""
        admitted = f"{made.admitted} of {self.seeds}" if made.twins else ""
        self._set(made.task.name, [admitted, span, seconds, missing(made)], ended=True)

    def refused(self, name: str, problem: str) -> None:
        """Show a program that is not trained."""
        self._set(name, ["", "", "", _first_line(problem)], ended=True)

    def _set(self, name: str, cells: list[str], *, ended: bool) -> None:
        layers = self.layers.get(name)
        self.rows[name] = ["" if layers is None else str(layers), *cells]
        if self.screen.console.is_terminal:
            self.live.update(self._table(), refresh=True)
        elif ended:
            print("\t".join([name, *self.rows[name]]), flush=True)

    def _table(self) -> Table:
        table = plain_table(*COLUMNS)
        for name, cells in self.rows.items():
            table.add_row(name, *cells)
        return table


def missing(made: ProgramTwins) -> str:
    """The nodes and edges that are not known, or the reason why there are no twins."""
    if made.problem:
        return _first_line(made.problem)
    found = []
    for twin in made.twins:
        if twin.admitted:
            continue
        missed = [site.site for site in twin.admission.missed]
        more = f" and {len(missed) - FEW} more" if len(missed) > FEW else ""
        wrong = [] if twin.admission.accurate else [f"right on {twin.admission.accuracy.share:.2%}"]
        found.append(f"seed {twin.seed}: {', '.join([*wrong, *missed[:FEW]])}{more}")
    return "; ".join(found)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
