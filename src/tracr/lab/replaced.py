"""The replacement track: claims "this component computes that part", scored by putting the part in its place.

    {"components": {"blocks.0.attn.0": {"part": "hist2 blocks.0.attn.0"}, "blocks.0.mlp": {"part": null}}}

A part is named by a program of the zoo and a component of its compiled model, for the tokens, the length and the
attention of the case; `null` is no claim. Scored are the heads and MLPs of the compiled model (for a twin: of its
teacher) whose mean ablation costs the subject at least 5 points of accuracy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.arguments import path as as_path
from tracr.arguments import whole
from tracr.errors import FormatError, NotAdmitted
from tracr.extras import need
from tracr.graft.observed import observe
from tracr.graft.part import Part, parts_of
from tracr.graft.parts_library import library
from tracr.natural.twin_model import TwinModel
from tracr.saving.folders import read_file
from tracr.saving.json_reader import parse
from tracr.spelling import did_you_mean

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject
    from tracr.model.compiled import CompiledModel

__all__ = ["ReplacementScore", "ReplacementScores", "replacements"]

COSTS, LARGEST, SHARE = 0.05, 2**22, 0.75


@dataclass(frozen=True)
class ReplacementScore:
    """A component and the part claimed for it (`None`: no claim).

    `recovered` is the share of the accuracy that the part recovers, `counts` whether it beats every control, `same`
    whether its output is the true one, up to renaming at each position, on the inputs of the score.
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
    model = _design(subject)
    true = {part.name: part for part in parts_of(model, "true") if part.kind == "head" or part.name.endswith(".mlp")}
    claims = _claims(subject, true, submitted)
    chosen = subject.case.inputs(whole("inputs", inputs, 8), seed)
    given = list(dict.fromkeys(tuple(one) for one in chosen))
    host, found = subject.model.to_torch(), {}
    for name, part in true.items():
        score = _scored(host, part, claims.get(name), given, refine, seed)
        if score.cost >= COSTS:
            found[name] = score
    return ReplacementScores(found)


def _design(subject: Subject) -> CompiledModel:
    """The compiled model whose components are known."""
    model = subject.model
    if isinstance(model, TwinModel):
        if not subject.admitted:
            raise NotAdmitted(
                f"the twin of {subject.case.name} with seed {subject.seed} was not admitted: its parts are not known",
                hint="use another seed, or train it for longer",
            )
        return model.teacher
    found: CompiledModel = getattr(model, "compiled", model).plain
    return found


def _claims(subject: Subject, true: Mapping[str, Part], submitted: Any) -> dict[str, Part]:
    """The claimed part of each component that has a claim."""
    own = isinstance(submitted, Mapping) and all(isinstance(one, Part) for one in submitted.values())
    claimed = dict(submitted) if own else _named(subject, submitted)
    for name in claimed:
        if name not in true:
            hint = did_you_mean(name, true, f"the components are {', '.join(true)}")
            raise FormatError(f"{name!r} is no component of the subject", hint=hint)
    return claimed


def _named(subject: Subject, submitted: str | Path | Mapping[str, Any]) -> dict[str, Part]:
    if isinstance(submitted, Mapping):
        top = parse(json.dumps(submitted, default=str).encode(), "claims")
    else:
        file = as_path("submitted", submitted, error=FormatError)
        top = parse(read_file(file, LARGEST), file.name)
    options, found = subject.case.model.options, {}
    for name, place in top.object(("components",))["components"].members():
        part = place.object(("part",))["part"]
        if part.data is None:
            continue
        program, _, component = part.text().partition(" ")
        known = library(options.vocab, options.max_seq_len, causal=options.causal, names=[program])
        mine = {one.name: one for one in known}
        if component not in mine:
            hint = did_you_mean(component, mine, f"{program} has {', '.join(mine) or 'no parts for these tokens'}")
            raise FormatError(f"{part.where} names no part: {part.data!r}", hint=hint)
        found[name] = mine[component]
    return found


def _scored(host: Any, true: Part, claimed: Part | None, inputs: list[Any], refine: int, seed: int) -> ReplacementScore:
    from tracr.graft.replacing import replace

    grafted = replace(host, true.name, claimed or true, inputs, share=SHARE, refine=refine if claimed else 0, seed=seed)
    report = grafted.report(seed=seed)
    if claimed is None or report.recovered is None:
        return ReplacementScore(None, true.sentence, report.cost, 0.0, False, False)
    outputs = [one.output.key_at_positions for one in (*observe([true], inputs), *observe([claimed], inputs))]
    same = outputs[0] == outputs[1]
    share = report.recovered.value
    return ReplacementScore(claimed.title, true.sentence, report.cost, share, report.counts, same)
