"""The weights that training begins with: random ones, or those of the compiled model rotated into the twin's width.

The rotated start has the heads and neurons of the softened model (softening.py), whose gradients pass, and small random
weights in the others. A twin has layer norms and usually GELU, so the start answers like the teacher only in part: each
reader's weights are multiplied by the mean norm of the residual stream there, and the neurons' inputs by a factor that
makes GELU close to ReLU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.parameters import LayerParameters
from tracr.natural.architecture import Architecture
from tracr.natural.network import Tree
from tracr.natural.softening import soften
from tracr.natural.teacher import Inputs
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["STARTS", "check_start", "random_start", "start_of"]

Array = NDArray[Any]
STARTS = ("random", "compiled")
LEFT_OVER = 0.05  # the size of random weights beside compiled ones, as a part of those of a random start
STEEP = 8.0  # the factor of neurons' inputs: GELU(8 x) / 8 is within 0.03 of ReLU(x)
MARGIN = 10.0  # the logit of the right answer
MEASURED = 512  # inputs on which the residual stream's norm is measured


def check_start(start: str, model: CompiledModel, architecture: Architecture) -> None:
    """Refuse a start that does not exist, or a compiled one without room for the model's dimensions and neurons."""
    if start not in STARTS:
        raise TracrError(f"there is no start {start!r}", hint=f"use one of {', '.join(STARTS)}")
    if start == "random":
        return
    layers = model.parameters.layers
    least = {
        "width": model.parameters.W_E.shape[1] + architecture.layer_norm,
        "d_head": max((max(layer.W_Q.shape[2], layer.W_V.shape[2]) for layer in layers if len(layer.W_Q)), default=1),
        "d_mlp": max(layer.W_in.shape[1] for layer in layers),
    }
    for name, size in least.items():
        if getattr(architecture, name) < size:
            raise TracrError(
                f"the compiled model does not fit into {name}={getattr(architecture, name)}",
                hint=f'use {name}={size} or more, or start="random"',
            )


def start_of(
    start: str, model: CompiledModel, architecture: Architecture, inputs: Inputs, seeds: Sequence[int], numbers: Array
) -> Tree:
    """The weights at the start with a leading axis of seeds; `numbers` are the sizes of the logits."""
    shapes = architecture.shapes(model)
    keys = jax.vmap(jax.random.key)(np.array(seeds))
    weights: Tree = jax.vmap(lambda key: random_start(key, shapes, numbers))(keys)
    if start == "random":
        return weights
    soft = _softened(model)
    norms = _norms(soft, architecture, inputs)
    each = [
        _rotated(soft, architecture, norms, seed, jax.tree.map(lambda array, place=place: array[place], weights))
        for place, seed in enumerate(seeds)
    ]
    return {name: jnp.asarray(np.stack([one[name] for one in each])) for name in shapes}


def random_start(key: Any, shapes: dict[str, tuple[int, ...]], numbers: Array) -> Tree:
    """Random weights; `numbers` are the sizes of the logits."""
    weights: Tree = {}
    for place, (name, shape) in enumerate(shapes.items()):
        leaf = name.rpartition(".")[2]
        if leaf.startswith("b_"):
            weights[name] = jnp.zeros(shape)
            continue
        scale = 0.3 if leaf in ("W_E", "W_pos") else shape[-2] ** -0.5
        if leaf == "W_Q":
            scale *= shape[-1] ** -0.5  # scores are not divided by √d_head
        if leaf == "W_O":
            scale = (shape[0] * shape[1]) ** -0.5
        weights[name] = scale * jax.random.normal(jax.random.fold_in(key, place), shape)
    weights["unembed.W_U"] = weights["unembed.W_U"] * numbers
    return weights


def _softened(model: CompiledModel) -> CompiledModel:
    """The softened model, or the model itself if it cannot be softened with the same components."""
    try:
        soft = soften(model)
    except TracrError:
        return model
    shapes, own = ([array.shape for _, array in one.parameters.named()] for one in (soft, model))
    return soft if shapes == own else model


def _norms(model: CompiledModel, architecture: Architecture, inputs: Inputs) -> list[float]:
    """What each reader's weights are multiplied by, before each attention and MLP and before the unembedding."""
    streams: list[Array] = []
    names = ("hook_resid_pre", "hook_resid_mid")
    ids = inputs.ids[np.random.default_rng(0).permutation(len(inputs))[:MEASURED]]

    def see(name: str, tensor: Array) -> None:
        if name.endswith(names) or name == f"blocks.{model.n_layers - 1}.hook_resid_post":
            streams.append(tensor)

    forward(model.parameters, ids, np, causal=model.options.causal, hook=see)
    if not architecture.layer_norm:
        return [1.0] * len(streams)
    token = (ids != model.vocabulary.pad_id) & (np.arange(ids.shape[1]) > 0)
    return [float(np.linalg.norm(stream[token], axis=-1).mean()) / architecture.width**0.5 for stream in streams]


def _rotated(
    model: CompiledModel, architecture: Architecture, norms: Sequence[float], seed: int, random: Tree
) -> dict[str, Array]:
    """The compiled weights in random directions of the twin's width, beside small random weights."""
    width, parameters = architecture.width, model.parameters.map(lambda array: np.asarray(array, dtype=np.float64))
    rng = np.random.default_rng(seed)
    own = parameters.W_E.shape[1]
    columns = np.column_stack([np.ones(width), rng.normal(size=(width, own))])  # layer norms take the mean away
    basis = np.linalg.qr(columns)[0][:, 1:] if architecture.layer_norm else np.linalg.qr(columns[:, 1:])[0]
    found = {name: np.array(LEFT_OVER * array, dtype=np.float32) for name, array in random.items()}
    found["embed.W_E"] = parameters.W_E @ basis.T
    found["pos_embed.W_pos"] = parameters.W_pos @ basis.T
    for number, layer in enumerate(parameters.layers):
        attention, mlp = norms[2 * number : 2 * number + 2]
        for name, array in _turned(layer, basis, attention, mlp, architecture).items():
            part = found[f"blocks.{number}.{'mlp' if name.endswith(('in', 'out')) else 'attn'}.{name}"]
            if array.ndim == 3 or name in ("b_Q", "b_K", "b_V"):
                part[: len(array)] = 0  # the rest of a compiled head
            part[tuple(map(slice, array.shape))] = array
    margins = np.ones(parameters.W_U.shape[1])
    for output in model.outputs:
        if output.encoding is Encoding.CATEGORICAL:
            margins[output.start : output.stop] = MARGIN
    found["unembed.W_U"] = norms[-1] * basis @ parameters.W_U * margins
    return {name: array.astype(np.float32) for name, array in found.items()}


def _turned(
    layer: LayerParameters, basis: Array, attention: float, mlp: float, architecture: Architecture
) -> dict[str, Array]:
    """The weights of a layer in the new basis, with steeper neurons."""
    steep = 1.0 if architecture.activation == "relu" else STEEP
    return {
        "W_Q": attention * basis @ layer.W_Q,
        "b_Q": layer.b_Q,
        "W_K": attention * basis @ layer.W_K,
        "b_K": layer.b_K,
        "W_V": attention * basis @ layer.W_V,
        "b_V": layer.b_V,
        "W_O": layer.W_O @ basis.T,
        "b_O": layer.b_O @ basis.T,
        "W_in": steep * mlp * basis @ layer.W_in,
        "b_in": steep * layer.b_in,
        "W_out": layer.W_out @ basis.T / steep,
        "b_out": layer.b_out @ basis.T,
    }
