"""Other models of one program, as they are stored."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.datasets.killing import content
from tracr.datasets import Controls, Record, sample
from tracr.datasets.building import build_shards, realisations
from tracr.datasets.realisations import RealisationChoice, read_realisations
from tracr.datasets.settings import Settings
from tracr.datasets.stored import COMPILED, StoredModel, read_models, read_sidecar
from tracr.nearness import ANSWER, same_value

CONTROLS = Controls(vocab=("a", "b"), max_seq_len=3, max_ops=3, min_selectors=1)
WANTED = read_realisations("rotated*2,noisy,noisy:0.05,superposed,superposed:0.5,softened")
NAMES = ["rotated.0", "rotated.1", "noisy.0", "noisy:0.05.0", "superposed.0", "superposed:0.5.0", "softened.0"]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(sample(4, 2, CONTROLS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> Path:
    made = tmp_path_factory.mktemp("shards")
    build_shards(made, records, Settings(realisations=WANTED))
    return made


def wrong_inputs(model: StoredModel, record: Record) -> int:
    """Counted one input at a time, against the reference interpreter."""
    inputs = [list(xs) for length in (1, 2, 3) for xs in itertools.product("ab", repeat=length)]
    return sum(
        not all(same_value(x, y, ANSWER) for x, y in zip(model(xs), record.program(xs), strict=True)) for xs in inputs
    )


def test_each_program_has_its_realisations(folder: Path, records: list[Record]) -> None:
    """In the order asked for; what could not be made is recorded with the reason."""
    models = list(read_models(folder, realisations=True))
    entries = read_sidecar(folder / "shard-00000.json")["programs"]
    assert len(entries) == len(records)
    for entry in entries:
        assert [one["name"] for one in entry["realisations"]] == NAMES
        made = [one["name"] for one in entry["realisations"] if one["status"] == "made"]
        assert [model.realisation for model in models if model.id == entry["id"]] == [COMPILED, *made]
        assert all(one["reason"]["hint"] for one in entry["realisations"] if one["status"] == "refused")
    counts = realisations(folder)
    assert list(counts) == NAMES
    assert counts["rotated.0"] == {"made": 4, "right": 4}


def test_the_stated_error_is_the_error_of_the_stored_weights(folder: Path, records: list[Record]) -> None:
    """Recounted with the reference interpreter; strong noise and too few dimensions do make errors."""
    errors: dict[str, int] = {}
    for model in read_models(folder, realisations=True):
        wrong = wrong_inputs(model, records[model.id])
        if model.realisation == COMPILED:
            assert wrong == 0
            continue
        stated = model.facts["measured"]
        assert stated["inputs"] == 14
        assert stated["exhaustive"]
        # a model that is right unpadded may be wrong padded: the stated error counts both
        assert wrong == stated["wrong"] if not stated["padded"] else wrong <= stated["wrong"]
        errors[model.realisation] = errors.get(model.realisation, 0) + stated["wrong"]
    assert all(errors[name] == 0 for name in ("rotated.0", "rotated.1", "noisy.0", "softened.0"))
    assert errors["noisy:0.05.0"] > 0
    assert errors["superposed:0.5.0"] > 0


def test_realisations_differ_from_the_model_and_from_each_other(folder: Path) -> None:
    """Two rotations are not the same, and none is the compiled model."""
    by_name = {(model.id, model.realisation): model.weights for model in read_models(folder, realisations=True)}
    for number in range(4):
        names = [name for own, name in by_name if own == number and "softened" not in name]
        for one, other in itertools.combinations(names, 2):
            fst, snd = by_name[number, one]["embed.W_E"], by_name[number, other]["embed.W_E"]
            assert fst.shape != snd.shape or not np.array_equal(fst, snd)


def test_they_are_determined_by_the_seed(tmp_path: Path, folder: Path, records: list[Record]) -> None:
    """The same records and settings give the same bytes; every copy has a seed of its own."""
    build_shards(tmp_path, records, Settings(realisations=WANTED))
    assert content(tmp_path) == content(folder)
    seeds = [
        tuple(one["seed"])
        for entry in read_sidecar(folder / "shard-00000.json")["programs"]
        for one in entry["realisations"]
        if one["status"] == "made" and one["name"] != "softened.0"
    ]
    assert len(set(seeds)) == len(seeds) == 24


def test_folders_without_realisations_are_as_before(tmp_path: Path, records: list[Record]) -> None:
    """The format has version 2 only with realisations, and they cannot be added to a folder without."""
    build_shards(tmp_path, records[:2])
    sidecar = read_sidecar(tmp_path / "shard-00000.json")
    assert sidecar["version"] == 1
    assert set(sidecar["settings"]) == {"level", "budget", "shard_size"}
    with pytest.raises(tracr.FormatError, match="other settings"):
        build_shards(tmp_path, records[:2], Settings(realisations=WANTED))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rotatd", "did you mean rotated"),
        ("rotated:0.5", "a rotation has no amount"),
        ("softened*2", "cannot be made 2 times"),
        ("noisy*0", "cannot be made 0 times"),
        ("noisy:2", "not between 0 and 1"),
        ("noisy:x", "is not a realisation"),
        ("rotated,rotated", "twice"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    """Misspelt kinds, impossible amounts and copies."""
    with pytest.raises(tracr.TracrError) as error:
        read_realisations(text)
    assert message in str(error.value)


def test_realisations_are_written_as_they_are_read() -> None:
    """Text, value, text."""
    assert read_realisations(",".join(map(str, WANTED))) == WANTED
    assert read_realisations("") == ()
    assert RealisationChoice("noisy", 1e-4, 3) == read_realisations("noisy:1e-4*3")[0]
