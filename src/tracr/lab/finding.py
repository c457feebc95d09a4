"""Finds methods by name, or in a user's file, and runs them with a count of passes and seconds."""

from __future__ import annotations

import contextlib
import hashlib
import runpy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tracr.errors import InputError, TracrError, UnknownName
from tracr.lab import methods
from tracr.lab.choices import Configured
from tracr.spelling import did_you_mean

__all__ = ["FunctionMethod", "MethodRun", "RunnableMethod", "find_method", "known_methods", "run_timed"]


class RunnableMethod(Protocol):
    """A method as the registry has it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> Any:
        """Its version; results of another version are other results."""

    @property
    def run(self) -> Callable[..., Any]:
        """The function `(subject, data, **settings) -> {edge: number}`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings, with their defaults."""


@dataclass(frozen=True)
class FunctionMethod:
    """A function as a method."""

    name: str
    version: str
    run: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodRun:
    """What a method found, and what it cost; passes are `None` if they were not counted."""

    found: Any
    seconds: float
    forward_passes: int | None
    backward_passes: int | None


def known_methods() -> Mapping[str, RunnableMethod]:
    """The methods by name."""
    alone = {"exact_patching": FunctionMethod("exact_patching", "1", methods.exact_patching)}
    found: Mapping[str, RunnableMethod] = getattr(methods, "METHODS", alone)
    return found


def find_method(choice: Configured) -> RunnableMethod:
    """The method that a choice names: one of the registry, or `FILE.py:FUNCTION`; settings are checked."""
    file, colon, name = choice.name.rpartition(":")
    if colon and file.endswith(".py"):
        return _from_file(Path(file), name)
    known = known_methods()
    wanted = choice.name if choice.name in known else choice.name.replace("-", "_")
    if wanted not in known:
        hint = did_you_mean(wanted, known, f"there are {', '.join(known)}, and your own as FILE.py:FUNCTION")
        raise UnknownName(f"there is no method {choice.name!r}", hint=hint)
    method = known[wanted]
    for setting in choice.settings:
        if setting not in method.settings:
            names = ", ".join(method.settings) or "none"
            raise UnknownName(f"the method {wanted} has no setting {setting}", hint=f"its settings: {names}")
    return method


def _from_file(path: Path, name: str) -> RunnableMethod:
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="write FILE.py:FUNCTION")
    try:
        function = runpy.run_path(str(path)).get(name)
    except Exception as error:
        raise TracrError(f"{path} cannot be run: {type(error).__name__}: {error}", hint="run it with python") from error
    if not callable(function):
        raise InputError(f"{path} has no function {name}", hint="define `def find(subject, data): ...` there")
    return FunctionMethod(f"{path.name}:{name}", hashlib.sha256(path.read_bytes()).hexdigest()[:8], function)


def run_timed(method: RunnableMethod, subject: Any, data: Any, settings: Mapping[str, Any]) -> MethodRun:
    """Run a method; `settings` replace its defaults."""
    counting = getattr(methods, "counted", contextlib.nullcontext)
    started = time.perf_counter()
    with counting() as counter:
        found = method.run(subject, data, **{**method.settings, **settings})
    seconds = time.perf_counter() - started
    return MethodRun(found, seconds, getattr(counter, "forwards", None), getattr(counter, "backwards", None))
