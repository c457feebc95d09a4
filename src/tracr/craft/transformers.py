"""Heads and MLPs as functions of labelled vectors, under the original Tracr's names.

`apply` takes the residual stream of one input, BOS included: vectors [position, direction].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracr.craft.bases import VectorInBasis, VectorSpaceWithBasis, join_vector_spaces
from tracr.craft.vectorspace_fns import Linear, ScalarBilinear
from tracr.errors import ExpressionError

__all__ = ["MLP", "AttentionHead", "MultiAttentionHead", "SeriesWithResiduals"]


NOTHING = VectorSpaceWithBasis([])


def _around(given: VectorSpaceWithBasis | None, *spaces: VectorSpaceWithBasis) -> VectorSpaceWithBasis:
    """The given residual space; without one, the smallest that has all the other spaces."""
    if given is None or not given.basis:
        return join_vector_spaces(*spaces)
    if not all(space.issubspace(given) for space in spaces):
        raise ExpressionError(
            "the residual space lacks directions that are read or written",
            hint="leave residual_space out, or give a space with all of them",
        )
    return given


@dataclass(frozen=True, eq=False)
class AttentionHead:
    """One head: the logit of a key is `w_qk(query, key)`, and the head writes the attended vectors through `w_ov`.

    `residual_space` has the directions that the head reads and writes, unless a larger one is given.
    """

    w_qk: ScalarBilinear
    w_ov: Linear
    residual_space: VectorSpaceWithBasis = NOTHING
    causal: bool = False

    def __post_init__(self) -> None:
        spaces = (self.w_qk.left_space, self.w_qk.right_space, self.w_ov.input_space, self.w_ov.output_space)
        object.__setattr__(self, "residual_space", _around(self.residual_space, *spaces))

    @property
    def num_heads(self) -> int:
        """The number of heads: 1."""
        return 1

    def as_multi(self) -> MultiAttentionHead:
        """A layer with only this head."""
        return MultiAttentionHead([self])

    def apply(self, x: VectorInBasis) -> VectorInBasis:
        """What it adds to the residual stream."""
        queries, keys = x.project(self.w_qk.left_space), x.project(self.w_qk.right_space)
        scores = queries.magnitudes @ self.w_qk.matrix @ keys.magnitudes.T
        if self.causal:
            scores = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        values = self.w_ov(x.project(self.w_ov.input_space))
        mixed = weights / weights.sum(axis=-1, keepdims=True) @ values.magnitudes
        return self.w_ov.output_space.make_vector(mixed).project(self.residual_space)


@dataclass(frozen=True, eq=False)
class MultiAttentionHead:
    """The heads of a layer."""

    sub_blocks: Sequence[AttentionHead]

    @cached_property
    def residual_space(self) -> VectorSpaceWithBasis:
        """The directions its heads read or write."""
        return join_vector_spaces(*(head.residual_space for head in self.sub_blocks))

    @property
    def num_heads(self) -> int:
        """The number of heads."""
        return len(self.sub_blocks)

    def heads(self) -> Iterator[AttentionHead]:
        """The heads in order."""
        return iter(self.sub_blocks)

    def as_multi(self) -> MultiAttentionHead:
        """This object."""
        return self

    def apply(self, x: VectorInBasis) -> VectorInBasis:
        """The sum that the heads add to the residual stream."""
        return VectorInBasis.sum([head.apply(x).project(self.residual_space) for head in self.sub_blocks])


@dataclass(frozen=True, eq=False)
class MLP:
    """The neurons of a layer: `fst` into them, ReLU, `snd` out of them."""

    fst: Linear
    snd: Linear
    residual_space: VectorSpaceWithBasis = NOTHING

    def __post_init__(self) -> None:
        if self.fst.output_space != self.snd.input_space:
            raise ExpressionError(
                "the second map of an MLP does not read the neurons of the first map",
                hint="make the input space of `snd` the output space of `fst`",
            )
        spaces = (self.fst.input_space, self.snd.output_space)
        object.__setattr__(self, "residual_space", _around(self.residual_space, *spaces))

    @staticmethod
    def combine_in_parallel(mlps: Sequence[MLP]) -> MLP:
        """One MLP with the neurons of all the given ones, which must have different names."""
        first, second = (Linear.combine_in_parallel(maps) for maps in zip(*((m.fst, m.snd) for m in mlps), strict=True))
        return MLP(first, second)

    def apply(self, x: VectorInBasis) -> VectorInBasis:
        """What it adds to the residual stream."""
        before = self.fst(x.project(self.fst.input_space))
        neurons = VectorInBasis(before.basis_directions, np.maximum(before.magnitudes, 0))
        return self.snd(neurons).project(self.residual_space)


@dataclass(frozen=True, eq=False)
class SeriesWithResiduals:
    """Sub-layers in order, each adding to the residual stream."""

    blocks: Sequence[MultiAttentionHead | MLP]

    @cached_property
    def residual_space(self) -> VectorSpaceWithBasis:
        """The directions that the sub-layers read or write."""
        return join_vector_spaces(*(block.residual_space for block in self.blocks))

    def apply(self, x: VectorInBasis) -> VectorInBasis:
        """The residual stream after the last sub-layer, in these directions."""
        x = x.project(self.residual_space)
        for block in self.blocks:
            x = x.add_directions(block.apply(x))
        return x
