"""The rows of a run: the answer of one method on one subject, scored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tracr.errors import FormatError, InternalError, MissingExtra, NotAdmitted, TracrError
from tracr.ground_truth.ablations import Ablation
from tracr.ground_truth.data import Granularity
from tracr.lab.choices import Configured
from tracr.lab.finding import find_method
from tracr.lab.methods import Method
from tracr.lab.one_case import Case
from tracr.lab.selecting import named_case
from tracr.lab.subjects import Subject, subject
from tracr.lab.track import EDGES, EXPLANATIONS, FEATURES, PREDICTIONS, REPLACEMENTS, VARIABLES

__all__ = [
    "COLUMNS",
    "KEY",
    "NOT_ADMITTED",
    "NOT_MADE",
    "SCORES",
    "Conditions",
    "SubjectRuns",
    "TrackRows",
    "key_columns",
    "made_subject",
    "run_subject",
]

Row = dict[str, Any]
KEY = ("method", "version", "settings", "case", "realisation", "dials", "seed")
"""The columns that tell rows apart."""
NOT_MADE, NOT_ADMITTED = "not made", "not admitted"
"""Before the reasons of refusals in the column "error"."""
SCORES = EDGES.scores
COLUMNS = EDGES.columns


@dataclass(frozen=True)
class Conditions:
    """What all rows of a table have in common: the pairs, and the truth that is asked for.

    Args:
        pairs: the number of pairs of each case; in the track "variables", of interchanges for scores, per variable; in
            the track "features", of interventions for scores, per feature; in the track "predictions", of questions.
        pairs_seed: the seed of the pairs; `None`: the seed of the row.
        ablation: the ablation of the truth; only the track "edges" uses it.
        granularity: the granularity of the truth and of the scores; only the track "edges" uses it.
        track: what a method is asked for.
    """

    pairs: int = 64
    pairs_seed: int | None = None
    ablation: Ablation = "resample"
    granularity: Granularity = "qkv"
    track: str = EDGES.name


@dataclass(frozen=True)
class SubjectRuns:
    """Several methods on one subject, as data for a worker; a case of the zoo is a name."""

    case: str | Case
    realisation: Configured
    seed: int
    methods: tuple[Configured, ...]
    conditions: Conditions
    cache: Path
    twins: Path | None = None


class TrackRows(Protocol):
    """A subject, prepared for the methods of a track."""

    @property
    def known(self) -> Row:
        """The columns about the subject."""

    def scored(self, method: Method) -> Row:
        """The columns of a method: its answer and scores."""


def made_subject(task: SubjectRuns) -> Subject:
    """The subject of a task."""
    return subject(
        named_case(task.case) if isinstance(task.case, str) else task.case,
        task.realisation.name,
        seed=task.seed,
        cache=task.cache,
        twins=task.twins,
        **task.realisation.settings,
    )


def run_subject(task: SubjectRuns) -> list[Row]:
    """A row for each method; a failure is a row too."""
    prepared: TrackRows | Exception
    try:
        prepared = _prepared(task)
    except Exception as error:
        prepared = error
    return [_row(task, choice, prepared) for choice in task.methods]


def _prepared(task: SubjectRuns) -> TrackRows:
    from tracr.lab.edge_rows import EdgeRows  # they import this module
    from tracr.lab.explained.explanation_rows import ExplanationRows
    from tracr.lab.features.feature_rows import FeatureRows
    from tracr.lab.predicted.prediction_rows import PredictionRows
    from tracr.lab.replaced.replacement_rows import ReplacementRows
    from tracr.lab.variables.variable_rows import VariableRows

    makers: dict[str, Callable[[SubjectRuns], TrackRows]] = {
        EDGES.name: EdgeRows,
        VARIABLES.name: VariableRows,
        FEATURES.name: FeatureRows,
        EXPLANATIONS.name: ExplanationRows,
        PREDICTIONS.name: PredictionRows,
        REPLACEMENTS.name: ReplacementRows,
    }
    return makers[task.conditions.track](task)


def _row(task: SubjectRuns, choice: Configured, prepared: TrackRows | Exception) -> Row:
    row = key_columns(task, choice)
    try:
        if isinstance(prepared, Exception):
            raise prepared
        answer = prepared.scored(_seeded(choice, task.seed))
        return {**row, **prepared.known, "status": "done", "error": "", **answer, "device": _device()}
    except Exception as error:
        refused = {"admitted": False} if isinstance(error, NotAdmitted) else {}
        return {**row, **refused, "status": "failed", "error": _reason(error), "device": _device()}


def _reason(error: Exception) -> str:
    """What the column "error" says: a refusal is "not made" or "not admitted", anything else an error by its class."""
    if isinstance(error, NotAdmitted):
        return f"{NOT_ADMITTED}: {error}"
    broken = isinstance(error, InternalError | FormatError | MissingExtra) or not isinstance(error, TracrError)
    return f"{type(error).__name__ if broken else NOT_MADE}: {error}".strip()


def key_columns(task: SubjectRuns, choice: Configured) -> Row:
    """The columns that are known before the run."""
    method = find_method(choice)
    seed = {"seed"} - {*choice.settings}
    settings = {name: value for name, value in method.settings.items() if name not in seed}
    given = asdict(task.conditions)
    given["pairs_seed"] = task.seed if given["pairs_seed"] is None else given["pairs_seed"]
    return {
        **given,
        "method": method.name,
        "version": str(method.version),
        "settings": Configured(method.name, settings).as_json,
        "case": task.case if isinstance(task.case, str) else task.case.name,
        "realisation": task.realisation.name,
        "dials": task.realisation.as_json,
        "seed": task.seed,
    }


def _seeded(choice: Configured, seed: int) -> Method:
    """The method; if it has a setting `seed` that was not chosen, it gets the row's."""
    method = find_method(choice)
    return method.with_settings(seed=seed) if "seed" in method.settings and "seed" not in choice.settings else method


def _device() -> str:
    """The device that a loaded framework computes on."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if jax is not None and hasattr(jax, "default_backend"):
        return str(jax.default_backend())
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
        return "cuda"
    return "cpu"
