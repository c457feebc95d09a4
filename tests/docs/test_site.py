"""The parts that the documentation site is made of; `make docs` builds it and checks all links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generator.explorers import embedded, explorer_page, wanted
from docs.generator.links import problems, report
from docs.generator.menu import MENU
from docs.generator.places import ROOT, places, relinked
from docs.generator.scripts import scripts_page
from docs.generator.versions import list_versions
from docs.generator.zoo_index import Card, zoo_index
from tracr import zoo


def test_every_page_is_in_the_menu_once() -> None:
    """A new page of docs/ needs a line in docs/generator/menu.py."""
    listed = [f"{page}.md" for pages in MENU.values() for page in pages]
    assert len(set(listed)) == len(listed)
    found = {
        place for origin, place in places().items() if origin.startswith(("docs/", "examples")) and place[-3:] == ".md"
    }
    assert found <= set(listed)
    assert set(listed) - found == {"zoo-index.md", "architecture.md"}


def test_files_that_pages_link_to_exist() -> None:
    """On GitHub: every relative link of every page leads to a file or folder of the repository."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        prose = re.sub(r"^(?: {4}|```).*$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
            assert "://" in target or (page.parent / target).exists(), (page.name, target)


@pytest.mark.parametrize(
    ("origin", "target", "on_the_site"),
    [
        ("README.md", "docs/lab.md#subjects", "lab.md#subjects"),
        ("docs/lab.md", "../examples/lesson.ipynb", "examples/lesson.md"),
        ("docs/lab.md", "../examples/rasp", "examples/index.md"),
        ("docs/lab.md", "public-api.md", "api/index.md"),
        ("docs/benchmarks/README.md", "../lab.md", "../lab.md"),
        ("examples/lesson.ipynb", "../docs/lab.md", "../lab.md"),
        ("README.md", "https://b.c", "https://b.c"),
        ("README.md", "#words", "#words"),
    ],
)
def test_links_lead_to_pages_of_the_site(origin: str, target: str, on_the_site: str) -> None:
    """From README.md into docs/, from docs/ to notebooks and folders, and back."""
    assert relinked(f"See [a]({target}).", origin, places()) == f"See [a]({on_the_site})."


def test_links_to_other_files_and_to_pictures() -> None:
    known = places()
    assert relinked("[a](lab/first-report/)", "docs/lab.md", known) == '<a href="lab/first-report/report.html">a</a>'
    assert relinked("![a](docs/images/logo.svg)", "README.md", known) == "![a](images/logo.svg)"


def test_explorer_pages_are_put_into_pages() -> None:
    """The mark, and the picture before it, become a frame; the page is the one of the command."""
    text = "Look:\n\n![for GitHub](a.png)\n\n<!-- explorer: hist a b --level 0 -->\n\nAfter."
    assert wanted(text) == ["hist a b --level 0"]
    page = embedded(text, "lab/first.md")
    assert '<iframe src="../explorers/hist-a-b-level-0.html"' in page
    assert "a.png" not in page
    assert page.startswith("Look:\n\n<figure")
    assert page.endswith("</figure>\n\nAfter.")
    assert explorer_page("hist a b --level 0").startswith(b"<!doctype html>")


def test_scripts_are_shown_whole() -> None:
    page = scripts_page(ROOT / "examples")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"## {path.name}\n" in page
    assert "dyck2.rasp" in page


def test_a_card_of_the_zoo_says_what_is_known() -> None:
    """Name, task, difficulty, sizes, tags, certificate and twins."""
    card = Card(zoo.get("hist"), zoo.facts("hist"))
    assert card.facts == ["easy", "3 tokens, length 5", "1 layer, 1 head", "certified", "twins: 4 of 4 admitted"]
    assert 'id="hist"' in card.html
    assert "how often each token occurs" in card.html
    assert "<button>counting</button>" in card.html
    assert "causal" in Card(zoo.get("induction_head"), zoo.facts("induction_head")).facts


def test_the_index_of_the_zoo_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs, a picture each; the second time nothing is compiled."""
    few = [zoo.get("hist"), zoo.get("reverse")]
    monkeypatch.setattr(zoo, "entries", lambda: few)
    made = zoo_index(tmp_path)
    assert set(made) == {"zoo-index.md", "zoo/hist.svg", "zoo/reverse.svg"}
    assert made["zoo/hist.svg"].startswith("<svg")
    monkeypatch.setattr(zoo, "entries", lambda: pytest.fail("made again"))
    assert zoo_index(tmp_path) == made


GOOD = '<h1 id="top"></h1><a href="b.html#here">b</a><a href="#top"></a><a href="https://a.org/x"></a><img src="p.svg">'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages, a picture and a style sheet without a broken link."""
    (tmp_path / "a.html").write_text(GOOD)
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html?x=1">a</a><a href="mailto:a@b.c">us</a></p>')
    (tmp_path / "p.svg").write_text('<svg><a href="a.html"/></svg>')
    (tmp_path / "s.css").write_text("body { background: url(p.svg) } a { b: url('data:image/png;base64,AA') }")
    return tmp_path


def test_a_good_site_has_no_problems(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(site) == 0
    assert "2 pages, 0 broken links" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="c.html">', "c.html: is not there"),
        ('<a href="a.html#nowhere">', "a.html#nowhere: has no such anchor"),
        ('<a href="#nowhere">', "#nowhere: has no such anchor"),
        ('<a href="../x.html">', "../x.html: is outside the site"),
        ('<a href="https://">', "https://: is not well formed"),
        ('<a href="htp://a.org">', "htp://a.org: is not well formed"),
        ('<img src="none.png">', "none.png: is not there"),
        ('<img srcset="p.svg 1x, none.png 2x">', "none.png: is not there"),
        ('<script src="https://a.org/x.js"></script>', "https://a.org/x.js: is loaded from another site"),
        ('<link rel="stylesheet" href="//a.org/x.css">', "//a.org/x.css: is loaded from another site"),
        ("<style>@import 'https://a.org/f.css';</style>", "https://a.org/f.css: is loaded from another site"),
        ('<p style="background: url(https://a.org/p.png)">', "https://a.org/p.png: is loaded from another site"),
        ('<iframe src="https://a.org/"></iframe>', "https://a.org/: is loaded from another site"),
    ],
)
def test_every_kind_of_broken_link_is_found(site: Path, text: str, problem: str) -> None:
    (site / "d.html").write_text(text)
    assert list(problems(site)) == [f"d.html: {problem}"]
    assert report(site) == 1


def test_an_empty_site_is_a_problem(tmp_path: Path) -> None:
    assert report(tmp_path) == 1


def test_versions_are_listed_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "searchindex.js").touch()
        (tmp_path / name / "index.html").touch()
    list_versions(tmp_path)
    assert (tmp_path / "versions.js").read_text() == 'window.tracrVersions = ["0.10.0", "0.9.0"];\n'
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
    assert list(problems(tmp_path)) == []
