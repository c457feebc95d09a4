"""Choices in words: a name with settings, such as `superposed:ratio=1.5` or `eap_ig_inputs:steps=20`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracr.errors import InputError

__all__ = ["Configured", "read_configured"]


@dataclass(frozen=True)
class Configured:
    """A name with settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def as_json(self) -> str:
        """The settings as JSON, sorted by name."""
        return json.dumps(dict(self.settings), sort_keys=True)

    def __str__(self) -> str:
        return ":".join([self.name, *(f"{name}={_word(self.settings[name])}" for name in sorted(self.settings))])


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def read_configured(words: str | Configured) -> Configured:
    """Read a name, and after colons settings; values are JSON, and otherwise text.

    >>> print(read_configured("compiled:level=0:gap=64").settings)
    {'level': 0, 'gap': 64}
    >>> read_configured("my_method.py:find").name
    'my_method.py:find'
    """
    if isinstance(words, Configured):
        return words
    parts = words.strip().split(":")
    named = [part for part in parts if "=" not in part]
    name = ":".join(named)
    if not name or parts[: len(named)] != named:
        raise InputError(
            f"{words!r} is not a name with settings", hint="write NAME or NAME:setting=value:setting=value"
        )
    settings = {}
    for part in parts[len(named) :]:
        setting, _, value = part.partition("=")
        try:
            settings[setting.strip()] = json.loads(value)
        except ValueError:
            settings[setting.strip()] = value
    return Configured(name, settings)
