"""Claims about the components of a subject: a JSON file, a dict, or parts.

    {"components": {"blocks.0.attn.0": {"part": "hist2 blocks.0.attn.0"}, "blocks.0.mlp": {"part": null}}}

A part is named by a program of the zoo and a component of its compiled model, for the tokens, the length and the
attention of the case; `null` is no claim. The keys "format", "version", "case", "realisation" and "seed" of the form
may be there; a case that is not the subject's is refused. Python can also give parts:
`{"blocks.0.attn.0": Part(...)}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import path as as_path
from tracr.errors import FormatError, NotAdmitted
from tracr.graft.part import Part, parts_of
from tracr.graft.parts_library import library
from tracr.natural.twin_model import TwinModel
from tracr.saving.folders import read_file
from tracr.saving.json_reader import Reader, parse
from tracr.spelling import did_you_mean

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject
    from tracr.model.compiled import CompiledModel

__all__ = ["read_claims", "replacement_form", "true_parts"]

FORMAT, VERSION = "tracr replacements", 1
OPTIONAL = ("format", "version", "case", "realisation", "seed")
LARGEST = 2**22


def true_parts(subject: Subject) -> dict[str, Part]:
    """The heads and MLPs of the subject's compiled model; for a twin, of its teacher."""
    found = parts_of(_design(subject), "true")
    return {part.name: part for part in found if part.kind == "head" or part.name.endswith(".mlp")}


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


def replacement_form(subject: Subject) -> dict[str, Any]:
    """The components of a subject without claims: what a method has to fill in."""
    about = {"case": subject.case.name, "realisation": subject.realisation, "seed": subject.seed}
    components = {name: {"part": None} for name in true_parts(subject)}
    return {"format": FORMAT, "version": VERSION, **about, "components": components}


def read_claims(subject: Subject, submitted: str | Path | Mapping[str, Any]) -> dict[str, Part]:
    """The claimed part of each component that has a claim."""
    own = isinstance(submitted, Mapping) and all(isinstance(one, Part) for one in submitted.values())
    claimed = dict(submitted) if own else _named(subject, submitted)  # type: ignore[arg-type]
    true = true_parts(subject)
    for name, part in claimed.items():
        if name not in true:
            hint = did_you_mean(name, true, f"the components are {', '.join(true)}")
            raise FormatError(f"{name!r} is no component of the subject", hint=hint)
        if part.kind != true[name].kind:
            raise FormatError(
                f"{name} cannot be {part.title}, which is of another kind",
                hint="heads are claimed to be heads, MLPs to be neurons",
            )
    return claimed


def _named(subject: Subject, submitted: str | Path | Mapping[str, Any]) -> dict[str, Part]:
    if isinstance(submitted, Mapping):
        top = parse(json.dumps(submitted, default=str).encode(), "claims")
    else:
        file = as_path("submitted", submitted, error=FormatError)
        top = parse(read_file(file, LARGEST), file.name)
    given = top.object(("components",), OPTIONAL)
    if "case" in given and given["case"].text() != subject.case.name:
        given["case"].fail(f"is not the case of the subject, {subject.case.name!r}")
    parts = {name: place.object(("part",))["part"] for name, place in given["components"].members()}
    return {name: _part(subject, part) for name, part in parts.items() if part.data is not None}


def _part(subject: Subject, named: Reader) -> Part:
    options = subject.case.model.options
    program, _, component = named.text().partition(" ")
    known = library(options.vocab, options.max_seq_len, causal=options.causal, names=[program])
    mine = {one.name: one for one in known}
    if component not in mine:
        hint = did_you_mean(component, mine, f"{program} has {', '.join(mine) or 'no parts for these tokens'}")
        raise FormatError(f"{named.where} names no part: {named.data!r}", hint=hint)
    return mine[component]
