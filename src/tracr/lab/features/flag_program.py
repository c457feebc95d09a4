"""The programs of feature cases: many independent flags of tokens, and flags computed from pairs of them.

    own_i     token has feature i                                            (the embedding)
    before_i  the token before has feature i                                 (a head that copies)
    hit_i     a relation of own_i and before_p(i), for a permutation p       (neurons)
    answer    the sum of importance_i * hit_i                                (the unembedding)

Tokens are independent, so that own_i and before_j are independent too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.lab.features.drawing import drawn_sets
from tracr.lab.features.relations import RELATIONS, FlagRelation
from tracr.rasp import rasp

__all__ = ["FlagProgram", "drawn_program"]


class TokenFlag:
    """Whether a token has a feature: a function with a name, so that programs can be printed."""

    def __init__(self, number: int, having: NDArray[np.bool_]) -> None:
        self.number, self.having = number, frozenset(np.flatnonzero(having).tolist())
        self.__name__ = f"has{number}"

    def __call__(self, token: int) -> int:
        return int(token in self.having)


@dataclass(frozen=True, eq=False)
class FlagProgram:
    """A program of flags.

    Args:
        sets: which features each token has [token, feature].
        partner: for each hit, the number of the feature before that it reads.
        importance: for each hit, its weight in the answer.
        relation: the relation that a hit is.
    """

    sets: NDArray[np.bool_]
    partner: NDArray[np.intp]
    importance: NDArray[np.intp]
    relation: FlagRelation

    @property
    def features(self) -> int:
        """The number of features of a token."""
        return int(self.sets.shape[1])

    @property
    def hits(self) -> str:
        """The name of the computed flags: that of the relation."""
        return self.relation.name

    def build(self) -> rasp.SOp:
        """The program in RASP."""
        previous = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)
        flags = [rasp.Map(TokenFlag(i, self.sets[:, i]), rasp.tokens) for i in range(self.features)]
        own = [rasp.numerical(flag).named(f"own{i}") for i, flag in enumerate(flags)]
        before = [
            rasp.numerical(rasp.Aggregate(previous, flag, default=0)).named(f"before{i}") for i, flag in enumerate(own)
        ]
        hits = [
            rasp.numerical(self._hit(own[i], before[partner])).named(f"{self.hits}{i}")
            for i, partner in enumerate(self.partner.tolist())
        ]
        found: rasp.SOp = _weighted_sum(list(zip(hits, self.importance.tolist(), strict=True))).named("answer")
        return found

    def _hit(self, own: rasp.SOp, before: rasp.SOp) -> rasp.SOp:
        """A computed flag: whether the signed sum of two flags is the largest it can be."""
        signed = rasp.LinearSequenceMap(own, before, self.relation.own_factor, self.relation.before_factor)
        return rasp.Map(self.relation.holds, rasp.numerical(signed))

    def answers(self, tokens: Sequence[int]) -> list[int]:
        """The task in plain Python."""
        found = []
        for place, token in enumerate(tokens):
            having = self.sets[token]
            earlier = self.sets[tokens[place - 1]] if place else np.zeros_like(having)
            holds = [self.relation(int(having[i]), int(earlier[p])) for i, p in enumerate(self.partner.tolist())]
            found.append(int(np.dot(holds, self.importance)))
        return found

    def flags(self, inputs: Sequence[Sequence[Any]]) -> dict[str, NDArray[np.bool_]]:
        """The flags "own", "before" and "hits" on inputs of one length, each [input, token, feature]."""
        own = self.sets[np.array(inputs)]
        before = np.concatenate([np.zeros_like(own[:, :1]), own[:, :-1]], axis=1)
        return {"own": own, "before": before, "hits": self.hits_of(own, before)}

    def hits_of(self, own: NDArray[np.bool_], before: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The hits of flags [..., feature]."""
        return np.asarray((own == bool(self.relation.own)) & (before[..., self.partner] == bool(self.relation.before)))


def _weighted_sum(terms: list[tuple[Any, int]]) -> Any:
    """The sum of variables times their weights, by sums of neighbours: a chain would be as deep as there are terms."""
    while len(terms) > 1:
        last = terms[-1:] if len(terms) % 2 else []
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [(rasp.numerical(rasp.LinearSequenceMap(a, b, v, w)), 1) for (a, v), (b, w) in pairs] + last
    return terms[0][0]


def drawn_program(
    features: int, tokens: int, density: float, correlation: float, importance: int, relation: str | None, seed: int
) -> FlagProgram:
    """A random program; without a relation, that is drawn too."""
    rng = np.random.default_rng([seed, features, tokens])
    names = list(RELATIONS)
    drawn = names[int(rng.integers(len(names)))]
    return FlagProgram(
        drawn_sets(tokens, features, density, correlation, rng),
        rng.permutation(features),
        rng.integers(1, importance + 1, size=features),
        RELATIONS[drawn if relation is None else relation],
    )
