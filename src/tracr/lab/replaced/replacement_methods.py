"""The methods of the track "replacements": functions `(subject, form) -> form`, or a dict from components to parts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.extras import need
from tracr.graft.parts_library import library
from tracr.lab.methods.registry import Method
from tracr.lab.replaced.claims import true_parts
from tracr.lab.track import REPLACEMENTS

if TYPE_CHECKING:
    from tracr.graft.part import Part
    from tracr.lab.subjects import Subject

__all__ = ["REPLACEMENT_METHODS"]


def part_ranking(
    subject: Subject, form: Mapping[str, Any], *, inputs: int = 600, refine: int = 0, seed: int = 0
) -> dict[str, Part]:
    """The part of the library that `tracr.graft.explain` puts first, where it recovers something."""
    need("torch", "torch")
    from tracr.graft.ranking import explain

    parts, host = _library(subject), subject.model.to_torch()
    drawn = list(dict.fromkeys(tuple(one) for one in subject.case.inputs(inputs, seed)))
    found = {}
    for name in form["components"]:
        best = explain(host, name, parts, drawn, refine=refine, seed=seed).best
        if best.recovered is not None and best.recovered.low > 0:
            found[name] = best.part
    return found


def random_parts(subject: Subject, form: Mapping[str, Any], *, seed: int = 0) -> dict[str, Part]:
    """A null: for every component a random part of the library, of its kind."""
    rng, parts = np.random.default_rng(seed), _library(subject)
    kinds = {name: [one for one in parts if one.kind == true.kind] for name, true in true_parts(subject).items()}
    return {name: kinds[name][rng.integers(len(kinds[name]))] for name in form["components"]}


def parts_of_the_program(subject: Subject, form: Mapping[str, Any]) -> dict[str, Part]:
    """The truth: the parts of the compiled model."""
    return true_parts(subject)


def _library(subject: Subject) -> list[Part]:
    options = subject.case.model.options
    return library(options.vocab, options.max_seq_len, causal=options.causal)


_ALL = (
    Method("part-ranking", 1, part_ranking, {"inputs": 600, "refine": 0, "seed": 0}),
    Method("random-parts", 1, random_parts, {"seed": 0}),
    Method("true-parts", 1, parts_of_the_program),
)
REPLACEMENT_METHODS: Mapping[str, Method] = MappingProxyType(
    {one.name: Method(one.name, one.version, one.run, one.settings, one.needs, REPLACEMENTS.name) for one in _ALL}
)
"""A method; then a null method, and the truth."""
