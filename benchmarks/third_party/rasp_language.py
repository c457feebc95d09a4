"""The s-ops of the `.rasp` files of a checkout of RASP, the reference interpreter of the language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from examining import Given, failing

import tracr

NAME = "RASP"
LIBRARY = Path("RASP_support") / "rasplib.rasp"
LENGTH = 5


def recognised(folder: Path) -> bool:
    """Whether a folder is a checkout of RASP."""
    return (folder / LIBRARY).is_file()


def programs(folder: Path, letters: str) -> Iterator[Given]:
    """Every s-op of every file; files in folders called `broken...` are meant to fail."""
    for path in sorted(folder.rglob("*.rasp")):
        name = path.relative_to(folder).as_posix()
        if "broken" in name:
            continue
        try:
            sops = tracr.parse_file(path).programs
        except tracr.TracrError as error:
            yield failing(name, error)
            continue
        for sop, program in sops.items():
            yield Given(f"{name}: {sop}", _giving(program), tuple(letters), LENGTH)


def _giving(program: Any) -> Callable[[], Any]:
    return lambda: program
