"""Programs in the words of their source: `.rasp` files, and functions in several steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tracr
from tests.agreement import compile_quietly
from tracr import CompiledModel
from tracr.cli.sources import GivenOptions, compiled, find
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr.viz.explorer.listing import Line, listing

FILES = sorted((Path(__file__).parents[3] / "examples" / "rasp").glob("*.rasp"))
INPUTS = {"tokens", "indices", "length"}


def lines_of(model: CompiledModel) -> list[Line]:
    return listing(model.program, model.expressions, model.source)


def from_text(path: Path, level: int = 1) -> CompiledModel:
    """A .rasp program as the command compiles it."""
    options = GivenOptions(level=level)
    model = compiled(find(str(path), None, options), options)
    assert isinstance(model, CompiledModel)
    return model


def shown(text: str, tmp_path: Path) -> Iterator[tuple[str, str, int | None]]:
    path = tmp_path / "mine.rasp"
    path.write_text(text, encoding="utf-8")
    return ((line.label, line.text, line.row) for line in lines_of(from_text(path)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_knows_its_row_and_its_words(path: Path) -> None:
    """The row is a line of the file, not a column; the words are there, and named lines are written as in the file."""
    model = from_text(path)
    source = path.read_text(encoding="utf-8")
    rows = source.split("\n")
    for line in lines_of(model):
        if line.label in INPUTS:
            assert line.row is None
            continue
        assert line.row is not None, line
        assert line.span is not None, line
        start, stop = line.span
        assert rows[line.row - 1] in source[: start + len(rows[line.row - 1])]
        assert source[:start].count("\n") == line.row - 1
        if rows[line.row - 1].startswith(f"{line.label} = "):
            assert line.text == source[start:stop] or line.text.endswith("…")
            assert f"{line.label} = {source[start:stop]};" in source


def test_a_part_of_a_library_function_is_not_given_the_words_of_the_call(tmp_path: Path) -> None:
    """Only the call's value is what was written."""
    found = list(shown('set example "aba"\nfirst = has_focus(select(indices, indices, <));\n', tmp_path))
    words = "has_focus(select(indices, indices, <))"
    assert [label for label, text, _ in found if text == words] == ["first"]
    assert all(row == 2 for label, _, row in found if label not in INPUTS)


def test_characters_outside_the_basic_plane_move_no_mark(tmp_path: Path) -> None:
    """Spans count characters as JavaScript does."""
    text = 'set example "a"\n# 🦜 and é\nmine = tokens == "a";\n'
    path = tmp_path / "mine.rasp"
    path.write_text(text, encoding="utf-8")
    (line,) = (line for line in lines_of(from_text(path)) if line.label == "mine")
    assert line.span is not None
    units = text.encode("utf-16-le")
    assert units[2 * line.span[0] : 2 * line.span[1]].decode("utf-16-le") == 'tokens == "a"'


def test_lines_of_another_file_have_no_row(tmp_path: Path) -> None:
    """The page has the text of one file; what that file loads is written elsewhere."""
    (tmp_path / "other.rasp").write_text('set example "aab"\n\n\nsame = select(tokens, tokens, ==);\n')
    loaded = 'set example "aab"\nload "other";\nhist = selector_width(same);\n'
    found = {label: row for label, _, row in shown(loaded, tmp_path)}
    assert found["hist"] == 3
    assert found["same"] is None


def test_a_loaded_model_keeps_its_rows(tmp_path: Path) -> None:
    """Rows are in the saved model; the words are not."""
    model = from_text(FILES[0])
    model.save(tmp_path / "model")
    loaded = tracr.load(tmp_path / "model")
    assert isinstance(loaded, CompiledModel)
    assert [line.row for line in lines_of(loaded)] == [line.row for line in lines_of(model)]


def test_functions_in_several_steps() -> None:
    """One formula; a sentence if a step has no such form."""
    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist")
    rare = (~(hist > 1)).named("rare")
    odd = rasp.Map(lambda n: n % 2, 3 - hist).named("odd")
    model = compile_quietly({"rare": rare, "odd": odd}, "ab", 4)
    texts = {line.label: line.text for line in lines_of(model)}
    assert texts["rare"] == "Map(not (x > 1), hist)"
    assert " then " not in texts["odd"]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_line_lists_steps(level: int) -> None:
    """No text of the form `f then g`, in the library and in the examples."""
    models = [from_text(path, level) for path in FILES if path.stem in ("dyck1", "dyck2", "addition")]
    models += [
        compile_quietly(one.program, one.vocab, one.max_seq_len, level=level)
        for name, one in EXAMPLES.items()
        if name in ("hist2", "dyck2", "shuffle_dyck")
    ]
    for model in models:
        assert not [line.text for line in lines_of(model) if " then " in line.text]
