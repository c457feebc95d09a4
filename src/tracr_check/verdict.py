"""The verdict of the checker, and the exception that ends a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

__all__ = ["Rejected", "Verdict", "need", "reject"]


class Rejected(Exception):
    """The proof fails; `place` is the layer, dimension, value or input class where it does."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place


def reject(reason: str, place: str = "") -> NoReturn:
    """End the check."""
    raise Rejected(reason, place)


def need(holds: object, reason: str, place: str = "") -> None:
    """End the check unless a condition holds."""
    if not holds:
        reject(reason, place)


@dataclass(frozen=True)
class Verdict:
    """The result of a check. `theorem` is what is proved, in one paragraph; empty if the model is rejected.

    `weights_sha256` is the digest of the numbers that it is proved of: the weights, cast to the format of the
    arithmetic (`numbers_sha256`). It is the same for every export that holds these numbers under these names.
    """

    accepted: bool
    reason: str
    place: str
    assumptions: tuple[str, ...]
    arithmetic: str
    padded: bool
    lengths: tuple[int, int]
    sha256: Mapping[str, str] = field(default_factory=dict)
    theorem: str = ""
    weights_sha256: str = ""

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if not self.accepted:
            return f"REJECTED: {self.reason}" + (f" ({self.place})" if self.place else "")
        (low, high), padded = self.lengths, "padded" if self.padded else "unpadded"
        return f"ACCEPTED in {self.arithmetic}, lengths {low} to {high}, {padded}"

    def __str__(self) -> str:
        if not self.accepted:
            return self.headline
        lines = [self.headline, self.theorem, *(f"assuming: {one}" for one in self.assumptions)]
        lines += [f"sha256 {name}: {digest}" for name, digest in self.sha256.items()]
        return "\n".join([*lines, f"sha256 of the weights in {self.arithmetic}: {self.weights_sha256}"])
