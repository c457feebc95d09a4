"""The programs of a checkout of TracrBench: texts of Python in the JSON files of its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from examining import Given

from tracr.rasp import rasp

NAME = "TracrBench"
VOCAB = tuple(range(10))  # its own check compiles for these tokens and this length
LENGTH = 10


def recognised(folder: Path) -> bool:
    """Whether a folder has results of TracrBench."""
    return any(True for _ in _texts(folder))


def programs(folder: Path) -> Iterator[Given]:
    """Every text that it calls a success, once."""
    seen = set()
    for path, function, text in _texts(folder):
        if text not in seen:
            seen.add(text)
            yield Given(f"{path.stem}: {function}", _built(text, function), VOCAB, LENGTH)


def _texts(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """File, function and text of every success."""
    for path in sorted((folder / "results").rglob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        successes = found.get("successes") if isinstance(found, dict) else None
        for function, texts in (successes or {}).items():
            for text in texts:
                yield path, function, text


def _built(text: str, function: str) -> Callable[[], Any]:
    def build() -> Any:
        names: dict[str, Any] = {"rasp": rasp, "print": lambda *_, **__: None}
        exec(text, names)
        return names[function]()

    return build
