"""`score_program`: a submitted program, compared with the program of a case by its answers and by its structure.

The text is in the textual RASP language, which cannot execute Python code and whose computation is bounded. It cannot
load files either: a submission is one text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr import arguments
from tracr.errors import SourceError, TracrError
from tracr.lab.explained.structure import match, structure
from tracr.model.verification import chosen_inputs
from tracr.nearness import ANSWER, same_value
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.saving.folders import read_file
from tracr.saving.values_json import encode_value
from tracr.text import parse
from tracr.text.parser import read
from tracr.text.places import Source
from tracr.text.syntax import Load, Loop
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ir.program import Program
    from tracr.lab.one_case import Case

__all__ = ["ProgramScores", "score_program"]

LARGEST = 2**20  # bytes of a text
BUDGET = 20_000  # inputs that are compared


@dataclass(frozen=True)
class ProgramScores:
    """How far a submitted program agrees with that of a case.

    `agreement` is the share of inputs on which all answers are equal, of all inputs (`exhaustive`) or of a sample drawn
    with a seed; inputs on which the case's task is not defined are left out. `structure` is 1 if both programs have the
    same counts, copies and means (`structure.py`); `missing` and `extra` list the others.
    """

    agreement: float
    inputs: int
    exhaustive: bool
    counterexample: tuple[list[Value], list[Value], list[Value] | None] | None
    """An input, the right answers, and those of the submitted program (`None` if it fails)."""
    structure: float
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The scores, for JSON."""
        rows = [None if row is None else [encode_value(one) for one in row] for row in self.counterexample or ()]
        return {**asdict(self), "counterexample": rows or None}


def score_program(
    case: Case | str, program: str | Path, *, name: str = "", budget: int = BUDGET, seed: int = 0
) -> ProgramScores:
    """Score a program in the textual RASP language: a text, or the path of a .rasp file.

    Args:
        case: a case, or its name.
        program: the text, or a `Path`.
        name: the s-op that is the answer; the last one by default.
        budget: the number of inputs, if there are more.
        seed: the seed of the sample.

    >>> scores = score_program("hist", "same = select(tokens, tokens, ==); answer = selector_width(same);")
    >>> scores.agreement, scores.exhaustive, scores.structure
    (1.0, True, 1.0)
    """
    from tracr.lab.selecting import named_case

    known = named_case(case) if isinstance(case, str) else case
    budget, seed = arguments.whole("budget", budget, 1), arguments.whole("seed", seed)
    own = known.model.program
    submitted = _compiled(known, program, arguments.text("name", name))
    agreed, compared, example = _agreement(known, own, submitted, budget, seed)
    _, total = chosen_inputs(known.model, budget, seed)
    wanted, found = structure(own), structure(submitted)
    return ProgramScores(
        agreed / compared if compared else 0.0,
        compared,
        total <= budget,
        example,
        match(wanted, found),
        _listed(wanted - found),
        _listed(found - wanted),
    )


def _listed(left: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(left.elements()))


def _compiled(case: Case, program: str | Path, name: str) -> Program:
    """The submitted program, tabulated for the inputs of the case."""
    text = read_file(program, LARGEST).decode("utf-8", "replace") if isinstance(program, Path) else program
    label = program.name if isinstance(program, Path) else "<submission>"
    _refuse_load(text, label)
    options = case.model.options
    module = parse(text, vocab=case.vocab, max_seq_len=case.length, name=label)
    if name and name not in module.programs:
        raise SourceError(
            f"{label} defines no s-op {name!r}", hint=f"it defines {', '.join(module.programs) or 'no s-op'}"
        )
    if not module.programs:
        raise SourceError(f"{label} defines no s-op", hint="write, for example, answer = selector_width(...);")
    return module.compile(name, case.vocab, case.length, causal=options.causal).program


def _refuse_load(text: str, label: str) -> None:
    """Refuse a text that loads files: they are not part of the submission."""
    waiting = list(read(Source(text, label)))
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, Load):
            raise SourceError(f"{label} loads the file {statement.path!r}", hint="write the whole program in one text")
        waiting.extend(statement.body if isinstance(statement, Loop) else ())


def _agreement(
    case: Case, own: Program, submitted: Program, budget: int, seed: int
) -> tuple[int, int, tuple[list[Value], list[Value], list[Value] | None] | None]:
    """How many inputs have equal answers, how many were compared, and the first with different answers."""
    agreed = compared = 0
    example = None
    for codes in chosen_inputs(case.model, budget, seed)[0]:
        rows = [[case.vocab[code] for code in row] for row in codes.tolist()]
        batch = Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32))
        mine, theirs = evaluate_batch(own, batch), evaluate_batch(submitted, batch)
        (wanted,), (found,) = mine.outputs().values(), theirs.outputs().values()
        failed = theirs.errors.tolist()
        for row, tokens in enumerate(rows):
            if mine.errors[row] or not case.entry.inputs.holds(tokens):
                continue
            equal = not failed[row] and all(
                same_value(x, y, ANSWER) for x, y in zip(wanted[row], found[row], strict=True)
            )
            agreed, compared = agreed + equal, compared + 1
            if not equal and example is None:
                example = tokens, wanted[row], None if failed[row] else found[row]
    if not compared:
        raise TracrError(f"{case.name} is defined on none of the inputs compared", hint="use a larger budget")
    return agreed, compared, example
