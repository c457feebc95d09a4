"""The figures, judged as a reader would: what they show is there, is right and can be read."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import tracr
from tests.agreement import load_compiled
from tests.library import compiled
from tests.tally import Tally, compiling
from tests.tiers import in_turn, pairwise, slow, usual
from tests.viz.reading import unreadable, words
from tracr import CompiledModel, rasp, viz
from tracr.ir.options import LEVELS
from tracr.model.stream import steps
from tracr.rasp.programs import EXAMPLES
from tracr.viz.canvas import ABSENT, RED
from tracr.viz.selectors import selected

PAPER = {
    "frac_prevs": "xacx",
    "sort_unique": [3, 4, 1, 2],
    "sort": [3, 1, 3, 2],
    "pair_balance": "(()a)",
    "shuffle_dyck2": "({)}",
    "dyck2": "({})}(",
}


@cache
def wide() -> CompiledModel:
    """A model with more than a hundred dimensions, most of them one variable's."""
    pair = rasp.SequenceMap(lambda token, place: (token, place), rasp.tokens, rasp.indices).named("pair")
    same = rasp.Select(pair, pair, rasp.Comparison.EQ).named("same")
    return tracr.compile(rasp.Aggregate(same, rasp.tokens).named("itself"), "abcdefghij", 8, level=0)


def chain(length: int) -> CompiledModel:
    """A model of so many layers, each of which shifts what the one before wrote."""
    before = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1).named("before")
    sop: rasp.SOp = rasp.tokens
    for number in range(1, length + 1):
        sop = rasp.Aggregate(before, sop).named(f"step{number}")
    return tracr.compile(sop, "ab", 6, level=0)


def longest_input(name: str) -> list[Any]:
    example = EXAMPLES[name]
    return [example.vocab[place % len(example.vocab)] for place in range(example.max_seq_len)]


def drawn(model: CompiledModel, kind: str, tokens: Any) -> Figure:
    return model.figure(kind, tokens if kind in viz.OF_AN_INPUT else None)


def bordered(figure: Figure) -> int:
    """How many cells have a red border."""
    shapes: list[Any] = figure.findobj(PolyCollection)
    red = (s for s in shapes if len(s.get_edgecolor()) and tuple(s.get_edgecolor()[0]) == to_rgba(RED))
    return sum(len(shape.get_paths()) for shape in red)


def test_the_judge_finds_what_cannot_be_read() -> None:
    """Texts that are tiny, cut off or on top of each other are found, or the tests below would say nothing."""
    figure = Figure(figsize=(4, 4))
    for x, size, text in ((0.1, 10, "one"), (0.12, 10, "two"), (0.5, 4, "three"), (0.95, 10, "four")):
        figure.text(x, 0.5, text, size=size)
    assert unreadable(figure) == ["'three' is tiny", "'four' is cut off", "'one' overlaps 'two'"]


@pytest.mark.parametrize(("kind", "name", "level"), pairwise(viz.KINDS, tuple(PAPER), LEVELS))
def test_the_papers_programs_can_be_read(kind: str, name: str, level: int) -> None:
    """No text of any figure is tiny, cut off or on top of another."""
    assert unreadable(drawn(compiled(name, level), kind, PAPER[name])) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(EXAMPLES, LEVELS))
@pytest.mark.parametrize("kind", viz.KINDS)
def test_every_program_of_the_library_can_be_read(kind: str, name: str, level: int) -> None:
    assert unreadable(drawn(compiled(name, level), kind, longest_input(name))) == []


@pytest.mark.parametrize(
    "tokens",
    [["$x$", "a\n", " "], ["中", "é", "🙂"], ["a very long token indeed", "b", "c" * 60], [1 / 3, True, (1, 2)]],
)
@pytest.mark.parametrize("kind", viz.KINDS)
def test_odd_tokens_are_drawn_as_they_are(kind: str, tokens: list[Any]) -> None:
    """Dollars are no formulas, control characters and glyphs that the font lacks are escaped, long words fit."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ).named("$same$")
    model = tracr.compile(
        rasp.Aggregate(same, rasp.tokens).named("a name that goes on and on, and on, and on"), tokens, 3
    )
    assert unreadable(drawn(model, kind, tokens)) == []


@pytest.mark.parametrize("kind", viz.KINDS)
@pytest.mark.parametrize("program", [rasp.tokens, rasp.indices, rasp.length], ids=str)
def test_models_with_hardly_anything_in_them(program: rasp.SOp, kind: str) -> None:
    """A model without layers, heads or neurons has figures too."""
    assert unreadable(drawn(tracr.compile(program, "ab", 2), kind, "a")) == []


def test_long_inputs_are_broken_into_strips() -> None:
    """Sixty positions do not make a figure of sixty inches, nor labels that touch."""
    model = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 60)
    figure = model.figure("stream", "abcx" * 15)
    assert figure.get_size_inches()[0] < 15
    assert unreadable(figure) == []


@pytest.mark.parametrize("name", PAPER)
def test_red_borders_are_the_changes(name: str) -> None:
    """As many cells have a red border as the sub-layers changed, the embedding apart."""
    model = compiled(name, 0)
    changes = sum(int(step.changed.sum()) for step in steps(model, model.run(PAPER[name]))[1:])
    assert bordered(model.figure("stream", PAPER[name])) == changes


def test_the_papers_first_figure() -> None:
    """Five panels; every dimension has its row; two sub-layers are no-ops; the output's numbers are written."""
    said = words(compiled("frac_prevs", 0).figure("stream", "xacx"))
    assert [word for word in said if word.split()[0] in ("Embed", "Attn", "MLP")] == [
        "Embed",
        "Attn 0",
        "MLP 0",
        "Attn 1",
        "MLP 1",
    ]
    assert said.count("no-op") == 2
    rows = ["tokens", "a", "b", "c", "x", "bos", "pad", "indices", "0", "1", "2", "3", "4", "one", "is_x", "frac_prevs"]
    assert [word for word in said if word in rows][: len(rows)] == rows
    assert said.count("0.33") == 2


def test_rows_that_stay_zero_are_left_out_where_there_are_many() -> None:
    """`rows` decides; a note says how many are missing."""
    model = wide()
    assert "77 more: 0" in words(model.figure("stream", "abc"))
    assert not any("more: 0" in word for word in words(model.figure("stream", "abc", rows="all")))
    assert unreadable(model.figure("stream", "abc", rows="all")) == []
    assert any("more: 0" in word for word in words(compiled("sort", 0).figure("stream", [1, 2], rows="used")))


def test_a_strip_has_what_its_sublayers_read_or_write() -> None:
    """Of a chain of twelve attentions the first row of panels has the first results, the second the last ones."""
    figure = chain(12).figure("stream", "ababab")
    said = words(figure)
    assert said.count("Attn 2") == said.count("Attn 11") == 1
    assert said.count("step1") == said.count("step12") == 1
    assert said.count("tokens") == 2
    assert any(word.startswith("No-ops are not shown: MLP 0, MLP 1, MLP 2") for word in said)
    assert unreadable(figure) == []


def greys(figure: Figure) -> list[float]:
    """The heights of the rows of panels that are not there, from top to bottom of the page."""
    found = [box for box in figure.findobj(Rectangle) if box.get_facecolor() == to_rgba(ABSENT)]
    return [round(box.get_y(), 3) for box in found if box.get_width() > 0.5]


@pytest.mark.parametrize(("name", "tokens"), [("shuffle_dyck", "(a)"), ("reverse", "abca"), ("sort_freq", "abbc")])
def test_rows_are_grey_where_it_is_not_their_turn(name: str, tokens: str) -> None:
    """As many as directions that are not there, over all sub-layers; cleared cells have red borders too."""
    model = compiled(name, 2)
    stages = steps(model, model.run(list(tokens)))
    absent = sum(not dimension.held(step.time) for step in stages for dimension in model.residual)
    figure = model.figure("stream", list(tokens))
    assert len(greys(figure)) == absent
    assert bordered(figure) == sum(int(step.changed.sum()) for step in stages[1:])
    assert "not stored: not written yet, or cleared" in words(figure)
    assert greys(compiled(name, 1).figure("stream", list(tokens))) == []


def test_an_intervention_is_shown() -> None:
    """A run can be given instead of an input."""
    model = compiled("frac_prevs", 0)
    changed = model.run("xacx", set={"is_x": [True, True, True, True]})
    assert words(model.figure("stream", changed)).count("0.33") == 0


@pytest.mark.parametrize("name", [*PAPER, "induction", "sort_composite"])
def test_heads_attend_to_what_their_selectors_select(name: str) -> None:
    """The figure says so for every head of every program, to all of it or to the head's part."""
    said = words(compiled(name, 1).figure("attention", longest_input(name)))
    heads = sum(len(layer.heads) for layer in compiled(name, 1).layout.layers)
    parts = said.count("one of 2 heads that add up to the selector")
    assert said.count("attends evenly to the selected keys") + parts == heads > 0


def test_attention_on_many_equal_tokens() -> None:
    """Every position keeps its own row."""
    model = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 50)
    figure = model.figure("attention", "a" * 50)
    assert words(figure).count("a") == 4 * 50
    assert unreadable(figure) == []


def test_attention_that_is_not_the_selectors_is_found() -> None:
    """With another selector's name on a head, the figure says by how much it differs; with none, that there is none."""
    model = compiled("sort_unique", 0)

    def renamed(selector: str) -> CompiledModel:
        layers = model.layout.layers
        head = replace(layers[1].heads[0], selector=selector)
        schedule = replace(model.schedule, layers=(layers[0], replace(layers[1], heads=(head,))))
        compilation = replace(model.compilation, layout=replace(model.layout, schedule=schedule))
        return replace(model, compilation=compilation)

    only = ["blocks.1.attn.0"]
    assert "differs from the selector by 1.00" in words(renamed("smaller").figure("attention", [3, 1, 2], only=only))
    figure = renamed("of the compiler's own").figure("attention", [3, 1, 2], only=only)
    assert "not a selector" in words(figure)
    assert unreadable(figure) == []


TOGETHER = {
    "width": "one of 2 heads: all keys minus those not selected",
    "mean": "one of 2 heads that add up to the selector",
}


def combined(reader: str) -> rasp.SOp:
    """A selector that takes two heads, read in one of two ways."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ).named("same")
    earlier = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT).named("earlier")
    either = (same | earlier).named("either")
    width, mean = rasp.SelectorWidth(either), rasp.Aggregate(either, rasp.tokens == "a")
    return (width if reader == "width" else mean).named(reader)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("reader", ["width", "mean"])
def test_several_heads_of_one_selector(reader: str, level: int) -> None:
    """Each is drawn beside the whole selector, its faint attention to keys made visible."""
    model = tracr.compile(combined(reader), "abc", 5, level=level)
    figure = model.figure("attention", "abcab")
    said = words(figure)
    assert said.count(TOGETHER[reader]) == 2
    assert sum(text.startswith("attention (keys × 2^") for text in said) == 2
    assert unreadable(figure) == []


@pytest.mark.parametrize("causal", [False, True])
def test_loaded_models_know_their_selectors(tmp_path: Path, causal: bool) -> None:
    """The tables of a loaded model select what the interpreter says, combined ones too."""
    programs = {"induction": EXAMPLES["induction"].program, "width": combined("width"), "none": 1 * combined("mean")}
    model = tracr.compile(programs, "abc", 5, causal=causal)
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    expected, found = selected(model, list("abcab")), selected(loaded, list("abcab"))
    heads = {head.selector for layer in model.layout.layers for head in layer.heads}
    assert heads
    for name in heads:
        np.testing.assert_array_equal(found[name], expected[name])
    assert unreadable(loaded.figure("attention", "abcab")) == []
    assert unreadable(loaded.figure("graph")) == []


def test_weights_are_labelled() -> None:
    """W_QK of frac_prevs: -256 for each of the ten pairs that are not selected, under the labels of the dimensions."""
    said = words(compiled("frac_prevs", 0).figure("weights", only=["blocks.1.attn.0"]))
    assert said.count("-256") == 10
    assert {"tokens:bos", "tokens:pad", "indices:0", "indices:4", "one", "is_x", "frac_prevs"} <= set(said)
    assert "W_QK (largest 640)" in said
    biased = words(compiled("frac_prevs", 1).figure("weights", only=["blocks.1.attn.0"]))
    assert "1 (bias)" in biased


def test_weights_have_the_names_of_their_time() -> None:
    """Values stand in their order, whichever dimensions they are in; what clears says so."""
    model = compiled("sort_freq", 2)
    said = words(model.figure("weights", only=["blocks.1.mlp.0"]))
    keys = [float(word.partition(":")[2]) for word in said if word.startswith("distinct_keys:")]
    assert keys == [dimension.value for dimension in model.residual.of("distinct_keys")] == sorted(keys)
    assert model.residual.indices("distinct_keys") != sorted(model.residual.indices("distinct_keys"))
    cleared = words(model.figure("weights", only=["blocks.1.mlp.1"]))
    assert cleared[1] == "clears hist, 4 neurons"
    assert [word for word in cleared if ":" in word] == [f"hist:{count}" for count in (1, 2, 3, 4)] * 2


def test_large_bases_are_drawn_thin() -> None:
    """80 values of one variable have one label."""
    figure = wide().figure("weights")
    assert words(figure).count("pair: 80 values") == 3  # written by neurons, read by queries and by keys
    assert unreadable(figure) == []


def test_numbers_are_not_written_into_thin_rows() -> None:
    """The mean of a one-hot number reads each of its 80 values with a weight, into one column."""
    number = rasp.SequenceMap(lambda token, place: 10 * place + token, rasp.tokens, rasp.indices)
    everything = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    mean = rasp.Aggregate(everything, rasp.categorical(number).named("number"))
    figure = tracr.compile(mean, range(10), 8, level=0).figure("weights")
    assert "number: 80 values" in words(figure)
    assert unreadable(figure) == []


@pytest.mark.parametrize("seed", [532, *slow((537, 539, 540, 1, 2))])
def test_random_programs_can_be_read(seed: int) -> None:
    """And their heads attend to what is selected, or to their part of it."""
    judge_random_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, usual(1020, long=1050), 10))
def test_many_random_programs_can_be_read(start: int) -> None:
    """The same for more of them."""
    with Tally(least=0.9) as tally:
        for seed in range(start, start + 10):
            with tally.draw():
                judge_random_program(seed)


def judge_random_program(seed: int) -> None:
    causal = seed % 3 == 0
    program = tracr.random_program(seed, causal=causal, min_ops=3, max_ops=9, min_selectors=1, composite=True)
    with compiling():
        model = tracr.compile(program, "abc", 5, causal=causal, level=seed % 2)
    for kind in viz.KINDS:
        figure = drawn(model, kind, "abca")
        assert unreadable(figure) == []
        assert not any(word.startswith("differs") for word in words(figure))


def test_the_graph_has_every_operation_with_its_values() -> None:
    """The nodes of the program, their value sets and encodings, and which input of a selector is which."""
    said = words(compiled("shuffle_dyck2", 0).figure("graph"))
    assert {node.label for node in compiled("shuffle_dyck2", 0).graph.nodes} <= set(said)
    assert {"{(, ), {, }}", "{0, 0.25, 0.333, 0.5, …} 7 values", "Aggregate, numerical"} <= set(said)
    assert said.count("k, q") == 4
    assert {"k", "q", "v"} <= set(said)


def test_the_layers_hold_every_component() -> None:
    """What sits where, and the no-ops."""
    said = words(compiled("pair_balance", 0).figure("layers"))
    assert said[0] == "embedding: tokens, indices, one"
    assert said.count("no-op") == 1
    assert {"bools_open", "closes", "reads opens, closes", "head of rank 6", "2 neurons"} <= set(said)
    assert said[-1] == "unembedding: pair_balance"


def test_the_layers_say_what_is_cleared_and_what_is_folded() -> None:
    """One dashed box for all the neurons of a sub-layer that clear."""
    said = words(compiled("shuffle_dyck", 2).figure("layers"))
    assert {"clears tokens, length_share, opens, closes", "clears indices"} <= set(said)
    assert "nothing" not in said
    below = " ".join(said[said.index("unembedding: shuffle_dyck") + 1 :])
    assert below.startswith("Folded into their readers: map from length; bools_open from tokens;")
    assert below.endswith("balance_() from opens, closes")


@pytest.mark.parametrize("kind", viz.KINDS)
def test_a_figure_is_drawn_in_the_users_axes(kind: str) -> None:
    """It fits whatever size the axes takes, and the figure returned is the axes'."""
    figure = Figure(figsize=(20, 10), layout="constrained")
    left, right = figure.subplots(1, 2)
    model = compiled("frac_prevs", 0)
    tokens = "xacx" if kind in viz.OF_AN_INPUT else None
    assert model.figure(kind, tokens, ax=left) is figure
    right.set_title("another")
    assert unreadable(figure) == []


def test_an_axes_too_small_to_read_is_warned_of() -> None:
    """The warning says how large it should be."""
    figure = Figure(figsize=(2, 2))
    compiled("shuffle_dyck2", 0).figure("stream", "({)}", ax=figure.subplots())
    with pytest.warns(tracr.TracrWarning, match=r"needs about 11\.\d by 9\.\d inches"):
        unreadable(figure)


def test_figures_show_themselves_in_notebooks_and_the_same_each_time() -> None:
    """As SVG, with the same bytes for the same model."""
    first, second = (compiled("frac_prevs", 0).figure("stream", "xacx") for _ in range(2))
    svg: str = first._repr_svg_()  # type: ignore[attr-defined]
    assert svg.startswith("<?xml")
    assert svg == second._repr_svg_()  # type: ignore[attr-defined]


def test_pyplot_is_never_loaded(tmp_path: Path) -> None:
    """Nothing is shown, no window opened, no global figure kept."""
    script = """
import sys, tracr
from tracr.rasp.programs import EXAMPLES
model = tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)
model.figure("stream", "xacx").savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "figure.png")], check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stream",), "'stream' needs an input"),
        (("graph", "x"), "'graph' takes no input"),
        (("picture",), "no figure 'picture'\n  hint: there are stream, graph"),
        (("stream", ["x", "a"], {"rows": "some"}), "no rows 'some'"),
        (("stream", "x", {"only": ["attn 8"]}), "no sub-layer 'attn 8'\n  hint: there are embed, attn 0"),
        (("stream", "x", {"colour": "red"}), "no option 'colour'\n  hint: it has rows, only, width, ax"),
        (("stream", [list("xa"), list("ax")]), "one input, not a batch of 2"),
        (("attention", [list("xa"), list("ax")]), "one input, not a batch of 2"),
        (("attention", "x", {"only": ["blocks.0.attn.0"]}), "there are blocks.1.attn.0"),
        (("weights", None, {"only": ["blocks.0"]}), "there are blocks.0.mlp.0, blocks.1.attn.0"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[Any, ...], message: str) -> None:
    rest: tuple[Any, ...] = (None, {})
    kind, tokens, options = arguments + rest[len(arguments) - 1 :]
    with pytest.raises(tracr.TracrError) as error:
        compiled("frac_prevs", 0).figure(kind, tokens, **options)
    assert message in str(error.value)


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(tracr.MissingExtra, match=r"pip install 'tracr\[viz\]'"):
        compiled("frac_prevs", 0).figure("graph")
