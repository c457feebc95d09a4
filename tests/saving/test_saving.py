"""Saving and loading: everything comes back, nothing is half-written, nothing damaged or hostile is loaded."""

from __future__ import annotations

import builtins
import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tracr.errors import FormatError
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.saving.models import is_saved_model
from tracr.saving.values_json import decode_value, encode_value

STAGES = ("trace", "infer", "translate", "schedule", "construct", "assemble")
FILES = ("manifest.json", "model.json", "tables.safetensors", "weights.safetensors")


def example(name: str, **options: Any) -> tracr.CompiledModel:
    chosen = programs.EXAMPLES[name]
    return compile_quietly(chosen.program, chosen.vocab, chosen.max_seq_len, **options)


def assert_same(saved: tracr.CompiledModel, loaded: tracr.CompiledModel) -> None:
    """Options, stages, labels, outputs and every weight."""
    assert loaded.options == saved.options
    for stage in STAGES:
        assert loaded.show(stage) == saved.show(stage)
    assert loaded.residual == saved.residual
    for (name, before), (other, after) in zip(saved.parameters.named(), loaded.parameters.named(), strict=True):
        assert name == other
        assert after.dtype == np.float64
        assert np.array_equal(before, after), name


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


# Round trips


@mostly_compared()
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(composite=True), level=st.sampled_from(LEVELS))
def test_a_loaded_model_is_the_saved_one(tmp_path: Path, case: Case, level: int) -> None:
    """Identical logits, outputs and stages on random programs; saved again, identical bytes."""
    model = compile_case(case, level=level)
    model.save(tmp_path / "a")
    loaded = load_compiled(tmp_path / "a")
    assert_same(model, loaded)
    loaded.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    inputs = inputs_for(model, case, 10)
    ids, _, _ = model.vocabulary.encode(inputs)
    assert np.array_equal(loaded.logits(ids), model.logits(ids))
    assert list(map(repr, loaded(inputs))) == list(map(repr, model(inputs)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_library_programs_come_back(tmp_path: Path, name: str, level: int) -> None:
    """Every program of the library, at every level."""
    model = example(name, level=level)
    model.save(tmp_path / "model")
    assert_same(model, load_compiled(tmp_path / "model"))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters()),
    st.text(st.characters(categories=["Cs"]), max_size=3),
    st.binary(),
    st.fractions(),
    st.integers(2**90).map(lambda n: Fraction(n, 7)),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3).map(frozenset),
    max_leaves=10,
)


def shape(value: Any) -> Any:
    """A value with the types of all its parts, comparable."""
    if isinstance(value, tuple):
        return ("tuple", [shape(element) for element in value])
    if isinstance(value, frozenset):
        return ("frozenset", sorted(map(repr, map(shape, value))))
    return (type(value).__name__, repr(value))


@given(VALUES)
def test_values_of_every_type_come_back(value: Any) -> None:
    """Through JSON text, types and signs and digits included."""
    text = json.dumps(encode_value(value), allow_nan=False)
    assert shape(decode_value(json.loads(text))) == shape(value)


def test_a_model_over_odd_values_comes_back(tmp_path: Path) -> None:
    """Tuples, bytes, frozensets, None, booleans, huge integers as tokens and as results."""
    vocab: list[Any] = [
        ("a", (1, None)),
        b"\xff",
        frozenset({"x"}),
        None,
        True,
        -0.5,
        2**80,
        "\ud800",
        Fraction(1, 3),
        2 - 0.5j,
    ]
    vocab += [Decimal("1.50"), (Decimal("-0"), frozenset({Fraction(-7, 2)}))]
    odd = rasp.Map(lambda x: (x, 1.0), rasp.tokens).named("odd")
    model = tracr.compile({"odd": odd, "tokens": rasp.tokens}, vocab, 3)
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert_same(model, loaded)
    for token in vocab:
        assert repr(loaded([token])) == repr(model([token]))


HALVES = rasp.Map(lambda token: Fraction(ord(token), 2), rasp.tokens).named("halves")


@pytest.mark.parametrize("level", [0, 1, 2])
def test_fraction_outputs_come_back(tmp_path: Path, level: int) -> None:
    """With their type, though no float is equal to them."""
    model = tracr.compile(HALVES, "abc", 3, level=level)
    model.save(tmp_path / "model")
    assert repr(load_compiled(tmp_path / "model")("ab")) == "[Fraction(97, 2), Fraction(49, 1)]"


SHORT_AND_LONG = {
    "tokens": (rasp.tokens, "ab", 30),
    "is_a": (rasp.tokens == "a", "ab", 30),
    "constant": (rasp.Full(3), "ab", 30),
    "position": (rasp.indices % 3, "ab", 30),
    "hist": (programs.make_hist(), "abc", 4),
    "frac_prevs": (programs.make_frac_prevs(rasp.tokens == "a"), "ab", 12),
}


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", SHORT_AND_LONG)
def test_models_with_single_passes_switched_come_back(tmp_path: Path, name: str, level: int) -> None:
    """Each on and off: also those with fewer dimensions than positions."""
    program, vocab, longest = SHORT_AND_LONG[name]
    for place, (switch, on) in enumerate(itertools.product({*tracr.PASSES, *tracr.OPTIONS} - {"solve"}, (True, False))):
        model = compile_quietly(program, vocab, longest, level=level, passes={switch: on})
        model.save(tmp_path / str(place))
        assert_same(model, load_compiled(tmp_path / str(place)))


SETS = """
import sys, tracr
from tracr.rasp import rasp
vocab = [frozenset("abcdefgh"), ("x", frozenset("ijklmnop"))]
if sys.argv[2] == "save":
    tracr.compile(rasp.tokens, vocab, 2).save(sys.argv[1])
assert tracr.load(sys.argv[1])(vocab) == vocab
"""


def test_sets_come_back_in_another_process(tmp_path: Path) -> None:
    """Though their text, and so a label, differs from run to run."""
    for seed, action in enumerate(("save", "load", "load")):
        words = [sys.executable, "-c", SETS, str(tmp_path / "model"), action]
        done = subprocess.run(
            words, env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    "value",
    [Colour.RED, Level.LOW, (1, (Colour.RED,)), range(3), Decimal("Infinity"), complex(0, float("inf")), Path("a")],
)
def test_a_value_that_cannot_be_saved_is_named(tmp_path: Path, value: Any) -> None:
    """And nothing is written."""
    model = tracr.compile(rasp.tokens, ["a", value], 2)
    with pytest.raises(FormatError, match=r"of type \w+ cannot be saved"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_values_nested_beyond_reason_are_refused(tmp_path: Path) -> None:
    """On writing as on reading."""
    value: Any = ()
    for _ in range(150):
        value = (value,)
    with pytest.raises(FormatError, match="nested"):
        tracr.compile(rasp.tokens, [value], 1).save(tmp_path / "model")


def test_warnings_and_source_come_back(tmp_path: Path) -> None:
    """What was found in the program, and the text it was written as."""
    from dataclasses import replace

    inverse = (1 / (rasp.tokens - rasp.indices)).named("inverse")
    model = replace(compile_quietly(inverse, [5, 6], 3, level=0), source="inverse = ...\n")
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert loaded.program.warnings == model.program.warnings
    assert loaded.source == "inverse = ...\n"


# Where models are saved


def test_only_saved_models_are_replaced(tmp_path: Path) -> None:
    """A folder with other things in it, or a file, is left alone."""
    first, second = example("length"), example("hist")
    folder = tmp_path / "deep" / "model"
    first.save(folder)
    second.save(folder)
    assert_same(second, load_compiled(folder))
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FormatError, match="something other than a saved model"):
        first.save(folder)
    assert (folder / "notes.txt").exists()
    first.save(folder, overwrite=True)
    assert sorted(contents(folder)) == list(FILES)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FormatError, match="is a file"):
        first.save(tmp_path / "file", overwrite=True)
    (tmp_path / "empty").mkdir()
    first.save(tmp_path / "empty")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["deep", "empty", "file"]


def test_the_working_folder_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor any folder above it."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for folder in (".", ".."):
        with pytest.raises(FormatError, match="in use"):
            example("length").save(folder, overwrite=True)


def test_folders_change_places_where_the_system_has_no_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two renames instead of one step."""
    monkeypatch.setattr("tracr.saving.folders._swap", lambda first, second: False)
    example("length").save(tmp_path / "model")
    example("hist").save(tmp_path / "model")
    assert_same(example("hist"), load_compiled(tmp_path / "model"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


KILL = """
import os, sys
from pathlib import Path
import tracr
from tracr.rasp import programs
from tracr import saving

folder = Path(sys.argv[1]) / "model"
models = [tracr.compile(programs.EXAMPLES[n].program, "abc", 5) for n in ("length", "hist")]
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "ctypes.dlsym", "ctypes.dlopen"}

for moment in range(1, 1000):
    models[0].save(folder, overwrite=True)
    child = os.fork()
    if child == 0:
        left = moment

        def hook(event, arguments):
            global left
            if event in EVENTS:
                left -= 1
                if left == 0:
                    os._exit(9)

        sys.addaudithook(hook)
        models[1].save(folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    names = [output.name for output in tracr.load(folder).outputs]
    print(os.waitstatus_to_exitcode(status), *names)
    if os.waitstatus_to_exitcode(status) == 0:
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not sys.platform.startswith("linux"), reason="kills forked processes")
def test_a_killed_save_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    """Killed before each of its dealings with the file system in turn; the folder always loads."""
    done = subprocess.run([sys.executable, "-c", KILL, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    assert outcomes[-1] == "0 hist"
    assert outcomes[0] == "9 length"
    assert set(outcomes) == {"9 length", "9 hist", "0 hist"}
    assert len(outcomes) > 8


def refuse_writing(monkeypatch: pytest.MonkeyPatch, moment: int, number: int) -> list[str]:
    """Let the file system fail at its `moment`-th operation that writes, with this errno; the operations so far."""
    seen: list[str] = []

    def failing(module: Any, name: str) -> None:
        original = getattr(module, name)

        def operation(*args: Any, **options: Any) -> Any:
            seen.append(name)
            if len(seen) == moment:
                raise OSError(number, os.strerror(number))
            return original(*args, **options)

        monkeypatch.setattr(module, name, operation)

    for module, name in ((os, "mkdir"), (os, "fsync"), (os, "rename"), (os, "replace"), (builtins, "open")):
        failing(module, name)
    monkeypatch.setattr("tracr.saving.folders._swap", lambda first, second: False)
    return seen


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_read_only_is_told_of(tmp_path: Path, number: int) -> None:
    """Whenever it fails: the error names the folder, the old model is still there, and nothing else is."""
    old, new = example("length"), example("hist")
    moments = 0
    for moment in range(1, 100):
        folder = tmp_path / "model"
        old.save(folder, overwrite=True)
        with pytest.MonkeyPatch.context() as patch:
            seen = refuse_writing(patch, moment, number)
            refusal = None
            try:
                new.save(folder)
            except FormatError as error:
                refusal = error
        if len(seen) < moment:
            break
        if refusal is not None:  # a folder that cannot be forced to disk is none of the user's business
            moments += 1
            assert isinstance(refusal, OSError)
            assert str(folder) in str(refusal)
            assert refusal.diagnostic.hint
            assert_same(old, load_compiled(folder))
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert moments > 6


def test_paths_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """Too long, or below a file."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / ("x" * 300), tmp_path / "file" / "model", "/proc/nothing/model"):
        with pytest.raises(FormatError, match=r"cannot be written|is a file") as refusal:
            example("length").save(folder)
        assert refusal.value.diagnostic.hint
        with pytest.raises(FormatError, match="there is no folder"):
            load_compiled(folder)


# Damaged and hostile folders


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with lookups, pair lookups, a selector, an aggregate, a width and a weighted sum."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    balance = programs.make_pair_balance(rasp.tokens, "(", ")")
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")
    compile_quietly({"balance": balance, "table": count * rasp.indices}, "()", 4, level=0).save(folder)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(pristine, tmp_path / "model")
    return tmp_path / "model"


def sign(folder: Path) -> None:
    """Make the manifest agree with the files, as an attacker would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_max_memory_is_saved_where_it_is_not_the_default(tmp_path: Path) -> None:
    """So files from before there was such an option load, and others bring theirs."""
    for memory, written in (("2GB", None), ("1GB", 2**30)):
        example("reverse", max_memory=memory).save(tmp_path / memory)
        assert json.loads((tmp_path / memory / "model.json").read_text())["options"].get("max_memory") == written
        assert load_compiled(tmp_path / memory).options.max_memory == (written or 2**31)


def refused(folder: Path, match: str = ".") -> str:
    with pytest.raises(FormatError, match=match) as caught:
        load_compiled(folder)
    assert str(folder) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(folder: Path, name: str) -> None:
    """Missing, empty, cut short, with a bit flipped, a folder instead of a file."""
    data = (folder / name).read_bytes()
    for cut in (0, 1, 7, 8, 9, len(data) // 2, len(data) - 1):
        (folder / name).write_bytes(data[:cut])
        if name != "manifest.json" or cut < len(data) - 1:
            refused(folder)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    (folder / name).write_bytes(bytes(flipped))
    refused(folder)
    (folder / name).unlink()
    refused(folder, "is missing")
    (folder / name).mkdir()
    refused(folder, "not a regular file|cannot be read")


def test_no_folder_no_model(tmp_path: Path) -> None:
    """A clear message for a wrong path."""
    with pytest.raises(FormatError, match="there is no folder"):
        load_compiled(tmp_path / "nothing")
    refused(tmp_path, r"manifest\.json is missing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "does not say"),
        ("{", "is not JSON"),
        ("\xff", "does not say|is not JSON"),
        ("[" * 50_000, "nested too deep|is not JSON"),
        ('{"format": "tracr model", "version": 2}', "format version 2"),
        ('{"format": "tracr model", "version": "1"}', "format version '1'"),
        ('{"format": "tracr model", "version": 1}', "lacks 'files'"),
        ('{"format": "tracr model", "version": 1, "version": 1}', "twice"),
        ('{"format": "tracr model", "version": 1, "tracr": "0", "files": {}}', "lacks"),
        (" " * 70_000, "bytes, more than"),
    ],
)
def test_bad_manifests_are_refused(folder: Path, text: str, message: str) -> None:
    """Broken, of another version, too large."""
    (folder / "manifest.json").write_text(text, encoding="latin-1")
    refused(folder, message)
    assert not is_saved_model(folder) or "lacks" in message


def test_files_outside_the_folder_are_not_read(folder: Path, tmp_path: Path) -> None:
    """The names of the files are fixed; a path in the manifest is an unknown name."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../secret"] = manifest["files"].pop("model.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    refused(folder, "lacks 'model.json'")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.parametrize("name", FILES)
def test_devices_and_pipes_are_refused_without_waiting(folder: Path, name: str) -> None:
    """A file that never ends, a pipe nobody writes to."""
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    refused(folder, "not a regular file")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, "not a regular file")


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    """Sparse files of terabytes; models above the limit."""
    os.truncate(folder / "weights.safetensors", 2**40)
    refused(folder, "bytes, more than")
    os.truncate(folder / "weights.safetensors", 2**27)
    with pytest.raises(FormatError, match="bytes, more than"):
        load_compiled(folder, max_parameters=1000)


@pytest.mark.parametrize("level", LEVELS)
def test_folders_of_earlier_versions_load(level: int) -> None:
    """With the very weights that are saved, and the options that the program compiles with today."""
    model = tracr.load(Path(__file__).parents[1] / "data" / "saved" / f"hist_{level}")
    assert isinstance(model, tracr.CompiledModel)
    example = programs.EXAMPLES["hist"]
    fresh = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
    assert model.options == fresh.options
    assert model.graph == fresh.graph
    assert model.certified
    for (name, saved), (_, own) in zip(model.parameters.named(), fresh.parameters.named(), strict=True):
        assert np.array_equal(saved, own), name


def edit(path: str, value: Any) -> Callable[[Any], None]:
    """Put a value at a dotted path of a document; `...` deletes."""

    def apply(document: Any) -> None:
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for part in parents:
            document = document[part]
        if value is ...:
            del document[last]
        else:
            document[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("extra", 1, "unknown 'extra'"),
        ("options", ..., "lacks 'options'"),
        ("options", [], "not a JSON object"),
        ("options.max_seq_len", 10**12, "positions.*memory"),
        ("options.max_seq_len", 0, "rows|positive"),
        ("options.max_seq_len", True, "not an integer"),
        ("options.level", 7, "level"),
        ("options.level", 1, "labels|shape|lacks|compiles"),
        ("options.vocab", [], "vocabulary is empty"),
        ("options.vocab", ["a", "a"], "twice"),
        ("options.vocab", ["(", "a"], "not those of the input"),
        ("options.vocab.0", {"tuple": "x"}, "not a value"),
        ("options.vocab.0", {"pickle": "gASV"}, "not a value"),
        ("options.vocab.0", [1], "not a value"),
        ("options.bos", "(", "BOS"),
        ("options.causal", 1, "true or false"),
        ("program.lengths", [1, 99], "not between"),
        ("program.lengths", [1], "elements"),
        ("program.outputs", [], "outputs"),
        ("program.outputs.0.1", 999, "outputs"),
        ("program.sops.0.id", 1, "another s-op|does not exist|before"),
        ("program.sops.0.id", -1, "not between"),
        ("program.sops.0.op.kind", "eval", "not one of"),
        ("program.sops.0.op", None, "not one of"),
        ("program.sops.0.op.code", "import os", "unknown 'code'"),
        ("program.sops.0.domain.kind", "any", "not one of"),
        ("program.sops.0.domain.values", ["(", "("], "twice"),
        ("program.sops.0.domain.values", [], "not those of the input"),
        ("program.sops.0.encoding", "binary", "not one of"),
        ("program.sops.0.label", 3, "not a string"),
        ("program.sops", [], "outputs|tables without an s-op"),
        ("program.selectors", [], "tables without an s-op|does not exist"),
        ("program.selectors.0.keys", 77, "does not exist"),
        ("program.selectors.0.counts", [3, 1], "ascending"),
        ("residual", [], "labels are not"),
        ("residual.0", "tokens:x", "labels are not"),
        ("outputs.0.2", 3, "labels are not"),
        ("graph.nodes.0.2", [5], "before one of its inputs"),
        ("options.passes", ["share", "share"], "has a name twice"),
        ("graph.outputs.0.1", 99, "no node"),
        ("source", 3, "not a string"),
    ],
)
def test_hostile_programs_are_refused(folder: Path, path: str, value: Any, message: str) -> None:
    """Signed as if they had been saved like that."""
    document = json.loads((folder / "model.json").read_text())
    edit(path, value)(document)
    (folder / "model.json").write_text(json.dumps(document))
    sign(folder)
    refused(folder, message)


@pytest.mark.parametrize(
    "text",
    ["", "null", "{}", "[" * 200_000, '{"a":' * 50_000, "NaN", '{"options": Infinity}', "1" * 10_000, '"\\ud800"'],
)
def test_json_that_is_no_model_is_refused(folder: Path, text: str) -> None:
    """Nested without end, not a number, no object."""
    (folder / "model.json").write_text(text)
    sign(folder)
    refused(folder, r"model\.json")


def change(folder: Path, name: str, f: Callable[[dict[str, Any]], None]) -> None:
    tensors = safetensors.numpy.load_file(folder / name)
    f(tensors)
    safetensors.numpy.save_file(tensors, folder / name)
    sign(folder)


def weaken(tensors: dict[str, Any]) -> None:
    tensors["unembed.W_U"] = tensors["unembed.W_U"] * 0.999


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: t.pop("embed.W_E"), "no embed.W_E"),
        (lambda t: t.pop("unembed.W_U"), "lacks or should not have unembed.W_U"),
        (lambda t: t.update(extra=np.zeros(3)), "lacks or should not have extra"),
        (lambda t: t.update({"unembed.W_U": t["unembed.W_U"].astype(np.float32)}), "float32, not float64"),
        (lambda t: t.update({"unembed.W_U": t["unembed.W_U"][:, :1].copy()}), "shape"),
        (lambda t: t.update({"unembed.W_U": np.full_like(t["unembed.W_U"], np.nan)}), "not finite"),
        (lambda t: t.update({"embed.W_E": np.zeros(3)}), "no embed.W_E"),
        (weaken, "differs from the weights"),
    ],
)
def test_weights_that_are_not_the_programs_are_refused(folder: Path, f: Any, message: str) -> None:
    """Missing, of another shape or type, not finite, or simply changed; the program can still be compiled anew."""
    original = load_compiled(folder)
    change(folder, "weights.safetensors", f)
    refused(folder, message)
    if message == "differs from the weights":
        assert_same(original, load_compiled(folder, recompile=True))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: t.clear(), "no table"),
        (lambda t: t.update(extra=np.zeros(3, dtype=np.int32)), "tables without an s-op"),
        (lambda t: t.update({k: v.astype(np.int64) for k, v in t.items()}), "of type int64"),
        (lambda t: t.update({k: v - 9 for k, v in t.items()}), "without a meaning"),
        (lambda t: t.update({k: v + 99 for k, v in t.items()}), "outside its domain|neither 0 nor 1"),
        (lambda t: t.update({k: v[:1].copy() for k, v in t.items()}), "shape"),
    ],
)
def test_hostile_tables_are_refused(folder: Path, f: Any, message: str) -> None:
    """Cells outside the domain, other shapes and types."""
    change(folder, "tables.safetensors", f)
    refused(folder, message)


@pytest.mark.parametrize("name", ["weights.safetensors", "tables.safetensors"])
@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 8, b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"{}", b"\x80\x04K\x01.", b"PK\x03\x04" * 9]
)
def test_what_is_no_safetensors_is_refused(folder: Path, name: str, data: bytes) -> None:
    """Pickles, archives, headers that lie about their length."""
    (folder / name).write_bytes(data)
    sign(folder)
    refused(folder)


def leaves(document: Any, path: str = "") -> list[str]:
    """The paths of everything in a document."""
    if isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        found = [leaf for key, value in items for leaf in leaves(value, f"{path}.{key}" if path else str(key))]
        return [*found, path] if path else found
    return [path]


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [..., None, True, 0, -1, 3, 10**30, 0.5, 1e308, "", "x", [], {}, [0], {"tuple": []}, {"int": "x"}]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_change_to_the_program_loads_or_is_refused(pristine: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Whatever is put wherever: a model comes out or a FormatError, never another exception."""
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder)
    document = json.loads((folder / "model.json").read_text())
    edit(data.draw(st.sampled_from(leaves(document))), data.draw(JUNK))(document)
    (folder / "model.json").write_text(json.dumps(document))
    sign(folder)
    for recompile in (False, True):
        with contextlib.suppress(FormatError):
            load_compiled(folder, recompile=recompile)
