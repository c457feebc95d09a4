"""Several versions of the site: a folder for each, a list of them, and a page that opens the newest."""

from __future__ import annotations

import json
import re
from pathlib import Path

__all__ = ["list_versions", "newest_first"]

FIRST_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tracr</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html"></head>
<body><h1>Tracr</h1><ul>{links}</ul></body></html>
"""


def list_versions(site: Path) -> None:
    """Write `versions.js`, which the pages read, and `index.html` for the versions that a folder has."""
    names = newest_first([one.parent.name for one in site.glob("*/searchindex.js")])
    (site / "versions.js").write_text(f"window.tracrVersions = {json.dumps(names)};\n", encoding="utf-8")
    links = "".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (site / "index.html").write_text(FIRST_PAGE.format(newest=names[0], links=links), encoding="utf-8")


def newest_first(names: list[str]) -> list[str]:
    """Versions in order, the newest first; one that is in the making comes before its release.

    >>> newest_first(["0.9.0", "0.10.0", "0.10.1.dev1", "0.10.1"])
    ['0.10.1', '0.10.1.dev1', '0.10.0', '0.9.0']
    """

    def rank(name: str) -> tuple[list[int], bool]:
        numbers = re.match(r"[\d.]*\d", name)
        return [int(part) for part in numbers[0].split(".")] if numbers else [], not re.search("[a-z]", name)

    return sorted(names, key=rank, reverse=True)
