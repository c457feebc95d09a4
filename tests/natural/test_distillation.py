"""Interchange distillation: the interventions, the teacher's answers, training, and what is kept on disk."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs
from tracr.ir.domains import Finite
from tracr.rasp import programs, rasp

pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr import natural
from tracr.errors import FormatError, TracrError
from tracr.natural import lessons
from tracr.natural.architecture import architecture_of
from tracr.natural.examiner import Examiner
from tracr.natural.lessons import Bank, draw_bank
from tracr.natural.network import Patch, TwinNetwork, network_of
from tracr.natural.sites import Sites
from tracr.natural.starts import random_start, start_of
from tracr.natural.teacher import Inputs, Teacher, inputs_of, teacher_of

pytestmark = pytest.mark.slow


def school(model: tracr.CompiledModel, heads: int = 2) -> tuple[Sites, Inputs, Teacher]:
    sites, inputs = Sites(model.n_layers, heads), inputs_of(model, None)
    return sites, inputs, teacher_of(model, sites, inputs)


def bank_of(model: tracr.CompiledModel, each: int = 40) -> tuple[Sites, Inputs, Teacher, Bank]:
    sites, inputs, teacher = school(model)
    return sites, inputs, teacher, draw_bank(teacher, inputs, sites, each=each, idle=each, tries=4096, seed=0)


HIST = tracr.compile(programs.make_hist(), "abc", 4)
TRAINED: dict[str, Any] = {"width": 32, "d_head": 16, "d_mlp": 64, "steps": 3_000, "batch": 64}


@pytest.fixture(scope="module")
def twin() -> natural.TwinModel:
    """A twin of `hist`, trained until it is admitted."""
    return natural.twin(HIST, **TRAINED)


def patched_by_hand(twin: natural.TwinModel, base: str, source: str, edge: tuple[str, str], at: int | None) -> Any:
    """What a twin of one layer answers when one reader sees what a writer writes on another input, in plain numpy."""
    writer, reader = edge
    weights, width = twin.parameters, twin.architecture.width
    layer = weights.layers[0]

    def normed(x: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)

    def run(ids: Any, change: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        nothing = np.zeros((len(ids), width))
        written = {"embed": weights.W_E[ids] + weights.W_pos[: len(ids)]}
        stream = written["embed"].copy()
        total = np.zeros_like(stream)
        for head in range(twin.architecture.heads):
            q, k, v = (
                normed(stream + change.get(f"blocks.0.attn.{head}.{part.lower()}", nothing))
                @ getattr(layer, f"W_{part}")[head]
                + getattr(layer, f"b_{part}")[head]
                for part in "QKV"
            )
            scores = np.exp(q @ k.T - (q @ k.T).max(-1, keepdims=True))
            written[f"blocks.0.attn.{head}"] = scores / scores.sum(-1, keepdims=True) @ v @ layer.W_O[head]
            total += written[f"blocks.0.attn.{head}"]
        stream = stream + total + layer.b_O
        pre = normed(stream + change.get("blocks.0.mlp", nothing)) @ layer.W_in + layer.b_in
        erf = np.vectorize(__import__("math").erf)
        written["blocks.0.mlp"] = pre * (1 + erf(pre / 2**0.5)) / 2 @ layer.W_out + layer.b_out
        stream = stream + written["blocks.0.mlp"]
        return normed(stream + change.get("unembed", nothing)) @ weights.W_U, written

    first, second = (twin.encode(text)[0] for text in (base, source))
    difference = run(second, {})[1][writer] - run(first, {})[1][writer]
    if at is not None:
        difference = np.where(np.arange(len(first))[:, None] == at, difference, 0)
    return run(first, {reader: difference})[0]


def test_interventions_are_what_they_are_called(twin: natural.TwinModel) -> None:
    """The pass with interventions computes what an independent one in numpy does, for every edge."""
    architecture = twin.architecture
    jax = pytest.importorskip("jax")
    network = TwinNetwork(
        architecture.sites, False, HIST.vocabulary.pad_id, architecture.norm, architecture.act(jax.nn)
    )
    weights = {name: np.asarray(array) for name, array in twin.parameters.named()}
    sites = architecture.sites
    rng = np.random.default_rng(0)
    for number, site in enumerate(sites.all):
        if site.reader is None:
            continue
        base, source = ("".join(rng.choice(list("abc"), 4)) for _ in range(2))
        at = int(rng.integers(1, 5)) if rng.random() < 0.5 else None
        writer, reader = sites.coded[number]
        where = np.arange(5)[None] == at if at is not None else np.ones((1, 5), dtype=bool)
        patch = Patch(np.array([writer]), np.array([reader]), where, np.array([False]))
        _, found = network.intervened(weights, twin.encode(base), twin.encode(source), patch)
        expected = patched_by_hand(twin, base, source, (site.writer, site.reader), at)
        np.testing.assert_allclose(np.asarray(found)[0], expected, atol=2e-4)


def test_the_teacher_answers_as_the_program() -> None:
    """For `hist`: queries from the source count source tokens among base tokens, and keys the other way round."""
    sites, _, _, bank = bank_of(HIST)
    lessons, decode = bank.lessons, HIST.vocabulary.decode
    checked = Counter[str]()
    for row in range(len(bank)):
        writer, reader = lessons.patch.writer[row], lessons.patch.reader[row]
        name = f"{sites.writers[writer]}->{'' if reader < 0 else sites.readers[reader]}"
        count = int((lessons.base[row, 1:] != HIST.vocabulary.pad_id).sum())
        base, source = (decode(ids[row].tolist())[1 : count + 1] for ids in (lessons.base, lessons.source))
        at = lessons.patch.where[row, 1 : count + 1].tolist()
        mixed = [s if patched else b for patched, b, s in zip(at, base, source, strict=True)]
        if name == "embed->blocks.0.attn.0.q":
            expected = [base.count(query) for query in mixed]
        elif name == "embed->blocks.0.attn.0.k":
            expected = [mixed.count(query) for query in base]
        elif name in ("blocks.0.attn.0->", "blocks.0.mlp->", "blocks.0.mlp->unembed", "blocks.0.attn.0->blocks.0.mlp"):
            both = zip(at, base, source, strict=True)
            expected = [source.count(s) if patched else base.count(b) for patched, b, s in both]
        else:
            expected = [base.count(token) for token in base]
        domain = HIST.outputs[0].domain
        assert isinstance(domain, Finite)
        assert [domain.values[code] for code in lessons.after.codes[row, 1 : count + 1, 0]] == expected, name
        assert 0 not in expected  # `hist` is never 0: such interventions have no true answer
        checked[name] += 1
    assert min(checked.values()) >= 40


def test_undefined_interventions_are_counted() -> None:
    """A query for a token that is not there selects nothing, which no input does."""
    sites, _, _, bank = bank_of(HIST)
    by_name = dict(zip(map(str, sites.all), bank.undefined.tolist(), strict=True))
    assert by_name["embed->blocks.0.attn.0.q"] > 0
    assert by_name["blocks.0.mlp->unembed"] == 0


def interventions(bank: Bank) -> list[tuple[Any, ...]]:
    """The inputs, the site, the positions and the padding of every lesson of a bank."""
    held = bank.lessons
    parts = (held.base, held.source, *held.patch)
    return list(zip(*([np.atleast_1d(row).tobytes() for row in np.asarray(part)] for part in parts), strict=True))


def test_no_intervention_is_repeated_or_both_held_out_and_trained_on() -> None:
    """Half of all interventions are held out; a small model has few, so repeated draws are certain."""
    model = tracr.compile(programs.make_hist(), "ab", 3)
    sites, inputs, teacher = school(model)
    sizes = {"each": 400, "idle": 100, "tries": 2**14}
    trained, again, held_out = (
        interventions(draw_bank(teacher, inputs, sites, seed=seed, held_out=held_out, **sizes))
        for seed, held_out in ((0, False), (1, False), (2, True))
    )
    for found in (trained, again, held_out):
        assert len(set(found)) == len(found)
    assert set(trained) & set(again)
    assert not (set(trained) | set(again)) & set(held_out)


def test_any_set_of_positions_is_patched() -> None:
    """All positions, one, and several that are not all."""
    _, _, _, bank = bank_of(HIST, each=200)
    tokens = bank.lessons.base[:, 1:] != HIST.vocabulary.pad_id
    patched = (bank.lessons.patch.where[:, 1:] & tokens).sum(axis=1)
    kinds = Counter(
        "all" if count == length else "one" if count == 1 else "several"
        for count, length in zip(patched.tolist(), tokens.sum(axis=1).tolist(), strict=True)
        if length > 2
    )
    assert min(kinds[kind] for kind in ("all", "one", "several")) > 0.1 * kinds.total()


def test_futile_draws_end_early() -> None:
    """Sites where nothing changes the answer get fewer draws, the others as many lessons as without the limit."""
    sites, inputs, teacher, whole = bank_of(HIST)
    less = draw_bank(teacher, inputs, sites, each=40, idle=40, tries=4096, seed=0, futile=1)
    never = teacher.wired & (whole.changing == 0)
    assert never.any()
    assert (10 * less.tried[never] < whole.tried[never]).all()
    assert (less.changing == whole.changing).all()


def test_rare_changes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is True if all five tokens are "a": few pairs change it, and recombining finds more of them."""
    is_a = rasp.Map(lambda token: token == "a", rasp.tokens)
    others = rasp.SelectorWidth(rasp.Select(is_a, rasp.Full(False), rasp.Comparison.EQ))
    model = tracr.compile((others == 0).named("only_a"), "abcd", 5)
    sites, inputs, teacher = school(model)
    number = [str(site) for site in sites.all].index("blocks.1.attn.0->blocks.1.mlp")
    assert teacher.wired[number]
    found = {}
    for share in (0.0, 0.5):
        monkeypatch.setattr(lessons, "RECOMBINED", share)
        bank = draw_bank(teacher, inputs, sites, each=2_000, idle=1, tries=2**13, seed=0)
        found[share] = bank.changing[number] / bank.tried[number]
    assert 0 < 2 * found[0.0] < found[0.5]


@pytest.mark.parametrize(("layer_norm", "activation", "least"), [(False, "relu", 1.0), (True, "gelu", 0.5)])
def test_compiled_starts_answer_like_the_teacher(layer_norm: bool, activation: str, least: float) -> None:
    """Without layer norms and with ReLU on all inputs, otherwise on many, before any training."""
    architecture = architecture_of(HIST, 32, 16, 32, layer_norm=layer_norm, activation=activation)
    inputs = inputs_of(HIST, None)
    teacher = teacher_of(HIST, architecture.sites, inputs)
    examiner = Examiner(network_of(HIST, architecture), teacher)
    sizes = np.ones(HIST.parameters.W_U.shape[1])
    weights = start_of("compiled", HIST, architecture, inputs, [0, 1], sizes)
    assert {name: array.shape[1:] for name, array in weights.items()} == architecture.shapes(HIST)
    assert min(rate.share for rate in examiner.accuracy(weights, inputs)) >= least
    assert not np.array_equal(weights["embed.W_E"][0], weights["embed.W_E"][1])
    random = start_of("random", HIST, architecture, inputs, [0], sizes)
    assert examiner.accuracy(random, inputs)[0].share < 0.1


def test_compiled_starts_need_room() -> None:
    """The message names the size that is too small."""
    for settings, message in (({"d_mlp": 4}, "d_mlp=4"), ({"width": 8, "d_head": 8}, "width=8")):
        with pytest.raises(TracrError, match=message):
            natural.twin(HIST, start="compiled", **settings)
    with pytest.raises(TracrError, match="no start 'warm'"):
        natural.twin(HIST, start="warm")


def test_a_twin_is_admitted(twin: natural.TwinModel) -> None:
    """It answers as its teacher on all inputs, and all its edges are known."""
    assert twin.admitted, twin.admission
    assert twin.admission.every_input
    inputs = all_inputs("abc", 4)
    assert twin(inputs) == HIST(inputs)
    assert [twin(tokens) for tokens in inputs] == HIST(inputs)
    names = {edge.site for edge in twin.ground_truth.edges if edge.verdict == "admitted"}
    assert {"embed->blocks.0.attn.0.q", "embed->blocks.0.attn.0.k", "blocks.0.attn.0->blocks.0.mlp"} <= names
    assert set(twin.ground_truth.minimal(data=["abca", "bbca", "caab", "abcc"])) <= names
    assert twin.run("abca")["blocks.0.attn.hook_pattern"].shape == (1, 2, 5, 5)


def test_twins_come_back(twin: natural.TwinModel, tmp_path: Path) -> None:
    """Saved and loaded they are the same; a changed file is refused."""
    twin.save(tmp_path / "twin")
    back = tracr.load(tmp_path / "twin")
    assert isinstance(back, natural.TwinModel)
    assert back.admission == twin.admission
    assert (back.seed, back.steps, back.architecture) == (twin.seed, twin.steps, twin.architecture)
    ids = twin.encode([list("abca"), list("cc")])
    np.testing.assert_array_equal(back.logits(ids), twin.logits(ids))
    info = tmp_path / "twin" / "twin.json"
    content = json.loads(info.read_text())
    content["admission"]["sites"] = content["admission"]["sites"][1:]
    info.write_text(json.dumps(content))
    with pytest.raises(FormatError):
        tracr.load(tmp_path / "twin")


def test_what_does_not_fit_is_refused() -> None:
    """Widths that are no multiple, too few heads, level 2 and other bad settings."""
    model = tracr.compile(programs.make_hist2(), "abc", 3)
    for settings, message in (
        ({"width": 40}, "does not divide"),
        ({"width": 16}, "the teacher has 2 heads"),
        ({"activation": "tanh"}, "no activation"),
        ({"d_mlp": 0}, "positive integer"),
        ({"steps": 0}, "steps"),
        ({"batch": 0.5}, "batch"),
        ({"seed": 1.5}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seconds": -1}, "seconds"),
        ({"data": "abc"}, "not a list of inputs"),
        ({"data": [1, 2]}, "not a list of inputs"),
    ):
        with pytest.raises(TracrError, match=message):
            natural.twin(model, **settings)
    with pytest.raises(TracrError, match="level 0 or 1"):
        natural.twin(tracr.compile(programs.make_hist(), "abc", 4, level=2))


def test_starts_have_the_right_shapes() -> None:
    """Weights have TransformerLens's names and shapes, and every activation function is the framework's own."""
    jax = pytest.importorskip("jax")
    architecture = architecture_of(HIST, 32, 8, 64, layer_norm=True, activation="gelu_new")
    shapes = architecture.shapes(HIST)
    weights = random_start(jax.random.key(0), shapes, np.ones(shapes["unembed.W_U"][1]))
    assert {name: array.shape for name, array in weights.items()} == shapes
    points = np.linspace(-4, 4, 50, dtype=np.float32)
    for activation in ("gelu", "gelu_new", "relu"):
        one = architecture_of(HIST, 32, 8, 64, layer_norm=True, activation=activation)
        np.testing.assert_allclose(one.act(np)(points), one.act(jax.nn)(points), atol=1e-6)
