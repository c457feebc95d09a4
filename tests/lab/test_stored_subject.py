"""Subjects as folders: a checkpoint with the pairs of its case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.natural.twins import untrained
from tracr import lab
from tracr.lab import formats
from tracr.lab.methods import MethodData, exact_patching
from tracr.natural.twin_model import TwinModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("subjects") / "hist"
    lab.write_subject(path, lab.case("hist"))
    return path


def test_a_subject_is_read_back(folder: Path) -> None:
    """The model, the pairs and their truth; the folder is also a checkpoint of the model."""
    case, found = lab.case("hist"), lab.read_subject(folder)
    assert found.name == "hist"
    assert found.pairs == case.pairs(64)
    expected = case.model.ground_truth.minimal(pairs=case.pairs(64))
    assert (found.minimal().alone, found.minimal().inert) == (expected.alone, expected.inert)
    assert tracr.load(folder)(list("abca")) == case.model(list("abca"))
    assert json.loads((folder / "ground_truth.json").read_text())["format"] == "tracr ground truth"
    assert "64 pairs of a clean and a corrupted input of the case hist" in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", ["parity_so_far", "count", "hist2"])
def test_heads_of_checkpoints_have_names(name: str, tmp_path: Path) -> None:
    """Checkpoints may have more heads than the model: all of them can be named."""
    case = lab.case(name)
    lab.write_subject(tmp_path / name, case, pairs=case.pairs(2))
    config = json.loads((tmp_path / name / "config.json").read_text())
    sizes = formats.sizes_of(case.model)
    assert sizes.layers == config["n_layer"]
    assert sizes.heads >= max(config["n_head"], *(len(layer.heads) for layer in case.model.layout.layers))


def test_values_of_all_kinds(tmp_path: Path) -> None:
    """Numbers, None and fractions in answers are read back as they were; a variant is a subject too."""
    for name in ("frac_prevs", "argmax"):
        case = lab.case(name)
        lab.write_subject(tmp_path / name, case, case.model.rotated(seed=1), pairs=case.pairs(5, seed=2))
        found = lab.read_subject(tmp_path / name)
        assert found.pairs == case.pairs(5, seed=2)
        assert found.model.variant is not None
        lab.write_subject(tmp_path / name, case, pairs=case.pairs(3))  # a subject is replaced
        assert len(lab.read_subject(tmp_path / name).pairs) == 3


def test_twins(tmp_path: Path) -> None:
    """All heads of a twin are candidates, in the folder and in other formats."""
    case = lab.case("hist")
    twin = untrained(case.model)
    lab.write_subject(tmp_path / "twin", case, twin, pairs=case.pairs(8))
    found = lab.read_subject(tmp_path / "twin")
    assert isinstance(found.model, TwinModel)
    sizes = formats.sizes_of(found)
    assert (sizes.layers, sizes.heads) == (1, 3)
    circuit = formats.FoundCircuit(exact_patching(found, MethodData.of(found.pairs)))
    formats.write(tmp_path / "circuit.json", circuit, sizes)
    truth = found.minimal()
    scored = formats.score(tmp_path / "circuit.json", truth, sizes)
    assert len(circuit.scores) == len(truth.candidates()) > len(case.model.ground_truth.candidates())
    assert (scored.scores, scored.padding) == (truth.score(circuit.scores), 0)


def test_other_folders_are_kept(tmp_path: Path) -> None:
    """A folder with something else is replaced only if asked to."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(tracr.errors.FormatError, match="contains something other"):
        lab.write_subject(tmp_path, lab.case("hist"))
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data | {"version": 2}, "version is not 1"),
        (lambda data: data | {"format": "x"}, "format is not one of"),
        (lambda data: data | {"pairs": [[["a"], ["b"], [1]]]}, r"pairs\[0\] has 3 elements, not 4"),
        (lambda data: data | {"pairs": [[["a"], ["b"], [1], [1, 2]]]}, r"pairs\[0\] has inputs and answers of diff"),
        (lambda data: {"pairs": []}, "lacks 'case'"),
    ],
)
def test_damaged_pairs(folder: Path, tmp_path: Path, change: Any, why: str) -> None:
    """The error names the folder and the place."""
    for name in ("tracr.json", "config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    data = json.loads((folder / "pairs.json").read_text())
    (tmp_path / "pairs.json").write_text(json.dumps(change(data)))
    with pytest.raises(tracr.errors.FormatError, match=f"is not a subject that can be read: pairs.json.*{why}"):
        lab.read_subject(tmp_path)


def test_changed_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    """The truth is that of the weights that were written."""
    for name in ("tracr.json", "config.json", "pairs.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-4] + b"\0\0\1\0")
    with pytest.raises(tracr.errors.FormatError, match="its weights were changed"):
        lab.read_subject(tmp_path)
    with pytest.raises(tracr.errors.FormatError, match=r"is not a subject that can be read: .*is missing"):
        lab.read_subject(tmp_path / "nothing")


def test_parquet(tmp_path: Path) -> None:
    """The table has a row per pair, with values in JSON."""
    table = pytest.importorskip("pyarrow.parquet")
    case = lab.case("hist")
    lab.write_subject(tmp_path / "hist", case, parquet=True, pairs=case.pairs(4))
    rows = table.read_table(tmp_path / "hist" / "pairs.parquet").to_pylist()
    assert [tuple(json.loads(row["clean"])) for row in rows] == [pair.clean for pair in case.pairs(4)]
    assert [tuple(json.loads(row["corrupted_answer"])) for row in rows] == [p.corrupted_answer for p in case.pairs(4)]
