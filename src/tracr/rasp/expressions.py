"""The expressions of RASP: s-ops (sequences of values) and selectors (which key each query looks at).

An expression is immutable and hashes by identity, although `==` on s-ops builds a new expression. Building one
computes nothing; `expr(xs)` runs the interpreter.

>>> from tracr.rasp import rasp
>>> is_x = (rasp.tokens == "x").named("is_x")
>>> prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
>>> frac_prevs = rasp.Aggregate(prevs, is_x)
>>> frac_prevs("xacx")
[True, 0.5, 0.3333333333333333, 0.5]
"""

from __future__ import annotations

from tracr.rasp.attention import (
    Aggregate,
    ConstantSelector,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
)
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import (
    ConstantSOp,
    Full,
    Indices,
    Length,
    LinearSequenceMap,
    Map,
    SequenceMap,
    SOp,
    Tokens,
    indices,
    length,
    tokens,
)

__all__ = [
    "Aggregate",
    "ConstantSOp",
    "ConstantSelector",
    "Full",
    "Indices",
    "Length",
    "LinearSequenceMap",
    "Map",
    "RASPExpr",
    "SOp",
    "Select",
    "Selector",
    "SelectorAnd",
    "SelectorNot",
    "SelectorOr",
    "SelectorWidth",
    "SequenceMap",
    "Tokens",
    "indices",
    "length",
    "tokens",
]
