"""Draws programs until there are enough of different meanings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tracr.datasets.bounds import ModelBounds
from tracr.datasets.candidates import CHUNK, Candidate, DrawTask, draw
from tracr.datasets.controls import Controls
from tracr.datasets.records import OVER, Record
from tracr.datasets.settings import Settings
from tracr.errors import TracrError
from tracr.workers import SERIAL, Workers

__all__ = ["Sampling", "sample"]

PATIENCE = 2_000  # candidates in a row without a new program, after which the search stops


@dataclass
class Sampling:
    """The state of a sampling: the meanings found so far, and the next candidate.

    Candidate `n` is the program with the seed `(seed, n)`; it becomes a record if its meaning is new. `over` counts the
    candidates whose models exceed the bounds, and `refused` the others that could not become a model.
    """

    seed: int
    controls: Controls
    bounds: ModelBounds | None = None
    seen: set[str] = field(default_factory=set)
    found: int = 0
    refused: int = 0
    over: int = 0
    next: int = 0

    def note(self, record: Record) -> None:
        """Add a record to the state."""
        if record.meaning is not None:
            self.seen.add(record.meaning)
            self.found += 1
        elif record.refused is not None and record.refused.error == OVER:
            self.over += 1
        else:
            self.refused += 1
        self.next = record.seed[1] + 1

    def records(self, count: int, workers: Workers = SERIAL) -> Iterator[Record]:
        """New records until there are `count` in total, not counting refused ones."""
        return (candidate.record for candidate in self.candidates(count, workers))

    def candidates(
        self, count: int, workers: Workers = SERIAL, settings: Settings | None = None
    ) -> Iterator[Candidate]:
        """New records until there are `count` in total; with settings, what became of the programs too."""
        if self.found >= count:
            return
        latest = self.next
        for drawn in workers.map(draw, self._tasks(count, settings)):
            for one in drawn:
                meaning = one.record.meaning
                if meaning is None or meaning not in self.seen:
                    record = one.record if meaning is None else replace(one.record, id=self.found)
                    self.note(record)
                    latest = self.next if meaning is not None or self.bounds is None else latest
                    yield Candidate(record, one.outcome)
                    if self.found >= count:
                        return
            if drawn[-1].record.seed[1] - latest > PATIENCE:
                raise TracrError(
                    f"{self.found} different programs were found, and the last {PATIENCE:,} candidates gave no new one"
                    f"{self._bounded()}",
                    hint="allow larger programs (max_ops, max_depth, max_selectors), or ask for fewer"
                    if self.bounds is None
                    else "allow larger models (max_parameters, max_layers), or draw smaller programs (max_ops)",
                )

    def _tasks(self, count: int, settings: Settings | None) -> Iterator[DrawTask]:
        """Tasks without end; none has more candidates than programs are missing when it is given out."""
        start = self.next
        while True:
            size = min(CHUNK, max(1, count - self.found))
            yield DrawTask(self.seed, start, self.controls, self.bounds, settings, size)
            start += size

    def _bounded(self) -> str:
        return "" if self.bounds is None else f"; the models of {self.over:,} candidates exceeded the bounds"


def sample(
    count: int,
    seed: int = 0,
    controls: Controls | None = None,
    workers: Workers = SERIAL,
    bounds: ModelBounds | None = None,
) -> Iterator[Record]:
    """`count` random programs with different meanings; the same arguments give the same records.

    Candidates that the compiler refuses to tabulate, or whose models exceed the bounds, are yielded too, with the
    reason, and are not counted.

    >>> [record.size.ops for record in sample(3, seed=1, controls=Controls(min_ops=2, max_ops=3))]
    [2, 3, 3]
    """
    yield from Sampling(seed, controls or Controls(), bounds).records(count, workers)
