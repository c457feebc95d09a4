"""Explorer pages inside pages.

A line `<!-- explorer: frac_prevs x a c x -->` cannot be seen on GitHub. On the site it becomes the page that
`tracr explore frac_prevs x a c x` writes. A picture before the line is for GitHub, and left out.
"""

from __future__ import annotations

import html
import posixpath
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["embedded", "explorer_page", "wanted"]

MARK = re.compile(r"^(?:!\[[^]]*\]\([^)]*\)\n\n)?<!-- explorer: (.+?) -->$", re.MULTILINE)


def wanted(markdown: str) -> list[str]:
    """The arguments of the explorer pages that a text asks for."""
    return MARK.findall(markdown)


def path_of(arguments: str) -> str:
    """The path of an explorer page on the site.

    >>> path_of("zoo:induction_head a b --level 2")
    'explorers/zoo-induction_head-a-b-level-2.html'
    """
    return f"explorers/{re.sub(r'[^A-Za-z0-9_]+', '-', arguments).strip('-')}.html"


def explorer_page(arguments: str) -> bytes:
    """The page that `tracr explore` writes."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-m", "tracr.cli", "explore", *shlex.split(arguments), "-o", str(page)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return page.read_bytes()


def embedded(markdown: str, source: str) -> str:
    """The text of the page `source` with frames in place of the marks."""

    def frame(match: re.Match[str]) -> str:
        address = posixpath.relpath(path_of(match[1]), posixpath.dirname(source) or ".")
        command = html.escape(f"tracr explore {match[1]}")
        return (
            f'<figure class="explorer"><iframe src="{address}" title="{command}" loading="lazy"></iframe>'
            f'<figcaption><code>{command}</code> · <a href="{address}">alone on a page</a></figcaption></figure>'
        )

    return MARK.sub(frame, markdown)
