"""Properties that are computed once."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.caching import cached_property

CALLS: list[int] = []


@dataclass(frozen=True)
class Square:
    """A value with a property."""

    side: int

    @cached_property
    def area(self) -> int:
        """Its area."""
        CALLS.append(self.side)
        return self.side**2


def test_a_property_is_computed_once_for_each_object() -> None:
    """Equal objects have their own values; the class gives the property itself, with its text."""
    CALLS.clear()
    first, second = Square(3), Square(3)
    assert [first.area, first.area, second.area] == [9, 9, 9]
    assert CALLS == [3, 3]
    assert Square.area.__doc__ == "Its area."
