"""The scores of auto-circuit: for each hook that reads, an array of the scores of its edges.

The array of `blocks.0.hook_q_input` has the shape [head, writer], that of `blocks.0.hook_mlp_in` [writer]. Writers are
those before the hook: the embedding, then layer by layer heads and MLP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import FormatError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.formats.found_circuit import FoundCircuit
from tracr.lab.formats.naming import shown
from tracr.lab.formats.sizes import CircuitSizes

__all__ = ["from_prune_scores", "to_prune_scores"]


def _hooks(sizes: CircuitSizes) -> Iterator[tuple[str, list[str], tuple[str, ...]]]:
    """Each hook that reads, its readers (one for a hook without heads), and the writers before it."""
    writers = sizes.sites.writers
    for layer in range(sizes.layers):
        before = 1 + layer * (sizes.heads + 1)
        for part in "qkv":
            readers = [f"blocks.{layer}.attn.{head}.{part}" for head in range(sizes.heads)]
            yield f"blocks.{layer}.hook_{part}_input", readers, writers[:before]
        yield f"blocks.{layer}.hook_mlp_in", [f"blocks.{layer}.mlp"], writers[: before + sizes.heads]
    yield f"blocks.{sizes.layers - 1}.hook_resid_post", ["unembed"], writers


def from_prune_scores(scores: Mapping[str, Any], sizes: CircuitSizes) -> FoundCircuit:
    """The circuit with the scores of auto-circuit; hooks that are missing have no scores."""
    hooks = {hook: (readers, writers) for hook, readers, writers in _hooks(sizes)}
    found: dict[EdgeKey, float] = {}
    for hook, given in scores.items():
        if hook not in hooks:
            raise FormatError(f"{shown(hook)} is no hook that reads", hint=f"hooks are {', '.join([*hooks][:4])}, ...")
        readers, writers = hooks[hook]
        array = _array(given)
        shape = (len(readers), len(writers)) if hook.endswith("_input") else (len(writers),)
        if array.shape != shape or not np.isfinite(array).all():
            raise FormatError(
                f"the scores of {hook} are not finite numbers of the shape {shape}",
                hint="auto-circuit's graph must be factorized, with separate_qkv=True and without positions",
            )
        rows = array.reshape(len(readers), len(writers)).tolist()
        for reader, row in zip(readers, rows, strict=True):
            found |= {(writer, reader): number for writer, number in zip(writers, row, strict=True)}
    return FoundCircuit(found, absolute=True)


def _array(given: Any) -> NDArray[np.float64]:
    """An array of a tensor, an array or lists; one without elements for anything else."""
    try:
        return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def to_prune_scores(circuit: FoundCircuit, sizes: CircuitSizes) -> dict[str, NDArray[np.float64]]:
    """The scores as the arrays of auto-circuit; edges without a score have 0.

    >>> circuit = FoundCircuit({("embed", "blocks.0.mlp"): 2.0})
    >>> to_prune_scores(circuit, CircuitSizes(layers=1, heads=1))["blocks.0.hook_mlp_in"]
    array([2., 0.])
    """
    if not sizes.layers:
        raise FormatError("auto-circuit has no hooks for a model without layers", hint="use another format")
    left = dict(circuit.scores)
    arrays = {}
    for hook, readers, writers in _hooks(sizes):
        rows = np.array([[left.pop((writer, reader), 0.0) for writer in writers] for reader in readers])
        arrays[hook] = rows if hook.endswith("_input") else rows[0]
    if left:
        raise FormatError(f"there is no place for {'->'.join(next(iter(left)))}", hint='use edges of "qkv"')
    return arrays
