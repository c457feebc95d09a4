"""The rows of a run: the answer of one method on one subject, scored."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracr.errors import FormatError, InternalError, MissingExtra, NotAdmitted, TracrError
from tracr.ground_truth.ablations import Ablation
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import as_text
from tracr.ground_truth.pair_truth import PairTruth
from tracr.lab.choices import Configured
from tracr.lab.faithfulness import faithfulness
from tracr.lab.finding import find_method
from tracr.lab.methods import Method, MethodData, run_method
from tracr.lab.one_case import Case
from tracr.lab.selecting import named_case
from tracr.lab.subjects import Subject, subject
from tracr.lab.track import EDGES
from tracr.lab.unread_edges import unread_edges

__all__ = [
    "COLUMNS",
    "KEY",
    "NOT_ADMITTED",
    "NOT_MADE",
    "SCORES",
    "Conditions",
    "SubjectRuns",
    "key_columns",
    "run_subject",
]

Row = dict[str, Any]
KEY = ("method", "version", "settings", "case", "realisation", "dials", "seed")
"""The columns that tell rows apart."""
NOT_MADE, NOT_ADMITTED = "not made", "not admitted"
"""Before the reasons of refusals in the column "error"."""
SCORES = EDGES.scores
COLUMNS: Mapping[str, str | list[str]] = {
    "track": "string",
    "method": "string",
    "version": "string",
    "settings": "string",
    "case": "string",
    "realisation": "string",
    "dials": "string",
    "seed": "int64",
    "pairs": "int64",
    "pairs_seed": "int64",
    "ablation": "string",
    "granularity": "string",
    "status": "string",
    "error": "string",
    "model_digest": "string",
    "admitted": "bool",
    "metric": "string",
    "auroc": "float64",
    "average_precision": "float64",
    "precision_at_size": "float64",
    "exact": "bool",
    "cpr": "float64",
    "cmd": "float64",
    "missed": ["string"],
    "extra": ["string"],
    "alone": "int64",
    "jointly": "int64",
    "inert": "int64",
    "forward_passes": "int64",
    "backward_passes": "int64",
    "seconds": "float64",
    "device": "string",
    "as_set": "bool",
    "edges": ["string"],
    "truth": ["string"],
    "unread": ["string"],
    "numbers": ["float64"],
}
"""The columns of the table of results, with their types: docs/lab.md."""


@dataclass(frozen=True)
class Conditions:
    """What all rows of a table have in common: the pairs, and the truth that is asked for.

    Args:
        pairs: the number of pairs of each case.
        pairs_seed: the seed of the pairs; `None`: the seed of the row.
        ablation: the ablation of the truth.
        granularity: the granularity of the truth and of the scores.
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


class _Prepared:
    """A subject with its pairs and truth."""

    def __init__(self, task: SubjectRuns) -> None:
        case = named_case(task.case) if isinstance(task.case, str) else task.case
        self.subject: Subject = subject(
            case,
            task.realisation.name,
            seed=task.seed,
            cache=task.cache,
            twins=task.twins,
            **task.realisation.settings,
        )
        given = task.conditions
        pairs = case.pairs(given.pairs, task.seed if given.pairs_seed is None else given.pairs_seed)
        self.truth: PairTruth = self.subject.minimal(pairs, given.ablation, given.granularity)
        kept = {(tuple(clean), tuple(corrupted)) for clean, corrupted in self.truth.pairs}
        self.pairs = [pair for pair in pairs if (pair.clean, pair.corrupted) in kept]

    @cached_property
    def data(self) -> tuple[MethodData, str]:
        """What methods get, and their metric: that of the case, or changed answers if it is not defined."""
        try:
            return MethodData.of(self.pairs, self.subject.case.metric(self.pairs)), "logits"
        except TracrError:
            return MethodData.of(self.pairs), "answers"

    @cached_property
    def known(self) -> Row:
        """The columns about the subject and its truth."""
        truth = self.truth
        return {
            "model_digest": self.subject.digest,
            "admitted": self.subject.admitted,
            "metric": self.data[1],
            "alone": len(truth.alone),
            "jointly": len(truth.jointly),
            "inert": len(truth.inert),
            "edges": list(map(as_text, truth.candidates())),
            "truth": [_kind(truth, key) for key in truth.candidates()],
            "unread": list(map(as_text, unread_edges(truth.truth, truth.granularity))),
        }


def _kind(truth: PairTruth, key: Any) -> str:
    kinds = {"alone": truth.alone, "jointly": truth.jointly, "undecided": truth.undecided}
    return next((kind for kind, keys in kinds.items() if key in keys), "inert")


def run_subject(task: SubjectRuns) -> list[Row]:
    """A row for each method; a failure is a row too."""
    prepared: _Prepared | Exception
    try:
        prepared = _Prepared(task)
    except Exception as error:
        prepared = error
    return [_row(task, choice, prepared) for choice in task.methods]


def _row(task: SubjectRuns, choice: Configured, prepared: _Prepared | Exception) -> Row:
    row = key_columns(task, choice)
    try:
        if isinstance(prepared, Exception):
            raise prepared
        return {**row, **prepared.known, **_scored(prepared, choice, task)}
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


def _scored(prepared: _Prepared, choice: Configured, task: SubjectRuns) -> Row:
    truth, granularity, (data, _) = prepared.truth, task.conditions.granularity, prepared.data
    made = run_method(_seeded(choice, task.seed), prepared.subject, data)
    scores = truth.score(made.scores, granularity)
    numbers, as_set = truth.read(made.scores, granularity)
    areas = faithfulness(prepared.subject, data, made.scores, granularity=granularity)
    return {
        "status": "done",
        "error": "",
        **{name: getattr(scores, name, None) for name in SCORES},
        "cpr": areas.cpr,
        "cmd": areas.cmd,
        "missed": list(map(as_text, scores.missed)),
        "extra": list(map(as_text, scores.extra)),
        "forward_passes": made.forwards,
        "backward_passes": made.backwards,
        "seconds": made.seconds,
        "device": _device(),
        "as_set": as_set,
        "numbers": [numbers.get(key) for key in truth.candidates()],
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
