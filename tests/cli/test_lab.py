"""`tracr lab`: lists, help, and errors that say what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calling import invoke, invoke_json, run
from tracr.lab import REALISATIONS
from tracr.lab.choices import Configured, read_configured
from tracr.lab.finding import ALL_METHODS


def test_lists() -> None:
    """Cases with their sizes, methods, realisations with their dials."""
    (first, *_) = invoke_json("lab", "cases", "ngrams")
    assert first["name"] == "bigram_count"
    assert first["edges"] == 23
    assert "core" in first["tags"]
    assert "rule_110" in invoke("lab", "cases", "automata")
    assert [one["name"] for one in invoke_json("lab", "methods")] == list(ALL_METHODS)
    assert [one["name"] for one in invoke_json("lab", "realisations")] == list(REALISATIONS)


def test_help_names_every_command_and_a_first_run() -> None:
    """`tracr lab --help` is enough to start."""
    printed = " ".join(invoke("lab", "--help").split())
    for word in ("cases", "methods", "realisations", "run", "report", "tracr lab run --methods exact,random"):
        assert word in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"--methods": "exact_pathcing"}, "there is no method exact_pathcing\n  hint: did you mean exact_patching"),
        ({"--methods": "nowhere.py:find"}, "there is no file nowhere.py\n  hint: write FILE.py:FUNCTION"),
        ({"--methods": "exact_patching:stepz=3"}, "exact has no setting stepz"),
        ({"--methods": ":steps=3"}, "is not a name with settings\n  hint: write NAME or NAME:setting=value"),
        ({"--cases": "histt"}, "'histt' is no case and no tag\n  hint: did you mean hist"),
        ({"--cases": "length"}, "length is no case"),
        ({"--realisations": "rotatd"}, "there is no realisation 'rotatd'\n  hint: did you mean rotated"),
        ({"--realisations": "rotated:width=3"}, '"rotated" has no dial width\n  hint: there are level, gap'),
        ({"--track": "edgs"}, "there is no track 'edgs'\n  hint: tracks are edges"),
        ({"--ablation": "none"}, "there is no ablation 'none'"),
        ({"--granularity": "neuron_group"}, "there is no granularity 'neuron_group'"),
    ],
)
def test_mistakes(options: dict[str, str], message: str, tmp_path: Path) -> None:
    """Refused before anything is written, with what to write instead."""
    given = {"--methods": "exact_patching", "--cases": "hist", "-o": str(tmp_path / "out"), **options}
    done = run("lab", "run", *(word for pair in given.items() for word in pair))
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_report_of_nothing(tmp_path: Path) -> None:
    """Says which folder to name."""
    done = run("lab", "report", str(tmp_path))
    assert done.returncode == 1
    assert "there are no results in" in done.stderr
    assert "`tracr lab run -o`" in done.stderr


@pytest.mark.parametrize("written", ["compiled", "compiled:gap=64:level=0", "own.py:find:steps=2:kind=x:flag=true"])
def test_names_with_settings(written: str) -> None:
    """What is printed reads back as the same."""
    found = read_configured(written)
    again = Configured(found.name, dict(sorted(found.settings.items())))
    assert read_configured(str(again)) == found
