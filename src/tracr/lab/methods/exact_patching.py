"""Exact edge patching: the change of the metric when one reader sees one writer's output on the corrupted input.

For an edge e = (w, r) and a pair (x, x'), let L(x) be the logits, w(x) the output of the writer, and L_e(x, x') the
logits on x when the residual stream that r sees, before its layer norm, has w(x') - w(x) added. The score of e is

    mean over pairs of |m(L_e(x, x')) - m(L(x))|

with m the metric. Without weights m counts changed answers, and the score is the share of pairs in which patching the
edge changes an answer. One forward pass per edge and pair, from the layer of the reader on; no approximation. The
patch is that of activation patching with paths of one edge (Wang et al. 2022, Goldowsky-Dill et al. 2023).

Checked against a transformer written by hand, edge by edge (`tests/ground_truth/test_pair_truth.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.ground_truth.data import Granularity
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.passes import both_passes, count_passes, merged_edges

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["exact_patching"]


def exact_patching(subject: Any, data: MethodData, *, granularity: Granularity = "qkv") -> dict[EdgeKey, float]:
    """The score of every edge of a subject: a model (compiled, a variant, compressed, a twin) or what has a `model`."""
    both = both_passes(subject, data)
    groups = merged_edges(both.patching.candidates, granularity)
    changes = both.patching.run(
        both.clean,
        both.corrupted.written,
        list(groups.values()),
        lambda logits: data.change(both.outputs, both.token, both.clean.logits, logits),
    )
    count_passes(changes.size)
    return dict(zip(groups, changes.mean(axis=1).tolist(), strict=True))
