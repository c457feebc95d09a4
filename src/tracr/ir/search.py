"""The record of the search for a smaller model: the rivals that were tried, and why each was kept or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracr.ir.size import Size
from tracr.ir.switches import PassName

__all__ = ["Measured", "Search", "Trial"]


@dataclass(frozen=True)
class Measured:
    """The size of the model of a rival, as far as it was measured.

    `size` is `None` if the rival was refused (`refusal` gives the reason), had too many layers (only `layers` is
    known), or was not measured.
    """

    size: Size | None = None
    layers: int | None = None
    refusal: str = ""


@dataclass(frozen=True)
class Trial:
    """One rival: the pass that proposed it, its description, its size, and whether and why it was kept.

    Each rival is compared with the last one kept before it. The last rival kept for a pass is the one chosen.
    """

    step: PassName
    what: str
    measured: Measured
    kept: bool
    why: str

    @property
    def size(self) -> Size | None:
        """The size of its model, if it was measured."""
        return self.measured.size

    @property
    def refusal(self) -> str:
        """Why it cannot be compiled; "" if it can."""
        return self.measured.refusal

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        own = self.measured
        numbers: tuple[int | None, ...] = own.size or (own.layers, None, None, None)
        sizes = ("-" if number is None else f"{number:,}" for number in numbers)
        return (self.step, self.what, *sizes, "kept" if self.kept else "", self.why)


@dataclass(frozen=True)
class Search:
    """Every rival that was tried, in order, and the size of the model that was built.

    Rivals are measured with every component in its earliest layer. The passes `schedule` and `solve` run later. The
    model may therefore have fewer dimensions, heads and parameters than the rival it was built from.
    """

    trials: tuple[Trial, ...]
    size: Size

    def of(self, step: PassName | str) -> tuple[Trial, ...]:
        """The trials of one pass."""
        return tuple(trial for trial in self.trials if trial.step == step)

    def as_json(self) -> list[dict[str, Any]]:
        """The trials as JSON."""
        return [
            {
                "pass": str(trial.step),
                "rival": trial.what,
                "size": trial.size and trial.size._asdict(),
                "layers": trial.size.layers if trial.size else trial.measured.layers,
                "kept": trial.kept,
                "why": trial.why,
            }
            for trial in self.trials
        ]

    def show(self) -> str:
        """A table: a line for every rival, then the model that was built."""
        titles = ("pass", "rival", "layers", "dimensions", "heads", "parameters", "", "why")
        model = ("model", "", *(f"{number:,}" for number in self.size), "", "")
        if not self.trials:
            return f"nothing was tried; the model: {sized(self.size)}"
        rows = [titles, *(trial.cells for trial in self.trials), model]
        widths = [max(len(row[place]) for row in rows) for place in range(len(titles))]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if 2 <= place <= 5 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def sized(size: Size) -> str:
    """A size in words."""
    parts = zip(size, ("layer", "dimension", "head", "parameter"), strict=True)
    return ", ".join(f"{number:,} {noun}{'s' if number != 1 else ''}" for number, noun in parts)
