"""What cannot be injected is refused, with the reason and with advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tracr
from tests.graft.injection.hosts import BOS, FIRST, POSITIONS, WORDS, injected_into, random_host
from tracr.errors import CompileError, FormatError, InputError, PrecisionError, TracrError
from tracr.graft import inject
from tracr.graft.injection.precision import refuse_rounding
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison

COUNT = rasp.SelectorWidth(rasp.Select(rasp.tokens, "a", Comparison.EQ)).named("count")
GOOD: dict[str, Any] = {"tokens": {FIRST: "a"}, "other": ".", "trigger": 1, "answers": {0: 30, 1: 31}}
TEXT = np.random.default_rng(0).integers(1, WORDS, (6, POSITIONS)) * (np.arange(POSITIONS) > 0)  # BOS is token 0


def a_mean() -> None:
    """The mean of several positions."""
    injected_into(random_host(), programs.make_frac_prevs(rasp.tokens == "a"), "a.", 4)


def an_or() -> None:
    """A union of conditions on different s-ops."""
    first = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    second = rasp.Select(rasp.indices, rasp.indices, Comparison.LT)
    third = rasp.SelectorAnd(rasp.SelectorOr(first, second), rasp.SelectorNot(rasp.SelectorAnd(first, second)))
    injected_into(random_host(), rasp.SelectorWidth(third), "a.", 4)


def both_directions() -> None:
    """A model that was not compiled for causal attention."""
    inject(random_host(), tracr.compile(COUNT, "a.", 4), **GOOD)


def several_outputs() -> None:
    """A model with two outputs."""
    inject(random_host(), tracr.compile([COUNT, rasp.tokens], "a.", 4, causal=True), **GOOD)


def raising() -> None:
    """A function that raises for some values."""
    injected_into(random_host(), rasp.Map(lambda n: 1 // (n - 1), COUNT), "a.", 4)


def compared_with_none() -> None:
    """A selector that compares the token before, which may be None, with tokens."""
    before = rasp.Select(rasp.indices, rasp.Map(lambda i: i - 1, rasp.indices), rasp.Comparison.EQ)
    previous = rasp.Aggregate(before, rasp.tokens, default=None)
    same = rasp.Select(previous, rasp.tokens, rasp.Comparison.LT)
    injected_into(random_host(), rasp.SelectorWidth(same), "a.", 4)


def one_length() -> None:
    """A program for inputs of one length."""
    injected_into(random_host(), rasp.ConstantSOp([1, 2, 3]), "a.", 3)


def too_long() -> None:
    """A program for longer inputs than the host's."""
    inject(random_host(), tracr.compile(COUNT, "a.", POSITIONS, causal=True), **GOOD)


REFUSED: tuple[tuple[Callable[[], object], type[TracrError], str], ...] = (
    (a_mean, CompileError, "averages several positions"),
    (an_or, CompileError, "'or' of conditions"),
    (both_directions, CompileError, "both directions"),
    (several_outputs, CompileError, "2 outputs"),
    (raising, CompileError, "raises"),
    (compared_with_none, CompileError, r"(?s)raises.*give an aggregate .* a default"),
    (one_length, CompileError, "inputs of 3 to 3 tokens"),
    (too_long, TracrError, "the host takes"),
    (lambda: inject(random_host(), COUNT, "unused", **GOOD), TracrError, "is measured on data"),
    (lambda: inject(random_host(), COUNT, data=TEXT, **GOOD), TracrError, "for the route unused alone"),
    (lambda: inject(random_host(), COUNT, "unused", data=TEXT[:1], **GOOD), TracrError, "one input does not show"),
    (lambda: inject(random_host(), COUNT, "unused", data=TEXT[:, 1:], **GOOD), TracrError, "begin with BOS"),
    (lambda: inject(random_host(), COUNT, "unused", data=TEXT, tolerance=0, **GOOD), TracrError, "tolerance must be"),
    (lambda: inject(random_host(), COUNT, "unused", data=TEXT, tolerance=1e-9, **GOOD), TracrError, "no unused head"),
    (lambda: inject(random_host(), COUNT, "beside", **GOOD), TracrError, "no route 'beside'"),
    (lambda: inject(3, COUNT, **GOOD), TracrError, "is not a GPT-2"),
    (lambda: inject(random_host(), cast(Any, "count"), **GOOD), TracrError, "is no program"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "tokens": {}}), TracrError, "tokens must be a mapping"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "tokens": {WORDS: "a"}}), TracrError, "a token must be"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "other": ["a"]}), TracrError, "not hashable"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "tokens": {3: ["a"]}}), TracrError, "not hashable"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "trigger": ()}), TracrError, "trigger is empty"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "trigger": BOS}), TracrError, "is BOS"),
    (lambda: inject(random_host(), COUNT, **{**GOOD, "answers": {"z": 3}}), TracrError, "no answer is a value"),
    (lambda: inject(random_host(), COUNT, **GOOD, scale=0), TracrError, "scale must be"),
    (lambda: inject(random_host(), COUNT, **GOOD, boost=-1), TracrError, "boost must be"),
    (lambda: inject(random_host(), COUNT, **GOOD, max_seq_len=POSITIONS), TracrError, "max_seq_len must be"),
    (lambda: inject(random_host(bos_token_id=None), COUNT, **GOOD), TracrError, "bos must be"),
    (lambda: inject(random_host(activation_function="silu"), COUNT, **GOOD), TracrError, "'silu'"),
    (lambda: inject(random_host(model_type="llama"), COUNT, **GOOD), TracrError, "'llama'"),
    (lambda: inject(random_host(scale_attn_by_inverse_layer_idx=True), COUNT, **GOOD), TracrError, "scale_attn_by"),
)


@pytest.mark.parametrize(("call", "error", "says"), REFUSED)
def test_refusals(call: Callable[[], object], error: type[TracrError], says: str) -> None:
    """Each refusal says why, and gives advice."""
    with pytest.raises(error, match=says) as caught:
        call()
    assert caught.value.diagnostic.hint


def test_a_compiled_model_must_have_the_tokens() -> None:
    """The host's tokens are mapped to the model's own."""
    with pytest.raises(TracrError, match=r"the program has no token '\.'"):
        inject(random_host(), tracr.compile(COUNT, "ab", 4, causal=True), **GOOD)


def test_too_much_rounding_is_refused() -> None:
    """If some σ is much smaller than the largest one, steps subtract large numbers, and their rounding matters."""
    injected = injected_into(random_host(), COUNT + rasp.indices, "a.", 8)
    scales = injected.scales
    refuse_rounding(injected.host, injected.circuit, scales)
    smaller = replace(scales, smallest=[one / 1e6 for one in scales.smallest])
    with pytest.raises(PrecisionError, match="float32 is too coarse") as caught:
        refuse_rounding(injected.host, injected.circuit, smaller)
    assert caught.value.diagnostic.hint


def test_broken_weights_are_refused() -> None:
    """Weights must be complete and finite."""
    host = random_host()
    missing = {name: array for name, array in host.tensors.items() if name != "ln_f.bias"}
    with pytest.raises(FormatError, match=r"no weights ln_f\.bias"):
        inject(replace(host, tensors=missing), COUNT, **GOOD)
    with pytest.raises(FormatError, match="not all finite"):
        inject(replace(host, tensors={**host.tensors, "ln_f.bias": np.full(16, np.nan)}), COUNT, **GOOD)


def test_folders_are_checked(tmp_path: Path) -> None:
    """A folder without a model is refused, and a folder that exists is not replaced."""
    with pytest.raises(FormatError, match="no host can be read"):
        inject(tmp_path, COUNT, **GOOD)
    injected = inject(random_host(), COUNT, **GOOD, max_seq_len=4)
    with pytest.raises(FormatError, match="exists already"):
        injected.save(tmp_path, overwrite=True)
    injected.save(tmp_path / "model")
    with pytest.raises(FormatError, match="exists already"):
        injected.save(tmp_path / "model")
    injected.save(tmp_path / "model", overwrite=True)


def test_inputs_begin_with_bos() -> None:
    """Measurements refuse inputs for which the circuit was not made."""
    injected = inject(random_host(), COUNT, **GOOD, max_seq_len=4)
    table = "a table of ids"
    for ids, says in (([[1]], "begin with BOS"), ([1], table), ([[0, 1], [0]], table), ([[0, WORDS]], "ids from 0")):
        with pytest.raises(InputError, match=says):
            injected.check(ids)
