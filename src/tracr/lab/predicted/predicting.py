"""`predictions`: draws questions about a subject, writes them as JSON, and scores answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import one_of, whole
from tracr.arguments import path as as_path
from tracr.errors import FormatError, NotAdmitted, TracrError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.predicted.baselines import Answers, circuit_answers, no_change, program_answers
from tracr.lab.predicted.patch_questions import patch_questions
from tracr.lab.predicted.prediction_scores import PredictionScores, score_answers
from tracr.lab.predicted.questions import KINDS, Question
from tracr.lab.predicted.setting_questions import set_questions
from tracr.lab.realising import realisation_of
from tracr.lab.twin_folder import TwinFolder
from tracr.saving.folders import read_file
from tracr.saving.json_reader import Reader, parse
from tracr.saving.values_json import encode_value
from tracr.writing import write_file

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["Predictions", "predictions", "read_predictions"]

ASKED, ANSWERED, VERSION = "tracr questions", "tracr answers", 1
SCHEMA = (
    'answers are {"format": "tracr answers", "version": 1, "about": {...}, "answers": [{"id": 0, "answer": [...]}]}, '
    "with `about` copied from the questions"
)
LARGEST = 2**26  # bytes of a file
TRIES = 40  # draws for each question
MOST = {"count": 10_000, "seed": 2**31, "subject_seed": 2**31}  # in files


@dataclass(frozen=True, eq=False)
class Predictions:
    """Questions about a subject. The same subject, count, seed and kinds give the same questions."""

    subject: Subject = field(repr=False)
    count: int
    seed: int
    kinds: tuple[str, ...]
    questions: tuple[Question, ...] = field(repr=False)

    @property
    def about(self) -> dict[str, Any]:
        """What the questions are about; a file of answers repeats it."""
        one = self.subject
        drawn = {"count": self.count, "seed": self.seed, "kinds": list(self.kinds)}
        made = {"realisation": one.realisation, "dials": dict(one.dials), "subject_seed": one.seed}
        return {"case": one.case.name, **made, "digest": one.digest, **drawn}

    def as_json(self) -> dict[str, Any]:
        """The questions, without their answers."""
        asked = [one.as_json() for one in self.questions]
        return {"format": ASKED, "version": VERSION, "about": self.about, "questions": asked}

    def write(self, path: str | Path) -> None:
        """Write the questions to a JSON file, completely or not at all."""
        _write(path, self.as_json())

    def answers_json(self, answers: Answers) -> dict[str, Any]:
        """Answers, by the number of their question, as the content of a file."""
        rows = [
            {"id": number, "answer": [encode_value(value) for value in answer]} for number, answer in answers.items()
        ]
        return {"format": ANSWERED, "version": VERSION, "about": self.about, "answers": rows}

    def write_answers(self, path: str | Path, answers: Answers) -> None:
        """Write answers to a JSON file, completely or not at all."""
        _write(path, self.answers_json(answers))

    def score(self, answers: str | Path | Mapping[str, Any]) -> PredictionScores:
        """Score a file of answers, or its content."""
        return score_answers(self.questions, self.read(answers))

    def read(self, answers: str | Path | Mapping[str, Any]) -> Answers:
        """The answers in a file, or in its content, by the number of their question."""
        if isinstance(answers, Mapping):
            top = parse(json.dumps(answers, default=_refused).encode(), "answers")
        else:
            top = _parsed(answers)
        with _taught():
            given = top.object(("format", "version", "about", "answers"))
            given["format"].choice((ANSWERED,))
            given["version"].integer(VERSION, VERSION)
        if given["about"].data != self.about:
            raise FormatError(
                f"{given['about'].where} is not what these questions are about: {json.dumps(self.about)}",
                hint="copy `about` from the file of questions, and ask with the same subject, count, seed and kinds",
            )
        with _taught():
            return self._read(given["answers"])

    def _read(self, answers: Reader) -> Answers:
        known = {one.number: one for one in self.questions}
        found: Answers = {}
        for place in answers.items():
            given = place.object(("id", "answer"))
            number = given["id"].integer()
            if number not in known:
                given["id"].fail(f"is no question; there are {len(known)}, from 0 on")
            if number in found:
                given["id"].fail(f"has two answers: {number}")
            answer = given["answer"].values()
            if len(answer) != len(known[number].tokens):
                raise FormatError(
                    f"{given['answer'].where} has {len(answer)} values for {len(known[number].tokens)} tokens",
                    hint="give the answer at every position of the input",
                )
            found[number] = answer
        return found

    def baseline(self, name: str, circuit: Collection[EdgeKey] = ()) -> Answers:
        """The answers of a baseline: "program", "circuit" (with the edges that were found) or "no_change"."""
        match one_of("baseline", name, ["program", "circuit", "no_change"]):
            case "program":
                return program_answers(self.subject, self.questions)
            case "circuit":
                return circuit_answers(self.subject, self.questions, circuit)
            case _:
                return no_change(self.questions)


def predictions(
    subject: Subject | str, *, count: int = 64, seed: int = 0, kinds: Collection[str] = KINDS
) -> Predictions:
    """Questions about interventions on a subject, with true answers.

    Args:
        subject: a subject, or the name of a case: its compiled model.
        count: the number of questions, as many of each kind. At least half of each kind change the answer, if such
            interventions are found.
        seed: the seed of the draws.
        kinds: "set" (a variable of the program) and "patch" (an edge); one, or both.

    >>> asked = predictions("count_less_freq", count=8, seed=1)
    >>> asked.score(asked.answers_json(asked.baseline("program"))).overall
    1.0
    """
    if isinstance(subject, str):
        from tracr.lab.subjects import subject as make_subject

        subject = make_subject(subject)
    count, seed = whole("count", count, 1), whole("seed", seed)
    asked = tuple(dict.fromkeys(one_of("kinds", kind, KINDS) for kind in kinds))
    if not asked:
        raise TracrError("there are no kinds of questions to draw", hint='pass kinds=["set"], ["patch"] or both')
    if "set" in asked and not subject.admitted:
        raise NotAdmitted(
            f"the twin of {subject.case.name} with seed {subject.seed} was not admitted: what it does if a variable of "
            "the program has another value is not known",
            hint='ask with kinds=["patch"], whose answers are measured',
        )
    shares = [count // len(asked) + (place < count % len(asked)) for place in range(len(asked))]
    drawn = {"set": lambda draws: set_questions(subject.case, seed, draws)}
    drawn["patch"] = lambda draws: patch_questions(subject, seed, draws)
    found = [
        one for kind, share in zip(asked, shares, strict=True) for one in _chosen(drawn[kind](TRIES * share), share)
    ]
    if not found:
        raise TracrError(
            f"no variable of {subject.case.name} can be set with a true answer", hint='ask with kinds=["patch"]'
        )
    numbered = tuple(replace(question, number=number) for number, question in enumerate(found))
    return Predictions(subject, count, seed, asked, numbered)


def read_predictions(path: str | Path, *, twins: str | Path | None = None) -> Predictions:
    """The questions that a file of questions or answers is about, drawn again.

    Args:
        path: the file.
        twins: the folder of trained twins, if the subject is a twin (`lab.subject`).
    """
    from tracr.lab.subjects import subject as make_subject

    top = _parsed(path)
    with _taught():
        about = top.object(("format", "version", "about"), ("questions", "answers"))["about"]
        given = about.object(("case", "realisation", "dials", "subject_seed", "digest", "count", "seed", "kinds"))
        dials = {name: place.data for name, place in given["dials"].members()}
        kinds = [place.choice(KINDS) for place in given["kinds"].items()]
        count, seed, own = (given[name].integer(0, MOST[name]) for name in ("count", "seed", "subject_seed"))
    if not all(isinstance(value, int | float | str) for value in dials.values()):
        given["dials"].fail("has a value that is neither a number nor a string")
    way = realisation_of(given["realisation"].text())
    if way.trained and TwinFolder.of(twins) is None:
        raise FormatError(
            f"{top.where} is about a {way.name}, which is not trained to score a file", hint="pass twins="
        )
    one = make_subject(given["case"].text(), way.name, seed=own, twins=twins, **dials)
    if one.digest != given["digest"].text():
        raise FormatError(
            f"{given['digest'].where} is not that of the subject: its weights are not those that were asked about",
            hint="ask again with this version of tracr, or use the version that wrote the questions",
        )
    return predictions(one, count=count, seed=seed, kinds=kinds)


def _chosen(drawn: Iterator[Question], count: int) -> list[Question]:
    """`count` different questions; at least half of them matter, if as many are drawn."""
    mattering: dict[Question, None] = {}
    others: dict[Question, None] = {}
    half = (count + 1) // 2
    for one in drawn:
        (mattering if one.matters else others)[one] = None
        if len(mattering) >= half and len(mattering) + len(others) >= count:
            break
    first, more = list(mattering)[:half], [*others, *list(mattering)[half:]]
    return [*first, *more[: count - len(first)]]


def _parsed(path: str | Path) -> Reader:
    file = as_path("path", path, error=FormatError)
    return parse(read_file(file, LARGEST), file.name)


@contextmanager
def _taught() -> Iterator[None]:
    """Add the schema to errors about a file that does not have it."""
    try:
        yield
    except FormatError as error:
        raise FormatError(error.diagnostic.what, hint=error.diagnostic.hint or SCHEMA) from None


def _write(path: str | Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_file(as_path("path", path, error=FormatError), text.encode())


def _refused(value: object) -> None:
    raise FormatError(f"answers are JSON, and {type(value).__name__} is not", hint="use dicts, lists and values")
