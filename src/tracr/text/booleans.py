"""Which s-ops surely hold booleans."""

from __future__ import annotations

from tracr.rasp.expressions import Map, RASPExpr, SequenceMap
from tracr.rasp.functions import BinaryOperator, Composition, ConstantOperator, Function, UnaryOperator
from tracr.text.operations import Member
from tracr.text.phrases import COMPARE, INFIX

__all__ = ["gives_boolean", "is_boolean"]


def gives_boolean(function: Function, boolean: bool) -> bool:
    """Whether a function surely gives a boolean; `boolean` says whether it gets one."""
    match function:
        case UnaryOperator(symbol="not") | Member():
            return True
        case ConstantOperator(symbol="and" | "or", constant=bool()):
            return boolean
        case ConstantOperator(symbol=symbol) | BinaryOperator(symbol=symbol):
            return symbol in ("both", "either") or INFIX.get(symbol, ("", -1))[1] == COMPARE
    return False


def is_boolean(expr: RASPExpr) -> bool:
    """Whether an s-op surely holds booleans; chains are followed without recursion."""
    functions: list[Function] = []
    while isinstance(expr, Map):
        functions += reversed(expr.f.functions() if isinstance(expr.f, Composition) else [expr.f])
        expr = expr.inner
    boolean = isinstance(expr, SequenceMap) and gives_boolean(expr.f, False)
    for function in reversed(functions):
        boolean = gives_boolean(function, boolean)
    return boolean
