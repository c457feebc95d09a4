"""Causal evaluation: every selector is masked to key <= query. Kept for code that imports this path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracr.rasp import interpreter
from tracr.rasp.expressions import RASPExpr
from tracr.rasp.interpreter import CausalEvaluator
from tracr.values import Value

__all__ = ["CausalEvaluator", "evaluate"]


def evaluate(expr: RASPExpr, xs: Sequence[Value]) -> Any:
    """The value of `expr` on `xs` when no position sees a later one."""
    return interpreter.evaluate(expr, xs, causal=True)
