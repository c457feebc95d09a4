"""The variables of PAD and their joint values.

What PAD holds is a function of a few *bases*: "P", the position, and for each head whose pattern at PAD is proved the
number of keys that a PAD query sees ("P0.1": head 1 of layer 0). A variable is one base, or several with spaces between
them: its value is their joint value. Nothing is proved of which values occur together, so all combinations are listed.
BOS has one base, "B", with one value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tracr_check.boxes import State
from tracr_check.variables import Env, Var

__all__ = ["JOINT", "joint_of", "pad_rows", "pad_size"]

JOINT = 12_000  # values of a variable of several bases


def _bases(*names: Var) -> list[str]:
    """The bases of some variables, in order."""
    return sorted({base for name in names for base in str(name).split()})


def pad_size(state: State, *names: Var) -> int:
    """The number of joint values of some variables."""
    return math.prod(len(state.tables[base].lo) for base in _bases(*names))


def joint_of(state: State, names: Iterable[Var], base: Var) -> Var:
    """The variable that has the bases of all of some; if it has too many values, the largest base; `base` if none."""
    bases = _bases(*names)
    whole = " ".join(bases)
    if not bases or pad_size(state, whole) <= JOINT:
        return whole or base
    return max(bases, key=lambda one: pad_size(state, one))


def pad_rows(state: State, names: Iterable[Var], most: int, first: Var = "") -> Env:
    """All combinations of the bases of some variables, those of `first` first; as many bases as fit into `most` rows.

    The other variables are covered by their hulls.
    """
    ranked = sorted(_bases(*names), key=lambda one: pad_size(state, one))
    kept: list[str] = []
    for base in dict.fromkeys([*_bases(first), *ranked]):
        if pad_size(state, *kept, base) <= most or base in _bases(first):
            kept.append(base)
    sizes = [pad_size(state, base) for base in kept]
    grid = np.indices(sizes).reshape(len(kept), -1) if kept else np.zeros((0, 1), np.int64)
    codes = dict(zip(kept, grid, strict=True))
    env = Env(grid.shape[1], {})
    for name in {*state.tables, first}:
        own = _bases(name)
        if own and set(own) <= set(kept):
            env.codes[name] = np.ravel_multi_index([codes[base] for base in own], [pad_size(state, one) for one in own])
    return env
