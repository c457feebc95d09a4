"""The training of the compression studies: parts that train together, and trainings that were stopped."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

pytestmark = [pytest.mark.repository, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def studies() -> Any:
    """The script."""
    return runpy.run_path(str(ROOT / "benchmarks" / "compression_studies.py"))


def parts(studies: Any, steps: int) -> list[Any]:
    """Two parts of sort_unique with different gaps, dims and settings."""
    Part, Run = studies["Part"], studies["Run"]
    hard = Part("one", "sort_unique", steps, (Run(5, 0), Run(7, 1, decay=0.0)))
    soft = Part("two", "sort_unique", steps, (Run(6, 0, start=1.0), Run(6, 1, rate=1e-4)), gap=40.0)
    return [hard, soft]


def test_parts_that_train_together_train_as_alone(studies: Any) -> None:
    """Every run has the attention of its own gap: two steps differ by rounding only.

    Adam's first step divides each slope by its own size: where a slope is nothing but a rounding error, the number may
    move in either direction, and few numbers may do so.
    """
    both = parts(studies, 2)
    training = studies["Training"](both)
    found = training.arrays()
    for part in both:
        alone = studies["Training"]([part]).arrays()
        mine = [number for number, owner in enumerate(training.owners) if owner is part]
        assert [training.runs[number] for number in mine] == list(part.runs)
        width = alone["W"].shape[-1]
        moved = np.abs(found["W"][mine][..., :width] - alone["W"])
        assert (moved > 1e-4).mean() < 0.02
        assert moved.max() < 4.1e-3  # two steps of the highest rate, in opposite directions
        assert not found["W"][mine][..., width:].any()
        assert np.allclose(found["curve"][:, mine], alone["curve"], rtol=1e-3)
        assert np.allclose(found["end"][mine], alone["end"], rtol=1e-3)
    losses = found["curve"][0]
    assert len(set(losses.round(4).tolist())) == len(losses)  # the runs differ


def test_a_stopped_training_goes_on(studies: Any, tmp_path: Path) -> None:
    """From the saved state a training ends as one that was not stopped, bit for bit; or it ends there, and says so."""
    (part, _), saved = parts(studies, 6), tmp_path / "state.saved"
    whole = studies["Training"]([part]).arrays()

    class Stopped(Exception):
        pass

    stopping = studies["Training"]([part])
    advance = stopping.advance

    def until(params: Any, state: Any, start: int, size: int) -> Any:
        if start >= 4:
            raise Stopped
        return advance(params, state, start, size)

    stopping.advance = until
    with pytest.raises(Stopped):
        stopping.arrays(saved, every=1e-9)
    resumed = studies["Training"]([part])
    found = resumed.arrays(saved)
    assert resumed.done == 6
    assert found.keys() == whole.keys()
    assert all(np.array_equal(found[name], whole[name]) for name in whole)
    early = studies["Training"]([part])
    short = early.arrays(saved, as_saved=True)
    assert early.done == len(short["curve"]) == 4
    assert np.array_equal(short["curve"], whole["curve"][:4])
    assert not np.array_equal(short["W"], whole["W"])
