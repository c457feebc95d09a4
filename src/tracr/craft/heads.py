"""Attention heads from selectors.

The logit of a key is 0 if the query selects it and -GAP if not, so the softmax gives every selected key weight 1/w
exactly. Four more terms make that hold for every input:

- BOS has logit -GAP/2: it is attended to if and only if nothing else is, and then carries the default.
- PAD keys get another -2 GAP: they are never attended to, so a padded batch gives the unpadded answer.
- The BOS query attends to BOS alone (+2 GAP): what a head writes at the BOS position is always the same (its default),
  so that readers can cancel it.
- For a selector width BOS has weight c instead (logit ln c) and the head reads c/(c+w).

Codes at BOS read as zero, so BOS keys and queries get nothing from the selector's own matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.craft.grouping import group_rows
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.numerics import GAP
from tracr.craft.variables import Array, Variable

__all__ = ["Head", "attend", "selector_logits"]


@dataclass(frozen=True, eq=False)
class Head:
    """One attention head: queries and keys of equal width, values, and the matrix that writes them."""

    label: str
    query: LinearMap
    key: LinearMap
    value: LinearMap
    writes: tuple[tuple[Variable, Array], ...]
    selector: str
    what: str

    @property
    def maps(self) -> tuple[LinearMap, ...]:
        """Everything the head reads the residual stream with; the values last."""
        return (self.query, self.key, self.value)

    @property
    def reads(self) -> tuple[Variable, ...]:
        """Every variable the head reads."""
        return tuple(dict.fromkeys(variable for linear in self.maps for variable in linear.blocks))

    @property
    def rank(self) -> int:
        """The d_head this head needs."""
        return max(self.query.width, self.value.width)


def selector_logits(selected: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Factors Q [query values, r] and K [key values, r] with Q @ K.T = 0 where selected and -GAP elsewhere.

    Keys that all queries treat alike share a coordinate; so do queries that treat all keys alike; the smaller of the
    two factorisations is taken, and coordinates that are 0 for every query (selected by all) are left out.
    """
    logits = np.where(selected, 0.0, -GAP)
    first_query, query_class = group_rows(selected)
    first_key, key_class = group_rows(selected.T)
    if len(first_key) <= len(first_query):
        queries, keys = logits[:, first_key], np.eye(len(first_key))[key_class]
        used = queries.any(axis=0)
    else:
        queries, keys = np.eye(len(first_query))[query_class], logits[first_query].T
        used = keys.any(axis=0)
    return queries[:, used], keys[:, used]


def attend(query: LinearMap, key: LinearMap, bos_logit: float) -> tuple[LinearMap, LinearMap]:
    """Add the BOS and PAD terms to the queries and keys of a selector."""
    special_query = LinearMap(
        {ONE: np.array([[bos_logit, -2 * GAP]]), BOS: np.array([[2 * GAP - bos_logit, 0.0]])}, width=2
    )
    special_key = LinearMap({BOS: np.array([[1.0, 0.0]]), PAD: np.array([[0.0, 1.0]])}, width=2)
    return query.beside(special_query), key.beside(special_key)
