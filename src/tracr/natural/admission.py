"""Admission: the measurement that decides which nodes and edges of a twin are known.

Every node and every edge is measured separately, on interventions that were not used in training. Where the teacher's
answer changes, the twin must give the new answer; where it does not change, the twin's answer must not change either.
Intervals are exact (Clopper and Pearson), over pairs of inputs and not over positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracr.natural.sites import Sites

if TYPE_CHECKING:
    from tracr.natural.lessons import Bank

__all__ = ["Admission", "Rate", "SiteAdmission", "Verdict", "admission_of"]

CONFIDENCE = 0.95
LEAST = 1_000  # pairs of either kind
AGREEMENT, FALSE_CHANGES, ACCURACY = 0.99, 0.005, 0.999

Verdict = Literal["admitted", "never changes", "too few pairs", "missed"]


@dataclass(frozen=True)
class Rate:
    """The number of hits among a number of tries, with the exact 95 % interval of the probability.

    >>> print(Rate(1000, 1000))
    1.0000 [0.9963, 1.0000] of 1,000
    """

    hits: int
    tries: int

    @property
    def share(self) -> float:
        """The share of hits; NaN without tries."""
        return self.hits / self.tries if self.tries else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of Clopper and Pearson."""
        tail = (1 - CONFIDENCE) / 2
        low = _solve(lambda p: _at_least(self.hits, self.tries, p) - tail) if self.hits else 0.0
        high = _solve(lambda p: tail - 1 + _at_least(self.hits + 1, self.tries, p)) if self.hits < self.tries else 1.0
        return low, high

    def __str__(self) -> str:
        if not self.tries:
            return "no pairs"
        low, high = self.interval
        return f"{self.share:.4f} [{low:.4f}, {high:.4f}] of {self.tries:,}"


def _at_least(hits: int, tries: int, p: float) -> float:
    """The probability of at least `hits` hits, each with probability p; the smaller tail is summed."""

    def term(k: int) -> float:
        ways = math.lgamma(tries + 1) - math.lgamma(k + 1) - math.lgamma(tries - k + 1)
        return math.exp(ways + k * math.log(p) + (tries - k) * math.log1p(-p))

    if hits > tries // 2:
        return math.fsum(map(term, range(hits, tries + 1)))
    return 1 - math.fsum(map(term, range(hits)))


def _solve(rising: Any) -> float:
    """The probability at which a rising function is 0."""
    low, high = 1e-12, 1 - 1e-12
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


@dataclass(frozen=True)
class SiteAdmission:
    """The measurements of one node or edge.

    Args:
        site: its name: `blocks.0.attn.1`, `embed->blocks.0.attn.0.q`.
        wired: whether the teacher has it.
        agreement: how often the twin gives the teacher's new answer where it changes.
        false_changes: how often the twin's answer changes where the teacher's does not.
        tried: how many interventions were drawn for it; of those, `undefined` had no true answer.
    """

    site: str
    wired: bool
    agreement: Rate
    false_changes: Rate
    tried: int
    undefined: int

    @property
    def verdict(self) -> Verdict:
        """The result of the measurement."""
        changes = self.agreement.tries > 0
        if self.false_changes.tries < LEAST or 0 < self.agreement.tries < LEAST:
            return "too few pairs"
        if self.false_changes.interval[1] > FALSE_CHANGES or (changes and self.agreement.interval[0] < AGREEMENT):
            return "missed"
        return "admitted" if changes else "never changes"

    @property
    def known(self) -> bool:
        """Whether it is admitted, or never changed the teacher's answer and does not change the twin's."""
        return self.verdict in ("admitted", "never changes")

    def __str__(self) -> str:
        return f"{self.site}: {self.verdict}; agrees {self.agreement}; changes falsely {self.false_changes}"


@dataclass(frozen=True)
class Admission:
    """The measurements of all nodes and edges of a twin, and its accuracy on inputs without interventions."""

    accuracy: Rate
    every_input: bool
    sites: tuple[SiteAdmission, ...] = field(repr=False)

    @property
    def admitted(self) -> bool:
        """Whether the accuracy is high enough and every node and edge is known."""
        return self.accurate and all(site.known for site in self.sites)

    @property
    def accurate(self) -> bool:
        """Whether the twin is right on enough inputs."""
        return self.accuracy.share >= ACCURACY

    @property
    def missed(self) -> tuple[SiteAdmission, ...]:
        """The nodes and edges that are not known."""
        return tuple(site for site in self.sites if not site.known)

    @property
    def by_name(self) -> Mapping[str, SiteAdmission]:
        """The measurement of each node and edge."""
        return {site.site: site for site in self.sites}

    def __str__(self) -> str:
        known = sum(site.known for site in self.sites)
        on = "all inputs" if self.every_input else f"{self.accuracy.tries:,} inputs"
        tried = sum(site.tried for site in self.sites if site.wired)
        undefined = sum(site.undefined for site in self.sites if site.wired)
        return "\n".join(
            [
                f"{'admitted' if self.admitted else 'not admitted'}: right on {self.accuracy.share:.2%} of {on}; "
                f"{known} of {len(self.sites)} nodes and edges known; "
                f"{undefined / max(1, tried):.1%} of the interventions on the teacher's had no true answer",
                *map(str, self.missed),
            ]
        )


def admission_of(
    sites: Sites,
    wired: NDArray[np.bool_],
    bank: Bank,
    right: NDArray[np.bool_],
    same: NDArray[np.bool_],
    accuracy: Rate,
    *,
    every_input: bool,
) -> Admission:
    """The admission of one twin, from its answers to the lessons of a bank: whether each is right, and unchanged."""
    found = []
    for number, site in enumerate(sites.all):
        first, middle = int(bank.start[number]), int(bank.start[number] + bank.changing[number])
        last = middle + int(bank.staying[number])
        found.append(
            SiteAdmission(
                str(site),
                bool(wired[number]),
                Rate(int(right[first:middle].sum()), middle - first),
                Rate(int((~same[middle:last]).sum()), last - middle),
                int(bank.tried[number]),
                int(bank.undefined[number]),
            )
        )
    return Admission(accuracy, every_input, tuple(found))
