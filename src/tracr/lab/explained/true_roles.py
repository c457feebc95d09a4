"""The components of a subject that have to be explained, and their true roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracr.compress import CompressedModel
from tracr.errors import NotAdmitted
from tracr.explaining.roles import HEAD_ROLES, NEURON_ROLES
from tracr.natural.twin_model import TwinModel

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["explained_components", "possible_roles", "true_roles"]

NONE = "none"


def true_roles(subject: Subject) -> dict[str, tuple[str, ...]]:
    """The roles of every head and MLP of a subject, by its name ("blocks.0.attn.0", "blocks.0.mlp").

    For a superposed model they are those of the compiled model, for a twin those of its teacher; heads and MLPs that
    the teacher does not have have the role "none".

    >>> from tracr import lab
    >>> true_roles(lab.subject("hist"))
    {'blocks.0.attn.0': ('count',), 'blocks.0.mlp': ('decode',)}
    """
    return {name: roles for name, (roles, _) in explained_components(subject).items()}


def explained_components(subject: Subject) -> dict[str, tuple[tuple[str, ...], str]]:
    """The roles of every head and MLP of a subject, and its sentence."""
    model = subject.model
    if isinstance(model, TwinModel):
        if not subject.admitted:
            raise NotAdmitted(
                f"the twin of {subject.case.name} with seed {subject.seed} was not admitted: its roles are not known",
                hint="use another seed, or train it for longer",
            )
        teacher = {node.id: (node.roles, node.sentence) for node in model.ground_truth.teacher.nodes("head")}
        own = dict.fromkeys(writer for writer, _ in model.ground_truth.candidates("head") if writer != "embed")
        return {name: teacher.get(name, ((NONE,), "Does nothing that the program needs.")) for name in own}
    truth = model.compiled.ground_truth if isinstance(model, CompressedModel) else model.ground_truth
    return {node.id: (node.roles, node.sentence) for node in truth.nodes("head") if node.layer is not None}


def possible_roles(subject: Subject, component: str) -> tuple[str, ...]:
    """The roles that a head or an MLP of a subject can have."""
    known = HEAD_ROLES if ".attn." in component else NEURON_ROLES
    return (*known, NONE) if isinstance(subject.model, TwinModel) else tuple(known)
