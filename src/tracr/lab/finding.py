"""Finds methods: in the registry by name, or in a user's file."""

from __future__ import annotations

import hashlib
import inspect
import runpy
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tracr.errors import InputError, TracrError, UnknownName
from tracr.lab.choices import Configured
from tracr.lab.explained.explanation_methods import EXPLANATION_METHODS
from tracr.lab.features.registry import FEATURE_METHODS
from tracr.lab.methods import ALIASES, METHODS, Method
from tracr.lab.predicted.prediction_methods import PREDICTION_METHODS
from tracr.lab.replaced.replacement_methods import REPLACEMENT_METHODS
from tracr.lab.variables.registry import VARIABLE_METHODS
from tracr.spelling import did_you_mean

__all__ = ["ALL_METHODS", "find_method", "method_for"]

ALL_METHODS: Mapping[str, Method] = MappingProxyType(
    {
        **METHODS,
        **VARIABLE_METHODS,
        **FEATURE_METHODS,
        **EXPLANATION_METHODS,
        **PREDICTION_METHODS,
        **REPLACEMENT_METHODS,
    }
)
"""The methods of all tracks by name; names are different."""


def method_for(choice: Configured, track: str) -> Method:
    """The method that a choice names, if it answers the track."""
    found = find_method(choice)
    if found.track not in ("", track):
        raise InputError(
            f"{found.name} answers the track {found.track}, not {track}",
            hint=f"use --track {found.track}, or one of {', '.join(_of(track))}",
        )
    return found


def _of(track: str) -> list[str]:
    return [name for name, one in ALL_METHODS.items() if one.track == track]


def find_method(choice: Configured) -> Method:
    """The method that a choice names, with its settings: one of the registry, or `FILE.py:FUNCTION`.

    A method of the registry is also found by another name, by the name of its function, or with _ in place of -.

    >>> find_method(Configured("exact_patching")).name, find_method(Configured("eap_ig")).name
    ('exact', 'eap-ig-inputs')
    """
    file, colon, name = choice.name.rpartition(":")
    if colon and file.endswith(".py"):
        return _from_file(Path(file), name).with_settings(**choice.settings)
    known = _by_any_name()
    if choice.name not in known:
        hint = did_you_mean(choice.name, known, f"there are {', '.join(ALL_METHODS)}, and your own as FILE.py:FUNCTION")
        raise UnknownName(f"there is no method {choice.name}", hint=hint)
    return known[choice.name].with_settings(**choice.settings)


def _by_any_name() -> Mapping[str, Method]:
    functions = {getattr(method.run, "__name__", name): method for name, method in ALL_METHODS.items()}
    named = {**{alias: METHODS[name] for alias, name in ALIASES.items()}, **ALL_METHODS}
    return {**functions, **{name.replace("-", "_"): method for name, method in named.items()}, **named}


def _from_file(path: Path, name: str) -> Method:
    """A function of a user's file. Its version is a number made from the file's content."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="write FILE.py:FUNCTION")
    return _loaded(path, name, hashlib.sha256(path.read_bytes()).hexdigest())


@cache
def _loaded(path: Path, name: str, digest: str) -> Method:
    try:
        function = runpy.run_path(str(path)).get(name)
    except Exception as error:
        raise TracrError(f"{path} cannot be run: {type(error).__name__}: {error}", hint="run it with python") from error
    if not callable(function):
        raise InputError(f"{path} has no function {name}", hint="define `def find(subject, data): ...` there")
    return Method(f"{path.name}:{name}", int(digest[:8], 16), function, _settings(function), track="")


def _settings(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that have defaults."""
    found = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in found if one.default is not one.empty}
