"""The conformance cases: programs with the answers of the reference interpreter."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import tracr
from tracr.text.module import Module

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "rasp_conformance.json").read_text(encoding="utf-8")
)


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    """The cases of some kinds."""
    return [case for case in CASES if case["kind"] in kinds]


def name(case: dict[str, Any]) -> str:
    """What a case is called."""
    return str(case["id"])


def parsed(case: dict[str, Any], folder: Path) -> Module:
    """A case, read where its files are; what the precedence traps warn of has tests of its own."""
    for path, text in case.get("files", {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracr.TracrWarning)
        return tracr.parse(case["source"], folder=folder)
