"""The explorer page: what it holds, how it is saved, and that its script is what the sources build to."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tracr
from tests.agreement import compile_quietly
from tracr import CompiledModel
from tracr.cli import app
from tracr.errors import InputError
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES, make_sort
from tracr.viz.explorer.listing import listing

WEB = Path(__file__).parents[2] / "web"
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
        if path.is_file():
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
    assert tracr.load(tmp_path / "model").explore("xa").html == model.explore("xa").html


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
    with pytest.raises(FileNotFoundError, match="no such folder"):
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


# The listing


def test_a_line_for_every_operation() -> None:
    """Selectors stand before their first reader; labels are those of the compiled model."""
    model = tracr.compile(EXAMPLES["sort"].program, (1, 2, 3, 4), 4)
    assert [f"{line.label} = {line.text}" for line in listing(model.typed, model.graph)] == [
        "tokens = the input",
        "indices = the positions",
        "distinct_keys = SequenceMap(lambda key, index: key + min_key * index / max_seq_len, tokens, indices)",
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
    """A token that is none."""
    result = CliRunner().invoke(app, ["explore", "sort", "9", "-o", str(tmp_path / "page.html")])
    assert isinstance(result.exception, InputError)
    assert not (tmp_path / "page.html").exists()
