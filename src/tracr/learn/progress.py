"""What a user of the command line has solved, in a JSON file of the user's data folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracr.errors import FormatError
from tracr.writing import write_file

__all__ = ["PuzzleProgress", "progress_file"]

FORMAT = "tracr-learn-1"


def progress_file() -> Path:
    """`tracr/learn.json` in $XDG_DATA_HOME, by default ~/.local/share."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tracr" / "learn.json"


@dataclass(frozen=True)
class PuzzleProgress:
    """The fewest layers of the user's solutions, for each solved puzzle; and how many hints were shown."""

    layers: Mapping[str, int] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> PuzzleProgress:
        """The content of a file; nothing is solved if there is no file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            return PuzzleProgress(_counts(data["solved"]), _counts(data["hints"]))
        except FileNotFoundError:
            return PuzzleProgress()
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{path} cannot be read as a list of solved puzzles: {error}", hint="move the file away to start again"
            ) from error

    def with_solved(self, name: str, layers: int) -> PuzzleProgress:
        """The same, and one more solution.

        >>> PuzzleProgress({"sort": 3}).with_solved("sort", 2).with_solved("sort", 4).layers
        {'sort': 2}
        """
        return replace(self, layers={**self.layers, name: min(layers, self.layers.get(name, layers))})

    def with_hint(self, name: str, most: int) -> PuzzleProgress:
        """The same, and one more hint, up to `most`."""
        return replace(self, hints={**self.hints, name: min(most, self.hints.get(name, 0) + 1)})

    def save(self, path: Path) -> None:
        """Write the file, in one step."""
        content = {"format": FORMAT, "solved": dict(self.layers), "hints": dict(self.hints)}
        write_file(path, json.dumps(content, indent=1).encode(), make_folder=True)


def _counts(data: Mapping[str, object]) -> dict[str, int]:
    """Names with whole numbers."""
    counts = {str(name): count for name, count in data.items() if isinstance(count, int) and count >= 0}
    if len(counts) < len(data):
        raise ValueError("it has something else than whole numbers")
    return counts
