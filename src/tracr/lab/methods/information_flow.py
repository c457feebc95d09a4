"""Information flow routes (Ferrando and Voita 2024): the share of a reader's input that came from a writer.

Let s_r be the residual stream that a reader sees before its layer norm, on a clean input, and w the output of a writer,
at one position. The proximity of the writer to the stream, and the score of the edge (w, r), are

    p(w, r) = max(0, ‖s_r‖₁ - ‖s_r - w‖₁),      mean over inputs and positions of p(w, r) / Σ_v p(v, r)

with the sum over all writers v before r; a share 0/0 counts 0. Positions are BOS and tokens. The corrupted pass and the
metric are not used. The paper follows routes from one position of the output and drops edges below a threshold, and its
heads have values only. As in MIB (Mueller et al. 2025), every edge has its share as score, and queries and keys are
readers too. Therefore the q, k and v edges of a head have equal scores.

Checked against a direct computation in the tests; auto-circuit has no such method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.passes import BothPasses, both_passes

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["information_flow"]


def information_flow(subject: Any, data: MethodData) -> dict[EdgeKey, float]:
    """The score of every edge of a subject."""
    both = both_passes(subject, data)
    used = both.token.copy()
    used[:, 0] = True  # BOS
    weight = used / used.sum(axis=1, keepdims=True) / both.pairs
    candidates = both.patching.candidates
    found: dict[EdgeKey, float] = {}
    for reader in dict.fromkeys(reader for _, reader in candidates):
        writers = [writer for writer, target in candidates if target == reader]
        stream = _stream(both, reader)
        near = np.stack([np.abs(stream).sum(-1) - np.abs(stream - both.clean.written[w]).sum(-1) for w in writers])
        near = np.maximum(near, 0)
        whole = near.sum(axis=0)
        shares = np.divide(near, whole, out=np.zeros_like(near), where=whole > 0)
        found |= {
            (writer, reader): float((share * weight).sum()) for writer, share in zip(writers, shares, strict=True)
        }
    return {key: found[key] for key in candidates}


def _stream(both: BothPasses, reader: str) -> NDArray[np.float64]:
    """The residual stream [pair, position, d_model] that a reader sees on the clean inputs."""
    if reader == "unembed":
        return both.clean.streams[-1].astype(np.float64)
    _, layer, kind, *_ = reader.split(".")
    stream = both.clean.streams[int(layer)].astype(np.float64)
    if kind == "mlp":
        heads = [output for name, output in both.clean.written.items() if name.startswith(f"blocks.{layer}.attn.")]
        stream = sum(heads, stream) + both.patching.parameters.layers[int(layer)].b_O
    return stream
