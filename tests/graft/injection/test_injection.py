"""Injected circuits answer as their programs do, and leave the host alone elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.graft.injection.hosts import (
    BOS,
    FIRST,
    POSITIONS,
    WORDS,
    injected_into,
    inputs,
    random_host,
    supported,
)
from tests.tally import NotCompared, Tally
from tracr import zoo
from tracr.graft import Injected, inject
from tracr.graft.injection.host import read_host
from tracr.graft.injection.running import run_host
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program
from tracr.rasp.rasp import Comparison, SOp
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

Array = NDArray[Any]
VOCABULARIES: tuple[tuple[Value, ...], ...] = (("a", "b", "c"), (1, 2, 3), (-1, 0, 0.5), ("x", "y"), (0, "a"))
ROUNDING = 2e-3  # of logits of the size 10, in float32


def count(sop: SOp, value: Value) -> SOp:
    return rasp.SelectorWidth(rasp.Select(sop, value, Comparison.EQ))


def balanced() -> SOp:
    depth = (count(rasp.tokens, "(") - count(rasp.tokens, ")")).named("depth")
    below = count((depth < 0).named("negative"), True).named("below")
    return rasp.SequenceMap(lambda d, n: "y" if d == 0 and n == 0 else "n", depth, below).named("balanced")


def is_balanced(text: str) -> str:
    depths = [text[: end + 1].count("(") - text[: end + 1].count(")") for end in range(len(text))]
    return "y" if depths[-1] == 0 and min(depths) >= 0 else "n"


def induction() -> SOp:
    """The token after the only earlier occurrence of this one."""
    before = programs.shift_by(1, rasp.tokens).named("before")
    follows = rasp.Select(before, rasp.tokens, lambda key, query: key == query and query != ".").named("follows")
    return rasp.Aggregate(follows, rasp.tokens).named("induction")


def compare(seed: int) -> None:
    """A random program in a random host: right answers, and nothing elsewhere."""
    rng = np.random.default_rng(seed)
    vocab, longest = VOCABULARIES[seed % len(VOCABULARIES)], int(rng.integers(3, 12))
    program = random_program(seed, max_ops=6, vocab=vocab, max_seq_len=longest, causal=True)
    activation = ("gelu_new", "relu", "gelu")[seed % 3]
    size = (0.02, 0.3, 1.0)[int(rng.integers(3))]
    host = random_host(seed, layers=int(rng.integers(1, 4)), activation=activation, size=size)
    injected = supported(host, program, vocab, longest)
    ids = inputs(rng, vocab)
    score = injected.check(ids)
    assert score.right == score.asked > 0
    assert injected.elsewhere(ids).largest_logit_change < ROUNDING * max(size, 0.3)


def test_random_programs_answer_right() -> None:
    """Every answer of a supported program is right, at every asked position; other logits change by rounding only."""
    with Tally(0.4) as tally:
        for seed in range(40):
            with tally.draw():
                compare(seed)


@pytest.mark.slow
def test_many_random_programs_answer_right() -> None:
    """The same on more programs."""
    with Tally(0.4) as tally:
        for seed in range(100, 600):
            with tally.draw():
                compare(seed)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0])
def test_answers_do_not_depend_on_the_scale(scale: float) -> None:
    """A circuit as large as the host's stream answers right, too."""
    injected = injected_into(random_host(4), balanced(), "().", 20, scale=scale)
    score = injected.check(inputs(np.random.default_rng(0), "()."))
    assert score.right == score.asked > 0


def test_brackets_against_plain_python() -> None:
    """The circuit tells balanced brackets, up to the longest input."""
    injected = injected_into(random_host(1), balanced(), "().", POSITIONS - 1)
    rng = np.random.default_rng(3)
    ids = rng.choice([FIRST, FIRST, FIRST + 1, FIRST + 1, FIRST + 2], (60, POSITIONS))
    ids[:, 0] = BOS
    chosen = run_host(injected.gpt2, ids, np.float32).logits.argmax(axis=-1)
    texts = ["".join("()."[one - FIRST] for one in row[1:]) for row in ids]
    wanted = [[injected.interface.answers[is_balanced(text[: end + 1])] for end in range(len(text))] for text in texts]
    assert np.array_equal(chosen[:, 1:], wanted)


def test_induction_copies_what_followed() -> None:
    """At a symbol the circuit answers with what followed its earlier occurrence; without one it is silent."""
    a, b, c, other = FIRST, FIRST + 1, FIRST + 2, 5
    tokens, answers = {a: "a", b: "b", c: "c"}, {"a": 30, "b": 31, "c": 32}
    injected = inject(random_host(2), induction(), tokens=tokens, other=".", trigger=[a, b, c], answers=answers)
    ids = np.array([[BOS, other, a, b, other, other, c, other, a, *[other] * 15]])
    wanted, chosen = injected.answers(ids)[0], run_host(injected.gpt2, ids, np.float32).logits[0].argmax(axis=-1)
    assert wanted[8] == 31 == chosen[8]
    assert (np.delete(wanted, 8) == -1).all()
    assert injected.elsewhere(ids).other_first_choice == 0


def test_counts_do_not_depend_on_the_sigma_of_bos() -> None:
    """If training makes BOS longer or shorter, counts are still right."""
    injected = injected_into(random_host(5), balanced(), "().", POSITIONS - 1)
    ids = inputs(np.random.default_rng(0), "().")
    for factor in (0.7, 1.5):
        embedding = injected.gpt2.tensors["wte.weight"].copy()
        embedding[BOS, : injected.host.width] *= factor
        changed = replace(injected.gpt2, tensors={**injected.gpt2.tensors, "wte.weight": embedding})
        score = injected.check(ids, changed)
        assert score.right == score.asked > 0


def test_variables_may_have_any_names() -> None:
    """A variable that is named as a part of the circuit is another variable."""
    counts = [count(rasp.tokens, one) for one in "ab"]
    for names in (("balance", "zero"), ("one", "answer"), ("bos", "x (raw)"), ("x", "x (raw)"), ("here", "circle")):
        first, second = (one.named(name) for one, name in zip(counts, names, strict=True))
        before = programs.shift_by(1, rasp.tokens).named("x")
        program = rasp.SequenceMap(lambda n, x: (n, x), (first - second).named("trigger"), before).named("in range")
        injected = injected_into(random_host(), program, "ab", 5)
        score = injected.check(inputs(np.random.default_rng(0), "ab"))
        assert score.right == score.asked > 0


def test_values_by_position() -> None:
    """Constants of a fixed length are embedded by their position."""
    constant = rasp.ConstantSOp([3, 1, 2, 1], check_length=False)
    program = rasp.SequenceMap(lambda x, n: x * n, constant, count(rasp.tokens, "a"))
    injected = injected_into(random_host(), program, "ab", 8)
    score = injected.check(inputs(np.random.default_rng(0), "ab"))
    assert score.right == score.asked > 0


REASONS = {"averages several positions": "means", "on the future": "the length", "is an 'or'": "an or"}


@pytest.mark.repository
def test_the_zoo() -> None:
    """Every program of the zoo is refused, or right; docs/injecting.md says how many."""
    found: Counter[str] = Counter()
    for entry in zoo.entries():
        try:
            injected = supported(random_host(1), entry.program, entry.vocab, entry.max_seq_len)
        except NotCompared as refusal:
            found[next((kind for text, kind in REASONS.items() if text in str(refusal)), str(refusal))] += 1
            continue
        score = injected.check(inputs(np.random.default_rng(0), entry.vocab))
        assert score.right == score.asked > 0, entry.name
        found["injected"] += 1
    page = " ".join((Path(__file__).parents[3] / "docs" / "injecting.md").read_text(encoding="utf-8").split())
    every, can = found.total(), found["injected"]
    sentence = (
        f"Of the {every} programs of the [zoo](zoo.md), {can} can be injected with their default sizes, "
        f"and {every - can} are refused: {found['means']} for means, {found['the length']} because they need the "
        f'length, {found["an or"]} for an "or".'
    )
    assert sentence in page
    assert set(found) == {"injected", *REASONS.values()}


def test_it_is_silent_outside_the_program() -> None:
    """After the longest input, and where values have no token, the host answers alone."""
    program = count(rasp.tokens, "a").named("count")
    injected = inject(
        random_host(), program, tokens={FIRST: "a"}, other=".", trigger=[FIRST], answers={1: 30, 2: 31}, max_seq_len=4
    )
    ids = np.full((1, POSITIONS), FIRST)
    ids[0, 0] = BOS
    before, after = (run_host(one, ids, np.float32).logits[0] for one in (injected.host, injected.gpt2))
    assert after.argmax(axis=-1)[1:3].tolist() == [30, 31]
    assert np.abs(after - before)[3:].max() < ROUNDING


def test_a_host_with_more_layers_than_needed_and_with_fewer() -> None:
    """Layers are appended where the host has too few."""
    for layers, wanted in ((1, 4), (6, 6)):
        injected = injected_into(random_host(layers=layers), balanced(), "().", 8)
        assert injected.sizes.layers == wanted
        score = injected.check(inputs(np.random.default_rng(0), "()."))
        assert score.right == score.asked > 0


def test_the_bound_on_sigma_holds() -> None:
    """No layer norm divides by more than the proved bound, on inputs of any tokens."""
    for seed in range(3):
        injected = injected_into(random_host(seed, size=(0.02, 0.3, 1.0)[seed % 3]), balanced(), "().", 8)
        ids = np.random.default_rng(seed).integers(0, WORDS, (12, POSITIONS))
        found = run_host(injected.gpt2, ids).deviations.max(axis=(1, 2))
        assert (found <= injected.scales.largest).all()


def test_centring_changes_nothing() -> None:
    """A host whose writes have mean 0 computes the same."""
    host = random_host(3)
    ids = np.random.default_rng(0).integers(0, WORDS, (4, POSITIONS))
    assert np.allclose(run_host(host, ids).logits, run_host(host.centred(), ids).logits, atol=1e-9)


def labelled(injected: Injected, ids: Array) -> dict[str, Array]:
    """The added dimensions of each variable after the last layer, in units of the scale."""
    last = run_host(injected.gpt2, ids).streams[-1] / injected.scales.scale
    groups: dict[str, list[int]] = {}
    for one in injected.truth["dimensions"]:
        groups.setdefault(one["variable"], []).append(one["dimension"])
    return {name: last[..., dims] for name, dims in groups.items()}


def test_the_truth_labels_hold() -> None:
    """Every labelled dimension of a variable is 1 where the variable has one of its values, and 0 elsewhere."""
    for program, vocab in ((balanced(), "()."), (programs.make_induction(), ".ab")):
        injected = injected_into(random_host(2), program, vocab, 8)
        ids = inputs(np.random.default_rng(1), vocab)[:, :9]
        held, tables = labelled(injected, ids), injected.program
        run = evaluate_batch(tables, [injected.interface.values(row[1:]) for row in ids])
        numbers = {node.label: number for number, node in tables.sops.items()}
        labels = {one["dimension"]: one["value"] for one in injected.truth["dimensions"]}
        checked = 0
        for group in injected.circuit.groups:
            number = numbers.get(group.name.removesuffix(" (clean)"))
            if number is None or group.kind not in ("token", "position", "variable"):
                continue
            for place, dim in enumerate(group.dims):
                values = labels[injected.sizes.place[dim]]
                wanted = [
                    [float(repr(one) in values.split(", ") or repr(one) == values) for one in row]
                    for row in run.values(number)
                ]
                if "..." not in values and "(" not in values:
                    assert np.allclose(held[group.name][:, 1:, place], wanted, atol=0.05), (group.name, values)
                    checked += 1
        assert checked > 3


def test_the_truth_names_every_added_weight() -> None:
    """Added weights that are not 0 read and write labelled dimensions, in labelled heads and neurons."""
    injected = injected_into(random_host(), balanced(), "().", 8)
    truth, host = injected.truth, injected.host
    dims = {one["dimension"] for one in truth["dimensions"]}
    heads = {(one["layer"], one["head"]) for one in truth["heads"]}
    neurons = {(one["layer"], n) for one in truth["neurons"] for n in range(one["first"], one["last"] + 1)}
    wide, d_head = injected.sizes.width, injected.sizes.d_head
    for layer in range(injected.sizes.layers):
        fc = injected.gpt2.tensors[f"h.{layer}.mlp.c_fc.weight"]
        for neuron in range(host.inner, injected.sizes.inner):
            read = set(np.flatnonzero(fc[:, neuron]).tolist())
            assert read <= dims
            assert bool(read) == ((layer, neuron) in neurons)
        qkv = injected.gpt2.tensors[f"h.{layer}.attn.c_attn.weight"].reshape(wide, 3, -1, d_head)
        for head in range(host.heads, injected.sizes.heads):
            read = set(np.flatnonzero(qkv[:, :, head].any(axis=(1, 2))).tolist())
            assert read <= dims
            assert bool(read) == ((layer, head) in heads)


def test_the_edges_lead_from_tokens_to_logits() -> None:
    """Every component reads what an earlier one wrote, and every variable reaches the logits."""
    edges = injected_into(random_host(), balanced(), "().", 8).truth["edges"]
    reached = {"tokens", "positions"}
    for edge in edges:
        if edge["to"].startswith("head 0"):
            assert edge["from"] in reached
    writers, readers = {edge["from"] for edge in edges}, {edge["to"] for edge in edges}
    assert readers - writers == {"logits"}
    assert writers - readers == reached


def test_a_saved_model_is_read_again(tmp_path: Path) -> None:
    """The folder holds the model in float32, with the truth as JSON."""
    injected = injected_into(random_host(), balanced(), "().", 8)
    injected.save(tmp_path / "model")
    again = read_host(tmp_path / "model")
    ids = inputs(np.random.default_rng(0), "().")
    assert np.array_equal(run_host(again, ids, np.float32).logits, run_host(injected.gpt2, ids, np.float32).logits)
    assert json.loads((tmp_path / "model" / "injected_circuit.json").read_text()) == injected.truth
