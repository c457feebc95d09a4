"""Where the files of the repository are on the site, and links between them.

Pages link to each other as files, so that they work on GitHub too. On the site README.md is the home page, a
notebook is a page, and so on: `relinked` changes the links.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ROOT", "Places", "places", "relinked"]

ROOT = Path(__file__).parents[2]

Places = Mapping[str, str]
"""From the path of a file in the repository to its path in the sources of the site."""

LINK = re.compile(r"(?<!!)\[([^]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def places(root: Path = ROOT) -> Places:
    """The place of every file and folder that a page may link to."""
    found = {f"docs/{one}": one for one in _files(root / "docs") if not one.startswith("generator/")}
    found |= {one.name: f"{one.stem.lower()}.md" for one in sorted(root.glob("*.md"))}
    found |= {f"examples/{one.name}": f"examples/{one.stem}.md" for one in sorted((root / "examples").glob("*.ipynb"))}
    return found | {
        "README.md": "index.md",
        "docs/public-api.md": "api/index.md",
        "examples": "examples/index.md",
        "examples/rasp": "examples/index.md",
        "docs/lab/first-report": "lab/first-report/report.html",
        "docs/lab/features-study": "lab/features-study/report.html",
        "docs/lab/variables-study": "lab/variables-study/report.html",
    }


def _files(folder: Path) -> list[str]:
    return sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())


def relinked(markdown: str, origin: str, known: Places) -> str:
    """A page's text with links that are right on the site; `origin` is the path of the page in the repository.

    >>> known = {"README.md": "index.md", "docs/zoo.md": "zoo.md", "docs/a.json": "a.json", "examples": "recipes.md"}
    >>> relinked("[the zoo](docs/zoo.md#cases), [scripts](examples)", "README.md", known)
    '[the zoo](zoo.md#cases), [scripts](recipes.md)'
    >>> relinked("[numbers](docs/a.json)", "README.md", known)  # a file that is copied, not a page
    '<a href="a.json">numbers</a>'
    """
    start = posixpath.dirname(known[origin]) or "."

    def changed(match: re.Match[str]) -> str:
        text, target, anchor = match[1], posixpath.join(posixpath.dirname(origin), match[2]), match[3] or ""
        place = known.get(posixpath.normpath(target))
        if place is None:
            return match[0]
        address = posixpath.relpath(place, start)
        return f"[{text}]({address}{anchor})" if place.endswith(".md") else f'<a href="{address}">{text}</a>'

    return _pictures(LINK.sub(changed, markdown), origin, known)


def _pictures(markdown: str, origin: str, known: Places) -> str:
    start = posixpath.dirname(known[origin]) or "."

    def changed(match: re.Match[str]) -> str:
        place = known.get(posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2])))
        return match[0] if place is None else f"![{match[1]}]({posixpath.relpath(place, start)})"

    return re.sub(r"!\[([^]]*)\]\(([^)\s]+)\)", changed, markdown)
