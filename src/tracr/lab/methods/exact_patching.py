"""Exact edge patching: the change of the metric when one reader sees one writer's output on the corrupted input.

For an edge e = (w, r) and a pair (x, x'), let L(x) be the logits, w(x) the output of the writer, and L_e(x, x') the
logits on x when the residual stream that r sees, before its layer norm, has w(x') - w(x) added. The score of e is

    mean over pairs of |m(L_e(x, x')) - m(L(x))|

with m the metric. Without weights m counts changed answers, and the score is the share of pairs in which patching the
edge changes an answer. One forward pass per edge and pair, from the layer of the reader on; no approximation. The
patch is that of activation patching with paths of one edge (Wang et al. 2022, Goldowsky-Dill et al. 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.errors import TracrError
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import coarsened
from tracr.ground_truth.patching import EdgePatching, parts_of
from tracr.ground_truth.scores import EdgeKey
from tracr.model.running import RunnableModel
from tracr.natural.twin_model import TwinModel

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["exact_patching", "patching_of"]


def exact_patching(subject: Any, data: MethodData, *, granularity: Granularity = "qkv") -> dict[EdgeKey, float]:
    """The score of every edge of a subject: a model (compiled, a variant, compressed, a twin) or what has a `model`."""
    model = getattr(subject, "model", subject)
    if granularity == "neuron_group":
        raise TracrError("a method does not know the groups of neurons", hint='use "qkv", "head" or "component"')
    patching = patching_of(model)
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    groups: dict[EdgeKey, list[EdgeKey]] = {}
    for key in patching.candidates:
        groups.setdefault(coarsened(key, granularity), []).append(key)
    changes = patching.run(
        clean,
        corrupted.written,
        list(groups.values()),
        lambda logits: data.change(model.outputs, token, clean.logits, logits),
    )
    return dict(zip(groups, changes.mean(axis=1).tolist(), strict=True))


def patching_of(model: Any) -> EdgePatching:
    """The edges of a model, with whole MLPs."""
    if isinstance(model, TwinModel):
        architecture, causal = model.architecture, model.teacher.options.causal
        parts = parts_of(model.parameters)
        return EdgePatching(model.parameters, causal, parts, architecture.norm, architecture.act(np))
    if isinstance(model, RunnableModel):
        weights = model.cast(np.float32)
        return EdgePatching(weights, model.options.causal, parts_of(weights), model.norm)
    raise TracrError(f"{type(model).__name__} is no model whose edges can be patched", hint="pass a model or a subject")
