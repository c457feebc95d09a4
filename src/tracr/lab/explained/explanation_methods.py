"""The methods of the track "explanations": functions `(subject, form) -> form`, with roles filled in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracr.lab.explained.answers import constant_explanations, random_explanations, true_explanations
from tracr.lab.explained.attention_roles import attention_roles
from tracr.lab.methods.registry import Method
from tracr.lab.track import EXPLANATIONS

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["EXPLANATION_METHODS"]


def constant_roles(subject: Subject, form: Mapping[str, Any]) -> dict[str, Any]:
    """A null: every head counts, and every MLP decodes."""
    return constant_explanations(subject)


def random_roles(subject: Subject, form: Mapping[str, Any], *, seed: int = 0) -> dict[str, Any]:
    """A null: a random role for every component, of those that it can have."""
    return random_explanations(subject, seed)


def roles_of_the_program(subject: Subject, form: Mapping[str, Any]) -> dict[str, Any]:
    """The truth: the roles that the program gives."""
    return true_explanations(subject)


_ALL = (
    Method("attention-roles", 1, attention_roles, {"inputs": 64, "seed": 0}),
    Method("constant-roles", 1, constant_roles),
    Method("random-roles", 1, random_roles, {"seed": 0}),
    Method("true-roles", 1, roles_of_the_program),
)
EXPLANATION_METHODS: Mapping[str, Method] = MappingProxyType(
    {one.name: Method(one.name, one.version, one.run, one.settings, one.needs, EXPLANATIONS.name) for one in _ALL}
)
"""All methods; then two null methods, and the truth."""
