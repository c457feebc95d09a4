"""`tracr lab check` and `tracr lab score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import invoke, invoke_json, run
from tracr import lab
from tracr.lab import formats
from tracr.lab.methods import MethodData, exact_patching


@pytest.fixture
def circuit(tmp_path: Path) -> Path:
    """What exact patching finds in hist2, as an EAP circuit."""
    case = lab.case("hist2")
    scores = exact_patching(case.model, MethodData.of(case.pairs(64)))
    found = formats.FoundCircuit(scores, frozenset(edge for edge, score in scores.items() if score > 0))
    formats.write(tmp_path / "circuit.json", found, formats.sizes_of(case.model))
    return tmp_path / "circuit.json"


def test_a_good_file(circuit: Path) -> None:
    """It is checked, and scored against the truth for the case's pairs, or the model's edges."""
    assert "can be scored" in invoke("lab", "check", circuit, "--subject", "hist2")
    assert invoke_json("lab", "check", circuit, "--subject", "zoo:hist2")["valid"]
    text = invoke("lab", "score", circuit, "--subject", "hist2")
    assert "12 needed, 29 inert, 0 left out" in text
    assert "exact              yes" in text
    data = invoke_json("lab", "score", circuit, "--subject", "hist2")
    assert (data["auroc"], data["exact"], data["missed"], data["by"]) == (1.0, True, [], "score")
    coarse = invoke_json("lab", "score", circuit, "--subject", "hist2", "--granularity", "component")
    assert coarse["granularity"] == "component"
    assert coarse["size"] < data["size"]
    assert invoke_json("lab", "score", circuit, "--subject", "hist2", "--by", "in_graph")["exact"]
    wiring = invoke_json("lab", "score", circuit, "--subject", "hist2", "--truth", "wiring")
    assert wiring["size"] == len(lab.case("hist2").model.ground_truth.split("qkv")[0])
    assert not wiring["exact"]
    zero = invoke_json("lab", "score", circuit, "--subject", "hist2", "--ablation", "zero", "--signed")
    assert zero["size"] > data["size"]
    assert zero["absolute"] is False


def test_folders(circuit: Path, tmp_path: Path) -> None:
    """A subject's folder has its own pairs; another model has only its edges."""
    case = lab.case("hist2")
    lab.write_subject(tmp_path / "subject", case, pairs=case.pairs(8))
    assert "on 8 pairs" in invoke("lab", "score", circuit, "--subject", tmp_path / "subject")
    case.model.save(tmp_path / "model")
    assert "the edges of the model" in invoke("lab", "score", circuit, "--subject", tmp_path / "model")
    done = run("lab", "score", str(circuit), "--subject", str(tmp_path / "model"), "--truth", "pairs")
    assert (done.returncode, "the folder has no pairs" in done.stderr) == (1, True)
    assert run("lab", "check", str(circuit), "--subject", str(tmp_path / "model"), "--level", "2").returncode == 2


def test_levels_have_other_sizes(circuit: Path) -> None:
    """A circuit of the model of another level is refused."""
    done = run("lab", "check", str(circuit), "--subject", "hist2", "--level", "2")
    assert done.returncode == 1
    assert "circuit.json.cfg.n_layers is 3, and the number of the subject's layers is 2" in done.stdout


def test_a_bad_file(tmp_path: Path) -> None:
    """`check` lists all problems and exits with 1; `score` names the first ones."""
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"embed->blocks.9.mlp": 1, "embed->blocks.0.mpl": 2}))
    done = run("lab", "check", str(path), "--subject", "hist")
    assert done.returncode == 1
    assert "problem: bad.json['embed->blocks.9.mlp']: blocks.9.mlp has the layer 9, counted from 0, of 1" in done.stdout
    assert "did you mean blocks.0.mlp" in done.stdout
    assert "2 problems" in done.stdout
    data = json.loads(run("lab", "check", str(path), "--subject", "hist", "--json").stdout)
    assert not data["valid"]
    assert len(data["problems"]) == 2
    done = run("lab", "score", str(path), "--subject", "hist")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not a circuit that can be read" in done.stderr
    missing = run("lab", "check", str(tmp_path / "no.json"), "--subject", "hist")
    assert "is missing" in missing.stdout
    for words in (("length", "length is no case"), ("hits", "did you mean hist")):
        done = run("lab", "check", str(path), "--subject", words[0])
        assert (done.returncode, words[1] in done.stderr) == (1, True)
