"""Roles guessed from attention patterns alone: a method that looks at the model and not at the program.

For each head, A is its attention [input, query, key] on some inputs, key 0 being BOS.

    copy_by_position   all its rows are near one-hot, and the key is the same for all inputs
    copy               most of its rows are near one-hot
    average            its weight on BOS is the same everywhere, up to rows that are all on BOS
    count              otherwise: the weight on BOS varies

An MLP after a head of its own layer decodes; any other maps. In a twin, heads are guessed in the same way: it never
answers "none".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.methods.passes import count_passes

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["attention_roles", "head_role"]

ONE_HOT = 0.9  # the least weight of a key that counts as the only one
MOST = 0.8  # the share of rows that count as most
SPREAD = 0.02  # the largest standard deviation of weights on BOS that count as the same


def attention_roles(
    subject: Subject, form: Mapping[str, Any], *, inputs: int = 64, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """A role for every component of the form."""
    tokens = subject.case.inputs(inputs, seed)
    run = subject.model.run(tokens)
    count_passes(len(tokens))
    heads = {int(name.split(".")[1]) for name in form["components"] if ".attn." in name}
    found = {}
    for name in form["components"]:
        layer = int(name.split(".")[1])
        if ".attn." in name:
            pattern = np.asarray(run[f"blocks.{layer}.attn.hook_pattern"])[:, int(name.split(".")[3])]
            found[name] = {"role": head_role(pattern[:, 1:])}
        else:
            found[name] = {"role": "decode" if layer in heads else "map"}
    return {"components": found}


def head_role(pattern: NDArray[Any]) -> str:
    """The role that a pattern [input, query, key] looks like.

    >>> shift = np.broadcast_to(np.eye(4)[[0, 1, 2]], (5, 3, 4))
    >>> head_role(shift)
    'copy_by_position'
    >>> head_role(np.full((5, 3, 4), 0.25))
    'average'
    """
    sharp = pattern.max(axis=-1) > ONE_HOT
    key = pattern.argmax(axis=-1)
    if sharp.all() and (key == key[:1]).all():
        return "copy_by_position"
    if sharp.mean() > MOST:
        return "copy"
    on_bos = pattern[..., 0][pattern[..., 0] < ONE_HOT]
    return "average" if on_bos.std() < SPREAD else "count"
