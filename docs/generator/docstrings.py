"""Docstrings (plain text with Markdown's backticks) in the notation of Sphinx; signatures; colours of examples."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["colour_examples", "plain_docstring", "plain_signature", "process", "show_colons", "sign"]

MARKUP = re.compile(r"(`[^`]+`)(\w)?|\|")
HIDDEN_COLON = "\ue000"
FILES = re.compile(r"\w+\.py\b")
OBJECT = re.compile(r"<(?:[^<>]|<[^<>]*>)*>")
ALIGNED = re.compile(r"^\S.*\S {2,}\S|^ +\S")


def colour_examples(app: Any, doctree: Any) -> None:
    """The event of Sphinx: indented blocks of pages are Python if they begin as examples do."""
    for block in doctree.findall(lambda node: node.tagname == "literal_block"):
        if block.astext().startswith(">>>"):
            block["language"] = "pycon"


def process(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """The event of Sphinx: change the lines of a docstring."""
    if what == "data" and "\n".join(lines).strip() == (type(value).__doc__ or "").strip():
        lines.clear()  # the docstring of the type, not of this value
    lines[:] = plain_docstring(lines, tables=what == "module")
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(":", HIDDEN_COLON) for line in lines]  # else napoleon takes what is before for a type


def sign(app: Any, what: str, name: str, value: object, options: Any, told: str | None, returned: str | None) -> Any:
    """The event of Sphinx: change a signature."""
    return told and plain_signature(told), returned


def plain_signature(signature: str) -> str:
    """A signature with dots in the place of default values that are not Python, which Sphinx cannot read.

    >>> plain_signature("(a: int = 1, b: dict = <factory>, c: Holds = Holds(f=<function <lambda>>)) -> list[int]")
    '(a: int = 1, b: dict = ..., c: Holds = Holds(f=...)) -> list[int]'
    """
    return OBJECT.sub("...", signature)


def show_colons(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """The event of Sphinx, after napoleon: put back the colons that `process` has hidden."""
    lines[:] = [line.replace(HIDDEN_COLON, ":") for line in lines]


def plain_docstring(lines: list[str], tables: bool) -> list[str]:
    """The lines with what Sphinx would take for markup marked as text, without lists of files.

    Args:
        lines: the docstring's.
        tables: whether paragraphs in columns keep their line ends and spaces.

    >>> plain_docstring(["InputError     an input", "  IdError      given as ids"], tables=True)
    ['::', '', '    InputError     an input', '      IdError      given as ids', '']
    >>> plain_docstring(["The zoo.", "", "entry.py     an entry", "registry.py  all of them"], tables=True)
    ['The zoo.', '']
    >>> plain_docstring(["the mean of |1 - f|"], tables=True)
    ['the mean of \\\\|1 - f\\\\|', '']
    >>> plain_docstring(["all `Select`s of `a|b`"], tables=False)
    ['all `Select`\\\\ s of `a|b`', '']
    """
    found: list[str] = []
    for paragraph in "\n".join(lines).rstrip("\n").split("\n\n"):
        inside = paragraph.split("\n")
        if inside[0].lstrip().startswith(">>>"):
            found += [*inside, ""]
        elif tables and FILES.match(inside[0]):
            continue  # for readers of the code
        elif tables and any(map(ALIGNED.match, inside)):
            found += ["::", "", *(f"    {line}" for line in inside), ""]
        else:
            found += [*MARKUP.sub(_as_text, paragraph).split("\n"), ""]
    return found


def _as_text(match: re.Match[str]) -> str:
    code, letter = match.groups()
    if code is None:
        return r"\|"
    return rf"{code}\ {letter}" if letter else code
