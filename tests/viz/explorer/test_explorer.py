"""The explorer page: what it holds, how it is saved, and that its script is what the sources build to."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tracr
from tests.agreement import compile_quietly, load_compiled
from tracr import CompiledModel
from tracr.cli import app
from tracr.errors import InputError, WriteError
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES, make_sort
from tracr.viz.explorer.listing import listing

WEB = Path(__file__).parents[3] / "web"
MOST = 300_000  # bytes of the bundle


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    """The paper's first example."""
    return tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)


def data_of(html: str) -> dict[str, Any]:
    """The model in a page."""
    found = re.search(r'<script type="application/json" id="tracr-data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# The bundle


def bundle() -> str:
    return resources.files("tracr.viz.explorer").joinpath("explorer.js").read_text(encoding="utf-8")


def test_the_bundle_is_of_these_sources() -> None:
    """Its banner has the digest of web/src, as web/build.mjs takes it; and it is small."""
    digest = hashlib.sha256()
    for path in sorted((WEB / "src").rglob("*"), key=lambda path: path.relative_to(WEB).as_posix()):
        if path.is_file() and WEB / "src" / "playground" not in path.parents:  # another bundle
            digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    assert digest.hexdigest() in bundle().splitlines()[0], "run `make bundle`"
    assert len(bundle().encode()) <= MOST


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").exists(), reason="needs Node and `npm ci`"
)
def test_the_bundle_is_what_the_sources_build_to() -> None:
    """Built anew it has the same bytes."""
    done = subprocess.run(["node", "build.mjs", "--check"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_modules_of_the_page() -> None:
    """Their own tests, in Node."""
    tests = sorted(str(path) for path in (WEB / "tests").glob("*.test.js"))
    done = subprocess.run(["node", "--test", *tests], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_bundle_loads_nothing() -> None:
    """No address but the name of SVG, nothing that fetches, nothing that turns text into code or HTML."""
    addresses = set(re.findall(r"https?://[^\"'`\s]*", bundle()))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    for word in ("fetch(", "XMLHttpRequest", "import(", "eval(", "innerHTML", "document.write", "@import", "url("):
        assert word not in bundle()


# The page


def test_a_page_is_one_file_that_allows_itself_nothing(model: CompiledModel) -> None:
    """No links, and a policy that forbids every request."""
    html = model.explore().html
    assert "Content-Security-Policy" in html
    assert "default-src 'none'" in html
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\ssrc=", html.replace(bundle(), ""))


def test_the_same_model_gives_the_same_page(model: CompiledModel, tmp_path: Path) -> None:
    """Byte by byte; saved and loaded too."""
    again = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)
    assert again.explore("xa").html == model.explore("xa").html
    model.save(tmp_path / "model")
    assert load_compiled(tmp_path / "model").explore("xa").html == model.explore("xa").html


def test_whatever_is_in_a_name_stays_text(model: CompiledModel) -> None:
    """A script's end in the name does not end the script."""
    odd = "</script><script>alert(1)</script>"
    html = model.explore(name=odd, description=odd).html
    assert odd not in html
    assert data_of(html)["name"] == odd
    assert data_of(model.explore(name="\ud800").html)["name"] == "\ud800"
    assert model.explore(name="\ud800").html.encode()


def test_tokens_to_begin_with(model: CompiledModel) -> None:
    """Those given (without padding); else an input on which the program has a value."""
    assert data_of(model.explore(["x", "a", "pad"]).html)["input"] == [3, 0]
    with pytest.raises(InputError, match="'q' at position 1 is not in the vocabulary"):
        model.explore("xq")
    unique = EXAMPLES["sort_unique"]
    begun = data_of(compile_quietly(unique.program, unique.vocab, unique.max_seq_len).explore().html)["input"]
    assert len(set(begun)) == len(begun) == 4
    assert data_of(model.explore().html)["input"]


@pytest.mark.parametrize("level", [1, 2])
def test_variants_have_pages(level: int) -> None:
    """Along their directions, noise included; the circuit is that of the compiled model."""
    example = EXAMPLES["reverse"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    plain = data_of(model.explore("abc").html)
    noisy = model.with_noise(0.001)
    for variant in (model.rotated(), noisy):
        data = data_of(variant.explore("abc").html)
        assert (data["components"], data["edges"]) == (plain["components"], plain["edges"])
        assert data["weights"]["W_E"]["shape"] == plain["weights"]["W_E"]["shape"]
        assert (data["weights"] != plain["weights"]) == (variant is noisy)  # along its directions a rotation is exact


def test_weights_are_stored_sparse() -> None:
    """A page grows with the weights that are not zero, and with the tables."""
    program = make_sort(rasp.tokens, rasp.tokens, max_seq_len=12, min_key=1)
    large = tracr.compile(program, range(1, 13), 12, level=0)
    assert large.n_parameters > 150_000
    assert len(large.explore().html) < len(bundle()) + large.n_parameters


def test_saving_is_all_or_nothing(model: CompiledModel, tmp_path: Path) -> None:
    """The file, and nothing else; a folder that is not there is named."""
    path = model.explore().save(tmp_path / "page.html")
    path = model.explore("x").save(str(path))
    assert path.read_text(encoding="utf-8") == model.explore("x").html
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(WriteError, match="no such folder"):
        model.explore().save(tmp_path / "missing" / "page.html")


def test_open_shows_a_temporary_file(model: CompiledModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the browser, as a file."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    path = model.explore().open()
    assert path.exists()
    assert opened == [path.as_uri()]


def test_in_a_notebook(model: CompiledModel) -> None:
    """A frame with the page in it."""
    page = model.explore()
    shown = page._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert '"' not in shown.split('srcdoc="')[1].split('" title=')[0]
    assert re.fullmatch(r"Explorer\(frac_prevs · Tracr explorer: \d+ kB; .*\)", repr(page))


def test_values_of_any_type_have_a_text() -> None:
    """Even those that cannot be saved as JSON; equal ones know each other."""
    program = rasp.Map(lambda x: {"a": 1 + 2j, "b": True, "c": 10**400}[x], rasp.tokens)
    data = data_of(
        compile_quietly({"first": program, "ones": rasp.Map(lambda x: 1, rasp.tokens)}, "abc", 2).explore().html
    )
    texts = {text: (number, key) for text, number, key in data["values"]}
    assert texts["(1+2j)"][0] is None
    assert texts["1" + "0" * 400][0] is None
    assert texts["True"][1] == texts["1"][1]


# Dimensions that are used again (level 2)


@pytest.fixture(scope="module")
def narrow() -> dict[str, Any]:
    """A page whose model uses dimensions again, and folds."""
    example = EXAMPLES["shuffle_dyck"]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=2)
    return data_of(model.explore().html)


def test_directions_take_turns(narrow: dict[str, Any]) -> None:
    """No dimension holds two of them at a time; groups list their own."""
    width, dimensions = narrow["sizes"]["d_model"], narrow["dimensions"]
    assert len(dimensions) > width == 1 + max(dimension["slot"] for dimension in dimensions)
    for slot in range(width):
        turns = sorted((one for one in dimensions if one["slot"] == slot), key=lambda one: one["from"])
        assert all(one["until"] <= other["from"] for one, other in pairwise(turns))
    listed = [number for group in narrow["groups"] for number, _ in group["rows"]]
    assert sorted(listed) == list(range(len(dimensions)))
    for group in narrow["groups"]:
        assert all(dimensions[number]["label"].startswith(group["label"]) for number, _ in group["rows"])


def test_what_clears_is_no_writer(narrow: dict[str, Any]) -> None:
    """Every variable has one writer; those that are cleared have the neurons that say so."""
    labels = [group["label"] for group in narrow["groups"]]
    written = [labels[number] for part in narrow["components"] for number in part["writes"]]
    assert sorted(written) == sorted(labels)
    clearing = [part for part in narrow["components"] if part["clears"]]
    assert all(part["computes"] == f"clears {labels[number]}" for part in clearing for number in part["clears"])
    gone = {one["label"].partition(":")[0] for one in narrow["dimensions"] if one["until"] is not None}
    assert {labels[number] for part in clearing for number in part["clears"]} == gone


def test_cancelled_edges_are_told_from_the_others(narrow: dict[str, Any]) -> None:
    """What reads a dimension also reads what is cleared there; the other edges carry what is there."""
    parts, groups, dimensions = narrow["components"], narrow["groups"], narrow["dimensions"]
    cancelled = [edge for edge in narrow["edges"] if edge["cancelled"]]
    assert cancelled
    assert all(edge["cancelled"] for edge in narrow["edges"] if parts[edge["source"]]["clears"])
    for edge in narrow["edges"]:
        part = parts[edge["target"]]
        last = 2 * part["layer"] + (part["kind"] == "neurons") if part["layer"] is not None else 2 * 3
        there = [dimensions[number] for number, _ in groups[edge["group"]]["rows"]]
        held = any(one["from"] <= last and (one["until"] is None or last < one["until"]) for one in there)
        assert held or edge["cancelled"], (part["id"], groups[edge["group"]]["label"])


def test_folded_lines_say_what_is_read_instead(narrow: dict[str, Any]) -> None:
    """Variables that have no directions."""
    folded = {sop["label"]: sop["folded"] for sop in narrow["sops"] if sop["folded"] is not None}
    assert folded == {
        "map": ["length"],
        "bools_open": ["tokens"],
        "bools_close": ["tokens"],
        "balance_()": ["opens", "closes"],
    }


def test_absorbed_lines_say_what_became_of_them(narrow: dict[str, Any]) -> None:
    """Variables that others are computed without: they cannot be set."""
    assert {s["label"]: s["absorbed"] for s in narrow["sops"] if s["absorbed"]} == {"map_2": "part of shuffle_dyck"}


def test_values_in_bits_have_their_codes() -> None:
    """A vocabulary of more than 1,024 tokens has a page, with rows for the bits that are read."""
    data = data_of(tracr.compile(rasp.Map(lambda x: x % 2 == 0, rasp.tokens), range(1100), 2).explore().html)
    (tokens,) = (group for group in data["groups"] if group["label"] == "tokens")
    rows = [data["dimensions"][number]["label"] for number, value in tokens["rows"] if value is None]
    assert rows == [f"tokens:bit{bit}" for bit in range(11)]
    value, code = tokens["codes"][6]
    assert (data["values"][value][0], code) == ("6", [1, -1, -1] + [1] * 8)


# Tooltips and wires


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_readers_of_a_variable_are_the_wires_of_the_circuit(level: int) -> None:
    """Tooltips name the readers of its directions, without those of BOS and PAD; wires lead to the same components."""
    for name in ("hist2", "shuffle_dyck", "induction"):
        example = EXAMPLES[name]
        data = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level).explore().data
        parts = data["components"]

        def place(edge: dict[str, Any], parts: list[dict[str, Any]] = parts) -> str:
            part = parts[edge["target"]]
            if part["kind"] == "head":
                return f"blocks.{part['layer']}.attn.{part['head']}.{edge['input']}"
            return f"blocks.{part['layer']}.mlp" if part["kind"] == "neurons" else str(part["id"])

        for number, group in enumerate(data["groups"]):
            rows = [data["dimensions"][row] for row, _ in group["rows"]]
            told = {reader for row in rows if not row["special"] for reader in row["readers"]}
            shown = [edge for edge in data["edges"] if edge["group"] == number]
            shown = [
                edge for edge in shown if not (edge["plumbing"] or edge["cancelled"] or parts[edge["target"]]["clears"])
            ]
            assert group["constant"] or told == set(map(place, shown)), (name, group["label"])


# The listing


def test_a_line_for_every_operation() -> None:
    """Selectors stand before their first reader; labels are those of the compiled model."""
    model = tracr.compile(EXAMPLES["sort"].program, (1, 2, 3, 4), 4)
    assert [f"{line.label} = {line.text}" for line in listing(model.program, model.expressions)] == [
        "tokens = the input",
        "indices = the positions",
        "distinct_keys = SequenceMap(lambda key, index: key + min_key * below_max(index) / max_seq_len, "
        "tokens, indices)",
        "smaller = Select(distinct_keys, distinct_keys, Comparison.LT)",
        "target_pos = SelectorWidth(smaller)",
        "sel_sort = Select(target_pos, indices, Comparison.EQ)",
        "sort = Aggregate(sel_sort, tokens)",
    ]


def test_lines_of_the_source_file(tmp_path: Path) -> None:
    """Each line knows the row of the file it was written on, and the page has the file's text."""
    source = tmp_path / "mine.py"
    source.write_text('from tracr.rasp import rasp\n\nis_a = rasp.tokens == "a"\nmine = ~is_a\n')
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["explore", f"{source}:mine", "--vocab", "ab", "-o", str(page)])
    assert result.exit_code == 0, result.output
    data = data_of(page.read_text(encoding="utf-8"))
    assert data["source"] == source.read_text()
    assert [line["row"] for line in data["lines"] if line["text"] != "the input"] == [4]


# The command


def test_the_command_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the file named, or NAME.html; with the tokens given."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["explore", "sort", "3", "1", "2"])
    assert result.exit_code == 0, result.output
    assert re.match(r"sort.html: \d+ kB", result.output)
    data = data_of((tmp_path / "sort.html").read_text(encoding="utf-8"))
    assert data["input"] == [2, 0, 1]
    assert data["description"] == EXAMPLES["sort"].description


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    """An input with a token that is not in the vocabulary is refused with a message."""
    result = CliRunner().invoke(app, ["explore", "sort", "9", "-o", str(tmp_path / "page.html")])
    assert isinstance(result.exception, InputError)
    assert not (tmp_path / "page.html").exists()
