"""The files of the playground's page: built from web/src, with licences, and nothing that runs other code."""

from __future__ import annotations

import hashlib
import json
import re
from importlib import resources
from pathlib import Path

from tracr.text.library import CONSTANTS, library

WEB = Path(__file__).parents[2] / "web"
SOURCES = WEB / "src"


def page_file(name: str) -> str:
    """A file of the page."""
    return resources.files("tracr.playground").joinpath("page", name).read_text(encoding="utf-8")


def test_the_bundle_is_of_these_sources() -> None:
    """Its banner has the digest of web/src, as web/build.mjs takes it."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*"), key=lambda path: path.relative_to(WEB).as_posix()):
        if path.is_file():
            digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    assert digest.hexdigest() in page_file("playground.js").splitlines()[0], "run `make bundle`"


def test_the_bundle_fetches_from_its_own_server_and_runs_no_text() -> None:
    """No address but the name of SVG, nothing that turns text into code or HTML."""
    script = page_file("playground.js")
    assert set(re.findall(r"https?://[^\"'`\s]*", script)) <= {"http://www.w3.org/2000/svg"}
    for word in ("XMLHttpRequest", "import(", "eval(", "Function(", "innerHTML", "outerHTML", "document.write"):
        assert word not in script, word


def test_the_pages_have_no_script_or_style_of_their_own() -> None:
    """All scripts and styles are files of the server: its policy allows no others."""
    for name in ("index.html", "explorer.html"):
        page = page_file(name)
        assert not re.findall(r"<script(?![^>]* src=\"/static/)", page)
        assert "<style" not in page
        assert not re.findall(r"<[^>]* on\w+=", page)


def test_every_package_of_the_bundle_has_its_licence() -> None:
    """The packages of package.json that the sources import, and those that these need."""
    licences = page_file("licences.txt")
    imported = {
        name
        for path in (SOURCES / "playground").glob("*.js")
        for name in re.findall(r"from \"(@[^/\"]+/[^\"]+)\"", path.read_text(encoding="utf-8"))
    }
    packages = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    needed: set[str] = set()
    while imported:
        name = imported.pop()
        needed.add(name)
        imported |= set(packages[f"node_modules/{name}"].get("dependencies", {})) - needed
    in_bundle = set(re.findall(r"^(\S+) (?:\d+\.)+\d+$", licences, re.MULTILINE))
    assert in_bundle <= needed
    assert {"@codemirror/view", "@codemirror/state", "@lezer/highlight", "style-mod"} <= in_bundle
    for name in in_bundle:
        assert f"{name} {packages[f'node_modules/{name}']['version']}\n" in licences
    assert licences.count("Permission is hereby granted") == len(in_bundle)


def test_the_lockfile_names_no_registry() -> None:
    """Packages are checked by their digests, from whatever registry npm uses."""
    packages = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)


def test_the_editor_completes_every_name_of_the_language() -> None:
    """The names that a program starts with, and the words of the grammar that are called."""
    words = json.loads((SOURCES / "playground" / "builtins.json").read_text(encoding="utf-8"))
    grammar = resources.files("tracr.text").joinpath("grammar.lark").read_text(encoding="utf-8")
    called = re.findall(r"^(?:_SELECT|BUILTIN|PREFIX)\.2: /\(?([a-z|]+)", grammar, re.MULTILINE)
    assert {word["name"] for word in words} == {*library(), *CONSTANTS, *"|".join(called).split("|")}
    keywords = re.findall(r"^(?:_\w+|IN|NOT|LOGIC)\.2: /\(?([a-z|]+)\)?\\b/", grammar, re.MULTILINE)
    source = (SOURCES / "playground" / "language.js").read_text(encoding="utf-8")
    (listed,) = re.findall(r"KEYWORDS = \"([^\"]*)\"", source)
    assert set("|".join(keywords).split("|")) == set(listed.split())
