"""Values of every type come back; those that cannot be saved are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tracr.errors import FormatError
from tracr.rasp import rasp
from tracr.saving.values_json import decode_value, encode_value

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters()),
    st.text(st.characters(categories=["Cs"]), max_size=3),
    st.binary(),
    st.fractions(),
    st.integers(2**90).map(lambda n: Fraction(n, 7)),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3).map(frozenset),
    max_leaves=10,
)


def shape(value: Any) -> Any:
    """A value with the types of all its parts, comparable."""
    if isinstance(value, tuple):
        return ("tuple", [shape(element) for element in value])
    if isinstance(value, frozenset):
        return ("frozenset", sorted(map(repr, map(shape, value))))
    return (type(value).__name__, repr(value))


@given(VALUES)
def test_values_of_every_type_come_back(value: Any) -> None:
    """Through JSON text, types and signs and digits included."""
    text = json.dumps(encode_value(value), allow_nan=False)
    assert shape(decode_value(json.loads(text))) == shape(value)


SETS = """
import sys, tracr
from tracr.rasp import rasp
vocab = [frozenset("abcdefgh"), ("x", frozenset("ijklmnop"))]
if sys.argv[2] == "save":
    tracr.compile(rasp.tokens, vocab, 2).save(sys.argv[1])
assert tracr.load(sys.argv[1])(vocab) == vocab
"""


def test_sets_come_back_in_another_process(tmp_path: Path) -> None:
    """Though their text, and so a label, differs from run to run."""
    for seed, action in enumerate(("save", "load", "load")):
        words = [sys.executable, "-c", SETS, str(tmp_path / "model"), action]
        done = subprocess.run(
            words, env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    "value",
    [Colour.RED, Level.LOW, (1, (Colour.RED,)), range(3), Decimal("Infinity"), complex(0, float("inf")), Path("a")],
)
def test_a_value_that_cannot_be_saved_is_named(tmp_path: Path, value: Any) -> None:
    """And nothing is written."""
    model = tracr.compile(rasp.tokens, ["a", value], 2)
    with pytest.raises(FormatError, match=r"of type \w+ cannot be saved"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_values_nested_beyond_reason_are_refused(tmp_path: Path) -> None:
    """On writing as on reading."""
    value: Any = ()
    for _ in range(150):
        value = (value,)
    with pytest.raises(FormatError, match="nested"):
        tracr.compile(rasp.tokens, [value], 1).save(tmp_path / "model")
