"""The drawing of a program on the input that it gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracr.errors import TracrError
from tracr.rasp.base import RASPExpr
from tracr.rasp.elementwise import SOp
from tracr.rasp.traversal import topological
from tracr.text.drawing import Drawing
from tracr.text.drawing.plan import DrawnRow, plan
from tracr.values import Value

__all__ = ["drawn", "drawn_before"]

RIGHT_ANSWER = "should be"


def drawn(sop: SOp, tokens: Sequence[Any], expected: Sequence[Value]) -> Drawing | None:
    """The program on an input, with the right answer below its own; none if it is too large to draw."""
    try:
        drawing = plan(sop, tokens)
    except TracrError:
        return None
    *others, last = drawing.layers
    answered = replace(last, rows=(*last.rows, DrawnRow(RIGHT_ANSWER, tuple(expected))))
    return Drawing(replace(drawing, layers=(*others, answered)))


def drawn_before(failing: RASPExpr, tokens: Sequence[Any]) -> Drawing | None:
    """The largest part that an operation reads, if the operation itself fails on the input."""
    largest = max(failing.children, key=lambda part: len(topological([part])), default=None)
    try:
        return None if largest is None else Drawing(plan(largest, tokens))
    except TracrError:
        return None
