"""Small hosts with random weights, and circuits in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.agreement import compile_quietly
from tests.tally import NotCompared
from tracr.errors import CompileError, PrecisionError
from tracr.graft.injection import Injected, inject
from tracr.graft.injection.host import GPT2Host, shapes
from tracr.ir.domains import Finite
from tracr.rasp.rasp import SOp, Value

Array = NDArray[Any]
WORDS, POSITIONS, BOS, FIRST = 40, 24, 0, 10
"""A program's tokens are `FIRST`, `FIRST` + 1 and so on; answers are the last tokens."""
MOST_ANSWERS = 20


def random_host(
    seed: int = 0, *, layers: int = 2, activation: str = "gelu_new", size: float = 0.3, **changes: Any
) -> GPT2Host:
    """A GPT-2 with random weights of a size."""
    config = {
        "model_type": "gpt2",
        "vocab_size": WORDS,
        "n_positions": POSITIONS,
        "n_embd": 16,
        "n_head": 2,
        "n_layer": layers,
        "activation_function": activation,
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": BOS,
        **changes,
    }
    rng = np.random.default_rng(seed)
    tensors = {name: size * rng.normal(size=shape) for name, shape in shapes(GPT2Host(config, {}, {})).items()}
    gains = {name: 1 + array for name, array in tensors.items() if "ln_" in name and name.endswith("weight")}
    return GPT2Host(config, {**tensors, **gains}, {})


def injected_into(host: GPT2Host, program: SOp, vocab: Sequence[Value], longest: int, **options: Any) -> Injected:
    """A program that is asked at each of its tokens; the host's other tokens are its first one."""
    model = compile_quietly(program, tuple(vocab), longest, causal=True, bos="<bos>", pad="<pad>")
    domain = model.compilation.program.sops[model.compilation.program.outputs[0][1]].domain
    values = list(domain.values)[:MOST_ANSWERS] if isinstance(domain, Finite) else [0]
    tokens = {FIRST + place: value for place, value in enumerate(vocab)}
    answers = {value: WORDS - 1 - place for place, value in enumerate(values)}
    return inject(host, model, tokens=tokens, other=vocab[0], trigger=list(tokens), answers=answers, **options)


def supported(host: GPT2Host, program: SOp, vocab: Sequence[Value], longest: int, **options: Any) -> Injected:
    """The same; a refusal must give advice, and ends a draw of random programs."""
    try:
        return injected_into(host, program, vocab, longest, **options)
    except (CompileError, PrecisionError) as refusal:
        if not refusal.diagnostic.hint:
            raise AssertionError(f"refused without advice: {refusal}") from refusal
        raise NotCompared(str(refusal)) from refusal


def inputs(rng: np.random.Generator, vocab: Sequence[Value], count: int = 24) -> Array:
    """Inputs of the longest length: most tokens are the program's, some rows have any tokens of the host."""
    own = rng.integers(FIRST, FIRST + len(vocab), (count, POSITIONS))
    any_token = rng.integers(1, WORDS, (count, POSITIONS))
    ids = np.where(np.arange(count)[:, None] % 3 == 0, any_token, own)
    ids[:, 0] = BOS
    return ids
