"""Models and random pairs of inputs for tests of patches and of the truth for pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import tracr
from tests.ground_truth.by_hand import ByHand, gelu, gelu_new, plain_norm
from tests.natural.learned_models import unlearned
from tests.natural.twins import untrained
from tracr.natural.learned.model import LearnedModel
from tracr.natural.twin_model import TwinModel
from tracr.rasp import programs

Pair = tuple[list[Any], list[Any]]
NAMES = ("hist2", "reverse", "sort_freq", "pair_balance", "induction")


@cache
def compiled(name: str, level: int = 1) -> tracr.CompiledModel:
    example = programs.EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)


def pairs_of(model: tracr.DesignedModel, count: int, seed: int = 0) -> list[Pair]:
    """Random pairs of mixed lengths."""
    rng, vocab = np.random.default_rng(seed), model.options.vocab
    lengths = rng.integers(max(1, model.program.lengths[0]), model.program.lengths[1] + 1, size=count).tolist()

    def drawn(length: int) -> list[Any]:
        return [vocab[code] for code in rng.integers(len(vocab), size=length).tolist()]

    return [(drawn(length), drawn(length)) for length in lengths]


def by_hand(model: Any) -> ByHand:
    """The same model in other code."""
    if isinstance(model, TwinModel):
        assert model.architecture.activation == "gelu"
        causal = model.teacher.options.causal
        return ByHand(model.parameters, causal=causal, norm=lambda x: plain_norm(x, 1e-5), activation=gelu)
    if isinstance(model, LearnedModel):
        return ByHand(model.parameters, causal=model.options.causal, activation=gelu_new)
    if model.norm is None:
        return ByHand(model.parameters, causal=model.options.causal)
    epsilon = model.norm.epsilon
    return ByHand(model.parameters, causal=model.options.causal, norm=lambda x: plain_norm(x, epsilon, epsilon**0.5))


@cache
def causal() -> tracr.CompiledModel:
    return tracr.compile(programs.make_hist(), "abc", 4, causal=True)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "compiled": lambda: compiled("hist2"),
    "two heads": lambda: compiled("sort_freq", 0),
    "level 2": lambda: compiled("hist2", 2),
    "causal": causal,
    "rotated": lambda: compiled("hist2").rotated(seed=1),
    "layer norm": lambda: compiled("hist").with_layer_norm(),
    "compressed": lambda: tracr.compress(compiled("hist"), method="exact"),
    "learned": lambda: unlearned(compiled("hist2"), width=60),
    "twin": lambda: untrained(compiled("hist2")),
    "causal twin": lambda: untrained(causal()),
}
"""Models of each kind whose edges can be patched."""
