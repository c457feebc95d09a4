"""Number formats: bounds on rounding errors hold, and where they prove an answer it is the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import compile_quietly, same
from tests.short_arithmetic import run_rounded
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import mostly_slow
from tracr.model.number_formats import SHORT, Format, format_of
from tracr.model.rounding import bounded_logits
from tracr.model.verification import chosen_inputs, differs, ids_of
from tracr.rasp import programs
from tracr.rasp.programs import EXAMPLES

LIBRARY = ["hist", "hist2", "sort", "frac_prevs", "pair_balance", "hist_bos", "dyck1", "induction"]


def check(model: tracr.DesignedModel, to: Format, budget: int) -> None:
    """A rounded pass stays within the bounds; in float16, numpy's own does too."""
    batches, _ = chosen_inputs(model, budget, seed=1)
    for codes in batches:
        for padded in (False, True):
            ids = ids_of(model, codes, padded)
            bounds = bounded_logits(model.parameters, ids, to, causal=model.options.causal)
            with np.errstate(all="ignore"):
                passes = [run_rounded(model, ids, to)]
                if to.name == "float16":
                    passes.append(model.forward(model.cast(to.name, check=False), ids).astype(np.float64))
                apart = np.abs(np.stack(passes) - bounds.value)
            inside = (apart <= bounds.error) | (bounds.error == np.inf)
            assert inside[:, :, 1 : codes.shape[1] + 1].all()


@pytest.mark.filterwarnings("ignore:some logits are not numbers")
@pytest.mark.parametrize("to", SHORT.values(), ids=SHORT)
@pytest.mark.parametrize(("name", "level"), mostly_slow(LIBRARY, [1, 2]))
def test_rounding_errors_stay_within_their_bounds(name: str, level: int, to: Format) -> None:
    """Whatever is rounded on the way, logits are off by no more than the bound."""
    example = EXAMPLES[name]
    check(compile_quietly(example.program, example.vocab, example.max_seq_len, level=level), to, 40)


@pytest.mark.filterwarnings("ignore:some logits are not numbers")
@pytest.mark.parametrize("to", SHORT.values(), ids=SHORT)
@pytest.mark.parametrize("name", ["hist", "sort", "frac_prevs"])
def test_bounds_hold_for_variants(name: str, to: Format) -> None:
    """The bounds hold for rotated and noisy weights, which nearly all need rounding in every format."""
    example = EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len)
    for variant in (model.rotated(1), model.with_noise(1e-3)):
        check(variant, to, 20)


@pytest.mark.filterwarnings("ignore:some logits are not numbers")
@mostly_compared()
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(max_ops=5))
def test_bounds_hold_for_random_programs(case: Case) -> None:
    """The same for random programs; and where float16 is not refused, its answers are those of float32."""
    model = compile_case(case)
    for to in SHORT.values():
        check(model, to, 20)
    found = model.check_format("float16", 100)
    if found and found.exhaustive:
        batches, _ = chosen_inputs(model, 100, seed=0)
        for codes in batches:
            ids = ids_of(model, codes, True)
            half = model.forward(model.cast("float16", check=False), ids)
            for output, exact in zip(model.outputs, model.codes(ids), strict=True):
                got, length = output.codes(half), codes.shape[1] + 1
                assert not differs(output.domain, exact[:, 1:length], got[:, 1:length]).any()


def test_formats_that_are_wrong_are_refused() -> None:
    """The reports: hist of 4 tokens up to 60 in bfloat16; hist_bos, whose weights float16 lacks."""
    hist = tracr.compile(programs.make_hist(), "abcd", 60)
    with pytest.raises(tracr.PrecisionError, match=r"bfloat16: proved for 0 of a sample of .* a logit is at most"):
        hist.cast("bfloat16")
    example = EXAMPLES["hist_bos"]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len)
    refused = "some number may not fit into float16"
    for use in (model.cast, lambda dtype: model("aab", dtype=dtype), lambda dtype: model.run("aab", dtype=dtype)):
        with pytest.raises(tracr.PrecisionError, match=refused):
            use(np.float16)
    assert model.cast("float16", check=False).W_E.dtype == np.float16


def test_fractions_in_float16_are_those_of_float32_but_for_rounding() -> None:
    """pair_balance: 1/3 and 1 - 2/3 are both in the domain, and count as one."""
    example = EXAMPLES["pair_balance"]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len)
    assert model.check_format("float16").exhaustive
    for tokens in ("(()", "()(", "(((a", "a())("):
        assert all(map(same, model(tokens, dtype="float16"), model(tokens)))


def test_formats_that_are_right_are_not() -> None:
    """Copies and tables are exact in every format; a sample that is proved comes with a warning."""
    model = tracr.compile(programs.shift_by(1, tracr.rasp.tokens), "abc", 5)
    for name in SHORT:
        found = model.check_format(name)
        assert found, found
        assert found.exhaustive
        assert found.error < 2.0**-149  # less than the smallest number of float32
    assert model("abc", dtype=np.float16) == model("abc")
    longer = tracr.compile(programs.shift_by(1, tracr.rasp.tokens), "abc", 12)
    with pytest.warns(tracr.TracrWarning, match="a sample of"):
        longer.cast("float16")


def test_models_with_layer_norms_are_refused() -> None:
    """Nothing is proved for them."""
    model = tracr.compile(programs.shift_by(1, tracr.rasp.tokens), "abc", 5).with_layer_norm()
    with pytest.raises(tracr.PrecisionError, match="layer norms"):
        model.cast("float16")


@pytest.mark.parametrize("dtype", [int, "int8", complex, "tf32", "float8_e4m3fn", object(), "x"])
def test_what_is_no_format_is_refused(dtype: Any) -> None:
    """Whole numbers would be silently cut off."""
    model = tracr.compile(tracr.rasp.tokens, "ab", 2)
    with pytest.raises(tracr.InputError, match="not a type weights could have"):
        format_of(dtype)
    if dtype != "tf32":
        with pytest.raises(tracr.InputError, match="not a type weights could have"):
            model("ab", dtype=dtype)
