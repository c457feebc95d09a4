"""Bounds on the models of sampled programs, and programs that are compiled as they are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracr
from tests.datasets.killing import content
from tracr.datasets import Controls, ModelBounds, read_programs, sample, write_programs
from tracr.datasets.building import build_shards
from tracr.datasets.program_file import drawn_into
from tracr.datasets.records import OVER, Record
from tracr.datasets.sampling import Sampling
from tracr.datasets.settings import Settings

CONTROLS = Controls(max_seq_len=3, max_ops=5)
BOUNDS = ModelBounds(1, max_parameters=2_000, max_layers=2)


def size(record: Record, level: int = 1) -> tuple[int, int]:
    controls = record.controls
    model = tracr.compile(record.program, controls.vocab, controls.max_seq_len, level=level)
    return model.n_parameters, model.n_layers


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bounds", [BOUNDS, ModelBounds(0, max_layers=3), ModelBounds(2, max_parameters=500)])
def test_no_model_exceeds_the_bounds(bounds: ModelBounds) -> None:
    """Every record has a model within them, every candidate left out as too large has none."""
    kept, left = 0, 0
    for record in sample(25, 3, CONTROLS, bounds=bounds):
        parameters, layers = size(record, bounds.level)
        within = (bounds.max_parameters is None or parameters <= bounds.max_parameters) and (
            bounds.max_layers is None or layers <= bounds.max_layers
        )
        assert within == (record.refused is None)
        if record.refused is not None:
            assert record.refused.error == OVER
            assert "more than" in record.refused.what
        kept, left = kept + within, left + (not within)
    assert kept == 25
    assert left > 0


def test_bounds_leave_out_and_add_nothing_else() -> None:
    """The programs within the bounds are those of an unbounded sampling that are within them."""
    bounded = [record for record in sample(15, 3, CONTROLS, bounds=BOUNDS) if record.refused is None]
    last = bounded[-1].seed[1]
    free = [record for record in sample(60, 3, CONTROLS) if record.seed[1] <= last]
    over = {record.seed for record in sample(15, 3, CONTROLS, bounds=BOUNDS) if record.refused is not None}
    assert [record.source for record in free if record.seed not in over] == [record.source for record in bounded]


def test_the_file_tells_how_many_were_too_large(tmp_path: Path) -> None:
    """They are lines of the file, counted apart, and other bounds cannot continue it."""
    path = tmp_path / "p.jsonl"
    done = write_programs(path, 10, 3, CONTROLS, bounds=BOUNDS)
    assert done.found == 10
    assert done.over == sum(record.refused is not None for record in read_programs(path, refused=True)) > 0
    assert write_programs(path, 10, 3, CONTROLS, bounds=BOUNDS).over == done.over
    for other in (None, ModelBounds(1, max_parameters=2_001, max_layers=2)):
        with pytest.raises(tracr.FormatError, match="other options"):
            write_programs(path, 12, 3, CONTROLS, bounds=other)


def test_bounds_that_no_program_meets_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how many were too large."""
    monkeypatch.setattr("tracr.datasets.sampling.PATIENCE", 40)
    with pytest.raises(tracr.TracrError, match="exceeded the bounds"):
        list(sample(3, 0, Controls(max_seq_len=1, vocab=("a",), max_ops=1), bounds=ModelBounds(1, max_parameters=1)))


@pytest.mark.parametrize("given", [{}, {"max_parameters": -1}, {"max_layers": 1.5}])
def test_meaningless_bounds_are_refused(given: dict[str, int]) -> None:
    """No bounds, negative ones, fractions."""
    with pytest.raises(tracr.TracrError):
        ModelBounds(1, **given)


@pytest.mark.parametrize("level", [0, 1])
def test_compiling_while_drawing_gives_the_same_files(tmp_path: Path, level: int) -> None:
    """As drawing first and compiling from the file; also if the first run stopped half-way."""
    settings = Settings(level=level, shard_size=4)
    write_programs(tmp_path / "two" / "p.jsonl", 11, 5, CONTROLS, bounds=BOUNDS)
    build_shards(tmp_path / "two" / "m", read_programs(tmp_path / "two" / "p.jsonl"), settings)
    for count in (6, 11):
        drawn = drawn_into(tmp_path / "one" / "p.jsonl", Sampling(5, CONTROLS, BOUNDS), count, settings=settings)
        build_shards(tmp_path / "one" / "m", drawn, settings)
    assert content(tmp_path / "one") == content(tmp_path / "two")
