"""The operations of a program: each s-op computes one of these from the codes of others.

Values are integer codes (places in a node's domain); `ERROR` marks a cell where the user's function raises, `UNREACHED`
a cell that no input leads to.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracr.ir.domains import Codes, Finite
from tracr.values import Value

__all__ = [
    "ERROR",
    "PAIR",
    "UNREACHED",
    "Aggregation",
    "Attention",
    "Constant",
    "IndicesOp",
    "LengthOp",
    "Linear",
    "Lookup",
    "Op",
    "PairLookup",
    "Positions",
    "SumLookup",
    "Table",
    "TokensOp",
    "Width",
]

ERROR = -1
UNREACHED = -2

PAIR = "pair of values"
"""The function of an s-op that a product space is made of."""


@dataclass(frozen=True, eq=False)
class TokensOp:
    """The input tokens."""


@dataclass(frozen=True, eq=False)
class IndicesOp:
    """The positions."""


@dataclass(frozen=True, eq=False)
class LengthOp:
    """The length of the input."""


@dataclass(frozen=True, eq=False)
class Constant:
    """One value everywhere: code 0."""


@dataclass(frozen=True, eq=False)
class Positions:
    """A code for each position."""

    table: Codes


@dataclass(frozen=True, eq=False)
class Lookup:
    """A function of one s-op: `table[code]`; `function` is its text."""

    inner: int
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class PairLookup:
    """A function of two s-ops: `table[first code, second code]`; `function` is its text."""

    fst: int
    snd: int
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class Linear:
    """`constant` plus a weighted sum of s-ops that hold numbers; `None` if any of them is."""

    terms: tuple[tuple[int, float], ...]
    constant: float


@dataclass(frozen=True, eq=False)
class SumLookup:
    """A function of a weighted sum of s-ops that hold numbers: `table[i]` where the sum is `points.values[i]`.

    The optimiser makes it of other tables (`sums.py`); `function` is their text.
    """

    terms: tuple[tuple[int, float], ...]
    points: Finite
    table: Codes
    function: str


@dataclass(frozen=True, eq=False)
class Aggregation:
    """The mean of the selected values, or `default`.

    `copies` is true when all selected values are equal (one, mostly), so that nothing is ever averaged; `assumed` when
    that could not be proved but the interpreter would raise otherwise (several strings have no mean).
    """

    selector: int
    value: int
    default: Value
    copies: bool
    assumed: bool


@dataclass(frozen=True, eq=False)
class Width:
    """How many keys are selected."""

    selector: int


Table = Lookup | PairLookup | SumLookup
Attention = Aggregation | Width
Op = TokensOp | IndicesOp | LengthOp | Constant | Positions | Table | Linear | Attention
