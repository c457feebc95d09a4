"""Models for bfloat16 and float16: right in an arithmetic that stores every number in the format, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.cli.calling import invoke, invoke_json
from tests.short_arithmetic import assert_right, rounded
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import in_turn
from tracr.craft.formats import SHORT
from tracr.craft.linear import ONE, read_number
from tracr.craft.numerics import Noise
from tracr.craft.staircases import TooClose, cell_staircase
from tracr.craft.variables import NUMBER, Variable
from tracr.ir.options import Options
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.programs import EXAMPLES
from tracr.saving.program_json import options_json

FORMATS = ("bfloat16", "float16")
TOKENS = rasp.tokens


QUICKLY = (("bfloat16", 0), ("bfloat16", 2), ("float16", 1))
OTHERS = (("bfloat16", 1), ("float16", 2), ("bfloat16", 2), ("float16", 0), ("bfloat16", 0), ("float16", 1))
QUICK = ("length", "hist", "frac_prevs", "reverse", "sort_composite", "induction")
LIBRARY = [
    *((name, dtype, level) for name in QUICK for dtype, level in QUICKLY),
    *(
        pytest.param(name, *way, marks=pytest.mark.slow)
        for name, way in in_turn(EXAMPLES, OTHERS)
        if name not in QUICK or way not in QUICKLY
    ),
]


@pytest.mark.parametrize(("name", "dtype", "level"), LIBRARY)
def test_library_programs_are_right(name: str, dtype: str, level: int) -> None:
    """The library, at its own sizes: a rounded pass computes the program, and so does a pass in float32."""
    example = EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level, dtype=dtype)
    assert assert_right(model, SHORT[dtype], 40)
    assert model.verify(100)


@mostly_compared(0.6)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(max_ops=4))
def test_random_programs_are_right_or_refused(case: Case) -> None:
    """Random programs, in both formats."""
    for dtype in FORMATS:
        assert_right(compile_case(case, dtype=dtype, level=1 + case.seed % 2), SHORT[dtype], 40)


@pytest.mark.parametrize(("dtype", "longest"), [("bfloat16", 32), ("bfloat16", 33), ("float16", 33)])
def test_counts_are_exact_up_to_the_longest_length(dtype: str, longest: int) -> None:
    """A share is decoded for every width; above 32 keys, bfloat16 counts in blocks of positions."""
    model = tracr.compile(programs.make_length(), "a", longest, dtype=dtype)
    assert assert_right(model, SHORT[dtype], longest) == longest
    assert any(label.startswith("length_count2") for label in model.residual.labels) == (
        longest > 32 and dtype == "bfloat16"
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 2])
def test_blocks_of_positions_count_any_selection(level: int) -> None:
    """Counts and means over 40 positions, with and without `indices` in the program."""
    counted = programs.make_hist()
    averaged = rasp.Aggregate(rasp.Select(TOKENS, TOKENS, rasp.Comparison.LEQ), rasp.numerical(TOKENS == 1), 0) > 0.5
    for program in (counted, averaged, programs.make_sort_unique(TOKENS, TOKENS)):
        model = compile_quietly(program, (0, 1), 40, level=level, dtype="bfloat16")
        assert_right(model, SHORT["bfloat16"], 120)


@given(
    dtype=st.sampled_from(FORMATS),
    gaps=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    error=st.sampled_from([0.0, 0.3]),
)
def test_staircases_are_exact_in_the_format(dtype: str, gaps: list[int], error: float) -> None:
    """On the grid or within the error of a point, before or after rounding to the grid, the hot coordinate is 1."""
    to = SHORT[dtype]
    points = np.cumsum([1.0, *gaps])
    number = Variable("x", Encoding.NUMERICAL, (NUMBER,), Noise(error, 0.0, 1.0), low=1.0, high=float(points[-1]) + 1)
    try:
        units = cell_staircase(read_number(number, to), points, np.eye(len(points)), {}, to)
    except TooClose:
        assert error
        assert min(gaps) < 3
        return
    weights, bias = units.read.blocks[number][0], units.read.blocks[ONE][0]
    for off in (-error, 0.0, error):
        near = points + off
        hidden = np.maximum(rounded(rounded(np.rint(near)[:, None] * weights, to) + bias, to), 0.0)
        assert np.array_equal(hidden @ units.write, np.eye(len(points)))
        in_float32 = np.maximum(near[:, None] * weights + bias, 0.0)
        assert np.allclose(in_float32 @ units.write, np.eye(len(points)), atol=1e-6)


def test_every_weight_is_held() -> None:
    """No weight of these models is rounded, so that the format's weights are those of float32."""
    for name in ("hist", "sort", "induction"):
        example = EXAMPLES[name]
        model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=2, dtype="bfloat16")
        assert all(SHORT["bfloat16"].holds(array) for _, array in model.parameters.named())


def test_outputs_that_need_more_bits_are_refused() -> None:
    """The difference of two means of 16 values: bfloat16 cannot hold it, float16 can."""
    balance = EXAMPLES["pair_balance"].program
    with pytest.raises(tracr.CompileError, match=r"differ by 0.0042, but may be off by .* in bfloat16"):
        tracr.compile(balance, "()", 16, dtype="bfloat16")
    assert assert_right(tracr.compile(balance, "()", 8, dtype="float16"), SHORT["float16"], 40)


def test_numbers_that_are_no_multiples_of_a_grid_are_refused() -> None:
    """Means of many steps, and sums that no grid holds, name what is too fine."""
    everywhere = rasp.Select(TOKENS, TOKENS, rasp.Comparison.TRUE)
    with pytest.raises(tracr.CompileError, match=r"a mean of numbers whose sum has 2,500 steps, which bfloat16"):
        tracr.compile(rasp.Aggregate(everywhere, TOKENS), (0, 0.5, 250), 5, dtype="bfloat16")
    with pytest.raises(tracr.CompileError, match=r"must tell .* in bfloat16"):
        tracr.compile(rasp.LinearSequenceMap(TOKENS, rasp.indices, 0.1, 0.3) > 1.1, (1, 2, 3), 5, dtype="bfloat16")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"dtype": "tf32"}, "dtype is 'tf32'"),
        ({"dtype": None}, "dtype is None"),
        ({"dtype": "bfloat16", "gap": 40.0}, "need a gap of 256"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    """Unknown formats, and gaps for which there is no proof."""
    with pytest.raises(tracr.CompileError, match=message):
        tracr.compile(TOKENS, "ab", 3, **options)


def test_models_say_what_they_are_for(tmp_path: Path) -> None:
    """The format is saved, loaded and shown; models for float32 are saved as before."""
    model = tracr.compile(programs.make_hist(), "abc", 5, dtype="bfloat16")
    model.save(tmp_path / "hist")
    read = load_compiled(tmp_path / "hist")
    assert read.options.dtype == "bfloat16"
    assert read.made_for == "bfloat16"
    assert "bfloat16" in repr(read)
    assert model.rotated(1).made_for == "float32"
    assert "dtype" not in options_json(Options(("a",), 2))
    assert "for bfloat16" in invoke("info", "hist", "--dtype", "bfloat16")
    assert invoke_json("info", tmp_path / "hist")["dtype"] == "bfloat16"
    invoke("compile", "hist", "--dtype", "float16", "-o", tmp_path / "other")
    assert load_compiled(tmp_path / "other").made_for == "float16"


def test_models_run_in_their_format() -> None:
    """The compiler's own weights need no further check in their format; a variant of them does."""
    model = tracr.compile(programs.make_hist(), "abc", 12, dtype="float16")
    assert model("abcab" * 2, dtype=np.float16) == model("abcab" * 2)
    with pytest.warns(tracr.TracrWarning, match="a sample of"):
        model.rotated(1).cast("float16")
