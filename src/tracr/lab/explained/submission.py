"""Submitted roles: a JSON file, a dict, or text; and the form that a subject asks to be filled in.

    {"components": {"blocks.0.attn.0": {"role": "count", "text": "counts equal tokens"},
                    "blocks.0.mlp": {"role": ["decode", "map"]}}}

`role` is a role or a list of roles, `null` if there is no answer; `text` is not read. The keys "format", "version",
"case", "realisation", "seed" and "roles" of the form may be there; a case that is not the subject's is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.arguments import path as as_path
from tracr.errors import FormatError
from tracr.explaining.roles import ROLES
from tracr.lab.explained.true_roles import possible_roles, true_roles
from tracr.saving.folders import read_file
from tracr.saving.json_reader import Reader, parse
from tracr.spelling import did_you_mean
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["Roles", "explanation_form", "read_roles"]

FORMAT, VERSION = "tracr explanations", 1
SCHEMA = '{"components": {"blocks.0.attn.0": {"role": "count"}}}'
LARGEST = 2**24  # bytes of a file
OPTIONAL = ("format", "version", "case", "realisation", "seed", "roles")

Roles = dict[str, tuple[str, ...]]


def explanation_form(subject: Subject) -> dict[str, Any]:
    """The components of a subject with empty roles, and the roles that there are: what a method has to fill in."""
    components = {
        name: {"role": None, "text": "", "possible": list(possible_roles(subject, name))}
        for name in true_roles(subject)
    }
    about = {"case": subject.case.name, "realisation": subject.realisation, "seed": subject.seed}
    return {"format": FORMAT, "version": VERSION, **about, "roles": dict(ROLES), "components": components}


def read_roles(subject: Subject, submitted: str | Path | Mapping[str, Any]) -> Roles:
    """The roles in a file, or in its content as a dict; a component without an answer is left out."""
    if isinstance(submitted, Mapping):
        top = parse(json.dumps(submitted, default=_refused).encode(), "explanations")
    else:
        file = as_path("submitted", submitted, error=FormatError)
        top = parse(read_file(file, LARGEST), file.name)
    if not isinstance(top.data, dict) or "components" not in top.data:
        raise FormatError(f"{top.where} has no components", hint=f"write {SCHEMA}")
    given = top.object(("components",), OPTIONAL)
    if "case" in given and given["case"].text() != subject.case.name:
        given["case"].fail(f"is not the case of the subject, {subject.case.name!r}")
    known = true_roles(subject)
    found: Roles = {}
    for name, place in given["components"].members():
        if name not in known:
            hint = did_you_mean(name, known, f"the components are {', '.join(known)}")
            raise FormatError(f"{place.where} is no component of the subject", hint=hint)
        if not isinstance(place.data, dict) or "role" not in place.data:
            raise FormatError(f"{place.where} has no role", hint=f"write {SCHEMA}")
        roles = _roles(place.object(("role",), ("text", "possible"))["role"])
        if roles:
            found[name] = roles
    return found


def _roles(place: Reader) -> tuple[str, ...]:
    if place.data is None:
        return ()
    listed = place.items() if isinstance(place.data, list) else [place]
    for one in listed:
        if not isinstance(one.data, str) or one.data not in ROLES:
            hint = did_you_mean(str(one.data), ROLES, f"the roles are {', '.join(ROLES)}")
            raise FormatError(f"{one.where} is no role: {short_repr(one.data)}", hint=hint)
    return tuple(dict.fromkeys(str(one.data) for one in listed))


def _refused(value: object) -> None:
    raise FormatError(f"explanations are JSON, and {type(value).__name__} is not", hint="use dicts, lists and strings")
