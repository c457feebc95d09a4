"""`tracr figure`, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tracr
from tests.cli.calling import invoke
from tracr.cli import app
from tracr.cli.drawing import FigureKind
from tracr.rasp import rasp
from tracr.viz import KINDS

pytest.importorskip("matplotlib")

BEGINNINGS = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str) -> None:
    """One file is written, nothing beside it, and the same the next time."""
    target = tmp_path / f"fig{suffix}"
    said = invoke("figure", "frac_prevs", "--input", "x,a,c,x", "--level", 0, "-o", target)
    assert said == f"{target}: stream of frac_prevs, 9.2 by 3.5 inches\n"
    first = target.read_bytes()
    assert first.startswith(BEGINNINGS[suffix])
    invoke("figure", "frac_prevs", "--input", "xacx", "--level", 0, "-o", target)
    assert target.read_bytes() == first
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [(), ("3", "1", "2"), ("--input", "3,1,2", "--width", "9")], ids=len)
def test_kinds_can_be_looped_over(tmp_path: Path, kind: str, words: tuple[str, ...]) -> None:
    """Every kind takes the same words: with an input, which only some of them show, and without one."""
    assert f"{kind} of sort" in invoke("figure", "sort", *words, "--kind", kind, "-o", tmp_path / "fig.svg")


def test_the_command_knows_every_kind() -> None:
    assert {kind.value for kind in FigureKind} == set(KINDS)


def test_a_figure_without_an_input_shows_the_program_s_own(tmp_path: Path) -> None:
    """The same file as with that input."""
    for words in ((), ("3", "1", "2", "1")):
        invoke("figure", "sort", *words, "-o", tmp_path / f"{len(words)}.svg")
    assert (tmp_path / "0.svg").read_bytes() == (tmp_path / "4.svg").read_bytes()


def test_parts_can_be_chosen(tmp_path: Path) -> None:
    """--only, --rows and --width reach the figure."""
    target = tmp_path / "fig.svg"
    whole = invoke("figure", "sort", "--input", "3,1,2", "-o", target)
    part = invoke("figure", "sort", "--input", "3,1,2", "--only", "embed", "--only", "mlp 0", "-o", target)
    used = invoke("figure", "sort", "--input", "3,1,2", "--rows", "used", "-o", target)
    narrow = invoke("figure", "sort", "--input", "3,1,2", "--width", "6", "-o", target)
    assert len({whole, part, used, narrow}) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "stream", "--vocab", "pq"), "'stream' needs an input"),
        (("--kind", "graph", "--input", "x,q"), "token 'q' at position 1 is not in the vocabulary"),
        (("--input", "xaxaxa"), "add --max-len 6"),
        (("--kind", "graph", "--rows", "all"), "'graph' has no option 'rows'"),
        (("--input", "x,q"), "token 'q' at position 1 is not in the vocabulary"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """And leave no file behind."""
    result = CliRunner().invoke(app, ["figure", "frac_prevs", *words, "-o", str(tmp_path / "fig.pdf")])
    assert isinstance(result.exception, tracr.TracrError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"), [("fig.xyz", ".pdf"), ("fig", ".svg"), ("no/fig.pdf", "there is no folder")]
)
def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str, message: str) -> None:
    result = CliRunner().invoke(app, ["figure", "frac_prevs", "--kind", "graph", "-o", str(tmp_path / name)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "strem"), "there is no strem; did you mean stream?"),
        (("--rows", "usd"), "there is no usd; did you mean used"),
        (("--knd", "graph"), "there is no option --knd; did you mean --kind"),
        (("x", "--input", "x"), "the input is typed twice"),
    ],
)
def test_names_that_are_almost_right(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["figure", "frac_prevs", *words, "-o", str(tmp_path / "fig.svg")])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


WORDS = [
    (("sort", "3", "1", "2"), "sort([3, 1, 2])"),
    (("sort", "3,1,2"), "sort([3, 1, 2])"),
    (("sort", "--input", "3,1,2"), "sort([3, 1, 2])"),
    (("sort", "--input", "312"), "sort([3, 1, 2])"),
    (("sort", "--input", "[3, 1, 2]"), "sort([3, 1, 2])"),
    (("sort",), "sort([3, 1, 2, 1])"),
    (("sort", "--input", "9,7", "--vocab", "7,9", "--max-len", "5"), "sort([9, 7])"),
    (("FILE", "hello"), 'twice("hello")'),
    (("FILE",), 'twice("abba")'),
    (("FILE", "hist"), 'hist("abba")'),
    (("FILE", "hist", "hello"), 'hist("hello")'),
    (("FILE:hist", "he"), 'hist("he")'),
    (("FILE", "--name", "hist", "--input", "h,e"), 'hist("he")'),
]


@pytest.mark.parametrize(
    ("words", "title"), WORDS, ids=lambda given: "_".join(given) if isinstance(given, tuple) else ""
)
def test_draw_and_figure_take_the_same_inputs(tmp_path: Path, words: tuple[str, ...], title: str) -> None:
    """The same words, with the same meaning."""
    file = tmp_path / "hist.rasp"
    file.write_text('set example "abba"\nhist = selector_width(select(tokens, tokens, ==));\ntwice = 2 * hist;\n')
    program = [word.replace("FILE", str(file)) for word in words]
    said = invoke("draw", *program, "-o", tmp_path / "draw.svg")
    assert said.startswith(f"{tmp_path / 'draw.svg'}: {title}: ")
    assert "the model (tracr info) can have more layers" in said
    assert f"stream of {title.partition('(')[0]}, " in invoke("figure", *program, "-o", tmp_path / "figure.svg")


@pytest.mark.parametrize("words", [("--input", ""), ("",), ("--vocab", "7,8")])
def test_nothing_is_drawn_on_an_input_nobody_gave(words: tuple[str, ...]) -> None:
    """The empty input, and an example that does not fit the vocabulary, are not replaced by another."""
    with pytest.raises(tracr.TracrError, match=r"an empty input has nothing to draw|has no example that fits"):
        CliRunner().invoke(app, ["draw", "sort", *words], catch_exceptions=False)


def test_drawings_are_svg(tmp_path: Path) -> None:
    """A file of another kind is refused, on the command line and in Python."""
    result = CliRunner().invoke(app, ["draw", "sort", "-o", str(tmp_path / "x.png")])
    assert result.exit_code == 2
    assert "must end in .svg" in " ".join(result.output.split())
    with pytest.raises(tracr.TracrError, match=r"x.png does not end in .svg"):
        tracr.draw(rasp.tokens, "ab").save(tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []
