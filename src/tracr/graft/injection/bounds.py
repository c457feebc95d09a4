"""A proved bound on the size of the host's residual stream, before every layer norm.

A layer norm of D dimensions gives γ n + β with |n| <= √D, for every input. A head gives a weighted mean of values, and
a mean is no longer than the longest value: |W_o (W_v (γ n + β) + b_v)| <= ‖W_o W_v γ‖ √D + |W_o (W_v β + b_v)|. Neurons
satisfy |f(z)| <= |z|: their output is at most ‖W_out‖ (‖W_in γ‖ √D + |W_in β + b_in|). ‖·‖ is the largest singular
value. The bound on the stream is the sum of the bounds on its writers. Added dimensions make n shorter, so that the
bound holds for the host inside the injected model, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.host import GPT2Host

__all__ = ["longest_logit", "stream_bounds"]

Array = NDArray[Any]


def stream_bounds(host: GPT2Host) -> list[float]:
    """The length that the stream of a centred host never exceeds, before each layer norm in order."""
    longest = sum(float(np.linalg.norm(host.tensors[f"{name}.weight"], axis=1).max()) for name in ("wte", "wpe"))
    found = []
    for layer in range(host.layers):
        found.append(longest)
        longest += _attention_bound(host, layer)
        found.append(longest)
        longest += _neurons_bound(host, layer)
    return [*found, longest]


def longest_logit(host: GPT2Host) -> float:
    """A bound on the difference of any two of the host's logits."""
    gain, offset = host.tensors["ln_f.weight"], host.unembedding @ host.tensors["ln_f.bias"]
    centred = (host.unembedding - host.unembedding.mean(axis=0)) * gain
    reach = math.sqrt(host.width) * np.linalg.norm(centred, axis=1)
    return float(2 * (reach + np.abs(offset - offset.mean())).max())


def _attention_bound(host: GPT2Host, layer: int) -> float:
    block, width = f"h.{layer}", host.width
    gain, shift = host.tensors[f"{block}.ln_1.weight"], host.tensors[f"{block}.ln_1.bias"]
    values = host.tensors[f"{block}.attn.c_attn.weight"][:, 2 * width :]
    constant = shift @ values + host.tensors[f"{block}.attn.c_attn.bias"][2 * width :]
    out = host.tensors[f"{block}.attn.c_proj.weight"]
    total = float(np.linalg.norm(host.tensors[f"{block}.attn.c_proj.bias"]))
    for head in range(host.heads):
        own = slice(head * host.d_head, (head + 1) * host.d_head)
        total += _spectral((gain[:, None] * values[:, own]) @ out[own]) * math.sqrt(width)
        total += float(np.linalg.norm(constant[own] @ out[own]))
    return total


def _neurons_bound(host: GPT2Host, layer: int) -> float:
    block = f"h.{layer}"
    gain, shift = host.tensors[f"{block}.ln_2.weight"], host.tensors[f"{block}.ln_2.bias"]
    read, written = host.tensors[f"{block}.mlp.c_fc.weight"], host.tensors[f"{block}.mlp.c_proj.weight"]
    constant = shift @ read + host.tensors[f"{block}.mlp.c_fc.bias"]
    inside = _spectral(gain[:, None] * read) * math.sqrt(host.width) + float(np.linalg.norm(constant))
    return _spectral(written) * inside + float(np.linalg.norm(host.tensors[f"{block}.mlp.c_proj.bias"]))


def _spectral(matrix: Array) -> float:
    return float(np.linalg.norm(matrix, 2))
