"""`cached_property` without a lock, for values of the compiler that are made in large numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(Generic[T]):  # as in functools
    """A property that is computed at its first use and then kept.

    `functools.cached_property` takes a lock before Python 3.12, which costs more than most of these properties. Without
    a lock two threads may compute one value twice. Both get the same value, because the objects are immutable.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)  # found before the property from now on
        return value
