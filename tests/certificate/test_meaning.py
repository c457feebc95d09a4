"""The meaning of saved tables: the same as the table interpreter's, and as the interpreter's."""

from __future__ import annotations

import copy
import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.certificate.hostile_tables import Tables, random_tables
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tests.tiers import slow
from tracr.certificate.trials.meaning import Meaning
from tracr.errors import FormatError, TracrError
from tracr.ir.domains import Finite
from tracr.ir.options import LEVELS, Options
from tracr.ir.program import Program
from tracr.rasp import rasp
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.saving.json_reader import Reader
from tracr.saving.models import MODEL, TABLES, files_of
from tracr.saving.program_json import read_program
from tracr_check.verdict import Rejected

NAMED = {"function": ""}


@mostly_compared()
@settings(max_examples=25)
@given(case=cases(composite=True), level=st.sampled_from(LEVELS))
def test_the_meaning_is_the_table_interpreters(case: Case, level: int) -> None:
    """Code for code, for every s-op, at every position; and undefined where the interpreter has an error."""
    model = compile_case(case, level=level)
    files = files_of(model)
    meaning = Meaning(json.loads(files[MODEL]), safetensors.numpy.load(files[TABLES]))
    shortest, longest = model.program.lengths
    for length in range(shortest, min(longest, 3) + 1):
        inputs = list(itertools.product(range(len(model.options.vocab)), repeat=length))[:40]
        batch = Batch(np.array(inputs, np.int32), np.full(len(inputs), length, np.int32))
        expected = evaluate_batch(model.program, batch)
        for row, tokens in enumerate(inputs):
            found = meaning.codes(tokens)
            assert (found is None) == bool(expected.errors[row])
            if found is None:
                continue
            for number, node in model.program.sops.items():
                want = np.broadcast_to(expected.codes[number], batch.codes.shape)[row].tolist()
                assert _same(node.domain, found[number], want), node.label


def _read_by_tracr(made: Tables) -> Program:
    """Random tables, with the fields that the checker does not read."""
    given = copy.deepcopy(made.model["program"])
    of_kind = {"aggregation": {"copies": False}, **dict.fromkeys(("lookup", "pair_lookup", "sum_lookup"), NAMED)}
    for sop in given["sops"]:
        sop |= {"source": "", "origin": "", "wish": None}
        sop["op"] |= of_kind.get(sop["op"]["kind"], {})
        for domain in (sop["domain"], sop["op"].get("points", {})):
            domain.update(reason="") if domain.get("kind") == "interval" else domain.update(twins=[])
    for selector in given["selectors"]:
        selector |= {"source": "", "origin": "", "counts": []}
    options = made.model["options"]
    own = Options(tuple(options["vocab"]), options["max_seq_len"], options["causal"])
    return read_program(Reader({**given, "warnings": []}, "program"), made.tables, own)


@pytest.mark.parametrize("seed", [0, *slow([1, 2, 3, 4])])
def test_the_meaning_of_hostile_tables_is_the_table_interpreters(seed: int) -> None:
    """For values of all types and error marks in any cell; where an unreached cell is met, the interpreter stops."""
    compared = 0
    for place in range(100):
        made = random_tables(np.random.default_rng([11, seed, place]))
        for name, table in made.tables.items():
            made.tables[name] = np.maximum(table, -1) if name.startswith("selectors") else table  # read as 0 otherwise
        try:
            made.program()
            program, meaning = _read_by_tracr(made), Meaning(made.model, made.tables)
        except (Rejected, FormatError):  # a value is listed twice, or nearly
            continue
        lengths = range(program.lengths[0], program.lengths[1] + 1)
        vocabulary = range(len(program.options.vocab))
        for tokens in itertools.chain(*(itertools.product(vocabulary, repeat=length) for length in lengths)):
            batch, found = Batch(np.array([tokens], np.int32), np.array([len(tokens)], np.int32)), meaning.codes(tokens)
            try:
                expected = evaluate_batch(program, batch)
            except KeyError:  # a value that an aggregate does not list
                continue
            except TracrError:
                expected = None
            assert (found is None) == (expected is None or bool(expected.errors[0])), (place, tokens)
            if found is None or expected is None:
                continue
            for number, node in program.sops.items():
                want = np.broadcast_to(expected.codes[number], batch.codes.shape)[0].tolist()
                assert _same(node.domain, found[number], want), (place, tokens, node.label)
                compared += 1
    assert compared > 500


@pytest.mark.parametrize("maybe_none", [True, False])
def test_nothing_is_in_an_interval_only_where_its_domain_says_so(maybe_none: bool) -> None:
    """Nothing is selected, and the default is `None`: its place is in no interval of numbers."""
    interval = {"kind": "interval", "low": 0, "high": 2, "maybe_none": maybe_none}
    mean = {"kind": "aggregation", "selector": 0, "value": 0, "default": None, "assumed": False}
    sops: list[dict[str, Any]] = [
        {"id": 0, "label": "tokens", "op": {"kind": "tokens"}, "domain": {"kind": "finite", "values": [0, 1]}},
        {"id": 1, "label": "mean", "op": mean, "domain": interval},
    ]
    selectors = [{"id": 0, "label": "none", "keys": 0, "queries": 0}]
    program = {"lengths": [1, 2], "sops": sops, "selectors": selectors, "outputs": [["mean", 1]]}
    meaning = Meaning({"options": {"causal": False}, "program": program}, {"selectors.0": np.zeros((2, 2), np.int8)})
    found = meaning.codes([0, 1])
    assert (found is not None and found[1] == [None, None]) is maybe_none


def test_sums_and_means_of_numbers_of_intervals_have_a_meaning() -> None:
    """On every input, and the same as the table interpreter's: a fraction that is computed is a number."""
    select = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    share = rasp.numerical(rasp.Aggregate(select, rasp.numerical(rasp.Map(lambda t: float(t == "a"), rasp.tokens))))
    place = rasp.numerical(rasp.Aggregate(select, rasp.numerical(rasp.Map(float, rasp.indices))))
    both = {
        "sum": rasp.LinearSequenceMap(share, place, 1, 1 / 3).named("sum"),
        "mean": rasp.numerical(rasp.Aggregate(select, share)).named("mean"),
    }
    model = tracr.compile(both, "ab", 3, max_values=3)
    files = files_of(model)
    meaning = Meaning(json.loads(files[MODEL]), safetensors.numpy.load(files[TABLES]))
    found = meaning.codes([0, 1, 1])
    assert found is not None
    numbers = {name: found[number] for name, number in meaning.outputs}
    assert numbers["sum"] == [1, Fraction(1, 2) + Fraction(1 / 3) / 2, Fraction(1, 3) + Fraction(1 / 3)]
    assert numbers["mean"] == [1, Fraction(3, 4), Fraction(11, 18)]


def _same(domain: Any, found: list[Any], want: list[Any]) -> bool:
    if isinstance(domain, Finite):
        numbers = domain.numbers
        return all(a == b or abs(numbers[a] - numbers[b]) < 1e-9 for a, b in zip(found, want, strict=True))
    return all(
        (a is None) == bool(np.isnan(b)) and (a is None or abs(a - Fraction(b)) < Fraction(1, 10**6))
        for a, b in zip(found, want, strict=True)
    )
