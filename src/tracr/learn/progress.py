"""The puzzles that a user of the command line has solved, in a JSON file of the user's data folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tracr.errors import FormatError
from tracr.writing import write_file

__all__ = ["SolvedPuzzles", "progress_file"]

FORMAT = "tracr-learn-1"


def progress_file() -> Path:
    """`tracr/learn.json` in $XDG_DATA_HOME, by default ~/.local/share."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tracr" / "learn.json"


@dataclass(frozen=True)
class SolvedPuzzles:
    """The names of the solved puzzles, each with the fewest layers of the user's solutions."""

    layers: Mapping[str, int]

    @staticmethod
    def read(path: Path) -> SolvedPuzzles:
        """The content of a file; nothing is solved if there is no file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            solved = {str(name): layers for name, layers in data["solved"].items()}
            if not all(type(layers) is int and layers >= 0 for layers in solved.values()):
                raise ValueError("the numbers of layers are not whole numbers")
        except FileNotFoundError:
            return SolvedPuzzles({})
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"{path} cannot be read as the list of solved puzzles: {error}",
                hint="move the file away to start again",
            ) from error
        return SolvedPuzzles(solved)

    def with_solved(self, name: str, layers: int) -> SolvedPuzzles:
        """The same, and one more solution.

        >>> SolvedPuzzles({"sort": 3}).with_solved("sort", 2).with_solved("sort", 4).layers
        {'sort': 2}
        """
        return SolvedPuzzles({**self.layers, name: min(layers, self.layers.get(name, layers))})

    def save(self, path: Path) -> None:
        """Write the file, in one step."""
        content = {"format": FORMAT, "solved": dict(self.layers)}
        write_file(path, json.dumps(content, indent=1).encode(), make_folder=True)
