"""Models come back from their folders: weights, labels, options, warnings and source."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.saving.saved import assert_same, contents, example
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tests.tiers import mostly_slow
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp


@mostly_compared()
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(composite=True), level=st.sampled_from(LEVELS))
def test_a_loaded_model_is_the_saved_one(tmp_path: Path, case: Case, level: int) -> None:
    """Identical logits, outputs and stages on random programs; saved again, identical bytes."""
    model = compile_case(case, level=level)
    model.save(tmp_path / "a")
    loaded = load_compiled(tmp_path / "a")
    assert_same(model, loaded)
    loaded.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    inputs = inputs_for(model, case, 10)
    ids, _, _ = model.vocabulary.encode(inputs)
    assert np.array_equal(loaded.logits(ids), model.logits(ids))
    assert list(map(repr, loaded(inputs))) == list(map(repr, model(inputs)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_library_programs_come_back(tmp_path: Path, name: str, level: int) -> None:
    """Every program of the library, at every level."""
    model = example(name, level=level)
    model.save(tmp_path / "model")
    assert_same(model, load_compiled(tmp_path / "model"))


def test_a_model_over_odd_values_comes_back(tmp_path: Path) -> None:
    """Tuples, bytes, frozensets, None, booleans, huge integers as tokens and as results."""
    vocab: list[Any] = [
        ("a", (1, None)),
        b"\xff",
        frozenset({"x"}),
        None,
        True,
        -0.5,
        2**80,
        "\ud800",
        Fraction(1, 3),
        2 - 0.5j,
    ]
    vocab += [Decimal("1.50"), (Decimal("-0"), frozenset({Fraction(-7, 2)}))]
    odd = rasp.Map(lambda x: (x, 1.0), rasp.tokens).named("odd")
    model = tracr.compile({"odd": odd, "tokens": rasp.tokens}, vocab, 3)
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert_same(model, loaded)
    for token in vocab:
        assert repr(loaded([token])) == repr(model([token]))


HALVES = rasp.Map(lambda token: Fraction(ord(token), 2), rasp.tokens).named("halves")


@pytest.mark.parametrize("level", [0, 1, 2])
def test_fraction_outputs_come_back(tmp_path: Path, level: int) -> None:
    """With their type, though no float is equal to them."""
    model = tracr.compile(HALVES, "abc", 3, level=level)
    model.save(tmp_path / "model")
    assert repr(load_compiled(tmp_path / "model")("ab")) == "[Fraction(97, 2), Fraction(49, 1)]"


SHORT_AND_LONG = {
    "tokens": (rasp.tokens, "ab", 30),
    "is_a": (rasp.tokens == "a", "ab", 30),
    "constant": (rasp.Full(3), "ab", 30),
    "position": (rasp.indices % 3, "ab", 30),
    "hist": (programs.make_hist(), "abc", 4),
    "frac_prevs": (programs.make_frac_prevs(rasp.tokens == "a"), "ab", 12),
}


@pytest.mark.parametrize(("name", "level"), mostly_slow(SHORT_AND_LONG, [0, 1, 2]))
def test_models_with_single_passes_switched_come_back(tmp_path: Path, name: str, level: int) -> None:
    """Each on and off: also those with fewer dimensions than positions."""
    program, vocab, longest = SHORT_AND_LONG[name]
    for place, (switch, on) in enumerate(itertools.product({*tracr.PASSES, *tracr.OPTIONS} - {"solve"}, (True, False))):
        model = compile_quietly(program, vocab, longest, level=level, passes={switch: on})
        model.save(tmp_path / str(place))
        assert_same(model, load_compiled(tmp_path / str(place)))


def test_warnings_and_source_come_back(tmp_path: Path) -> None:
    """What was found in the program, and the text it was written as."""
    from dataclasses import replace

    inverse = (1 / (rasp.tokens - rasp.indices)).named("inverse")
    model = replace(compile_quietly(inverse, [5, 6], 3, level=0), source="inverse = ...\n")
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert loaded.program.warnings == model.program.warnings
    assert loaded.source == "inverse = ...\n"


def test_max_memory_is_saved_where_it_is_not_the_default(tmp_path: Path) -> None:
    """So files from before there was such an option load, and others bring theirs."""
    for memory, written in (("2GB", None), ("1GB", 2**30)):
        example("reverse", max_memory=memory).save(tmp_path / memory)
        assert json.loads((tmp_path / memory / "model.json").read_text())["options"].get("max_memory") == written
        assert load_compiled(tmp_path / memory).options.max_memory == (written or 2**31)


@pytest.mark.parametrize("level", LEVELS)
def test_folders_of_earlier_versions_load(level: int) -> None:
    """With the very weights that are saved, and the options that the program compiles with today."""
    model = tracr.load(Path(__file__).parents[1] / "data" / "saved" / f"hist_{level}")
    assert isinstance(model, tracr.CompiledModel)
    example = programs.EXAMPLES["hist"]
    fresh = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
    assert model.options == fresh.options
    assert model.graph == fresh.graph
    assert model.own_weights
    for (name, saved), (_, own) in zip(model.parameters.named(), fresh.parameters.named(), strict=True):
        assert np.array_equal(saved, own), name
