"""A file with a circuit, checked and scored against the truth of a subject."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import as_text, coarsened
from tracr.ground_truth.scores import EdgeKey, EdgeScores
from tracr.ground_truth.scoring import QKV, EdgeTruth
from tracr.lab.formats.files import read_into
from tracr.lab.formats.found_circuit import By, FoundCircuit
from tracr.lab.formats.problems import Problems, refuse
from tracr.lab.formats.sizes import CircuitSizes

__all__ = ["CheckedSubmission", "ScoredSubmission", "check", "score"]


@dataclass(frozen=True)
class CheckedSubmission:
    """What is wrong with a file (`problems`), and what its author may not expect (`notes`)."""

    circuit: FoundCircuit = field(repr=False)
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    padding: frozenset[EdgeKey] = field(repr=False)
    """Edges of heads and MLPs that the subject does not have: they are zeros in other tools, and are not scored."""

    @property
    def valid(self) -> bool:
        """Whether it can be scored."""
        return not self.problems


@dataclass(frozen=True)
class ScoredSubmission:
    """The scores of a file, and how its edges were ranked."""

    scores: EdgeScores
    by: By
    absolute: bool
    granularity: Granularity
    padding: int
    """The number of edges that are not candidates: they were left out."""


def check(
    path: str | Path, truth: EdgeTruth, sizes: CircuitSizes, *, granularity: Granularity = QKV
) -> CheckedSubmission:
    """All that is wrong with a file, compared at a granularity with the truth of a subject of these sizes."""
    problems = Problems()
    circuit = read_into(path, sizes, problems) or FoundCircuit()
    candidates = frozenset(truth.candidates(granularity))
    parts = frozenset(part for one in truth.granularities for key in truth.candidates(one) for part in key)
    padding = frozenset(edge for edge in circuit.edges if not parts.issuperset(edge))
    given = frozenset(coarsened(edge, granularity) for edge in circuit.edges if edge not in padding)
    for key in problems.until_many(sorted(given - candidates)):
        problems.add(f"{as_text(key)} is not an edge of the granularity {granularity} (score at a coarser one)")
    if not problems.texts and not given:
        problems.add(f"{Path(path).name} gives no score to an edge of the subject, and chooses none")
    missing = len(candidates - given) if circuit.scores else 0
    notes = [] if problems.texts else _notes(circuit, missing, len(candidates), len(padding))
    return CheckedSubmission(circuit, tuple(problems.texts), tuple(notes), padding)


def _notes(circuit: FoundCircuit, missing: int, total: int, padding: int) -> list[str]:
    notes = []
    if padding:
        notes.append(f"{padding} edges of heads and MLPs that the subject does not have are left out")
    if missing:
        notes.append(f"{missing} of {total} candidates have no score: they share the lowest rank")
    if circuit.flat:
        notes.append("all scores are equal, so they rank nothing" + (": score by in_graph" if circuit.chosen else ""))
    if circuit.absolute and any(score < 0 for score in circuit.scores.values()):
        notes.append("scores are ranked by their absolute value, as the tool does that writes this format")
    return notes


def score(
    path: str | Path,
    truth: EdgeTruth,
    sizes: CircuitSizes,
    *,
    granularity: Granularity = QKV,
    by: By | None = None,
    absolute: bool | None = None,
) -> ScoredSubmission:
    """The scores of a file against the truth of a subject of these sizes.

    Args:
        path: the file.
        truth: any truth about edges: `model.ground_truth`, or what its `minimal` gives.
        sizes: `sizes_of(model)`.
        granularity: the granularity at which edges are compared.
        by: "score" or "in_graph"; by default the scores, if the file has any.
        absolute: rank by absolute value; by default as the tool does that writes the format.
    """
    checked = check(path, truth, sizes, granularity=granularity)
    refuse(str(path), checked.problems)
    circuit = checked.circuit
    found = circuit.found(by, absolute=absolute)
    used: By = "in_graph" if isinstance(found, frozenset) else "score"
    kept = found - checked.padding if isinstance(found, frozenset) else _without(found, checked.padding)
    ranked_by_size = used == "score" and (circuit.absolute if absolute is None else absolute)
    return ScoredSubmission(truth.score(kept, granularity), used, ranked_by_size, granularity, len(checked.padding))


def _without(found: dict[EdgeKey, float], edges: frozenset[EdgeKey]) -> dict[EdgeKey, float]:
    return {edge: number for edge, number in found.items() if edge not in edges}
