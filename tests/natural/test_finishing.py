"""Further training of twins: which ones are trained, from where, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.natural.twins import untrained
from tracr.rasp import programs

pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr import natural
from tracr.errors import TracrError
from tracr.natural import distilling, finishing
from tracr.natural.admission import Admission, Rate
from tracr.natural.saving import load

COUNT = Path(__file__).parents[2] / "docs" / "natural" / "twins" / "count"
HIST = tracr.compile(programs.make_hist(), "abc", 4)
UNKNOWN = Admission(Rate(0, 0), every_input=False, sites=())


def test_admitted_twins_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is left to do, no lesson is drawn."""
    monkeypatch.delattr(finishing, "School")
    twin = replace(untrained(HIST), admission=Admission(Rate(10, 10), every_input=True, sites=()))
    assert twin.admitted
    found = natural.finish([twin, twin])
    assert all(one is twin for one in found)
    assert len(found) == 2


def test_what_cannot_be_finished_together_is_refused() -> None:
    """Other teachers, other architectures, and what is no twin."""
    other = tracr.compile(programs.make_hist(), "abcd", 4)
    twin = untrained(HIST)
    assert finishing._alike(twin, untrained(tracr.compile(programs.make_hist(), "abc", 4)))
    for wrong in (untrained(other), untrained(HIST, d_head=12), untrained(HIST, "relu")):
        with pytest.raises(TracrError, match="different teachers or architectures"):
            natural.finish([twin, wrong])
    with pytest.raises(TracrError, match="is no twin"):
        natural.finish([HIST])  # type: ignore[list-item]
    with pytest.raises(TracrError, match="steps"):
        natural.finish([twin], steps=0)


@pytest.mark.slow
def test_a_spoilt_twin_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin with noise on its weights errs; trained further it errs less. Its steps are those of both trainings."""
    sizes = distilling.BankSizes(trained=2_000, idle=200, most_trained=10**6, checked=50, tries=2**13, mined=2**12)
    monkeypatch.setattr(distilling, "SIZES", {"cpu": sizes})
    for name, value in {"HELD_OUT": 300, "IDLE": 300, "TRIES": 2**12, "MANY_TRIES": 2**12}.items():
        monkeypatch.setattr(distilling, name, value)
    good = load(COUNT)
    rng = np.random.default_rng(0)

    def noisy(array: Any) -> Any:
        return (array + 0.1 * rng.normal(size=array.shape) * array.std()).astype(np.float32)

    spoilt = replace(good, parameters=good.parameters.map(noisy), admission=UNKNOWN)
    before = errors(spoilt)
    [after] = natural.finish([spoilt], steps=500, batch=64)
    assert before > 0.02
    assert errors(after) < before / 4
    assert after.steps == spoilt.steps + 500
    assert after.seed == spoilt.seed
    assert len(after.admission.sites) == len(good.admission.sites)


def errors(twin: natural.TwinModel) -> float:
    """The share of held-out interventions that the twin gets wrong, at the worst node or edge."""
    school = distilling.School.of(twin.teacher, twin.architecture, None)
    weights = dict(twin.parameters.named())
    sites = school.admission(weights).sites
    agree = [1 - site.agreement.share for site in sites if site.agreement.tries]
    return max(agree + [site.false_changes.share for site in sites if site.false_changes.tries])
