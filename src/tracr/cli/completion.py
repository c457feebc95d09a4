"""Shell completion: the words that fit at the cursor.

`tracr --install-completion` sets it up, `tracr --show-completion` prints the script. Nothing is compiled, and no Python
file is executed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path

from tracr.errors import TracrError

__all__ = ["among", "case_words", "listed", "program_names", "sops_of_file", "whole_words", "zoo_tags"]

VARIABLE = "_TRACR_COMPLETE"  # set by the scripts; typer derives it from the name of the command
SAVED = ("model.json", "compression.json", "learned.json")  # files of saved models that are programs
BREAKS = {":", "="}


def among(where: str, *names: str) -> Callable[[str], list[str]]:
    """A completion by the names that modules hold: `among("tracr.craft.formats", "STORED")`.

    The module is imported when a name is asked for; if it needs a library that is not installed, there are no answers.
    """

    def complete(incomplete: str) -> list[str]:
        try:
            module = import_module(where)
        except (ImportError, TracrError):
            return []
        items = [item for name in names for item in getattr(module, name)]
        return [str(getattr(item, "value", item)) for item in items]

    return complete


def listed(complete: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A completion of the last item of a list with commas."""

    def last(incomplete: str) -> list[str]:
        before, comma, item = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in complete(item)]

    return last


def program_names(incomplete: str) -> list[str]:
    """The programs of the library and the zoo, and the files, s-ops of files and saved models that match."""
    from tracr import zoo
    from tracr.cli.sources import ZOO
    from tracr.rasp.programs import EXAMPLES

    known = [*EXAMPLES, *(f"{ZOO}{name}" for name in zoo.ENTRIES), *_files(incomplete)]
    path, colon, _ = incomplete.rpartition(":")
    if colon and path.endswith(".rasp"):
        known += [f"{path}:{name}" for name in _defined(Path(path))]
    return known


def zoo_tags() -> list[str]:
    """The tags of the zoo."""
    from tracr import zoo

    return list(zoo.tags())


def case_words(incomplete: str = "") -> list[str]:
    """The words that choose cases of the laboratory."""
    from tracr import zoo

    return [*zoo.ENTRIES, *zoo.tags(), "core", "all"]


def sops_of_file() -> list[str]:
    """The names that the .rasp file on the line defines."""
    words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    return [name for word in words if word.endswith(".rasp") for name in _defined(Path(word))]


def _files(incomplete: str) -> Iterator[str]:
    """The .rasp and .py files and the saved models in the folder typed so far."""
    folder = incomplete[: incomplete.rfind("/") + 1]
    try:
        for path in sorted(Path(folder).iterdir()):
            if path.suffix in (".rasp", ".py") or any((path / name).is_file() for name in SAVED):
                yield f"{folder}{path.name}"
    except OSError:
        return


def _defined(path: Path) -> list[str]:
    """The names that a .rasp file assigns; none if it cannot be read."""
    from tracr.text.parser import read
    from tracr.text.runner import read_file
    from tracr.text.syntax import Assign

    try:
        statements = read(read_file(path)) if path.suffix == ".rasp" else []
    except TracrError:
        return []
    return list(dict.fromkeys(name for one in statements if isinstance(one, Assign) for name in one.names))


@contextmanager
def whole_words() -> Iterator[None]:
    """While bash completes: its words as they were typed, with the answers that it expects.

    Bash splits words at colons and equals signs, and replaces only the part after the last colon.
    """
    if os.environ.get(VARIABLE) != "complete_bash":
        yield
        return
    words, place = joined(os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD") or 0))
    typed = words[place] if place < len(words) else ""
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(place)
    answers = io.StringIO()
    try:
        with redirect_stdout(answers):
            yield
    finally:
        for answer in answers.getvalue().splitlines():
            print(answer.removeprefix(typed[: typed.rfind(":") + 1]))


def joined(words: Iterable[str], place: int) -> tuple[list[str], int]:
    """The words that were typed, and the place of the word at the cursor among them.

    >>> joined(["tracr", "run", "zoo", ":", "so", "1"], 4)
    (['tracr', 'run', 'zoo:so', '1'], 2)
    >>> joined(["tracr", "run", "sort", "--level", "="], 4)
    (['tracr', 'run', 'sort', '--level='], 3)
    """
    found: list[str] = []
    at, broken = place, False
    for number, word in enumerate(words):
        if found and (broken or word in BREAKS):
            found[-1] += word
        else:
            found.append(word)
        broken = word in BREAKS
        if number == place:
            at = len(found) - 1
    return found, at
