"""Random programs as records, one for each meaning."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import trace
from tracr.datasets.controls import Controls
from tracr.datasets.meaning import meaning
from tracr.datasets.printing import to_python
from tracr.errors import FormatError, TracrError, TracrWarning
from tracr.rasp.expressions import RASPExpr, SOp
from tracr.rasp.size import ProgramSize, size_of
from tracr.rasp.traversal import topological
from tracr.workers import SERIAL, Workers

__all__ = ["Record", "Refusal", "Sampling", "sample"]

CHUNK = 20  # candidates a worker draws at a time
PATIENCE = 2_000  # candidates in a row without a new program, after which the search stops
INPUTS = ("vocab", "max_seq_len", "causal")


@dataclass(frozen=True)
class Refusal:
    """Why a program could not become a model."""

    error: str
    what: str
    hint: str

    @classmethod
    def of(cls, error: TracrError) -> Self:
        """The refusal that an error describes."""
        where = f"{error.diagnostic.expression}: " if error.diagnostic.expression else ""
        return cls(type(error).__name__, where + error.diagnostic.what, error.diagnostic.hint)


@dataclass(frozen=True)
class Record:
    """A random program: its seed and controls, its text, its measures and the key of its meaning.

    `id` numbers the programs of a dataset. A program that the compiler refused to tabulate has no id and no meaning;
    `refused` gives the reason.
    """

    id: int | None
    seed: tuple[int, int]
    controls: Controls
    source: str
    size: ProgramSize
    kinds: Mapping[str, int]
    meaning: str | None
    refused: Refusal | None = None

    @property
    def program(self) -> SOp:
        """The program, drawn again; `exec(record.source)` makes one of the same structure."""
        return self.controls.program(self.seed)

    def to_json(self) -> dict[str, Any]:
        """The record as `json` can write it; the order of the keys is always the same."""
        controls = self.controls.to_json()
        return {
            "id": self.id,
            "seed": list(self.seed),
            "meaning": self.meaning,
            **{name: controls.pop(name) for name in INPUTS},
            **vars(self.size),
            "kinds": dict(self.kinds),
            "source": self.source,
            "refused": None if self.refused is None else vars(self.refused),
            "controls": controls,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        try:
            controls = Controls.from_json({**data["controls"], **{name: data[name] for name in INPUTS}})
            first, second = data["seed"]
            return cls(
                data["id"],
                (first, second),
                controls,
                data["source"],
                ProgramSize(data["ops"], data["depth"], data["selectors"]),
                data["kinds"],
                data["meaning"],
                None if data["refused"] is None else Refusal(**data["refused"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"this is not the record of a program: {type(error).__name__}: {error}",
                hint="sample the programs again",
            ) from None


@dataclass
class Sampling:
    """The state of a sampling: the meanings found so far, and the next candidate.

    Candidate `n` is the program with the seed `(seed, n)`; it becomes a record if its meaning is new.
    """

    seed: int
    controls: Controls
    seen: set[str] = field(default_factory=set)
    found: int = 0
    refused: int = 0
    next: int = 0

    def note(self, record: Record) -> None:
        """Add a record to the state."""
        if record.meaning is None:
            self.refused += 1
        else:
            self.seen.add(record.meaning)
            self.found += 1
        self.next = record.seed[1] + 1

    def records(self, count: int, workers: Workers = SERIAL) -> Iterator[Record]:
        """New records until there are `count` in total, not counting refused ones."""
        if self.found >= count:
            return
        tasks = ((self.seed, start, self.controls) for start in _from(self.next))
        latest = self.next
        for candidates in workers.map(_draw, tasks):
            for candidate in candidates:
                if candidate.meaning is None or candidate.meaning not in self.seen:
                    record = Record(**{**vars(candidate), "id": None if candidate.meaning is None else self.found})
                    self.note(record)
                    latest = self.next
                    yield record
                    if self.found >= count:
                        return
            if candidates[-1].seed[1] - latest > PATIENCE:
                raise TracrError(
                    f"{self.found} different programs were found, and the last {PATIENCE:,} candidates gave no new one",
                    hint="allow larger programs (max_ops, max_depth, max_selectors), or ask for fewer",
                )


def sample(count: int, seed: int = 0, controls: Controls | None = None, workers: Workers = SERIAL) -> Iterator[Record]:
    """`count` random programs with different meanings; the same arguments give the same records.

    Candidates that the compiler refuses to tabulate are yielded too, with the reason, and are not counted.

    >>> [record.size.ops for record in sample(3, seed=1, controls=Controls(min_ops=2, max_ops=3))]
    [2, 3, 3]
    """
    yield from Sampling(seed, controls or Controls()).records(count, workers)


def _from(start: int) -> Iterator[int]:
    while True:
        yield start
        start += CHUNK


def _draw(task: tuple[int, int, Controls]) -> list[Record]:
    """Some candidates."""
    seed, start, controls = task
    return [candidate((seed, number), controls) for number in range(start, start + CHUNK)]


def candidate(seed: tuple[int, int], controls: Controls) -> Record:
    """The program of a seed as a record without a number."""
    program = controls.program(seed)
    key, refused = None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TracrWarning)
            key = meaning(infer(trace({"output": program}), controls.options(level=1)))
    except TracrError as error:
        refused = Refusal.of(error)
    return Record(None, seed, controls, to_python(program), size_of(program), _kinds(program), key, refused)


def _kinds(program: RASPExpr) -> dict[str, int]:
    """How many expressions there are of each kind."""
    counts = Counter(type(expr).__name__ for expr in topological([program]))
    return dict(sorted(counts.items()))
