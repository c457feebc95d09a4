"""A case: a program of known meaning, with samplers of inputs and of pairs, a metric and a role for each component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import number, whole
from tracr.errors import TracrError
from tracr.ground_truth.data import Granularity
from tracr.lab.metric import answer_weights
from tracr.lab.roles import ComponentRole, roles_of
from tracr.lab.sampling import InputPair, InputPool, PairKind
from tracr.values import Value
from tracr.zoo import Entry

if TYPE_CHECKING:
    from tracr.compress import CompressedModel
    from tracr.model.compiled import CompiledModel

__all__ = ["CHANGING", "Case"]

CHANGING = 0.75  # the share of pairs whose answers differ by construction


@dataclass(frozen=True, eq=False)
class Case:
    """A program of the zoo, or a random one, with what a method needs to look for its circuit.

    All inputs have the entry's length. A program whose answer is the same for all of them is refused: on its pairs a
    model that computes nothing would be right.

    >>> from tracr import lab
    >>> case = lab.case("hist")
    >>> pair = case.pairs(1, seed=1, changing=1)[0]
    >>> pair.changes, len(pair.clean) == len(pair.corrupted) == case.length
    (True, True)
    >>> lab.case("length")
    Traceback (most recent call last):
    tracr.errors.TracrError: length is no case: all inputs of length 5 over a, b, c have the same answer
      hint: choose a larger vocabulary or another length, or another program
    """

    entry: Entry

    def __post_init__(self) -> None:
        if not self._pool.varies():
            tokens = ", ".join(map(str, self.vocab))
            raise TracrError(
                f"{self.name} is no case: all inputs of length {self.length} over {tokens} have the same answer",
                hint="choose a larger vocabulary or another length, or another program",
            )

    def __repr__(self) -> str:
        return f"Case({self.name}: {self.description})"

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.entry.name

    @property
    def description(self) -> str:
        """The task, in one sentence."""
        return self.entry.description

    @property
    def vocab(self) -> tuple[Value, ...]:
        """The tokens of the inputs."""
        return self.entry.vocab

    @property
    def length(self) -> int:
        """The length of the inputs, BOS not counted."""
        return self.entry.max_seq_len

    @cached_property
    def _pool(self) -> InputPool:
        return InputPool(self.entry)

    @property
    def level(self) -> int:
        """The level of `model`."""
        return 1

    @cached_property
    def model(self) -> CompiledModel:
        """The compiled model, at level 1."""
        return self.entry.load()

    def inputs(self, count: int, seed: int = 0) -> list[list[Value]]:
        """Inputs on which the program is defined; different ones, if there are as many."""
        count, seed = whole("count", count, 1), whole("seed", seed)
        known = self._pool.inputs
        chosen = np.random.default_rng(seed).choice(len(known), size=count, replace=count > len(known))
        return [list(known[place][0]) for place in chosen.tolist()]

    def pairs(
        self, count: int, seed: int = 0, *, kind: PairKind = "resampled", changing: float = CHANGING
    ) -> tuple[InputPair, ...]:
        """Pairs of a clean and a corrupted input; the same arguments give the same pairs.

        Args:
            count: the number of pairs.
            seed: the seed of the draws.
            kind: "resampled", two independent inputs; "minimal", two inputs that differ in one token.
            changing: the share of pairs drawn until their answers differ, rounded up; the answers of the others may
                differ by chance.
        """
        count, seed = whole("count", count, 1), whole("seed", seed)
        changing = number("changing", changing, low=0)
        if changing > 1:
            raise TracrError(f"changing is a share, not {changing}", hint="write a number from 0 to 1")
        return self._pool.pairs(count, seed, kind, changing)

    def metric(self, pairs: Sequence[InputPair]) -> NDArray[np.float32]:
        """The metric as weights [pair, position, logit]: that of a pair is the sum of its weights times its logits.

        It is larger, the more the logits say the clean answer rather than the corrupted one, at the positions where
        they differ (`tracr.lab.metric`). Every model with the compiled model's logits can be measured by it.
        """
        return answer_weights(pairs, self.model.outputs[0])

    def superposed(self, model: CompiledModel, ratio: float | None, seed: int) -> CompressedModel:
        """The model with `ratio` times as many labels as dimensions; by default in the fewest of the closed form."""
        from tracr.compress import exact_dim, superpose

        dim = exact_dim(model) if ratio is None else max(1, round(model.d_model / number("ratio", ratio, above=0)))
        return superpose(model, dim, seed)

    def roles(self, granularity: Granularity = "head") -> dict[str, ComponentRole]:
        """The role of each component of the compiled model, by its id."""
        return roles_of(self.model, granularity)
