"""One report of several runs: a page with all of them, each with its own tables, plots, filters and data."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import invoke
from tests.lab.result_rows import result_rows
from tests.lab.test_reporting import Page
from tracr import lab
from tracr.errors import InputError
from tracr.lab.reporting import TracksReport

VARIABLES = Path("docs/lab/variables-study")
REFERRING = ("aria-labelledby", "aria-describedby", "for")


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of the track "explanations"."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("roles")
    conditions = lab.Conditions(track="explanations")
    lab.run(["constant-roles", "true-roles"], ["hist", "sort_unique"], folder=folder, conditions=conditions)
    return folder


@pytest.fixture(scope="module")
def several(roles: Path) -> TracksReport:
    """A report of three tracks."""
    runs: list[Any] = [lab.report(result_rows()), lab.report(VARIABLES), lab.report(roles)]
    return TracksReport(tuple(runs), "All of it")


def test_one_page_has_all_tables_of_all_runs(several: TracksReport) -> None:
    """The tables of the page are those of the pages of the runs."""
    page = Page(several.html)
    assert list(several.named) == ["edges", "variables", "explanations"]
    for name, run in several.named.items():
        own = {f"{name}-{key}": rows for key, rows in Page(run.html).tables.items()}
        assert own.items() <= page.tables.items()
        assert run.html.count("<svg") > 0
    assert several.html.count("<svg") == sum(run.html.count("<svg") for run in several.reports)
    assert [tag for tag, _ in page.tags].count("h1") == 1


def test_ids_of_a_page_are_unique_and_known(several: TracksReport) -> None:
    """Every link and every description leads to one element."""
    tags = Page(several.html).tags
    ids = Counter(given["id"] for _, given in tags if "id" in given)
    assert set(ids.values()) == {1}
    referred = [given[name] for _, given in tags for name in REFERRING if name in given]
    links = [str(given["href"])[1:] for tag, given in tags if tag == "a" and str(given["href"]).startswith("#")]
    assert len(referred) > 20
    assert len(links) > 15
    assert {*referred, *links} <= {*ids}


def test_each_run_has_its_data(several: TracksReport) -> None:
    """The script finds the methods of each run in its own data."""
    found = re.findall(r'<script type="application/json" id="(\w+)-lab-data">(.*?)</script>', several.html)
    assert [name for name, _ in found] == list(several.named)
    for name, text in found:
        assert json.loads(text)["methods"] == list(several.named[name].table.methods)


def test_the_script_finds_what_it_needs_on_every_page(several: TracksReport) -> None:
    """Elements that the script takes for granted are on every page; others, such as filters, may be missing."""
    script = resources.files("tracr.lab.reporting").joinpath("page.js").read_text(encoding="utf-8")
    needed = set(re.findall(r'byId\("([^"]+)"\)', script))
    assert needed == {"status", "theme"}
    assert all(
        re.search(rf"part\({name}\)\?\.|part\({name}\);", script) for name in ('"filter-case"', '"filter-score"')
    )
    for made in (several, *several.reports):
        page = Page(made.html)
        assert needed <= {given.get("id") for _, given in page.tags}
        roots = [given for _, given in page.tags if "data-report" in given]
        data = [given for tag, given in page.tags if tag == "script" and str(given.get("id")).endswith("lab-data")]
        assert len(roots) == len(data) == (3 if made is several else 1)


def test_folders_and_the_command_line(roles: Path, tmp_path: Path) -> None:
    """Several folders make one report; two runs of one track are told apart."""
    made = lab.report([roles, roles], title="Mine")
    assert isinstance(made, TracksReport)
    assert list(made.named) == ["explanations", "explanations_2"]
    assert len(made.leaderboard()) == sum(len(run.leaderboard()) for run in made.reports)
    shown = invoke("lab", "report", VARIABLES, roles, "-o", tmp_path / "all", "--csv", tmp_path / "scores.csv")
    assert "12 cases" in shown
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"report.html", "tables", "figures"}
    assert (tmp_path / "all" / "tables" / "variables" / "control.csv").is_file()
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert lines[0].startswith("track,realisation")
    assert lines[-1].startswith("explanations,")
    assert invoke("lab", "report", roles, roles).count("Explanations of known components") == 2
    with pytest.raises(InputError, match="no notes of their own"):
        lab.report([roles, roles], notes="a text")
