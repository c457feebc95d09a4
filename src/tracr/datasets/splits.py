"""Splits a dataset so that no function is on both sides.

Programs that compute the same on the tested inputs, and all realisations of a program, fall in one split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from tracr.datasets.behaviour import Behaviour
from tracr.errors import TracrError

__all__ = ["SPLITS", "read_splits", "same_functions", "split"]

SPLITS: Mapping[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}


def read_splits(text: str) -> dict[str, float]:
    """The splits of a text such as "train=0.8,validation=0.1,test=0.1"; the shares must add up to 1.

    >>> read_splits("train=0.9,test=0.1")
    {'train': 0.9, 'test': 0.1}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.strip().partition("=")
        try:
            if not name.isidentifier() or name in found:
                raise ValueError
            found[name] = float(share)
        except ValueError:
            raise TracrError(
                f"{part.strip()!r} is not a split, or is named twice", hint='write "train=0.8,test=0.2"'
            ) from None
    return check_shares(found)


def check_shares(shares: Mapping[str, float]) -> dict[str, float]:
    """The shares, if they are positive and add up to 1."""
    if not shares or any(not share > 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-9:
        given = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise TracrError(
            f"the shares of the splits must be positive and add up to 1, not {given or 'none'}",
            hint='write {"train": 0.8, "test": 0.2}',
        )
    return dict(shares)


def same_functions(behaviours: Sequence[Behaviour]) -> list[int]:
    """For each program the place of the first program of its group: those that may compute the same function.

    Two programs with equal patterns whose totals differ by at most the larger `reach` are in one group, and so are
    programs joined by a chain of such pairs. In a list sorted by total − reach, one interval [total − reach,
    total + reach] joins the group before it if it begins before the group ends: every pair in question overlaps.
    """
    order = sorted(range(len(behaviours)), key=lambda place: _begin(behaviours[place]))
    first = list(range(len(behaviours)))
    group: list[int] = []
    pattern, end = "", 0.0
    for place in [*order, -1]:
        own = behaviours[place] if place >= 0 else None
        if own is not None and group and own.pattern == pattern and own.total - own.reach <= end:
            group.append(place)
            end = max(end, own.total + own.reach)
            continue
        for member in group:
            first[member] = min(group)
        if own is not None:
            group, pattern, end = [place], own.pattern, own.total + own.reach
    return first


def _begin(own: Behaviour) -> tuple[str, float]:
    return own.pattern, own.total - own.reach


def split(
    behaviours: Sequence[Behaviour],
    names: Sequence[str],
    shares: Mapping[str, float] = SPLITS,
    seed: int = 0,
) -> list[str]:
    """The split of each program. `names` are keys of the programs that do not depend on their order (`meaning`).

    Groups of programs that may compute the same function are taken in a random order, given by the seed and their
    smallest name. Each goes to the split that lacks most programs. A group that is larger than a split's share makes
    this split too large; nothing is separated to avoid that.
    """
    shares = check_shares(shares)
    groups: dict[int, list[int]] = {}
    for place, first in enumerate(same_functions(behaviours)):
        groups.setdefault(first, []).append(place)
    exact = {name: Fraction(share).limit_denominator(10**6) for name, share in shares.items()}
    had = dict.fromkeys(shares, 0)
    found = [""] * len(behaviours)
    done = 0
    for members in _shuffled(groups.values(), names, seed):
        done += len(members)
        chosen = max(shares, key=lambda name: exact[name] * done - had[name])
        had[chosen] += len(members)
        for place in members:
            found[place] = chosen
    return found


def _shuffled(groups: Iterable[list[int]], names: Sequence[str], seed: int) -> list[list[int]]:
    def key(members: list[int]) -> bytes:
        return hashlib.blake2b(f"{seed} {min(names[place] for place in members)}".encode(), digest_size=16).digest()

    return sorted(groups, key=key)
