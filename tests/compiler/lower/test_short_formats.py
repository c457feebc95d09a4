"""Models for bfloat16 and float16: right in an arithmetic that stores every number in the format, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.cli.calling import invoke, invoke_json
from tests.short_arithmetic import assert_right
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import pairwise, slow
from tracr.craft.formats import SHORT
from tracr.craft.linear import NumberRead, read_number
from tracr.craft.mlps import staircase
from tracr.craft.numerics import Noise
from tracr.craft.variables import NUMBER, Variable
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.programs import EXAMPLES
from tracr.saving.program_json import options_json

FORMATS = ("bfloat16", "float16")
NOT_HELD = {"pair_balance"}  # its output, the difference of two means, has too many values for bfloat16


@pytest.mark.parametrize(("name", "dtype", "level"), pairwise(EXAMPLES, FORMATS, (0, 1, 2)))
def test_library_programs_are_right(name: str, dtype: str, level: int) -> None:
    """The library, at its own sizes: every weight is held, the bounds prove it, a rounded pass computes the program."""
    example = EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level, dtype=dtype)
    assert_right(model, SHORT[dtype], 60)
    assert model.check_format(dtype, 20)
    assert model.verify(100)


@mostly_compared(0.7)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(max_ops=4))
def test_random_programs_are_right_or_refused(case: Case) -> None:
    """Random programs, in both formats. None is compiled without a proof on the inputs that the compiler checks."""
    for dtype in FORMATS:
        assert_right(compile_case(case, dtype=dtype, level=1 + case.seed % 2), SHORT[dtype], 60)


@pytest.mark.parametrize(
    ("dtype", "longest"), [("bfloat16", 2), ("bfloat16", 31), ("bfloat16", 32), ("float16", 60), *slow_sizes()]
    if False
    else [("bfloat16", 2), ("bfloat16", 31), ("bfloat16", 32), ("float16", 60)],
)
def test_counts_up_to_the_longest_length(dtype: str, longest: int) -> None:
    """A share is decoded exactly for every width."""
    model = tracr.compile(programs.make_length(), "a", longest, dtype=dtype)
    assert assert_right(model, SHORT[dtype], longest) == longest
    assert_right(tracr.compile(programs.make_count(rasp.tokens, "a"), "ab", longest, dtype=dtype), SHORT[dtype], 150)
