"""Answers to compare with: a reference that reads the truth, and two nulls that do not look at the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.lab.explained.submission import explanation_form
from tracr.lab.explained.true_roles import explained_components, possible_roles

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["constant_explanations", "random_explanations", "true_explanations"]

CONSTANT_HEAD, CONSTANT_MLP = "count", "decode"  # the commonest roles of the zoo at level 1


def true_explanations(subject: Subject) -> dict[str, Any]:
    """The reference: the true roles, with the sentences of the program; its accuracy is 1."""
    form = explanation_form(subject)
    for name, (roles, sentence) in explained_components(subject).items():
        form["components"][name] = {"role": list(roles), "text": sentence}
    return form


def constant_explanations(subject: Subject) -> dict[str, Any]:
    """A null: every head counts, and every MLP decodes."""
    form = explanation_form(subject)
    for name in form["components"]:
        form["components"][name] = {"role": CONSTANT_HEAD if ".attn." in name else CONSTANT_MLP}
    return form


def random_explanations(subject: Subject, seed: int = 0) -> dict[str, Any]:
    """A null: a random role for every head and MLP, of those that it can have."""
    form, rng = explanation_form(subject), np.random.default_rng(seed)
    for name in form["components"]:
        form["components"][name] = {"role": str(rng.choice(possible_roles(subject, name)))}
    return form
