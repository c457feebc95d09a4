"""The files of the page: those that `make bundle` builds into `page/`, and the explorer's script.

They are read once, when the server starts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

__all__ = ["INDEX", "PageFile", "page_files"]

INDEX = "index.html"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
MISSING = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tracr playground</title>
<h1>The page is missing</h1>
<p>The server runs, but this installation has no files of the page. Build them in a checkout with
<code>make bundle</code>.</p>
</html>
"""


@dataclass(frozen=True)
class PageFile:
    """A file of the page."""

    content: bytes
    kind: str
    status: int = 200

    @property
    def tag(self) -> str:
        """The mark by which a browser knows that its copy is the same."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


def page_files() -> dict[str, PageFile]:
    """All files by their names: nothing else is ever served. `INDEX` is the page, or a message that it is missing."""
    folder = resources.files(__package__).joinpath("page")
    found = {}
    for file in folder.iterdir() if folder.is_dir() else ():
        kind = next((kind for end, kind in KINDS.items() if file.name.endswith(end)), None)
        if kind is not None and file.is_file():
            found[file.name] = PageFile(file.read_bytes(), kind)
    script = resources.files("tracr.viz.explorer").joinpath("explorer.js").read_bytes()
    return {INDEX: PageFile(MISSING, KINDS[".html"], 500), "explorer.js": PageFile(script, KINDS[".js"]), **found}
