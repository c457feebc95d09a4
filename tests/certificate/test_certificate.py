"""Certificates: made, shown, saved, loaded and refused."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import tracr
import tracr_check
from tests.agreement import load_compiled
from tests.certificate.check_cases import write_saved
from tests.cli.calling import invoke, invoke_json, run
from tests.natural.twins import untrained
from tracr.certificate.certificate import Certificate
from tracr.cli.description import certificate_json
from tracr.errors import CertificateError, FormatError
from tracr.ir.selectors import SelectorNode
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.saving.models import files_of

MODEL = tracr.compile(programs.make_hist(), "abc", 4)
CHECKER = Path(tracr_check.__file__).parent


def broken(model: tracr.DesignedModel) -> tracr.DesignedModel:
    """The model with an unembedding that mistakes one value for another."""
    weights = {name: array.copy() for name, array in model.parameters.named()}
    weights["unembed.W_U"] = -weights["unembed.W_U"]
    return model.with_weights(weights)


@pytest.fixture
def certified(tmp_path: Path) -> Path:
    """A folder with a certificate."""
    MODEL.save(tmp_path / "model", certificate=True)
    return tmp_path / "model"


def test_a_compiled_model_is_accepted() -> None:
    """The verdict says what is proved and what is assumed; it is kept, and a copy with other weights lacks it."""
    model = replace(MODEL)
    assert model.certificate is None
    assert not model.certified
    found = model.certify()
    assert found
    assert found.accepted
    assert (found.reason, found.place) == ("", "")
    assert "every input" in found.theorem
    assert found.headline == "ACCEPTED in float32, lengths 1 to 4, padded"
    assert any("order" in one for one in found.assumptions)
    assert model.certificate is found
    assert model.certified
    assert replace(model).certificate is None
    assert broken(model).certificate is None


def test_a_wrong_model_is_rejected_with_the_reason() -> None:
    """Never hidden: the text says why, and that a rejection is not a proof of the opposite."""
    found = broken(MODEL).certify()
    assert not found
    assert found.reason
    assert found.headline.startswith("REJECTED in float32, padded: ")
    assert found.theorem == ""
    assert "does not mean that the model is wrong" in str(found)
    assert "REJECTED" in found._repr_html_()


def test_the_arithmetic_and_the_padding_are_those_asked_for() -> None:
    """They are part of the theorem; unknown ones are refused."""
    found = MODEL.certify("float64", padded=False)
    assert found.headline == "ACCEPTED in float64, lengths 1 to 4, unpadded"
    assert "float64" in found.theorem
    with pytest.raises(tracr.TracrError, match="float32"):
        MODEL.certify("float31")
    with pytest.raises(tracr.TracrError, match="padded"):
        MODEL.certify(padded=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("FLOAT32", "did you mean float32"), ("bfloat", "did you mean bfloat16"), (32, "arithmetics are")],
)
def test_an_unknown_arithmetic_is_refused_with_the_nearest(name: object, hint: str) -> None:
    """The hint lists all of them too."""
    with pytest.raises(tracr.TracrError, match=rf"there is no arithmetic {name!r}\n  hint: {hint}.*float32-fused"):
        MODEL.certify(name)  # type: ignore[arg-type]


def test_a_certificate_prints_in_one_line() -> None:
    """In Python and in a terminal; `print` has the theorem, and notebooks have it in HTML."""
    model = replace(MODEL)
    found = model.certify()
    assert repr(found) == "Certificate(ACCEPTED in float32, lengths 1 to 4, padded)"
    assert found.theorem in str(found)
    assert "every input" in found._repr_html_()


def test_changed_weights_can_be_certified() -> None:
    """The checker reads the weights: a change that harms nothing is accepted, whoever made it."""
    weights = {name: array.copy() for name, array in MODEL.parameters.named()}
    weights["unembed.W_U"] = weights["unembed.W_U"] * 2
    model = MODEL.with_weights(weights)
    assert not model.own_weights
    assert model.certify().accepted


def test_a_saved_certificate_comes_back_as_a_record(certified: Path) -> None:
    """Loading compares digests and repeats no proof: the model is certified only after another check."""
    model = load_compiled(certified)
    assert model.certificate is not None
    assert model.certificate.accepted
    assert model.certificate.recorded
    assert model.certificate.headline.endswith("as recorded, not checked again")
    assert not model.certified
    with pytest.raises(CertificateError, match="not checked again"):
        model.certificate.covers(dict(model.parameters.named()))
    assert model.certify().accepted
    assert model.certified
    assert load_compiled(certified).certificate is not None


def test_a_forged_record_is_not_saved_again(tmp_path: Path) -> None:
    """A verdict that was edited by hand is shown as recorded, and checked before it is written elsewhere."""
    right = tracr.compile(rasp.tokens.named("same"), "ab", 3)
    weights = {name: array.copy() for name, array in right.parameters.named()}
    weights["unembed.W_U"] = weights["unembed.W_U"][:, ::-1]
    right.with_weights(weights).certify("float64").save(tmp_path / "forged")
    path = tmp_path / "forged" / "verdict.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "accepted": True, "reason": "", "place": ""}))
    model = load_compiled(tmp_path / "forged")
    with pytest.raises(CertificateError, match="REJECTED in float64"):
        model.save(tmp_path / "again", certificate=True)
    load_compiled(tmp_path / "forged").save_pretrained(tmp_path / "gpt2")
    assert "ACCEPTED" not in (tmp_path / "gpt2" / "README.md").read_text(encoding="utf-8")
    assert not json.loads((tmp_path / "gpt2" / "tracr" / "verdict.json").read_text())["accepted"]


def test_a_forged_record_is_not_shown_as_accepted(tmp_path: Path) -> None:
    """What describes a model (`tracr info`, the explorer) checks a record again."""
    MODEL.certify().save(tmp_path / "model")
    broken(MODEL).certify().save(tmp_path / "wrong")
    path = tmp_path / "wrong" / "verdict.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "accepted": True, "reason": "", "place": ""}))
    forged, right = (load_compiled(tmp_path / name) for name in ("wrong", "model"))
    assert forged.certificate is not None
    assert forged.certificate.accepted
    assert "#868e96" in forged.certificate._repr_html_()
    for model, accepted in ((forged, False), (right, True)):
        found = certificate_json(model)
        assert found is not None
        assert (found["accepted"], found["recorded"]) == (accepted, False)
        assert model.certified is accepted


def test_a_forged_record_cannot_hide_that_it_is_one(tmp_path: Path) -> None:
    """Its texts are shown without line ends and control characters, which could replace what was printed before."""
    MODEL.certify().save(tmp_path / "model")
    path = tmp_path / "model" / "verdict.json"
    forged = {"theorem": "\x1b[1A\x1b[2KACCEPTED in float32", "assumptions": ["\r\nACCEPTED"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), **forged}))
    shown = str(load_compiled(tmp_path / "model").certificate)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert sum(line.startswith("ACCEPTED") for line in shown.split("\n")) == 1


def test_a_certificate_is_not_saved_with_another_model(tmp_path: Path) -> None:
    """Arrays and tables can be written to; then the files are not those that were checked, accepted or not."""
    example = EXAMPLES["shift_by"]
    for before in (False, True):
        model = tracr.compile(example.program, example.vocab, 3)
        if before:
            model.parameters.W_U[:] = 0.0
        certificate = model.certify()
        tables = [one.table for one in model.program.selectors.values() if isinstance(one, SelectorNode)]
        for array in (model.parameters.W_E, *tables):
            array[0] = 1 - array[0]
            with pytest.raises(CertificateError, match="not as it was when it was checked"):
                certificate.save(tmp_path / "model")
            array[0] = 1 - array[0]
        certificate.save(tmp_path / "model", overwrite=True)
        assert tracr_check.check_folder(tmp_path / "model").accepted is not before


def test_a_certificate_ends_when_arrays_are_changed() -> None:
    """The arrays of a model can be written to; the weights that were checked are then gone."""
    model = tracr.compile(rasp.tokens.named("same"), "ab", 3)
    assert model.certify().accepted
    model.parameters.W_U[:] = model.parameters.W_U[:, ::-1].copy()
    assert not model.certified
    assert model.certificate is None
    assert not model.certify().accepted


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("way", [rasp.tokens.named("same"), rasp.numerical(rasp.tokens).named("same")])
def test_a_certified_model_runs_the_weights_that_were_checked(way: rasp.SOp, before: bool) -> None:
    """Not those that it was run with before the arrays were written to, with the C kernel, in numpy or in float64."""
    for model in (made := tracr.compile(way, [1, 2], 3), made.with_layer_norm()):
        right = model.parameters.W_U.copy()
        if before:
            assert model.certify().accepted
        model.parameters.W_U[:] = 0.0
        wrong = model([2, 2, 1]), model.codes(np.array([[2, 1, 1, 0]]), "float64")[0].tolist()
        model.parameters.W_U[:] = right
        assert before or model.certify().accepted
        assert model.certified
        found = model([2, 2, 1]), model.codes(np.array([[2, 1, 1, 0]]), "float64")[0].tolist()
        assert found[0] == [2, 2, 1]
        assert found[1] != wrong[1]


def test_a_folder_without_a_certificate_has_none(tmp_path: Path) -> None:
    """Certificates are saved only when asked for."""
    MODEL.certify()
    MODEL.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        *("manifest.json", "model.json", "tables.safetensors", "weights.safetensors")
    }
    assert load_compiled(tmp_path / "model").certificate is None


def test_a_certified_folder_can_be_replaced(certified: Path) -> None:
    """It is a saved model without other files."""
    MODEL.save(certified)
    MODEL.save(certified, certificate=True)
    assert tracr_check.check_folder(certified).accepted


def test_a_rejected_model_is_not_saved_as_certified(tmp_path: Path) -> None:
    """`save(certificate=True)` refuses it with the reason; `certificate.save` writes the rejection."""
    wrong = broken(MODEL)
    with pytest.raises(CertificateError, match="no certificate to save: REJECTED"):
        wrong.save(tmp_path / "model", certificate=True)
    assert not (tmp_path / "model").exists()
    wrong.certify().save(tmp_path / "model")
    verdict = tracr_check.check_folder(tmp_path / "model")
    assert not verdict.accepted
    loaded = load_compiled(tmp_path / "model")
    assert loaded.certificate is not None
    assert loaded.certificate.reason == verdict.reason


def changed_weights(folder: Path) -> None:
    """Change a weight, and everything in the manifest that would tell."""
    path = folder / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][path.name]["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    model = json.loads((folder / "model.json").read_text())
    model["own_weights"] = False
    content = json.dumps(model).encode()
    (folder / "model.json").write_bytes(content)
    manifest["files"]["model.json"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_certificate_for_other_files_is_refused(certified: Path) -> None:
    """Weights that were changed together with the manifest: the checker rejects, loading names the certificate."""
    changed_weights(certified)
    assert not tracr_check.check_folder(certified).accepted
    with pytest.raises(FormatError, match=r"certificate is for another (model\.json|weights)") as refusal:
        tracr.load(certified)
    assert "delete certificate.json and verdict.json" in str(refusal.value)
    for name in ("certificate.json", "verdict.json"):
        (certified / name).unlink()
    assert load_compiled(certified).certificate is None


@pytest.mark.parametrize("name", ["certificate.json", "verdict.json"])
@pytest.mark.parametrize("how", ["changed", "missing", "empty", "cut", "a list"])
def test_a_damaged_certificate_is_refused(certified: Path, name: str, how: str) -> None:
    """With a FormatError, never anything else."""
    path = certified / name
    data = path.read_bytes()
    contents = {"changed": data.replace(b"}", b" }", 1), "empty": b"", "cut": data[:-20], "a list": b"[]"}
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(contents[how])
    if (name, how) == ("verdict.json", "changed"):
        assert load_compiled(certified).certificate is not None  # a space more: the same record
        return
    with pytest.raises(FormatError):
        tracr.load(certified)


def test_the_key_of_older_folders_is_read(tmp_path: Path) -> None:
    """Before, `certified: false` said that the weights are not the compiler's own."""
    broken(MODEL).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    content = json.loads(path.read_text())
    content["certified"] = content.pop("own_weights")
    data = json.dumps(content).encode()
    path.write_bytes(data)
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    manifest["files"]["model.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (tmp_path / "model" / "manifest.json").write_text(json.dumps(manifest))
    assert not load_compiled(tmp_path / "model").own_weights


@pytest.mark.parametrize("variant", ["rotated", "with_layer_norm", "with_noise"])
def test_variants_are_checked_or_refused(variant: str) -> None:
    """A certificate of a variant is about the variant's weights; where there are no rules, the verdict says so."""
    found: Certificate = getattr(MODEL, variant)().certify()
    assert found.accepted == (variant != "with_noise")
    assert found.accepted or re.search(r"there are no rules for noise: \w", found.reason)


def test_models_of_other_kinds_say_why_they_have_none(tmp_path: Path) -> None:
    """Compressed and trained models are refused with what to do instead, by `certify` and by `save`."""
    small = tracr.compress(tracr.compile(programs.make_hist(), "abc", 3, level=0), method="exact")
    with pytest.raises(tracr.TracrError, match=r"no rules for projected weights(?s:.*)certify model\.compiled"):
        small.certify()  # type: ignore[attr-defined]
    with pytest.raises(CertificateError, match=r"no certificate to save: .* projected weights(?s:.*)model\.compiled"):
        small.save(tmp_path / "small", certificate=True)
    twin = untrained(tracr.compile(programs.make_hist(), "ab", 2))
    with pytest.raises(tracr.TracrError, match="a twin has no certify: it was trained"):
        twin.certify()  # type: ignore[attr-defined]
    with pytest.raises(CertificateError, match=r"no certificate to save: .* trained weights"):
        twin.save(tmp_path / "twin", certificate=True)
    assert not list(tmp_path.iterdir())


# The command line


def test_certify_on_the_command_line(tmp_path: Path) -> None:
    """It prints the verdict, as JSON too, and saves a folder that both commands check."""
    text = invoke("certify", "hist", "--max-len", 3, "--level", 2, "-o", tmp_path / "model")
    assert "hist: ACCEPTED in float32, lengths 1 to 3, padded" in text
    data = invoke_json("certify", tmp_path / "model", "--arithmetic", "float64", "--unpadded")
    assert data["accepted"]
    assert (data["arithmetic"], data["padded"]) == ("float64", False)
    assert tracr_check.main([str(tmp_path / "model")]) == 0


def test_a_rejection_on_the_command_line(tmp_path: Path) -> None:
    """The exit status is 1, and the reason is printed."""
    broken(MODEL).save(tmp_path / "model")
    done = run("certify", str(tmp_path / "model"))
    assert done.returncode == 1
    assert "REJECTED in float32" in done.stdout


@pytest.mark.parametrize(
    "words", [[], ["hist", "--probe", "numpy"], ["hist", "--arithmetic", "float3"], ["hist", "--overwrite"]]
)
def test_wrong_usage(words: list[str]) -> None:
    """A program or a backend, a known arithmetic, and a folder to replace."""
    assert run("certify", *words).returncode == 2


def test_a_probe_on_the_command_line() -> None:
    """numpy in float32 conforms to float32, and is not in another format."""
    assert "no violation of float32 was found" in invoke("certify", "--probe", "numpy")
    assert run("certify", "--probe", "numpy", "--arithmetic", "bfloat16").returncode == 1


def test_a_probe_is_in_the_format_of_the_arithmetic() -> None:
    """Where the backend has the format; if not, the message names those that have."""
    assert "numpy" in invoke("certify", "--probe", "numpy", "--arithmetic", "float64")
    assert invoke_json("certify", "--probe", "numpy", "--arithmetic", "float64")["dtype"] == "float64"
    done = run("certify", "--probe", "kernel", "--arithmetic", "bfloat16")
    assert done.returncode == 1
    assert "kernel cannot be probed in 'bfloat16'" in done.stderr
    assert "in bfloat16: torch" in done.stderr


def test_a_probe_takes_no_model() -> None:
    """Options that are about a model are refused, not ignored."""
    done = run("certify", "--probe", "numpy", "--level", "2", "-o", "nowhere")
    assert done.returncode == 2
    assert "leave out --level, --output" in done.stderr


def test_a_model_for_a_format_is_certified_in_it(tmp_path: Path) -> None:
    """`--dtype` compiles for it; `--arithmetic` is the same unless another is named, for saved models too."""
    folder = tmp_path / "short"
    found = invoke_json("certify", "hist", "--max-len", 3, "--dtype", "bfloat16", "-o", folder)
    assert (found["accepted"], found["arithmetic"]) == (True, "bfloat16")
    assert invoke_json("certify", folder)["arithmetic"] == "bfloat16"
    assert invoke_json("certify", folder, "--arithmetic", "float32")["arithmetic"] == "float32"


def test_certify_replaces_other_folders_only_when_asked(tmp_path: Path) -> None:
    """As `compile` does."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    words = ("certify", "hist", "--max-len", "3", "-o", str(tmp_path))
    done = run(*words)
    assert done.returncode == 1
    assert "--overwrite" in done.stderr
    assert (tmp_path / "notes.txt").exists()
    assert "saved in" in invoke(*words, "--overwrite")
    assert tracr_check.check_folder(tmp_path).accepted


def test_info_shows_the_verdict() -> None:
    """In the table and as JSON."""
    assert "ACCEPTED in float32" in invoke("info", "hist", "--max-len", 3)
    assert invoke_json("info", "hist", "--max-len", 3)["certificate"]["accepted"]


def test_info_shows_a_rejection(tmp_path: Path) -> None:
    """With its reason, whether it was saved or is found now."""
    wrong = broken(MODEL)
    for save in (wrong.certify().save, wrong.save):
        save(tmp_path / "wrong")
        assert re.search(
            r"certificate +REJECTED in float32, padded: \d is not surely", invoke("info", tmp_path / "wrong")
        )


def test_the_verdict_shown_is_in_the_format_of_the_model() -> None:
    """`info` and the explorer check a model for bfloat16 in bfloat16."""
    short = tracr.compile(programs.make_hist(), "abc", 3, dtype="bfloat16")
    assert short.explore("abc").data["certificate"]["headline"] == "ACCEPTED in bfloat16, lengths 1 to 3, padded"
    assert "ACCEPTED in bfloat16" in invoke("info", "hist", "--max-len", 3, "--dtype", "bfloat16")


def test_certify_says_that_it_does_not_check_a_gpt2(tmp_path: Path) -> None:
    """Of a checkpoint it reads the saved model: the tensors may be others, and tracr.json can be forged."""
    MODEL.save_pretrained(tmp_path / "gpt2")
    for folder, said in ((tmp_path / "gpt2", True), (tmp_path / "gpt2" / "tracr", False)):
        assert (f"`tracr-check {folder}` checks the GPT-2" in run("certify", str(folder)).stderr) is said
    assert "the saved model in a GPT-2 checkpoint" in invoke("info", tmp_path / "gpt2")


@pytest.mark.parametrize("arithmetic", ["float64", "float32-fused"])
def test_a_checkpoint_is_checked_in_float32(arithmetic: str, tmp_path: Path) -> None:
    """Whatever the model was certified in before: a GPT-2 runs in float32. The model keeps its certificate."""
    model = replace(MODEL)
    before = model.certify(arithmetic)
    model.save_pretrained(tmp_path / "gpt2")
    found = tracr_check.check_folder(tmp_path / "gpt2")
    assert (found.accepted, found.arithmetic.partition("-")[0]) == (True, "float32")
    assert "REJECTED" not in (tmp_path / "gpt2" / "README.md").read_text(encoding="utf-8")
    assert model.certificate is before


def test_pages_show_the_verdict(tmp_path: Path) -> None:
    """The explorer's data and the card of a checkpoint; the card's verdict is about the tensors of the GPT-2."""
    assert MODEL.explore("abc").data["certificate"]["headline"].startswith("ACCEPTED")
    wrong = broken(MODEL).explore("abc").data["certificate"]
    assert not wrong["accepted"]
    assert "REJECTED" in wrong["headline"]
    MODEL.save_pretrained(tmp_path / "gpt2")
    card = (tmp_path / "gpt2" / "README.md").read_text()
    assert "## Certificate" in card
    assert "**ACCEPTED in float32" in card
    assert "on the tensors of this GPT-2" in card
    assert tracr_check.check_folder(tmp_path / "gpt2").accepted
    assert tracr_check.check_folder(tmp_path / "gpt2" / "tracr").accepted


def test_a_loaded_model_has_the_numbers_that_were_checked(tmp_path: Path) -> None:
    """Also if they are the compiler's own, rounded to float32: a check in float64 is about the rounded ones."""
    model = tracr.compile(rasp.numerical(rasp.tokens).named("same"), [0.1, 0.3], 3)
    rounded = {name: array.astype(np.float32).astype(np.float64) for name, array in model.parameters.named()}
    assert any((array != rounded[name]).any() for name, array in model.parameters.named())
    files = files_of(model)
    files["model.json"] = json.dumps({**json.loads(files["model.json"]), "own_weights": False}).encode()
    files["weights.safetensors"] = safetensors.numpy.save(rounded)
    write_saved(files, tmp_path)
    loaded = tracr.load(tmp_path)
    assert all(np.array_equal(array, rounded[name]) for name, array in loaded.parameters.named())


# The checker alone


def test_the_checker_imports_nothing_of_tracr() -> None:
    """numpy and the standard library only."""
    for path in CHECKER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.partition(".")[0]
                assert top in ("numpy", "tracr_check", "__future__") or top in sys.stdlib_module_names, (path, name)


def test_the_checker_runs_without_this_project(certified: Path, tmp_path: Path) -> None:
    """Copied somewhere else, with numpy: as docs/certificate.md says."""
    shutil.copytree(CHECKER, tmp_path / "alone" / "tracr_check", ignore=shutil.ignore_patterns("__pycache__"))
    numpy_path = Path(np.__file__).parents[1]
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'alone')!r}, {str(numpy_path)!r}]; "
        "import tracr_check; status = tracr_check.main(sys.argv[1:]); "
        "assert not any(name.split('.')[0] == 'tracr' for name in sys.modules); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(certified), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accepted"]


def test_tokens_alone_are_certified() -> None:
    """The smallest model: no layers at all."""
    assert tracr.compile(rasp.tokens, "ab", 2).certify().accepted
