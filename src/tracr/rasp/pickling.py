"""Expressions in pickles: shared sub-expressions stay shared, and a program may be ten thousand operations deep.

`pickle` recurses into the children of an expression. An expression whose depth is a multiple of STRIDE is a landmark:
all landmarks below it are pickled first, children before parents. Each of them finds the landmarks below it already
pickled, so no recursion is longer than two strides.

Functions are pickled by name. A lambda has no name: it is refused here, with a hint, unless the pickling library sends
functions as code.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tracr.errors import UnpicklableError
from tracr.rasp.base import RASPExpr, expression_of
from tracr.rasp.functions import function_name
from tracr.rasp.traversal import topological

__all__ = ["reduced"]

STRIDE = 32
SENDING_CODE = ("cloudpickle", "dill")  # libraries that pickle lambdas; other libraries contain a copy of the first


def reduced(expr: RASPExpr) -> tuple[Any, ...]:
    """The form of an expression that `pickle` stores."""
    fields = expr.fields()
    for value in fields.values():
        if callable(value) and not isinstance(value, RASPExpr):
            _check(value, expr)
    return _restored, (_landmarks(expr), type(expr), fields)


def _restored(landmarks: Sequence[RASPExpr], kind: type[RASPExpr], fields: Mapping[str, Any]) -> RASPExpr:
    return expression_of(kind, fields)


def _landmarks(expr: RASPExpr) -> list[RASPExpr]:
    """The expressions to pickle before this one: for a landmark, the landmarks below it."""
    if not _is_landmark(expr):
        return []
    return [below for below in topological(expr.children) if _is_landmark(below)]


def _is_landmark(expr: RASPExpr) -> bool:
    return expr.depth > 0 and expr.depth % STRIDE == 0


def _check(function: Any, expr: RASPExpr) -> None:
    """Refuse a function that cannot be found by its name in another process."""
    try:
        pickle.dumps(function)
    except Exception as error:  # the contents of a callable object may raise any error
        if _code_is_sent():
            return
        raise UnpicklableError(
            f"the function {function_name(function)} cannot be pickled: {error}",
            expression=expr,
            hint="define it with def at the top level of a module; or compile here and send the model, which holds "
            "tables and no functions; or pickle with cloudpickle",
        ) from None


def _code_is_sent() -> bool:
    """Whether the pickling library sends functions as code: one of its own functions is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if not set(SENDING_CODE).isdisjoint(str(frame.f_globals.get("__name__")).split(".")):
            return True
    return False
