"""Relations between a feature of the own token and one of the token before: what a group of neurons computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["RELATIONS", "FlagRelation"]


@dataclass(frozen=True)
class FlagRelation:
    """A relation of two flags; it holds for one of their four values.

    `u = own_factor * own + before_factor * before + bias` is 1 where it holds, and 0 or less elsewhere.
    """

    name: str
    own: int
    before: int

    @property
    def own_factor(self) -> int:
        """+1 if the own token must have its feature, else -1."""
        return 1 if self.own else -1

    @property
    def before_factor(self) -> int:
        """+1 if the token before must have its feature, else -1."""
        return 1 if self.before else -1

    @property
    def bias(self) -> int:
        """The constant of `u`."""
        return 1 - self.own - self.before

    def __call__(self, own: int, before: int) -> int:
        """Whether the relation holds, as 0 or 1.

        >>> RELATIONS["gone"](0, 1), RELATIONS["gone"](1, 1)
        (1, 0)
        """
        return int((own > 0) == (self.own > 0) and (before > 0) == (self.before > 0))

    def holds(self, signed: float) -> int:
        """The same, for the signed sum of the flags, without the constant.

        >>> [RELATIONS["both"].holds(own + before) for own in (0, 1) for before in (0, 1)]
        [0, 0, 0, 1]
        """
        return int(signed + self.bias > 0)


RELATIONS: Mapping[str, FlagRelation] = MappingProxyType(
    {one.name: one for one in (FlagRelation("gone", 0, 1), FlagRelation("new", 1, 0), FlagRelation("both", 1, 1))}
)
"""All relations by name: the token before has the feature and the own token does not; the reverse; both do."""
