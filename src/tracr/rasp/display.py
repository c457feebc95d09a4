"""Notebook displays of expressions. The functions are in modules that import this package, so a table names them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracr.rasp.base import RASPExpr

__all__ = ["METHODS", "notebook_svg"]

METHODS = {"_repr_svg_": "tracr.text.drawing:notebook_svg"}
"""Method of an expression → the function it calls. The test of the import graph reads this table."""


def notebook_svg(expr: RASPExpr) -> str | None:
    """The drawing of an expression on an example."""
    module, _, function = METHODS["_repr_svg_"].partition(":")
    svg: str | None = getattr(importlib.import_module(module), function)(expr)
    return svg
