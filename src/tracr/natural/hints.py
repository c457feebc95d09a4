"""Hints: what the teacher's components hold under an intervention, so that every component of a twin has a target.

The answer alone says little to the components that are far from it: a twin of several layers can answer every input
and still compute a count elsewhere than its teacher. At levels 0 and 1 the components of the teacher write to
different dimensions, which keep their values to the end. Therefore the last residual stream shows what every component
has written, also under an intervention. A hint asks that a linear map, learned with the twin and then dropped, reads
these values from the output of the twin's component of the same name. It fixes no directions. Hints fade during
training: its last part, and admission, are about answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.natural.lessons import DRAWN, MOST_DRAWN, Bank
from tracr.natural.network import Tree
from tracr.natural.sites import EMBED
from tracr.natural.teacher import Teacher

__all__ = ["Hints", "hints_of"]

Array = NDArray[Any]
STILL = 1e-3  # a dimension that spreads less gives no hint


@dataclass(frozen=True, eq=False)
class Hints:
    """For each lesson of a bank the values that the teacher's components hold, and whose they are."""

    writers: tuple[str, ...]
    """The components that give hints."""
    owned: Array
    """Which values each of them has written, [writer, value]; 1 or 0."""
    held: Any
    """The values, standardised, [lesson, position, value], in float16 on the device."""

    def readers(self, width: int, seeds: int) -> Tree:
        """The linear maps from the outputs of a twin's components to the values, before training."""
        values = self.owned.shape[1]
        rng = np.random.default_rng(0)
        maps = rng.normal(size=(seeds, len(self.writers), width, values)) * width**-0.5
        return {"W": jnp.asarray(maps, dtype=jnp.float32), "b": jnp.zeros((seeds, len(self.writers), values))}

    def loss(self, readers: Tree, written: Any, held: Any, token: Any) -> Any:
        """The squared error of the values read from `written` [batch, writer, position, width], at tokens.

        It is the mean over the values of each writer, then over writers: a writer of one value counts like the others.
        """
        with jax.default_matmul_precision("highest"):
            found = jnp.einsum("bwpd,wdk->bwpk", written, readers["W"]) + readers["b"][:, None]
        share = jnp.asarray(self.owned / self.owned.sum(axis=1, keepdims=True) / len(self.owned), dtype=jnp.float32)
        weight = share[:, None] * token[:, None, :, None]
        return ((found - held[:, None].astype(jnp.float32)) ** 2 * weight).sum() / jnp.maximum(1, token.sum())


def hints_of(teacher: Teacher, bank: Bank) -> Hints | None:
    """The hints for the lessons of a bank; `None` if no component of the teacher writes a value that changes."""
    owners = _owners(teacher)
    size = DRAWN.get(jax.default_backend(), MOST_DRAWN)
    some = jax.tree.map(lambda array: array[np.linspace(0, len(bank) - 1, size).astype(int)], bank.lessons)
    token = np.asarray(teacher.network.tokens(jnp.asarray(some.base)))
    ends = np.asarray(teacher.end(some.base, some.source, some.patch))[token]
    mean, spread = ends.mean(axis=0), ends.std(axis=0)
    values = np.flatnonzero((owners >= 0) & (spread > STILL))
    if not len(values):
        return None
    parts = []
    for start in range(0, len(bank), size):
        rows = np.minimum(np.arange(start, start + size), len(bank) - 1)
        lesson = jax.tree.map(lambda array, rows=rows: array[rows], bank.lessons)
        end = teacher.end(lesson.base, lesson.source, lesson.patch)
        parts.append(((end[..., values] - mean[values]) / spread[values]).astype(jnp.float16))
    numbers = np.unique(owners[values])
    names = tuple(teacher.network.sites.writers[number] for number in numbers.tolist())
    held = jnp.concatenate(parts)[: len(bank)]
    return Hints(names, (owners[values] == numbers[:, None]).astype(np.float32), held)


def _owners(teacher: Teacher) -> Array:
    """For every dimension of the teacher, the number of the only component that writes to it; -1 if there is none."""
    weights = {name: np.asarray(array) for name, array in teacher.weights.items()}
    written = []
    for name in teacher.network.sites.writers:
        block, _, part = name.rpartition(".")
        if name == EMBED:
            written.append((weights["embed.W_E"] != 0).any(axis=0) | (weights["pos_embed.W_pos"] != 0).any(axis=0))
        elif part == "mlp":
            written.append((weights[f"{name}.W_out"] != 0).any(axis=0))
        else:
            written.append((weights[f"{block}.W_O"][int(part) : int(part) + 1] != 0).any(axis=(0, 1)))
    wrote = np.array(written)
    found: Array = np.where((wrote.sum(axis=0) == 1) & ~wrote[0], wrote.argmax(axis=0), -1)
    return found
