"""Small hosts with random weights, and inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.host import GPT2Host, read_host, shapes

Array = NDArray[Any]
WORDS, POSITIONS, BOS, TRIGGER, FIRST = 40, 24, 0, 1, 10
"""Tokens of programs are `FIRST`, `FIRST` + 1 and so on; answers are the last tokens."""


def random_host(
    seed: int = 0, *, layers: int = 2, activation: str = "gelu_new", size: float = 0.3, **changes: Any
) -> Any:
    """Something that `inject` takes for a model of transformers, with random weights."""
    config = {
        "model_type": "gpt2",
        "vocab_size": WORDS,
        "n_positions": POSITIONS,
        "n_embd": 16,
        "n_head": 2,
        "n_layer": layers,
        "n_inner": None,
        "activation_function": activation,
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": BOS,
        **changes,
    }
    rng = np.random.default_rng(seed)
    tensors = {name: size * rng.normal(size=shape) for name, shape in shapes(GPT2Host(config, {}, {})).items()}
    for name in tensors:
        if ".ln_" in f".{name}" and name.endswith("weight"):
            tensors[name] += 1.0
    return Standing(config, tensors)


class Standing:
    """Has a configuration and weights, as a model of transformers has."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Array]) -> None:
        self.config = _Config(config)
        self.tensors = tensors

    def state_dict(self) -> dict[str, Any]:
        """The weights, by their names in transformers."""
        return {
            name if name == "lm_head.weight" else f"transformer.{name}": _Tensor(one)
            for name, one in self.tensors.items()
        }


class _Config:
    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def to_dict(self) -> dict[str, Any]:
        return dict(self.content)


class _Tensor:
    def __init__(self, array: Array) -> None:
        self.array = array

    def detach(self) -> _Tensor:
        return self

    cpu = float = detach

    def numpy(self) -> Array:
        return self.array


def as_host(standing: Standing) -> GPT2Host:
    """The host as it is read."""
    return read_host(standing)
