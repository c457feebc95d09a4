"""Arithmetic written as a weighted sum: it needs no table and no listed values.

The compiler asks three questions about weighted sums:

- `linear_form`, here: is an expression written with + - * and / of constants? Its values need not be known, so it also
  works for means, which are too many to list.
- `linear_tables.py: sum_of`: are the values of a table exactly a weighted sum of its inputs, for any function? Then it
  needs no neurons.
- `functions_of_sums.py: function_of`: does a table depend on its inputs only through a weighted sum? Then one layer of
  neurons that read the sum is enough. `pairs.py` tries x + y and x - y, the pass `sums` other weights.
"""

from __future__ import annotations

from tracr.rasp.expressions import LinearSequenceMap, Map, RASPExpr, SequenceMap
from tracr.rasp.functions import BinaryOperator, Composition, ConstantOperator, Function, UnaryOperator
from tracr.values import is_number

__all__ = ["linear_form"]

Form = tuple[tuple[float, ...], float]
LARGEST_CONSTANT = 2**24  # a larger intermediate constant loses digits, and the result is no longer linear


def linear_form(expr: RASPExpr) -> Form | None:
    """The factor of each input and the constant, if `expr` is built from `+ - *` and `/` with constants.

    >>> from tracr.rasp import rasp
    >>> linear_form(3 - rasp.indices / 2), linear_form(rasp.indices - rasp.length), linear_form(rasp.indices ** 2)
    (((-0.5,), 3.0), ((1, -1), 0.0), None)
    """
    try:
        return _form(expr)
    except OverflowError:  # a constant too large for a float
        return None


def _form(expr: RASPExpr) -> Form | None:
    match expr:
        case LinearSequenceMap():
            float(expr.fst_fac), float(expr.snd_fac)
            return (expr.fst_fac, expr.snd_fac), 0.0
        case SequenceMap(f=BinaryOperator(symbol="+" | "-" as symbol)):
            return (1, 1 if symbol == "+" else -1), 0.0
        case Map():
            functions = expr.f.functions() if isinstance(expr.f, Composition) else [expr.f]
            factor, constant = 1.0, 0.0
            for function in functions:
                step = _affine(function)
                if step is None:
                    return None
                factor, constant = step[0] * factor, step[0] * constant + step[1]
                if abs(constant) > LARGEST_CONSTANT or not 1 / LARGEST_CONSTANT <= abs(factor) <= LARGEST_CONSTANT:
                    return None
            return (factor,), constant
        case _:
            return None


def _affine(function: Function) -> tuple[float, float] | None:
    """`(a, b)` if the function is a*x + b."""
    match function:
        case UnaryOperator(symbol="neg"):
            return -1.0, 0.0
        case ConstantOperator(symbol=symbol, constant=constant, reflected=reflected) if is_number(constant):
            number = float(constant)
            if symbol == "+":
                return 1.0, number
            if symbol == "-":
                return (-1.0, number) if reflected else (1.0, -number)
            if symbol == "*":
                return number, 0.0
            if symbol == "/" and not reflected and number != 0:
                return 1 / number, 0.0
    return None
