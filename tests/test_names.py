"""No two classes have the same name: a search for a name finds one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import tracr

pytestmark = pytest.mark.repository

SOURCES = Path(tracr.__file__).parent
COMPATIBLE = {
    "Linear": "tracr.craft.vectorspace_fns, a name of the original Tracr; the other is the program's weighted sum",
    "MLP": "tracr.craft.transformers, a name of the original Tracr; the other is the compiler's group of neurons",
}
"""Names that two classes have, because existing Tracr code imports one of them."""


def test_every_class_has_a_name_of_its_own() -> None:
    """But for those that existing Tracr code imports; the exceptions are still needed."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCES)))
    assert {name: where for name, where in places.items() if len(where) > 1}.keys() == COMPATIBLE.keys()
