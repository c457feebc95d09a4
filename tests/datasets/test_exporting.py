"""Padded arrays and Parquet files: read without tracr, and complete or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

import tracr
from tracr.cli import sampling
from tracr.datasets import Controls, sample
from tracr.datasets.building import build_shards
from tracr.datasets.exporting import write_padded, write_parquet
from tracr.datasets.realisations import read_realisations
from tracr.datasets.settings import Settings
from tracr.datasets.stored import StoredModel, read_models
from tracr.datasets.table_rows import AXES, table_of
from tracr.ir.parameters import LayerParameters, Parameters

COUNT = 14
LOADER = """
import json, sys
from pathlib import Path
import numpy as np

folder = Path(sys.argv[1])
rows = [json.loads(line) for line in open(folder / "rows.jsonl")]
train = np.load(folder / "train.npy")
kinds = sorted(path.stem for path in folder.glob("[Wb]_*.npy") if not path.stem.endswith(".mask"))
weights = {kind: np.load(folder / f"{kind}.npy", mmap_mode="r") for kind in kinds}
masks = {kind: np.load(folder / f"{kind}.mask.npy", mmap_mode="r") for kind in kinds}

def batch(numbers):
    flat = np.concatenate([weights[kind][numbers].reshape(len(numbers), -1) for kind in kinds], axis=1)
    there = np.concatenate([masks[kind][numbers].reshape(len(numbers), -1) for kind in kinds], axis=1)
    return flat, there, [rows[number]["source"] for number in numbers]

flat, there, sources = batch(train[:4])
assert not flat[~there].any() and [rows[n]["split"] for n in train] == ["train"] * len(train)
assert there.sum(axis=1).tolist() == [rows[n]["n_parameters"] for n in train[:4]] and "tracr" not in sys.modules
print(flat.shape, len(sources))
"""


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    records = list(sample(COUNT, 4, Controls(vocab=("a", "b"), max_seq_len=3, max_ops=3)))
    build_shards(folder, records, Settings(shard_size=5, realisations=read_realisations("rotated,superposed:0.7")))
    return folder


@pytest.fixture(scope="module")
def padded(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_padded(table_of(shards), tmp_path_factory.mktemp("out") / "padded")


def read_row(folder: Path, number: int) -> Parameters:
    """A model of the arrays, cut to its own sizes by the masks."""

    def cut(kind: str) -> Any:
        weights, mask = np.load(folder / f"{kind}.npy")[number], np.load(folder / f"{kind}.mask.npy")[number]
        assert not weights[~mask].any()
        return weights, mask

    def block(kind: str, layer: int) -> Any:
        weights, mask = cut(kind)
        own = [
            int(mask[layer].any(axis=tuple(set(range(mask.ndim - 1)) - {axis})).sum()) for axis in range(mask.ndim - 1)
        ]
        return weights[layer][tuple(slice(size) for size in own)]

    def whole(kind: str) -> Any:
        weights, mask = cut(kind)
        return weights[np.ix_(mask.any(axis=1), mask.any(axis=0))]

    layers = json.loads((folder / "rows.jsonl").read_text().splitlines()[number])["n_layers"]
    kinds = [kind for kind in AXES if kind not in ("W_E", "W_pos", "W_U")]
    blocks = tuple(LayerParameters(**{kind: block(kind, layer) for kind in kinds}) for layer in range(layers))
    return Parameters(whole("W_E"), whole("W_pos"), blocks, whole("W_U"))


def test_rows_are_the_models(shards: Path, padded: Path) -> None:
    """Cut to its own sizes, each row answers as the stored model does; it has the split of its program."""
    rows = [json.loads(line) for line in (padded / "rows.jsonl").read_text().splitlines()]
    models = list(read_models(shards, realisations=True))
    assert len(rows) == len(models) == 3 * COUNT
    for number, (row, model) in enumerate(zip(rows, models, strict=True)):
        assert (row["row"], row["id"], row["realisation"]) == (number, model.id, model.realisation)
        assert row["n_parameters"] == sum(array.size for array in model.weights.values())
        if number % 4 == 0 and row["wrong_inputs"] == 0:
            cut = StoredModel(model.entry, dict(read_row(padded, number).named()))
            for xs in (["a"], ["b", "a"], ["a", "b", "b"]):
                assert cut(xs) == model(xs)


def test_splits_cover_all_rows_once(padded: Path) -> None:
    """Each program, with all of its realisations, and each group of equal functions, is in one split."""
    rows = [json.loads(line) for line in (padded / "rows.jsonl").read_text().splitlines()]
    numbers = np.concatenate([np.load(padded / f"{name}.npy") for name in ("train", "validation", "test")])
    assert sorted(numbers.tolist()) == list(range(len(rows)))
    for key in ("id", "group", "source", "meaning"):
        together: dict[Any, set[str]] = {}
        for row in rows:
            together.setdefault(row[key], set()).add(row["split"])
        assert all(len(splits) == 1 for splits in together.values())


def test_numpy_alone_reads_the_arrays(padded: Path, tmp_path: Path) -> None:
    """The loader of the guide, in a process that cannot import tracr."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", LOADER, str(padded)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("4\n")


def test_the_guide_has_this_loader() -> None:
    """docs/datasets.md prints what is tested here."""
    guide = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    lines = LOADER.strip().splitlines()[:-4]
    assert "\n".join(f"    {line}" if line else "" for line in lines) in guide


def test_the_order_is_canonical_unless_told_otherwise(shards: Path, padded: Path, tmp_path: Path) -> None:
    """Without reordering the rows hold the stored weights."""
    plain = write_padded(table_of(shards, in_order=False), tmp_path / "plain")
    W_E = np.load(plain / "W_E.npy")
    for number, model in enumerate(read_models(shards, realisations=True)):
        tokens, width = model.weights["embed.W_E"].shape
        assert np.array_equal(W_E[number, :tokens, :width], model.weights["embed.W_E"])
    assert not np.array_equal(W_E, np.load(padded / "W_E.npy"))
    assert json.loads((plain / "axes.json").read_text())["canonical_order"] is False


def test_nothing_is_overwritten_or_left_half(shards: Path, tmp_path: Path) -> None:
    """An existing folder is refused; what an error or a killed process leaves is not taken for a dataset."""
    target = tmp_path / "out"
    (tmp_path / ".out.0123.tmp").mkdir()

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_padded(table_of(shards), target, progress=stop)
    assert list(tmp_path.iterdir()) == []
    write_padded(table_of(shards), target)
    with pytest.raises(tracr.FormatError, match="exists"):
        write_padded(table_of(shards), target)
    with pytest.raises(tracr.LimitError, match="max-parameters"):
        write_padded(table_of(shards), tmp_path / "other", max_bytes=1000)
    assert not (tmp_path / "other").exists()


def test_folders_without_models_or_keys_are_refused(tmp_path: Path) -> None:
    """An empty folder, and shards of an older version."""
    with pytest.raises(tracr.FormatError, match="no models"):
        table_of(tmp_path)
    build_shards(tmp_path, sample(2, 0, Controls(max_seq_len=2, max_ops=1)))
    path = tmp_path / "shard-00000.json"
    data = json.loads(path.read_text())
    for entry in data["programs"]:
        del entry["behaviour"]
    path.write_text(json.dumps(data))
    with pytest.raises(tracr.FormatError, match="older version"):
        table_of(tmp_path)


def test_parquet_has_the_same_rows(shards: Path, padded: Path, tmp_path: Path) -> None:
    """Facts and weights, split by split."""
    parquet = pytest.importorskip("pyarrow.parquet")
    write_parquet(table_of(shards), tmp_path / "parquet")
    rows = [json.loads(line) for line in (padded / "rows.jsonl").read_text().splitlines()]
    for name in ("train", "validation", "test"):
        numbers = np.load(padded / f"{name}.npy")
        table = parquet.read_table(tmp_path / "parquet" / name)
        assert table.num_rows == len(numbers)
        for place, found in enumerate(table.to_pylist()):
            expected = rows[numbers[place]]
            assert {key: found[key] for key in expected if key != "row"} == {
                k: v for k, v in expected.items() if k != "row"
            }
            for kind in AXES:
                assert np.array_equal(np.array(found[kind]), np.load(padded / f"{kind}.npy")[numbers[place]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_reads_the_parquet_files(shards: Path, tmp_path: Path) -> None:
    """`datasets.load_dataset("parquet", ...)`, in a process that cannot import tracr."""
    pytest.importorskip("datasets")
    write_parquet(table_of(shards), tmp_path / "parquet")
    text = """
import sys
from datasets import load_dataset

found = load_dataset("parquet", data_dir=sys.argv[1]).with_format("numpy")
assert sorted(found) == ["test", "train", "validation"] and "tracr" not in sys.modules
print(sum(len(found[name]) for name in found), found["train"][:2]["W_Q"].shape, found["train"][0]["realisation"])
"""
    done = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path / "parquet")],
        env={**os.environ, "PYTHONPATH": "", "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{3 * COUNT} (2, ")
    assert done.stdout.endswith("compiled\n")


def test_the_command_makes_everything(tmp_path: Path) -> None:
    """Bounded programs, realisations and arrays; what was too large is reported; mistakes are refused before work."""
    app = typer.Typer()
    app.command()(sampling.sample)

    def run(*arguments: object) -> Result:
        given = ["--count", 8, "--max-ops", 4, "--max-len", 3, "-o", tmp_path / "p.jsonl", *arguments]
        return CliRunner().invoke(app, list(map(str, given)))

    for wrong in (("--realise", "rotatd"), ("--splits", "train=2"), ("--max-layers", 2, "--level", 7)):
        assert isinstance(run(*wrong).exception, tracr.TracrError)
    assert list(tmp_path.iterdir()) == []
    bounds = ("--max-parameters", 1500, "--max-layers", 2)
    done = run(*bounds, "--realise", "rotated*2,noisy:0.001", "--padded", tmp_path / "np")
    assert done.exit_code == 0, done.exception
    assert "over the bounds" in done.stdout
    assert "rotated.1: 8 models, 8 of them right on all checked inputs, 0 refused" in done.stdout
    assert f"{tmp_path / 'np'}: 32 models; programs: train 6, validation 1, test 1" in done.stdout
    assert len(np.load(tmp_path / "np" / "W_U.npy")) == 32
    again = run("--padded", tmp_path / "np")
    assert "exists" in str(again.exception)
    assert again.stdout == ""
