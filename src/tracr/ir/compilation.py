"""A whole compilation: the program, the weights, and every value between them."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.ir.circuit import Circuit
from tracr.ir.graph import Graph
from tracr.ir.layout import Layout
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.program import Program
from tracr.ir.schedule import Schedule
from tracr.ir.search import Search
from tracr.rasp.expressions import RASPExpr

__all__ = ["Compilation"]


@dataclass(frozen=True, eq=False)
class Compilation:
    """The result of every step of the compiler."""

    options: Options
    graph: Graph
    expressions: tuple[RASPExpr, ...]
    """The expression of each node of the graph; empty for a saved program."""
    program: Program
    circuit: Circuit
    schedule: Schedule
    layout: Layout
    parameters: Parameters
    search: Search | None = None
    """The record of the search for a smaller model; `None` for a loaded model."""
