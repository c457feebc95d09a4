"""What notebooks show: HTML that is well formed, says what the object holds, and executes nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import tracr
from tracr import rasp
from tracr.model.stream import steps
from tracr.model.verification import Counterexample, Verification
from tracr.rasp.programs import EXAMPLES

VOID = {"br", "hr", "img"}


class Reader(HTMLParser):
    """Checks that tags close in order, and collects the texts outside <style>."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and data.strip():
            self.texts.append(data.strip())


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert not {"script", "iframe", "link"} & set(reader.tags)
    return reader


@pytest.fixture(scope="module")
def model() -> tracr.CompiledModel:
    return tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5, level=0)


def test_a_model_shows_its_components(model: tracr.CompiledModel) -> None:
    texts = read(model._repr_html_()).texts
    assert texts[0] == "CompiledModel(frac_prevs: 2 layers, 14 dimensions, 708 parameters, level 0)"
    assert {"is_x", "4 neurons", "frac_prevs", "rank 6", "residual stream, 14 dimensions"} <= set(texts)


def test_a_run_shows_its_stream(model: tracr.CompiledModel) -> None:
    """Changed cells are marked, no-ops named, and there are as many cells as the stream has."""
    html = model.run("xacx")._repr_html_()
    texts = read(html).texts
    assert "no-ops: attn 0, mlp 1" in texts
    assert "1, 0.5, 0.333, 0.5" in texts
    assert len(re.findall(r'class="[^"]*new', html)) == 2 + 4
    table = html.partition('class="stream"')[2].partition("</table>")[0]
    assert table.count("<td") == 14 * 3 * 5


def test_what_is_cleared_and_what_is_folded() -> None:
    """Of a level 2 model, with grey cells where a direction is not there."""
    example = EXAMPLES["shuffle_dyck"]
    narrow = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2)
    texts = read(narrow._repr_html_()).texts
    assert {"clears tokens", "MLP 0 (2 of them)", "folded: its readers read opens, closes instead"} <= set(texts)
    run = narrow.run(list("(a)"))
    html = run._repr_html_()
    read(html)
    times = [step.time for step in steps(narrow, run) if not step.idle]
    absent = sum(not dimension.held(time) for time in times for dimension in narrow.residual)
    assert len(re.findall(r'class="[^"]*gone', html)) == 4 * absent


def test_a_batch_shows_inputs_and_outputs(model: tracr.CompiledModel) -> None:
    """Padding is left out; of many inputs the first are shown."""
    texts = read(model.run([list("xacx"), list("ax")])._repr_html_()).texts
    assert {"x a c x", "a x", "0, 0.5"} <= set(texts)
    assert "… and 8 more" in read(model.run([list("xacx")] * 20)._repr_html_()).texts
    assert "x" in read(model.run(["x"])._repr_html_()).texts


def test_several_outputs_are_named() -> None:
    model = tracr.compile({"twice": 2 * rasp.indices, "length": rasp.length}, "ab", 3)
    for shown in (model.run("ab"), model.run([["a", "b"]]), model.run([list("ab"), list("ba")])):
        texts = read(shown._repr_html_()).texts
        assert {"twice", "0, 2", "length", "2, 2"} <= set(texts)


def test_tokens_and_names_are_no_html() -> None:
    """What is written in a program cannot break out of the page."""
    bad = "<script>alert(1)</script>"
    model = tracr.compile(rasp.Map(lambda token: token, rasp.tokens).named(bad), [bad, "&"], 2)
    for html in (model._repr_html_(), model.run([bad, "&"])._repr_html_()):
        assert bad in "".join(read(html).texts)
        assert bad not in html


def test_a_verification_shows_its_verdict(model: tracr.CompiledModel) -> None:
    assert read(model.verify(100)._repr_html_()).texts[0] == "✓"
    example = Counterexample(["a", "<b>"], True, "hist", [1, 1], [1, 2], "same", 1)
    texts = read(Verification(5, False, 0, example)._repr_html_()).texts
    assert texts[:2] == ["✗", "a sample of 5 inputs compared, padded and unpadded: the model is wrong"]
    assert {"a, <b> (padded)", "hist should be", "1, 1", "but is", "1, 2", "same at position 1"} <= set(texts)
    assert read(Verification(0, True, 0, None)._repr_html_()).texts[0] == "✗"


def test_large_models_stay_small_pages() -> None:
    """356 dimensions and 11 layers make a page of less than 300 kB."""
    example = EXAMPLES["dyck2"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=0)
    assert len(model._repr_html_()) < 20_000
    assert len(model.run("({})}(")._repr_html_()) < 300_000
