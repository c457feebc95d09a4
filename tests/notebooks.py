"""What notebooks show."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["texts"]


def texts(cells: list[Any]) -> list[str]:
    """What each cell prints, and the text of the value it ends with, but for the sizes of files."""
    found = []
    for cell in cells:
        shown = ""
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stdout":
                shown += output.text
            elif output.output_type == "execute_result":
                shown += output.data["text/plain"]
        found.append(re.sub(r"\d+ kB", "kB", shown))  # of an explorer's page, which changes with its scripts
    return found
