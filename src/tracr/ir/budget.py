"""How much memory a compilation may take.

Before something large is made its size is estimated, and what would go beyond `max_memory` is refused: a `LimitError`
with the estimate, never a `MemoryError`. The estimates are counts times the constants below, which were measured, so a
refusal depends on the program and the options only, not on the machine or on what else it runs. They leave out what
Python, numpy and tables of a fixed size (`JOINT_CELLS`, `GROUP_CELLS`, ...) take: `BASE` at most.
"""

from __future__ import annotations

import re

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
"""A value of a mean: it may come out for twenty different counts, and all of these are sorted."""
WEIGHT = 8
"""A weight of the model; running it takes half as much again, for float32."""

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

    >>> size_text(3 * 1024**2), size_text(5 * 1024**3 // 2)
    ('3.0 MB', '2.5 GB')
    """
    if size >= 1024**5:
        return "1,000,000 GB or more"
    return f"{size / 1024**3:,.1f} GB" if size >= 1024**3 else f"{size / 1024**2:,.1f} MB"


class Budget:
    """What a compilation holds by its own estimate, and whether what it makes next fits as well."""

    def __init__(self, most: int, held: int = 0) -> None:
        self.most = most
        self.held = held

    def fits(self, size: int) -> bool:
        """Whether so many bytes more are allowed."""
        return self.held + size <= self.most

    def need(self, size: int, what: str, expression: object = "") -> None:
        """Refuse to make something for which so many bytes are needed for a while."""
        if self.fits(size):
            return
        held = f", beside {size_text(self.held)} for the program so far" if self.held >= 1024**2 else ""
        raise LimitError(
            f"{what}: about {size_text(size)} of memory{held}",
            expression=expression,
            hint="use fewer values, a smaller vocabulary or a shorter max_seq_len, or raise max_memory "
            f"(now {size_text(self.most)})",
        )

    def hold(self, size: int, what: str, expression: object = "") -> None:
        """The same for something that is kept."""
        self.need(size, what, expression)
        self.held += size
