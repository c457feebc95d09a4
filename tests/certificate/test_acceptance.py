"""Which models the checker accepts: the golden table, and the table of backends in the documentation."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.certificate.acceptance import rows, verdicts
from tests.tiers import in_turn
from tracr.ir.options import LEVELS
from tracr.rasp.programs import EXAMPLES
from tracr_check import ARITHMETICS

DOCS = Path(__file__).parents[2] / "docs"
TABLE = rows()


def test_the_table_is_complete() -> None:
    """Every program of the library at every level; all of them are accepted in float32 and float64."""
    assert set(TABLE) == {(name, level) for name in EXAMPLES for level in (0, 1, 2)}
    names = list(ARITHMETICS)
    for found in TABLE.values():
        assert len(found) == len(names)
        assert found[names.index("float32")] == found[names.index("float64")] == "yes"


@pytest.mark.parametrize("name", EXAMPLES)
def test_acceptance_in_float32(name: str) -> None:
    """At level 1."""
    assert verdicts(name, 1, ("float32",)) == [TABLE[name, 1][list(ARITHMETICS).index("float32")]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(EXAMPLES, LEVELS))
def test_acceptance(name: str, level: int) -> None:
    """In every arithmetic: write the table again if a change is meant (python -m tests.certificate.acceptance)."""
    assert verdicts(name, level) == TABLE[name, level]


def probed(machine: str) -> list[dict[str, Any]]:
    """The rows that were measured on a machine."""
    rows = json.loads((DOCS / "certificate" / f"arithmetic_{machine}.json").read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if "skipped" not in row]


def test_the_documented_backends_are_the_measured_ones() -> None:
    """Each row that the page lists as conforming is measured so, and nothing measured violates its own format."""
    rows = probed("cpu")
    assert len(rows) >= 10
    page = (DOCS / "certificate.md").read_text(encoding="utf-8")
    for row in rows:
        assert row["dtype"] in row["conforms"], row["setting"]
    listed = re.findall(r"^\| ((?:numpy|onnxruntime|JAX|torch) [\d.]+)", page, re.M)
    rows += probed("h200")
    versions = {f"{row['backend'].split()[0].split('-')[0]} {row['version'].split('+')[0]}".lower() for row in rows}
    assert {name.lower() for name in listed} <= versions


def test_the_violations_on_a_gpu_are_the_documented_ones() -> None:
    """TF32, reduced-precision reductions of bfloat16, JAX's default precision, and JAX in sixteen bits."""
    violating = {row["setting"] for row in probed("h200") if not row["conforms"]}
    assert {one for one in violating if one.startswith("torch")} == {
        "torch cuda float32 TF32",
        "torch cuda bfloat16 reduced-precision reductions",
    }
    of_jax = {one.partition(",")[0] for one in violating if "jax" in one}
    assert of_jax == {"jax float32", "jax float16", "jax bfloat16"}
    assert "jax float32, precision highest" not in violating


def test_the_page_has_the_measured_numbers() -> None:
    """`python benchmarks/certificate_page.py` would change nothing."""
    written = runpy.run_path(str(DOCS.parent / "benchmarks" / "certificate_page.py"))["written"]
    page = (DOCS / "certificate.md").read_text(encoding="utf-8")
    assert written(page) == page
