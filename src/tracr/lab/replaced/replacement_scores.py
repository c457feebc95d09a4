"""Scores of claims: what each claimed part recovers in the place of its component.

Scored are the heads and MLPs of the compiled model (for a twin: of its teacher) whose mean ablation costs the subject
at least 5 points of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.arguments import whole
from tracr.extras import need
from tracr.graft.observed import observe
from tracr.lab.replaced.claims import read_claims, true_parts

if TYPE_CHECKING:
    from tracr.graft.part import Part
    from tracr.lab.subjects import Subject

__all__ = ["ReplacementScore", "ReplacementScores", "replacements"]

COSTS, SHARE = 0.05, 0.75


@dataclass(frozen=True)
class ReplacementScore:
    """A component and the part claimed for it (`None`: no claim).

    `recovered` is the share of the accuracy that the part recovers, `counts` whether it beats every control and its
    program says what it does, `same` whether its output is the true one, up to renaming at each position, on the inputs
    of the score.
    """

    claimed: str | None
    true: str
    cost: float
    recovered: float
    counts: bool
    same: bool


@dataclass(frozen=True)
class ReplacementScores:
    """The scores of claims: the shares of the scored components; without a claim a component has none of them.

    `recovered` is the mean of the recovered shares, each between 0 and 1.
    """

    by_component: Mapping[str, ReplacementScore]

    @property
    def recovered(self) -> float:
        """The mean recovered share."""
        return self._mean([min(1.0, max(0.0, one.recovered)) for one in self.by_component.values()])

    @property
    def counts(self) -> float:
        """The share of components whose replacement counts."""
        return self._mean([one.counts for one in self.by_component.values()])

    @property
    def same(self) -> float:
        """The share of components whose part has the true output."""
        return self._mean([one.same for one in self.by_component.values()])

    @staticmethod
    def _mean(values: list[Any]) -> float:
        return float(np.mean(values)) if values else 0.0

    def as_json(self) -> dict[str, Any]:
        """The scores, for JSON."""
        own = {"recovered": self.recovered, "counts": self.counts, "same": self.same}
        return {**own, "by_component": {name: dict(vars(one)) for name, one in self.by_component.items()}}


def replacements(
    subject: Subject | str,
    submitted: str | Path | Mapping[str, Any],
    *,
    inputs: int = 1_500,
    refine: int = 0,
    seed: int = 0,
) -> ReplacementScores:
    """Score claims about the components of a subject; needs the extra `torch`.

    Args:
        subject: a subject, or the name of a case: its compiled model.
        submitted: a JSON file, or its content; or a dict from components to parts (`tracr.graft.Part`).
        inputs: how many inputs to use, of the case; 3 of 4 to fit with.
        refine: steps of refining the maps.
        seed: of the inputs and the controls.
    """
    need("torch", "torch")
    if isinstance(subject, str):
        from tracr.lab.subjects import subject as make_subject

        subject = make_subject(subject)
    claims = read_claims(subject, submitted)
    chosen = subject.case.inputs(whole("inputs", inputs, 8), seed)
    given = list(dict.fromkeys(tuple(one) for one in chosen))
    host, found = subject.model.to_torch(), {}
    for name, part in true_parts(subject).items():
        score = _scored(host, part, claims.get(name), given, refine, seed)
        if score.cost >= COSTS:
            found[name] = score
    return ReplacementScores(found)


def _scored(host: Any, true: Part, claimed: Part | None, inputs: list[Any], refine: int, seed: int) -> ReplacementScore:
    from tracr.graft.replacing import replace

    if claimed is None:
        return ReplacementScore(None, true.sentence, _cost(host, true.name, inputs, seed), 0.0, False, False)
    report = replace(host, true.name, claimed, inputs, share=SHARE, refine=refine, seed=seed).report(seed=seed)
    outputs = [one.output.key_at_positions for one in (*observe([true], inputs), *observe([claimed], inputs))]
    share = 0.0 if report.recovered is None else report.recovered.value
    return ReplacementScore(
        claimed.title, true.sentence, report.cost, share, report.counts, same=outputs[0] == outputs[1]
    )


def _cost(host: Any, at: str, inputs: list[Any], seed: int) -> float:
    """What the mean ablation of a component costs in accuracy."""
    from tracr.graft.controls import recovery_of
    from tracr.graft.replacing import workbench

    return recovery_of(workbench(host, at, inputs, share=SHARE, seed=seed), seed).cost
