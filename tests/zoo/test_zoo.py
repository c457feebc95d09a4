"""Every program of the zoo does its task: the RASP program, the plain Python reference and the compiled model agree."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

import tracr
from tests.tiers import in_turn, usual
from tracr import zoo
from tracr.cli import app
from tracr.datasets import meaning
from tracr.nearness import ANSWER, same_value
from tracr.rasp.annotations import Encoding
from tracr.rasp.interpreter import evaluate
from tracr.zoo import Entry

NAMES = zoo.names()
model_of = cache(lambda name: zoo.load(name))
MOST = 6_000  # inputs of one program in the slow tier
INTERPRETED = usual(1_500, long=MOST)  # of these, by the interpreter, which is slower than the model


def inputs(entry: Entry, most: int) -> list[list[Any]]:
    """All inputs that the task is defined on, or a sample of them with every length and the shown one."""
    lengths = range(1, entry.max_seq_len + 1)
    if sum(len(entry.vocab) ** n for n in lengths) <= 4 * most:
        found = [list(xs) for n in lengths for xs in itertools.product(entry.vocab, repeat=n)]
    else:
        rng = random.Random(0)
        found = [rng.choices(entry.vocab, k=rng.choice([entry.max_seq_len, n])) for n in lengths for _ in range(most)]
    found = [xs for xs in found if entry.inputs.holds(xs)]
    chosen = found if len(found) <= most else random.Random(0).sample(found, most)
    return [list(entry.shown), *chosen]


def wrong(entry: Entry, xs: list[Any], answer: Any) -> str:
    """What is wrong with an answer; nothing if it is right."""
    right = entry.reference(xs)
    same = len(right) == len(answer) and all(map(_same, answer, right))
    return "" if same else f"{xs}: {answer} instead of {right}"


def _same(answer: Any, right: Any) -> bool:
    return same_value(answer, right, ANSWER)


@pytest.mark.parametrize("name", NAMES)
def test_program_and_model_do_the_task(name: str) -> None:
    """On a sample of inputs, at level 1."""
    entry = zoo.get(name)
    program, model = entry.program, model_of(name)
    for xs in inputs(entry, 40):
        assert not wrong(entry, xs, evaluate(program, xs, causal=entry.causal))
        assert not wrong(entry, xs, model(xs))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(NAMES, (0, 1, 2)))
def test_program_and_model_do_the_task_everywhere(name: str, level: int) -> None:
    """The model on all inputs, or thousands of them, at one level in turn; the interpreter on a part of them."""
    entry = zoo.get(name)
    tried = inputs(entry, MOST)
    program, answers = entry.program, entry.load(level)(tried)
    for number, (xs, answer) in enumerate(zip(tried, answers, strict=True)):
        assert not wrong(entry, xs, answer)
        if level == 1 and number % -(-len(tried) // INTERPRETED) == 0:
            assert not wrong(entry, xs, evaluate(program, xs, causal=entry.causal))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_other_sizes(name: str) -> None:
    """Another length is as right as the default one."""
    for length in (3, zoo.get(name).max_seq_len + 1):
        entry = zoo.get(name).made_for(max_seq_len=length)
        model = entry.load()
        for xs in inputs(entry, 100)[1:]:
            assert not wrong(entry, xs, model(xs))


def test_a_wrong_program_is_found() -> None:
    """The comparison sees a program that does another task."""
    entry = zoo.get("copy_next")
    assert wrong(entry, list("ab"), ["b", "b"]) == "['a', 'b']: ['b', 'b'] instead of ['b', '-']"
    assert wrong(entry, list("ab"), ["b"])


def test_there_are_enough() -> None:
    """The library, and at least sixty written for the zoo; causal and not, numerical and not, of many depths."""
    assert {*tracr.rasp.programs.EXAMPLES} == {*zoo.names("library")}
    written = [entry for entry in zoo.entries() if "library" not in entry.tags]
    assert len(written) >= 60
    assert sum(entry.causal for entry in written) > 30
    assert sum(not entry.causal for entry in written) > 30
    assert sum("numerical" in entry.tags for entry in written) > 8
    layers = [model_of(entry.name).n_layers for entry in written]
    assert {1, 2, 3, 4, 5, 6, 8} <= {*layers}


def test_entries_describe_themselves() -> None:
    """One sentence, tags with the family first, a small default size, and an example within it."""
    for entry in zoo.entries():
        assert entry.description
        assert entry.description[-1] != "."
        assert entry.tags
        assert entry.max_seq_len <= 8
        assert 2 <= len(entry.vocab) <= 7
        assert {*entry.shown} <= {*entry.vocab}
        assert 0 < len(entry.shown) <= entry.max_seq_len
        assert entry.inputs.holds(entry.shown)
        numerical = model_of(entry.name).outputs[0].encoding is Encoding.NUMERICAL
        assert ("numerical" in entry.tags, "causal" in entry.tags) == (numerical, entry.causal)


def tasks() -> Iterator[tuple[str, Any]]:
    """Each entry with its answers to all inputs of up to five of three tokens, tokens replaced by numbers."""
    for entry in zoo.entries():
        few = tuple(dict.fromkeys((*entry.vocab[:2], entry.vocab[-1])))
        names: dict[Any, Any] = {token: f"token {number}" for number, token in enumerate(few)}
        answers = []
        for length in range(1, 6):
            for xs in itertools.product(few, repeat=length):
                defined = entry.inputs.holds(xs)
                answers.append([names.get(x, x) for x in entry.reference(xs)] if defined else "undefined")
        yield entry.name, (len(few), repr(answers), entry.causal)


def test_no_two_entries_are_one_program() -> None:
    """Their tabulated programs differ, and so do their tasks on short inputs, whatever the tokens are called."""
    meanings = {meaning(model_of(entry.name).program) for entry in zoo.entries()}
    assert len(meanings) == len(NAMES)
    seen: dict[Any, list[str]] = {}
    for name, answers in tasks():
        seen.setdefault(answers, []).append(name)
    alike = sorted(group for group in seen.values() if len(group) > 1)
    assert alike == [["sort", "sort_composite"]]  # the library sorts in two ways


def test_unknown_names_are_refused() -> None:
    """With a suggestion."""
    with pytest.raises(tracr.TracrError, match=r"the zoo has no program 'copy_nxt'(.|\n)*did you mean copy_next"):
        zoo.get("copy_nxt")
    with pytest.raises(tracr.TracrError, match="no entry of the zoo has the tag 'bracket'"):
        zoo.names("bracket")


def test_another_vocabulary() -> None:
    """The builder makes the program for it; one that the task is not defined for is refused."""
    assert zoo.load("caesar", vocab="xyz", max_seq_len=4)("xyzx") == list("yzxy")
    assert zoo.load("hist", causal=True)("aa") == [1, 2]
    with pytest.raises(tracr.TracrError, match="max_seq_len must be a positive integer"):
        zoo.load("hist", max_seq_len=0)
    with pytest.raises(tracr.VocabularyError, match="needs a vocabulary of 0 and 1"):
        zoo.load("rule_110", vocab="ab")


def run(*words: str) -> str:
    return CliRunner().invoke(app, words, catch_exceptions=False).output


def test_command_line_lists_and_shows() -> None:
    """Those with a tag; one with its example and its components."""
    listed = json.loads(run("zoo", "--tag", "brackets", "--json"))
    assert [row["name"] for row in listed] == zoo.names("brackets")
    assert {row["name"]: row["layers"] for row in listed}["dyck1"] == 5
    assert "depth" in run("zoo", "--tag", "brackets")
    shown = run("zoo", "induction_head")
    assert "output - - - b c" in " ".join(shown.split())
    assert "blocks.0.attn.0  Copies tokens from the position right before" in shown
    assert "layers 2, up to 1 head per layer difficulty easy (heads and MLPs: 2)" in " ".join(shown.split())
    assert "layers 1, no heads difficulty easy (heads and MLPs: 1)" in " ".join(run("zoo", "square").split())


def test_commands_take_programs_of_the_zoo() -> None:
    """With their own attention; a library name without the prefix stays the library's."""
    (got,) = json.loads(run("run", "zoo:hist_so_far", "a", "a", "b", "a", "--json"))["model"].values()
    assert got == [1, 2, 1, 3]
    assert json.loads(run("info", "zoo:hist_so_far", "--json"))["causal"]
    assert not json.loads(run("info", "zoo:hist", "--json"))["causal"]
    assert json.loads(run("info", "zoo:hist", "--causal", "--json"))["causal"]
    with pytest.raises(tracr.TracrError, match="needs inputs with no token more than twice"):
        run("run", "zoo:induction_head", "a", "a", "a")
    with pytest.raises(tracr.TracrError, match="the zoo has it: zoo:hist_so_far"):
        run("run", "hist_so_far", "a")
    with pytest.raises(tracr.TracrError, match="causal attention, which draw does not draw"):
        run("draw", "zoo:hist_so_far")
