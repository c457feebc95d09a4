"""Parts that are trained alone and assembled: right on all inputs, with codes and edges that are known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs
from tests.natural.learned_models import unlearned
from tests.natural.test_learned_models import STUDENTS, check_edges, check_superposed_edges
from tracr.errors import InputError, PrecisionError, TracrError
from tracr.natural.learned.model import LearnedModel
from tracr.rasp import programs, rasp

pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr import natural

pytestmark = pytest.mark.filterwarnings("default")

VOWEL = rasp.Map(lambda token: token in "ae", rasp.tokens).named("vowel")


def check_learned(learned: LearnedModel) -> None:
    """Right on all inputs, padded and not; every code within the stated error; dense; edges by construction."""
    model = learned.compiled
    inputs = [tokens for tokens in all_inputs(model.options.vocab, model.options.max_seq_len) if tokens]
    assert learned.verified.exhaustive
    assert learned(inputs) == model(inputs)
    last = f"blocks.{model.n_layers - 1}.hook_resid_post"
    ids = model.encode(inputs)
    seen: dict[str, Any] = {}
    learned.logits(ids, hook=seen.__setitem__)
    exact: dict[str, Any] = {}
    model.logits(ids, dtype=np.float64, hook=exact.__setitem__)
    off = np.abs(learned.coordinates(seen[last]) - exact[last])[ids != model.vocabulary.pad_id]
    off = off[:, [label not in learned.mixed for label in learned.labels]]
    assert off.max() <= learned.code_error + 1e-5
    for part in learned.parts:
        assert part.error <= 1
        assert part.margins <= 1
    if learned.turned is None:
        check_edges(learned)
    elif learned.superposed:
        check_superposed_edges(learned)


def test_a_single_part_is_learned() -> None:
    """A program of one MLP, with its progress; it is dense in what it reads and writes."""
    seen: list[natural.PartProgress] = []
    learned = natural.learned_parts(tracr.compile(VOWEL, "abcde", 2), steps=300, progress=seen.append)
    check_learned(learned)
    assert [(one.done, one.total, one.name) for one in seen] == [(1, 1, "blocks.0.mlp.0")]
    layer = learned.weights.layers[0]
    node = next(node for node in learned.ground_truth.nodes() if node.kind == "neurons")
    written = [slot for one in node.writes for slot in one.slots]
    read = [slot for edge in learned.ground_truth.edges() if edge.target == node.id for slot in edge.slots]
    assert (layer.W_in[read] != 0).all()
    assert (layer.W_out[:, written] != 0).all()


@pytest.mark.slow
def test_a_part_that_does_not_train_is_named() -> None:
    """Too few steps with a head; the error names the part and its variable."""
    model = tracr.compile(programs.make_hist(), "abc", 4)
    with pytest.raises(TracrError, match=r"blocks\.0\.attn\.0 \(hist_share\) did not train"):
        natural.learned_parts(model, steps=1)


def test_an_assembled_model_that_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has an input, the wanted and the given answer."""
    from tracr.natural.learned import learning

    model = tracr.compile(VOWEL, "abcde", 2)
    monkeypatch.setattr(learning, "assembled", lambda *_: unlearned(model).weights)
    monkeypatch.setattr(learning, "spans_of", lambda *_: unlearned(model).neurons)
    with pytest.raises(
        TracrError, match=r"assembled model is wrong: on \['.'\].* vowel should be \[.*\] but is \[.*\]"
    ):
        natural.learned_parts(model, steps=300)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDENTS)
def test_programs_are_learned(name: str) -> None:
    """Causal and not, numbers, several outputs, several groups of neurons; level 0."""
    check_learned(natural.learned_parts(STUDENTS[name], seed=3))


@pytest.mark.slow
def test_rotated_into_a_larger_width() -> None:
    """The same parts in another basis."""
    model = tracr.compile(programs.make_hist(), "abc", 4)
    learned = natural.learned_parts(model, rotated=True, width=32)
    assert learned.d_model == 32
    check_learned(learned)
    again = natural.learned_parts(model, rotated=True, width=32)
    other = natural.learned_parts(model, rotated=True, width=32, seed=1)
    for (_, one), (_, same), (_, different) in zip(
        learned.parameters.named(), again.parameters.named(), other.parameters.named(), strict=True
    ):
        np.testing.assert_array_equal(one, same)
        assert not one.any() or not np.array_equal(one, different)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width"), [("reverse", None), ("reverse", 60), ("number", None)])
def test_superposed(name: str, width: int | None) -> None:
    """Fewer dimensions than labels, and more; the codes that parts tell apart are known, and the edges hold."""
    reverse = tracr.compile(programs.make_reverse(rasp.tokens), "ab", 5)
    model = reverse if name == "reverse" else STUDENTS[name]
    learned = natural.learned_parts(model, superposed=True, width=width, seed=2)
    assert learned.superposed
    assert width or name == "number" or learned.d_model < model.d_model
    check_learned(learned)
    pairs = [("abba", "baba"), ("ab", "bb"), ("aab", "bab")]
    truth, own = (one.ground_truth.minimal(pairs=pairs) for one in (model, learned))
    assert (own.alone, own.inert) == (truth.alone, truth.inert)


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, 40])
@pytest.mark.parametrize("name", STUDENTS)
def test_torch_and_transformer_lens(name: str, width: int | None) -> None:
    """Logits, padded and not, and every activation that the ground truth names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        pytest.importorskip("transformer_lens")
    learned = unlearned(STUDENTS[name], width=width)
    vocab = list(learned.options.vocab)
    ids = learned.encode([vocab[:2], vocab[:1]])
    expected = learned.logits(ids)
    bridge = learned.to_transformer_lens(bridge=True)
    for module in (learned.to_torch(), learned.to_transformer_lens(), bridge):
        np.testing.assert_allclose(module(torch.tensor(ids)).detach().numpy(), expected, atol=1e-3, rtol=1e-4)
    lens = learned.to_transformer_lens()
    _, cache = lens.run_with_cache(torch.tensor(ids))
    for node in learned.ground_truth.nodes():
        if node.kind in ("head", "neurons"):
            assert node.output.hook in cache
    assert lens.learned is learned
    assert lens.compiled is learned.compiled
    for wrong in (lens.to_compiled, lambda: lens.save("folder")):
        with pytest.raises(TracrError, match="learned model"):
            wrong()
    with pytest.raises(PrecisionError, match="the learned model was measured in float32"):
        learned.to_torch(dtype="float16")
    with pytest.raises(InputError):
        learned.to_torch()(torch.zeros((1, 99), dtype=torch.int64))
