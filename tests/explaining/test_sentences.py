"""Every component has a role and a sentence that a person would write; formulas and selections say what tables hold.

`python -m tests.explaining.test_sentences` writes the golden texts anew; read what changed.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.tally import NotCompared, Tally, compiling
from tests.tiers import slow
from tracr import CompiledModel, lab, zoo
from tracr.explaining.components import explanations
from tracr.explaining.roles import HEAD_ROLES, NEURON_ROLES, ROLES
from tracr.explaining.selections import Relation, relation, selected
from tracr.ir.domains import Finite
from tracr.ir.ops import Lookup, PairLookup, SumLookup, formula
from tracr.ir.selectors import SelectorNode
from tracr.natural.backing_up import backup
from tracr.nearness import same_value
from tracr.rasp import programs, rasp
from tracr.rasp.function_text import ARGUMENTS, is_known
from tracr.rasp.generate import random_program
from tracr.rasp.rasp import Value

GOLDEN = Path(__file__).parent.parent / "golden" / "sentences.txt"
TEN = (
    "hist",
    "sort",
    "reverse",
    "shuffle_dyck",
    "dyck2",
    "most_freq",
    "induction_head",
    "nary_sequencemap",
    "hist_bos",
    "sentiment",
)
CLUMSY = re.compile(
    r"<[a-z]|SequenceMap\(|\bMap\(|Select\(|Comparison\.|object at|\(x|\bx\b|\by\b|functools|\bkeys\b of"
)


load = functools.cache(lambda name, level: zoo.load(name, level=level))


def told(model: CompiledModel) -> dict[str, str]:
    """The sentences of a model."""
    return {name: one.sentence for name, one in lab.roles_of(model, "neuron_group").items()}


def check(model: CompiledModel) -> None:
    """Every head, group of neurons, embedding and unembedding has known roles and a plain sentence."""
    labels = {node.label for node in model.program.sops.values()}
    for node in model.ground_truth.nodes():
        assert node.roles
        assert {*node.roles} <= {*ROLES}
        if node.kind in ("head", "neurons"):
            assert {*node.roles} <= {*(HEAD_ROLES if node.kind == "head" else NEURON_ROLES)}
        assert node.sentence[0].isupper()
        assert node.sentence.endswith(".")
        assert "...." not in node.sentence + node.computes
        plain = re.sub(r"'[^']*'", "", node.sentence)
        for label in sorted(labels, key=len, reverse=True):
            plain = re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", "", plain)
        assert not CLUMSY.search(plain), node.sentence


LIBRARY, OTHERS = zoo.names("library"), [name for name in zoo.names() if name not in zoo.names("library")]
EVERY = [
    *((name, level) for name in LIBRARY for level in (0, 1, 2)),
    *((name, level) for name in OTHERS for level in (1, 2)),
    *slow((name, 0) for name in OTHERS),
]


@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each[0]}-{each[1]}")
def test_zoo(each: tuple[str, int]) -> None:
    """The library and the zoo, at all levels."""
    name, level = each
    check(load(name, level))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_random_programs(level: int) -> None:
    """Their functions are objects with fields, whose text is no text for readers: sentences have a few examples."""
    with Tally(0.8) as tally:
        for seed in range(24):
            with tally.draw(), compiling():
                vocab: tuple[Value, ...] = ((1, 2, 3), ("a", "b", "c"))[seed % 2]
                program = random_program(seed, max_ops=6, vocab=vocab, max_seq_len=4)
                check(compile_quietly(program, vocab, 4, level=level))


def golden() -> str:
    """The sentences of ten programs, at levels 1 and 2."""
    lines = []
    for name in TEN:
        for level in (1, 2):
            lines.append(f"== {name}, level {level}")
            lines += [f"{node}: {sentence}" for node, sentence in told(load(name, level)).items()]
    return "\n".join(lines) + "\n"


def test_golden_sentences() -> None:
    """Ten programs, word for word."""
    assert golden() == GOLDEN.read_text(encoding="utf-8")


def test_the_example_of_the_issue() -> None:
    """A lambda, a function with a name, a lambda whose source is not known, and a name given by the programmer."""

    def grade(x: int) -> str:
        return "many" if x > 2 else "few"

    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: key == query)).named(
        "equal_tokens"
    )
    limit = 2
    written = rasp.Map(lambda count: count > limit, hist).named("often")
    named = rasp.Map(grade, hist).named("grade_of")
    unknown = rasp.Map(eval("lambda x: 'yes' if x > 2 else 'no'"), hist).named("answer")
    outputs = {"a": written, "b": named, "c": unknown}
    sentences = told(tracr.compile(outputs, vocab="abc", max_seq_len=4))
    assert sentences == {
        "embed": "Writes tokens.",
        "pos_embed": "Writes nothing.",
        "blocks.0.attn.0": "Counts, for equal_tokens, the positions with the same token.",
        "blocks.0.mlp.0": "Turns the count of the positions with the same token into equal_tokens.",
        "blocks.1.mlp.0": "Computes often: whether equal_tokens > 2.",
        "blocks.1.mlp.1": "Computes grade_of = grade(equal_tokens): 1 -> 'few', 2 -> 'few', 3 -> 'many', 4 -> 'many'.",
        "blocks.1.mlp.2": "Looks up answer by equal_tokens: 1 -> 'no', 2 -> 'no', 3 -> 'yes', 4 -> 'yes'.",
        "unembed": "Reads out a, b, c.",
    }


def test_all_texts_come_from_one_source() -> None:
    """Ground truth, the explorer's data, `tracr info`, the stream and notebooks say the same sentence."""
    from tracr.cli.description import parts
    from tracr.model.stream import steps
    from tracr.viz.explorer.data import page_data
    from tracr.viz.notebook import model_html

    model = zoo.load("hist2")
    sentence = explanations(model.program, model.layout.schedule)["blocks.0.attn.0"].sentence
    assert sentence == "counts, for hist, the positions with the same token"
    assert model.explanations["blocks.0.attn.0"].sentence == sentence
    assert any(node.computes.endswith(f": {sentence}.") for node in model.ground_truth.nodes())
    assert sentence in [part.computes for part in parts(model)]
    assert any(sentence in step.computes for step in steps(model, model.run("aab")))
    assert sentence in model_html(model)
    assert sentence in str(page_data(model, "aab", "hist2", ""))


def test_a_loaded_model_says_the_same(tmp_path: Path) -> None:
    """Lambdas too: their text is saved with the program."""
    for name in ("sort", "dyck2", "induction"):
        model = zoo.load(name, level=2)
        model.save(tmp_path / name)
        loaded = load_compiled(tmp_path / name)
        assert loaded.ground_truth.to_json() == model.ground_truth.to_json()


# Texts against tables


def tables() -> Iterator[CompiledModel]:
    """The zoo at level 2, where tables are composed, and random programs."""
    for name in zoo.names():
        yield load(name, 2)
    for seed in range(25):
        try:
            with compiling():
                yield compile_quietly(
                    random_program(seed, max_ops=6, vocab=(1, 2, 3), max_seq_len=4), (1, 2, 3), 4, level=2
                )
        except NotCompared:
            continue


def test_formulas_compute_their_tables() -> None:
    """Evaluated on all values, a formula without unknown names gives the values of its table."""
    compared = 0
    for model in tables():
        for node in model.program.sops.values():
            if isinstance(node.op, Lookup | PairLookup | SumLookup) and is_known(formula(node.op.function)):
                compared += _agrees(model, node)
    assert compared > 200


def _agrees(model: CompiledModel, node: Any) -> bool:
    """Whether the formula of a table could be evaluated; where it could, it must give the table's values."""
    text = formula(node.op.function)
    if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", text) and text not in ARGUMENTS:
        return False  # a name
    domains: list[Any] = [model.program.sops[number].domain for number in node.op.inputs]
    if isinstance(node.op, SumLookup) or not all(isinstance(domain, Finite) for domain in domains):
        return False
    for place in np.argwhere(node.op.table >= 0).tolist():
        given = {name: domain.values[code] for name, domain, code in zip(ARGUMENTS, domains, place, strict=False)}
        try:
            value = eval(text, {}, given)  # our own text, in a test
        except NameError:
            return False
        except (TypeError, ValueError, ZeroDivisionError, KeyError, IndexError, AttributeError):
            continue  # None stops a composition; no input gives these values
        wanted = node.domain.values[node.op.table[tuple(place)]]
        if None in given.values():
            continue
        assert same_value(value, wanted) or bool(value) == wanted, (text, given, value, wanted)
    return True


def test_relations_are_those_of_the_tables() -> None:
    """The words for a selector are made from a relation that holds in every cell."""
    found: set[str] = set()
    for model in tables():
        for selector in model.program.selectors.values():
            one = relation(model.program, selector) if isinstance(selector, SelectorNode) else None
            if one is not None:
                found.add(one.symbol)
                _holds(model, selector, one)
    assert found >= {"==", "<", ">", "<=", "near"}


def _holds(model: CompiledModel, selector: Any, one: Relation) -> None:
    keys, queries = model.program.sops[selector.keys].domain, model.program.sops[selector.queries].domain
    for row, query in enumerate(queries.values):  # type: ignore[union-attr]
        for column, key in enumerate(keys.values):  # type: ignore[union-attr]
            if selector.table[row, column] >= 0:
                words = {"key": key, "query": query, "offset": one.offset}
                text = "abs(key - query) <= offset" if one.symbol == "near" else f"key {one.symbol} query"
                text += " + offset" if one.offset and one.symbol != "near" else ""
                assert eval(text, {}, words) == bool(selector.table[row, column])


SELECTIONS = [
    (lambda key, query: key == query, "this position"),
    (lambda key, query: key != query, "the positions other than this one"),
    (lambda key, query: key < query, "the positions before this one"),
    (lambda key, query: key <= query, "the positions up to this one"),
    (lambda key, query: key > query, "the positions after this one"),
    (lambda key, query: key >= query, "the positions from this one on"),
    (lambda key, query: key == query - 1, "the position right before this one"),
    (lambda key, query: key == query + 2, "the position 2 after this one"),
    (lambda key, query: key <= query - 2, "the positions at least 2 before this one"),
    (lambda key, query: key <= query + 1, "the positions up to 1 after this one"),
    (lambda key, query: key >= query - 1, "the positions from 1 before this one on"),
    (lambda key, query: abs(key - query) <= 1, "the positions at most 1 away from this one"),
    (lambda key, query: key == 1, "position 1"),
    (lambda key, query: key in (0, 3), "the positions whose number is 0 or 3"),
    (lambda key, query: True, "all positions"),
    (lambda key, query: False, "no position"),
    (lambda key, query: query == 2, "the positions if this position's number is 2"),
    (lambda key, query: (key + query) % 3 == 0, "the positions whose number fits this position's number (0: 0, 3"),
]


@pytest.mark.parametrize(("predicate", "words"), SELECTIONS)
def test_words_for_selections(predicate: Any, words: str) -> None:
    """Comparisons of positions with positions."""
    selector = rasp.Select(rasp.indices, rasp.indices, predicate)
    program = tracr.compile(rasp.SelectorWidth(selector), vocab="ab", max_seq_len=5, level=0).program
    (number,) = program.selectors
    assert selected(program, number).startswith(words)


def test_words_for_combinations() -> None:
    """And, or, not; tokens and computed variables."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    hist = rasp.SelectorWidth(same).named("hist")
    rare = rasp.Select(hist, 1, rasp.Comparison.EQ)
    frequent_here = rasp.Select(rasp.indices, hist, lambda key, query: query > 2)
    always = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    said = {
        (same & before): "the positions before this one with the same token",
        (same | (before & rare)): "the positions with the same token or (before this one whose hist is 1)",
        ~(same & before): "the positions except those (before this one with the same token)",
        (rare & ~before & same): "the positions from this one on whose hist is 1 and with the same token",
        (rare & ~(same & before)): "the positions whose hist is 1 except those (before this one with the same token)",
        (~(same & before) | rare): "the positions whose hist is 1 or not (before this one with the same token)",
        (frequent_here & same & before): "the positions before this one with the same token if here hist is at least 3",
        (before & always): "the positions before this one",
        ((same & always) | rare): "the positions with the same token or whose hist is 1",
        (~(same & before) | same): "all positions",
        (same & (rare & before)): "the positions before this one with the same token and whose hist is 1",
        ((same & before) | (same & ~(before & rare & same)) | same): "the positions with the same token",
        rasp.Select(
            hist, rasp.indices, rasp.Comparison.GEQ
        ): "the positions whose hist is at least this position's number",
        rasp.Select(rasp.indices, hist, rasp.Comparison.EQ): "the position given by hist",
    }
    for selector, words in said.items():
        program = tracr.compile(rasp.SelectorWidth(selector), vocab="ab", max_seq_len=4, level=0).program
        width = program.sops[program.outputs[0][1]].op
        assert selected(program, width.selector) == words  # type: ignore[union-attr]


def test_positions_before_are_not_positions_so_far() -> None:
    """A causal model says "so far" where nothing else says that positions come before."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    near = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key <= query - 2)
    said = {
        before: "the positions before this one",
        (same & before): "the positions before this one with the same token",
        near: "the positions at least 2 before this one",
        same: "the positions so far with the same token",
    }
    for selector, words in said.items():
        width = rasp.SelectorWidth(selector)
        program = tracr.compile(width, vocab="ab", max_seq_len=4, level=0, causal=True).program
        assert selected(program, program.sops[program.outputs[0][1]].op.selector) == words  # type: ignore[union-attr]


def test_sums_are_collected() -> None:
    """A variable occurs once in a sum, and not at all if its factors add up to 0; signs are not doubled."""
    twice = rasp.LinearSequenceMap(rasp.indices, rasp.indices, -1.5, -1).named("twice")
    double = rasp.LinearSequenceMap(rasp.length, rasp.indices, 0, 2).named("double")
    assert "computes twice = -2.5 * indices" in sentences_of(twice)
    assert "computes double = 2 * indices" in sentences_of(double)
    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist")
    assert "computes more = hist + 2" in sentences_of((hist - -2).named("more"), level=1)


def sentences_of(program: Any, level: int = 0) -> list[str]:
    """The sentences of all components."""
    model = tracr.compile(program, vocab="ab", max_seq_len=5, level=level)
    return [one.sentence for one in model.explanations.values()]


def test_fractions_are_short() -> None:
    """Tables show fractions as readers write them."""
    third = rasp.Map(share_of, rasp.indices).named("third")
    assert "computes third = share_of(indices): 0 -> 1.0, 1 -> 0.5, 2 -> 0.3333, 3 -> 0.25, ..." in sentences_of(third)


def share_of(index: int) -> float:
    """A function with a name."""
    return 1 / (index + 1)


def test_codes_are_not_computed_twice() -> None:
    """Neurons that write a variable in another code say so: they do not compute its formula."""
    total = rasp.numerical(rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1, 2).named("total"))
    least = rasp.Aggregate(rasp.Select(total, total, rasp.Comparison.GEQ), rasp.indices)
    model = tracr.compile(least, vocab="ab", max_seq_len=4, level=0)
    said = [(one.roles, one.sentence) for one in model.explanations.values()]
    assert (("add",), "computes total = 3 * indices") in said
    assert (("map",), "turns the number total into its code") in said
    assert len({sentence for _, sentence in said}) == len(said)


def test_backups_say_so() -> None:
    """The second computation of a variable, and the neurons that choose between the two."""
    hist = tracr.compile(programs.make_hist(), vocab="ab", max_seq_len=3)
    said = {name: (*one.roles, one.sentence) for name, one in backup(hist, "hist").explanations.items()}
    equal = "the positions with the same token"
    assert said == {
        "blocks.0.attn.0": ("count", f"counts, for hist, {equal}"),
        "blocks.1.attn.0": ("count", f"counts, for hist, {equal}, if hist is missing"),
        "blocks.0.mlp.0": ("decode", f"turns the count of {equal} into hist"),
        "blocks.1.mlp.0": ("decode", f"turns the count of {equal} into hist, if hist is missing"),
        "blocks.2.mlp.0": ("combine", "takes hist, or its backup where hist is missing"),
    }


def test_a_condition_that_never_holds_is_a_comparison() -> None:
    """The role of a test does not depend on its result."""
    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist")
    model = tracr.compile(rasp.numerical((hist == -1).named("never")), vocab="ab", max_seq_len=3, level=0)
    found = [one for one in model.explanations.values() if "never" in one.sentence]
    assert [(one.roles, one.sentence) for one in found] == [(("compare",), "computes never: whether hist == -1")]


def in_table(table: list[list[bool]], key: int, query: int) -> bool:
    """A predicate that is known by its table only."""
    return table[query][key]


def test_selections_are_not_confused() -> None:
    """Random tables over positions: different tables have different words, unless these list a few examples."""
    rng = random.Random(0)
    known: dict[str, list[list[bool]]] = {}
    for _ in range(60):
        table = [[rng.random() < 0.4 for _ in range(3)] for _ in range(3)]
        selector = rasp.Select(rasp.indices, rasp.indices, functools.partial(in_table, table))
        program = tracr.compile(rasp.SelectorWidth(selector), vocab="ab", max_seq_len=3, level=0).program
        (number,) = program.selectors
        words = selected(program, number)
        assert known.setdefault(words, table) == table


if __name__ == "__main__":
    GOLDEN.write_text(golden(), encoding="utf-8")
