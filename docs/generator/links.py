"""Finds broken links in a built site: `python -m docs.generator.links FOLDER`.

Every address in the folder's pages and style sheets must lead to a file of the folder, and to a place in it if it has
an anchor. Links to other sites must be well formed. They are not followed. Nothing may be loaded from another site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["problems", "report"]

LOADS = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "track", "video"}
IN_STYLE = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


@dataclass(frozen=True)
class Address:
    """An address in a page; `loaded`: without a click of the reader."""

    text: str
    loaded: bool


@dataclass
class Reader(HTMLParser):
    """Collects the addresses and the anchors of a page."""

    addresses: list[Address] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    in_style: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.in_style = tag == "style"
        self.addresses += [Address(given[name], tag in LOADS) for name in ("href", "src", "data") if name in given]
        self.addresses += [Address(one.split()[0], True) for one in given.get("srcset", "").split(",") if one.strip()]
        self.addresses += in_style(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.addresses += in_style(data)


def in_style(text: str) -> list[Address]:
    """The addresses in a style sheet."""
    return [Address(first or second, True) for first, second in IN_STYLE.findall(text)]


@cache
def read(path: Path) -> Reader:
    """The addresses and anchors of a page or a style sheet."""
    reader = Reader()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        reader.addresses += in_style(text)
    else:
        reader.feed(text)
    return reader


def problems(site: Path) -> Iterator[str]:
    """What is wrong, one line for each address."""
    for path in sorted(one for one in site.rglob("*") if one.suffix in (".css", ".html", ".svg")):
        for address in dict.fromkeys(read(path).addresses):
            wrong = what_is_wrong(address, path, site)
            if wrong:
                yield f"{path.relative_to(site)}: {address.text[:100]}: {wrong}"


def what_is_wrong(address: Address, page: Path, site: Path) -> str | None:
    """What is wrong with an address in a page, if anything."""
    parts = urlsplit(address.text)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        if address.loaded:
            return "is loaded from another site"
        formed = "." in parts.netloc if parts.scheme in ("http", "https") else parts.scheme == "mailto"
        return None if formed else "is not well formed"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_relative_to(site.resolve()) and target != page:
        return "is outside the site"
    if not target.is_file():
        return "is not there"
    missing = parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors
    return "has no such anchor" if missing else None


def report(site: Path) -> int:
    """Print the problems of a site; 1 if there are any."""
    pages = len(list(site.rglob("*.html")))
    found = list(problems(site))
    print("\n".join([*found, f"{site / 'index.html'}: {pages} pages, {len(found)} broken links"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(report(Path(sys.argv[1]).resolve()))
