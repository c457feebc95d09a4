"""The host: the configuration and the weights of a GPT-2, as numpy arrays.

Weights have GPT-2's names without the prefix `transformer.`. `centred` makes every write to the residual stream have
mean 0. Layer norms subtract the mean anyway; therefore the model computes the same, up to rounding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.errors import FormatError, TracrError
from tracr.saving.folders import read_file
from tracr.values import short_repr

__all__ = ["PREFIX", "GPT2Host", "read_host"]

Array = NDArray[Any]
PREFIX = "transformer."
CONFIG, WEIGHTS = "config.json", "model.safetensors"
LARGEST_CONFIG, LARGEST_FILE = 2**20, 2**34
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt"),
    *("added_tokens.json", "generation_config.json"),
)
TAILS = {"relu": 0.0, "gelu": 8.0, "gelu_new": 8.0, "gelu_pytorch_tanh": 8.0}
"""For each activation f, a number beyond which f(z) is z, and below whose negative it is 0, up to float32 rounding."""
DEFAULTS = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
HINT = "pass a transformers.GPT2LMHeadModel, or the folder that its save_pretrained wrote"


@dataclass(frozen=True, eq=False)
class GPT2Host:
    """A GPT-2: its configuration, its weights, and the files of its tokenizer."""

    config: Mapping[str, Any]
    tensors: Mapping[str, Array]
    files: Mapping[str, bytes]

    @property
    def width(self) -> int:
        """The number of dimensions of the residual stream."""
        return int(self.config["n_embd"])

    @property
    def heads(self) -> int:
        """The heads of each layer."""
        return int(self.config["n_head"])

    @property
    def d_head(self) -> int:
        """The width of a head."""
        return self.width // self.heads

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.config["n_layer"])

    @property
    def inner(self) -> int:
        """The neurons of each layer."""
        return int(self.config.get("n_inner") or 4 * self.width)

    @property
    def words(self) -> int:
        """The size of the vocabulary."""
        return int(self.config["vocab_size"])

    @property
    def positions(self) -> int:
        """The length of the longest input."""
        return int(self.config["n_positions"])

    @property
    def epsilon(self) -> float:
        """The number that layer norms add to the variance."""
        return float(self.config.get("layer_norm_epsilon", 1e-5))

    @property
    def activation(self) -> str:
        """The function of the neurons."""
        return str(self.config.get("activation_function", "gelu_new"))

    @property
    def tail(self) -> float:
        """Where that function becomes linear, or 0."""
        return TAILS[self.activation]

    @cached_property
    def unembedding(self) -> Array:
        """The matrix that makes logits, [word, dimension]."""
        return self.tensors["lm_head.weight"]

    def centred(self) -> GPT2Host:
        """The same function up to rounding, with all writes to the stream of mean 0; embedding and head untied."""
        names = ["wte.weight", "wpe.weight"]
        for layer in range(self.layers):
            names += [f"h.{layer}.{part}.c_proj.{kind}" for part in ("attn", "mlp") for kind in ("weight", "bias")]
        moved = {name: self.tensors[name] - self.tensors[name].mean(axis=-1, keepdims=True) for name in names}
        return replace(self, tensors={**self.tensors, **moved})


def read_host(host: object) -> GPT2Host:
    """The host from a model of transformers, or from its folder."""
    if isinstance(host, GPT2Host):
        found = host
    elif isinstance(host, str | Path):
        found = _from_folder(Path(host))
    elif hasattr(host, "state_dict") and hasattr(host, "config"):
        state = {name: one.detach().cpu().float().numpy() for name, one in host.state_dict().items()}
        found = GPT2Host(host.config.to_dict(), _named(state), {})
    else:
        raise TracrError(f"{short_repr(host)} is not a GPT-2", hint=HINT)
    _check(found)
    return found


def _from_folder(folder: Path) -> GPT2Host:
    try:
        config = json.loads(read_file(folder / CONFIG, LARGEST_CONFIG))
        state = safetensors.numpy.load(read_file(folder / WEIGHTS, LARGEST_FILE))
    except (ValueError, safetensors.SafetensorError) as error:
        if isinstance(error, TracrError):
            raise FormatError(f"no host can be read: {error.diagnostic.what}", hint=HINT) from None
        raise FormatError(f"no host can be read from {folder}: {error}", hint=HINT) from None
    files = {name: read_file(folder / name, LARGEST_FILE) for name in TOKENIZER if (folder / name).is_file()}
    return GPT2Host(config if isinstance(config, dict) else {}, _named(state), files)


def _named(state: Mapping[str, Array]) -> dict[str, Array]:
    """The weights in float64 by their short names, with the head's own matrix."""
    found = {name.removeprefix(PREFIX): np.asarray(array, dtype=np.float64) for name, array in sorted(state.items())}
    found = {name: array for name, array in found.items() if not name.endswith((".attn.bias", ".attn.masked_bias"))}
    if "wte.weight" in found:
        found.setdefault("lm_head.weight", found["wte.weight"])
    return found


def _check(host: GPT2Host) -> None:
    """Refuse other architectures and broken weights."""
    if host.config.get("model_type") != "gpt2":
        raise TracrError(f"the host is a {host.config.get('model_type')!r}, not a 'gpt2'", hint=HINT)
    if host.activation not in TAILS:
        raise TracrError(
            f"the host's neurons compute {host.activation!r}, which does not become linear soon enough for steps",
            hint=f"use a host with one of {', '.join(TAILS)}",
        )
    for name, usual in DEFAULTS.items():
        if host.config.get(name, usual) != usual:
            raise TracrError(f"the host has {name}={host.config[name]!r}", hint=f"use a host with {name}={usual}")
    for name, shape in shapes(host).items():
        array = host.tensors.get(name)
        if array is None or array.shape != shape:
            raise FormatError(f"the host has no weights {name} of the shape {shape}", hint=HINT)
        if not np.isfinite(array).all():
            raise FormatError(f"the host's weights {name} are not all finite", hint="use other weights")


def shapes(host: GPT2Host) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of a GPT-2 of the host's sizes."""
    width, inner = host.width, host.inner
    found: dict[str, tuple[int, ...]] = {"wte.weight": (host.words, width), "wpe.weight": (host.positions, width)}
    for layer in range(host.layers):
        block = {
            "ln_1.weight": (width,),
            "ln_1.bias": (width,),
            "attn.c_attn.weight": (width, 3 * width),
            "attn.c_attn.bias": (3 * width,),
            "attn.c_proj.weight": (width, width),
            "attn.c_proj.bias": (width,),
            "ln_2.weight": (width,),
            "ln_2.bias": (width,),
            "mlp.c_fc.weight": (width, inner),
            "mlp.c_fc.bias": (inner,),
            "mlp.c_proj.weight": (inner, width),
            "mlp.c_proj.bias": (width,),
        }
        found |= {f"h.{layer}.{name}": shape for name, shape in block.items()}
    return found | {"ln_f.weight": (width,), "ln_f.bias": (width,), "lm_head.weight": (host.words, width)}
