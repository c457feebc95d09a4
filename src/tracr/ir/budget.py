"""How much memory a compilation may take.

The size of every large object is estimated before the object is made. An object that would exceed `max_memory` is
refused: a `LimitError` with the estimate, never a `MemoryError`. An estimate is a count times one of the constants
below, which were measured. A refusal therefore depends only on the program and the options, not on the machine or its
other work. The estimates leave out Python, numpy and tables of a fixed size (`JOINT_CELLS`, `GROUP_CELLS`, ...): they
take `BASE` at most.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

from tracr.arguments import whole
from tracr.errors import CompileError, LimitError, TracrError
from tracr.values import short_repr

__all__ = [
    "ASKED",
    "BASE",
    "CALL",
    "CELL",
    "COMPARED",
    "DEFAULT",
    "FLOAT",
    "MEAN",
    "VALUE",
    "WEIGHT",
    "Budget",
    "Growing",
    "ValueSizes",
    "as_bytes",
    "size_text",
]

DEFAULT = 2 * 1024**3
BASE = 256 * 1024**2

FLOAT = 8
"""A float64."""
VALUE = 200
"""A value of a domain: the object, its places in tuples, arrays and dicts."""
CALL = 350
"""A call of a user's function: arguments and result in lists, the code of the result."""
ASKED = 80
"""A call of a predicate, whose arguments exist already and whose answer is yes or no."""
CELL = 24
"""A cell of a table of pairs: its code, and copies of it while values that are treated alike are found."""
COMPARED = 8
"""A (query, key) cell of a selector: its truth, and copies of it while heads are chosen."""
MEAN = 640
"""A mean: the same value may occur for twenty different counts, and all occurrences are sorted."""
WEIGHT = 8
"""A weight of the model; running it takes half as much again, for float32."""

SMALL = frozenset({type(None), bool, float})
SIMPLE = SMALL | {int, str, bytes}
SHARED = range(-5, 257)  # Python has one object of each of these integers
SHORT = 2**1024  # a smaller integer takes less than `VALUE`
LARGE = 1024
SAMPLE = 256  # how many parts of a value are measured
CHUNK = 16, 4096  # values that are made before they are measured, at first and later

UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def as_bytes(size: object) -> int:
    """A size in bytes: an integer, or a text such as "2GB" (of 1024 MB, as "2GiB").

    >>> as_bytes(4096), as_bytes("64 MB"), as_bytes("1.5GiB")
    (4096, 67108864, 1610612736)
    """
    if isinstance(size, str) and (found := TEXT.fullmatch(size)):
        size = int(float(found[1]) * UNITS[found[2].lower()])
    try:
        return whole("max_memory", size, 1)
    except TracrError:
        what = f"max_memory must be a positive number of bytes, not {short_repr(size)}"
        raise CompileError(what, hint='write 2 * 1024**3, or "2GB"') from None


def size_text(size: int) -> str:
    """A number of bytes for people.

    >>> size_text(1536), size_text(3 * 1024**2), size_text(5 * 1024**3 // 2)
    ('1.5 kB', '3.0 MB', '2.5 GB')
    """
    if size >= 1024**5:
        return "1,000,000 GB or more"
    power = 3 if size >= 1024**3 else 2 if size >= 1024**2 else 1
    return f"{size / 1024**power:,.1f} {' kMG'[power]}B"


class ValueSizes:
    """Measures values that are larger than `VALUE`: texts, large integers, tuples and sets with their elements.

    An object of `LARGE` bytes or more is counted once, even if it is part of several values.
    """

    def __init__(self) -> None:
        self._counted: dict[int, object] = {}

    def beyond(self, values: Sequence[Any]) -> int:
        """How many bytes these values take together beyond `VALUE` each."""
        kinds = set(map(type, values))
        if kinds <= SMALL or (kinds == {int} and -SHORT < min(values) <= max(values) < SHORT):
            return 0
        if kinds <= SIMPLE and sum(map(sys.getsizeof, values)) <= VALUE * len(values):
            return 0
        return sum(max(0, self._size(value) - VALUE) for value in values)

    def _size(self, value: object) -> int:
        if type(value) in SMALL or (type(value) is int and value in SHARED):
            return 24
        size = sys.getsizeof(value)
        if size >= LARGE:
            if id(value) in self._counted:
                return 0
            self._counted[id(value)] = value
        if isinstance(value, tuple | frozenset):
            size += self._inside(value) + (size if isinstance(value, tuple) else 0)  # tuples are copied
        return size

    def _inside(self, value: Collection[object]) -> int:
        """The size of the elements of a tuple or set, from a sample; an object found twice in it is counted once."""
        step = 1 + len(value) // SAMPLE
        sample = {id(part): part for part in islice(value, 0, None, step)}
        return step * sum(map(self._size, sample.values()))


class Budget:
    """The memory that a compilation holds, by its own estimate, and whether the next object fits too."""

    def __init__(self, most: int, held: int = 0) -> None:
        self.most = most
        self.held = held

    def fits(self, size: int) -> bool:
        """Whether `size` more bytes are allowed."""
        return self.held + size <= self.most

    def need(self, size: int, what: str, expression: object = "") -> None:
        """Refuse an object that needs `size` bytes for a while, if they are not left."""
        if self.fits(size):
            return
        held = f", in addition to {size_text(self.held)} for the program so far" if self.held >= 1024**2 else ""
        raise LimitError(
            f"{what}: about {size_text(size)} of memory{held}",
            expression=expression,
            hint="use fewer values, a smaller vocabulary or a shorter max_seq_len, or raise max_memory "
            f"(now {size_text(self.most)})",
        )

    def hold(self, size: int, what: str, expression: object = "") -> None:
        """Refuse an object that needs `size` bytes, if they are not left; count it as held otherwise."""
        self.need(size, what, expression)
        self.held += size


class Growing:
    """A list of values made in chunks, to notice large values before they fill the memory."""

    def __init__(self, budget: Budget, what: str, expression: object = "") -> None:
        self.budget, self.what, self.expression = budget, what, expression
        self.size, self.many = 0, 0
        self._sizes = ValueSizes()

    @property
    def chunk(self) -> int:
        """How many values may be made before the next measurement: as many as fit if they are as large as those."""
        first, most = CHUNK
        if not self.many:
            return first
        left, each = self.budget.most - self.budget.held - self.size, self.size // self.many + 1
        return max(1, min(most, left // each))

    def measure(self, values: Sequence[object]) -> None:
        """Count the values that were added; refuse if all values together are too large."""
        self.size += self._sizes.beyond(values)
        self.many += len(values)
        if not self.budget.fits(self.size):
            each = size_text(self.size // self.many)
            self.budget.need(self.size, f"{self.what}: {self.many:,} of about {each} each", self.expression)
