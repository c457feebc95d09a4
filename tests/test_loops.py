"""Components are listed by the schedule (`sublayers`, `heads`, `neurons`), not by loops over its layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracr

pytestmark = pytest.mark.repository

SOURCES = Path(tracr.__file__).parent
LAYERED = ("layout", "schedule")
MAKERS = {
    "ir/schedule.py",  # the lists themselves
    "ir/size.py",  # a size per layer
    "certificate/hints.py",  # hints per layer
    "compiler/layers/assign.py",  # the others make new layers from layers
    "compiler/layers/share_neurons.py",
    "compiler/residual/assemble.py",
}


def loops(tree: ast.AST) -> Iterator[ast.expr]:
    """What is iterated over, also inside `enumerate`, `zip` and the like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            yield from node.iter.args if isinstance(node.iter, ast.Call) else [node.iter]


def over_layers(iterated: ast.expr) -> bool:
    """Whether it is the `layers` of a layout or a schedule; those of weights are another matter."""
    if not isinstance(iterated, ast.Attribute) or iterated.attr != "layers":
        return False
    owner = iterated.value
    return getattr(owner, "attr", getattr(owner, "id", "")) in LAYERED


def test_only_makers_of_layers_loop_over_them() -> None:
    """And each of them still does."""
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if any(map(over_layers, loops(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found <= MAKERS
    assert MAKERS - found <= {"ir/schedule.py"}  # its loops are over `self.layers`


def test_the_loops_are_recognised() -> None:
    """In statements and comprehensions, alone and with numbers."""
    for text in (
        "for layer in model.layout.layers: pass",
        "[number for number, layer in enumerate(schedule.layers)]",
        "for layer, weights in zip(model.schedule.layers, parameters.layers, strict=True): pass",
    ):
        assert any(map(over_layers, loops(ast.parse(text)))), text
    assert not any(map(over_layers, loops(ast.parse("for layer in parameters.layers: pass"))))
