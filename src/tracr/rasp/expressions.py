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

from typing import TYPE_CHECKING

from tracr.rasp import attention, elementwise
from tracr.rasp.attention import *  # noqa: F403
from tracr.rasp.base import RASPExpr as RASPExpr
from tracr.rasp.elementwise import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers follow the stars, not a list that is put together
    __all__ = ["RASPExpr", *elementwise.__all__, *attention.__all__]
