"""Writes the sources of the site to a folder: pages in Markdown, and files that are copied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docs.generator.api import api_pages
from docs.generator.explorers import embedded, explorer_page, path_of, wanted
from docs.generator.menu import toctrees
from docs.generator.notebooks import notebook_page
from docs.generator.places import ROOT, Places, places, relinked
from docs.generator.scripts import scripts_page
from docs.generator.zoo_index import zoo_index

__all__ = ["write_sources"]

REPORTS = {
    "lab/first-report/notes.md": "What the first report means",
    "lab/features-study/notes.md": "What the study of features means",
    "lab/variables-study/notes.md": "Which featurisers pass the control",
}
"""Notes of reports, which have no title of their own."""
PICTURES = (".png", ".svg")


def write_sources(pages: Path, copied: Path, kept: Path) -> None:
    """Write the pages to one folder and other files to another; `kept` is a folder for the next time."""
    known = places()
    texts = pages_of_the_repository(known)
    made = zoo_index(kept)
    texts |= {path: text for path, text in made.items() if path.endswith(".md")} | api_pages()
    texts["examples/index.md"] = scripts_page(ROOT / "examples")
    files = {place: (ROOT / origin).read_bytes() for origin, place in known.items() if _is_copied(ROOT / origin)}
    files |= {path: text.encode() for path, text in made.items() if not path.endswith(".md")}
    files |= {path_of(one): explorer_page(one) for text in texts.values() for one in wanted(text)}
    _write(pages, {path: embedded(text, path).encode() for path, text in texts.items()} | _pictures(files))
    _write(copied, files)


def pages_of_the_repository(known: Places) -> dict[str, str]:
    """The pages with a file in the repository, their links changed."""
    texts = {}
    for origin, place in known.items():
        path = ROOT / origin
        if path.suffix == ".md":
            texts[place] = relinked(path.read_text(encoding="utf-8"), origin, known)
        elif path.suffix == ".ipynb":
            texts[place] = relinked(notebook_page(path), origin, known)
    texts |= {path: f"# {title}\n\n{texts[path]}" for path, title in REPORTS.items()}
    project = [Path(place).stem for origin, place in known.items() if "/" not in origin and origin.endswith(".md")]
    texts["index.md"] += toctrees([name for name in project if name not in ("architecture", "index")])
    return texts


def _is_copied(path: Path) -> bool:
    return path.is_file() and path.suffix not in (".ipynb", ".md", ".py")


def _pictures(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The pictures of pages, which Sphinx looks for beside them."""
    return {path: content for path, content in files.items() if path.endswith(PICTURES) and not path.startswith("zoo/")}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder hold these files; those that have not changed are left alone, so that Sphinx can be quick."""
    for old in folder.rglob("*"):
        if old.is_file() and old.relative_to(folder).as_posix() not in files:
            old.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
