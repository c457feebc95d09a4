"""What the checker says of random hostile tables, against the meaning of every input; and tables that take forever.

The tables hold error marks anywhere, values of all kinds, selectors made of selectors, several lengths: mostly programs
that no compiler makes. `hostile_tables.py` draws them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.certificate.hostile_tables import Input, Tables, inputs, random_tables
from tests.certificate.test_hostile_programs import beside, named, wrong_at_c
from tests.tiers import slow
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import check_parts
from tracr_check import groups
from tracr_check import program as program_of_tables
from tracr_check.definitions import define
from tracr_check.facts import Facts
from tracr_check.joint import joint_values
from tracr_check.patterns import patterns
from tracr_check.program import Program
from tracr_check.variables import Env, SOp, Var, snap
from tracr_check.verdict import Rejected

Rng = np.random.Generator
PROGRAMS = 70  # in a test


@dataclass
class Known:
    """A program with lemmas, and every input on which it is defined."""

    program: Program
    facts: Facts
    every: list[Input]
    rng: Rng

    @property
    def names(self) -> list[Var]:
        return ["T", "I", "L", *self.program.sops]

    def some(self, count: int) -> list[Var]:
        return [self.names[place] for place in self.rng.choice(len(self.names), count)]

    @property
    def used(self) -> set[int]:
        return {sop.op["selector"] for sop in self.program.sops.values() if sop.kind in ("width", "aggregation")}


def known(seed: int) -> Known | None:
    """Random tables with random definitions; `None` if the checker refuses them."""
    rng = np.random.default_rng([7, seed])
    made: Tables = random_tables(rng)
    try:
        program = made.program()
    except Rejected:
        return None
    facts = Facts(program)
    for number, given in enumerate(_definitions(rng, program), 100_000):
        try:
            define(program, facts, {str(number): given})
        except Rejected:  # it has no units
            continue
    every = list(inputs(made, program))
    for one in every:
        one.env.codes |= {n: _defined(program, one, sop) for n, sop in program.sops.items() if n not in one.env.codes}
    return Known(program, facts, every, rng)


def _definitions(rng: Rng, program: Program) -> list[dict[str, Any]]:
    """A pair; and for some aggregates the width of the selector, and the sum of the values, in units or not."""
    found: list[dict[str, Any]] = [{"kind": "pair", "of": [int(one) for one in rng.choice(list(program.sops), 2)]}]
    for sop in program.sops.values():
        if sop.kind == "aggregation" and rng.random() < 0.5:
            shared = {"selector": sop.op["selector"], "of": sop.op["value"]}
            least = float(np.nanmin(program.sops[shared["of"]].numbers, initial=9.0))
            units = {"above": least - int(rng.integers(2)), "times": int(rng.choice([1, 2, 6]))}
            found += [{"kind": "width", "selector": shared["selector"]}]
            found += [{"kind": "sum", **shared} if rng.random() < 0.5 else {"kind": "units", **shared, **units}]
    return found


def _defined(program: Program, one: Input, sop: SOp) -> Any:
    """The codes of a definition on an input."""
    op, codes = sop.op, one.env.codes
    if op["kind"] == "pair":
        first, second = op["of"]
        return codes[first] * len(program.sops[second].values) + codes[second]
    chosen = one.chosen(op["selector"])
    if op["kind"] == "width":
        found = snap(sop, chosen.sum(1).astype(float))
    else:
        numbers = np.nan_to_num(program.sops[op["of"]].numbers)
        if op["kind"] == "units":
            numbers = np.rint((numbers - op["above"]) * op["times"])
        found = snap(sop, chosen @ numbers[codes[op["of"]]])
    assert (found >= 0).all()
    return found


@pytest.fixture(params=[0, *slow([1, 2, 3, 4, 5, 6, 7])])
def programs(request: pytest.FixtureRequest) -> list[Known]:
    """Some programs that are defined on some input."""
    found = (known(PROGRAMS * request.param + place) for place in range(PROGRAMS))
    return [one for one in found if one is not None and one.every]


def test_every_way_gives_the_value(programs: list[Known]) -> None:
    """Ways of s-ops and of means by sums, and what is known by shape, are right wherever the program is defined."""
    compared = 0
    for given, (number, ways) in ((one, item) for one in programs for item in one.program.ways.items()):
        for way, one in itertools.product(ways, given.every):
            codes = {name: codes for name, codes in one.env.codes.items() if name != number}
            found = given.program.computed(number, way, Env(one.env.rows, codes))
            assert (found == one.env.codes[number]).all(), (number, way.of, one.tokens)
            compared += 1
        if number in given.facts.shapes:
            shape = given.facts.shape.codes
            for one in given.every:
                inside = shape["L"] == one.env.codes["L"][0]
                assert (given.facts.shapes[number][inside] == one.env.codes[number]).all()
    assert compared > 500


def test_joint_values_miss_nothing(programs: list[Known]) -> None:
    """Every combination of values of one to three variables, definitions too, is listed, if they are not too many."""
    listings = list(itertools.product(programs, (1, 2, 2, 3, 3), (40_000, 0)))
    rejected = 0
    for given, count, few in listings:
        names = given.some(count)
        try:
            env = joint_values(given.program, names, few=few)
        except Rejected:
            rejected += 1
        else:
            listed = set(zip(*(env.codes[name].tolist() for name in names), strict=True))
            for one in given.every:
                assert set(zip(*(one.env.codes[name].tolist() for name in names), strict=True)) <= listed
    assert rejected < len(listings) / 20


def test_lemmas_about_variables(programs: list[Known]) -> None:
    """What differs at all positions, what is a rank, what numbers equal values, and what determines what."""
    said = dict.fromkeys(("distinct", "ranks", "numbers", "determines"), 0)
    for given in programs:
        facts = given.facts
        for name in given.names:
            ranked, numbered = facts.ranks(name), facts.numbers_within(name)
            said["distinct"] += facts.distinct(name)
            said["ranks"] += ranked is not None
            said["numbers"] += numbered is not None
            for one in given.every:
                held = one.env.codes[name].tolist()
                assert not (facts.distinct(name) or ranked == "positions") or len(set(held)) == len(held)
                if isinstance(ranked, int):
                    assert len({*zip(held, one.env.codes[ranked].tolist(), strict=True)}) == len(set(held))
                if numbered is not None:
                    assert len({*zip(held, one.env.codes[numbered].tolist(), strict=True)}) == len(held)
        for first, second in (given.some(2) for _ in range(10)):
            if facts.determines(first, second):
                said["determines"] += 1
                for one in given.every:
                    held = one.env.codes[first].tolist()
                    assert len({*zip(held, one.env.codes[second].tolist(), strict=True)}) == len(set(held))
    assert all(said[what] for what in ("distinct", "ranks", "determines")), said  # what is numbered is rare


def test_lemmas_about_selectors(programs: list[Known]) -> None:
    """What always selects, what selects its own position, one key at most, or keys of one value."""
    said = dict.fromkeys(("always", "own", "one", "equal"), 0)
    for given in programs:
        for selector in given.used:
            facts = given.facts
            always, own, one_key = facts.always(selector), facts.own(selector), facts.at_most_one(selector)
            equal = [value for value in given.program.sops if facts.equal_values(selector, value)]
            for what, holds in zip(said, (always, own, one_key, bool(equal)), strict=True):
                said[what] += holds
            for one in given.every:
                chosen = one.chosen(selector)
                assert not always or chosen.any(1).all()
                assert not own or chosen.diagonal().all()
                assert not one_key or chosen.sum(1).max() <= 1
                for value, row in itertools.product(equal, chosen):
                    assert len(set(one.env.codes[value][row].tolist())) <= 1
    assert all(said.values()), said


@pytest.mark.parametrize("few", [4_000_000, 0])
def test_patterns_miss_nothing(programs: list[Known], few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a selector selects, with the value of a key: every pair that occurs is listed as defined."""
    monkeypatch.setattr(groups, "FEW_CELLS", few)
    for given, selector in ((one, selector) for one in programs for selector in one.used):
        value = int(given.rng.choice(list(given.program.sops)))
        wanted, defined, _, codes = patterns(given.program, selector, [], value)
        listed = set(zip(wanted[defined].tolist(), codes[defined].tolist(), strict=True))
        for one in given.every:
            held = one.env.codes[value].tolist()
            for row in one.selected(selector):
                assert set(zip(row, held, strict=True)) <= listed


# Programs and hints that take forever


def _many_sops() -> SavedParts:
    parts = wrong_at_c()
    token = {"kind": "lookup", "inner": named(parts)["tokens"]["id"]}
    return beside(parts, *[(token, [0], [0, 0, 0])] * 5000)


def _many_cells() -> SavedParts:
    """Twenty intervals with 400,000 cells each."""
    parts = wrong_at_c()
    op, domain = {"kind": "linear", "terms": [], "constant": 0.0}, {"kind": "interval", "low": -20.0, "high": 20.0}
    sop = {"label": "x", "op": op, "domain": {**domain, "maybe_none": False, "reason": ""}, "encoding": "numerical"}
    parts.model["program"]["sops"] += [{"id": number, **sop} for number in range(100, 120)]
    return parts


def _many_definitions() -> SavedParts:
    parts = wrong_at_c()
    token = {"kind": "lookup", "inner": named(parts)["tokens"]["id"]}
    parts.hints["aux"].update({str(100_000 + n): {"kind": "pair", "of": [100, 100]} for n in range(500)})
    return beside(parts, (token, list(range(900)), [0, 1, 2]))


def _sums_of_much() -> SavedParts:
    parts = _one_aggregate(100_000)
    parts.hints["aux"]["100000"] = {"kind": "sum", "of": 100, "selector": 50}
    return parts


def _partial_functions() -> SavedParts:
    """An MLP is said to write a pair of two means, of which a thousand s-ops are partial functions."""
    parts = _one_aggregate(1000, *[({"kind": "lookup", "inner": 101}, [0], [0] * 999 + [-1])] * 1000)
    parts.hints["aux"]["100000"] = {"kind": "pair", "of": [101, 102]}
    mlp = parts.hints["layers"][0]["mlp"]
    mlp.update(dict.fromkeys(mlp, 100_000))
    return parts


def _one_aggregate(size: int, *more: Any) -> SavedParts:
    """With two means of a number of many values, and more s-ops."""
    parts = wrong_at_c()
    token = named(parts)["tokens"]["id"]
    parts.model["program"]["selectors"].append({"id": 50, "label": "some", "keys": token, "queries": token})
    mean = {"kind": "aggregation", "selector": 50, "value": 100, "default": 0, "assumed": False}
    first = ({"kind": "lookup", "inner": token}, list(range(size)), [0, 1, 2])
    parts = beside(parts, first, (mean, list(range(size)), None), (mean, list(range(size)), None), *more)
    return SavedParts(
        parts.weights,
        {**parts.tables, "selectors.50": np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]], np.int8)},
        parts.model,
        parts.hints,
    )


def _long(*added: tuple[Any, list[Any], list[int] | None], low: int) -> SavedParts:
    """With inputs of up to 4,096 tokens, and more s-ops; the first of them is the position."""
    parts, longest = wrong_at_c(), 4096
    positions = np.pad(parts.weights["pos_embed.W_pos"], ((0, longest - 3), (0, 0)))
    parts.model["options"]["max_seq_len"], parts.model["program"]["lengths"] = longest, [low, longest]
    parts = beside(parts, ({"kind": "indices"}, list(range(longest)), None), *added)
    return SavedParts({**parts.weights, "pos_embed.W_pos": positions}, parts.tables, parts.model, parts.hints)


def _many_parts() -> SavedParts:
    """A selector of 100 different parts, of 4,096 keys for each of 4,096 queries."""
    parts = _long(({"kind": "width", "selector": 399}, [0, 1], None), low=4096)
    selectors = parts.model["program"]["selectors"]
    selectors.append({"id": 300, "label": "before", "keys": 100, "queries": 100})
    selectors += [{"id": 300 + n, "label": "both", "kind": "and", "parts": [299 + n, 300]} for n in range(1, 100)]
    return replace(parts, tables={**parts.tables, "selectors.300": np.tri(4096, dtype=np.int8)})


def _many_lengths() -> SavedParts:
    """What is known by shape, for each of 4,096 lengths; only a wrong logit is a reason to reject it."""
    every = {"kind": "width", "selector": 300}
    parts = _long(({"kind": "constant"}, [0], None), (every, [0, 1], None), low=1)
    parts.model["program"]["selectors"].append({"id": 300, "label": "all", "keys": 101, "queries": 101})
    return replace(parts, tables={**parts.tables, "selectors.300": np.ones((1, 1), np.int8)})


def _many_terms() -> SavedParts:
    """A thousand times the same s-op, which has 200,000 values."""
    parts = wrong_at_c()
    token = {"kind": "lookup", "inner": named(parts)["tokens"]["id"]}
    terms = {"kind": "linear", "terms": [[100, 0]] * 1000, "constant": 0}
    return beside(parts, (token, list(range(200_000)), [0, 1, 2]), (terms, [0], None))


ENDLESS: dict[str, tuple[Callable[[], SavedParts], str]] = {
    "s-ops": (_many_sops, "too many s-ops"),
    "cells": (_many_cells, "too many values"),
    "definitions": (_many_definitions, "definitions have too many values"),
    "sums": (_sums_of_much, "sums have too many values"),
    "partial functions": (_partial_functions, "too many joint values of too many variables"),
    "parts of a selector": (_many_parts, "too many queries and keys for the parts of both"),
    "lengths": (_many_lengths, "'x' is not surely the largest logit"),
    "terms": (_many_terms, "'x' is not surely the largest logit"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_takes_forever_is_rejected_soon(what: str, tmp_path: Path) -> None:
    """Tables and hints that ask for more than a small computer has."""
    make, reason = ENDLESS[what]
    parts, start = make(), time.process_time()
    assert reason in check_parts(parts, tmp_path).reason
    assert time.process_time() - start < 30


def _long_selectors() -> SavedParts:
    """Aggregates over conjunctions of up to 100 tables, which compare the ends of 24 chains of 50 s-ops."""
    parts = wrong_at_c()
    token = named(parts)["tokens"]["id"]
    selectors = parts.model["program"]["selectors"]
    selectors.append({"id": 50, "label": "some", "keys": token, "queries": token})
    tables = {"selectors.50": np.eye(3, dtype=np.int8)}
    mean = {"kind": "aggregation", "value": token, "default": "a", "assumed": False}
    more: list[tuple[dict[str, Any], list[Any], list[int] | None]] = []
    for _ in range(24):
        more.append(({**mean, "selector": 50}, ["a", "b", "c"], None))
        more += [({"kind": "lookup", "inner": 100 + len(more) + n - 1}, ["a", "b", "c"], [0, 1, 2]) for n in range(50)]
    for place in range(100):
        end = 100 + 51 * (place % 24) + 50 - place // 24
        selectors.append({"id": 100 + place, "label": "own", "keys": end, "queries": end})
        tables[f"selectors.{100 + place}"] = np.eye(3, dtype=np.int8)
        pair = [299 + place if place else 100, 100 + place]
        selectors.append({"id": 300 + place, "label": "both", "kind": "and", "parts": pair})
        more.append(({**mean, "selector": 300 + place}, ["a", "b", "c"], None))
    parts = beside(parts, *more)
    return SavedParts(parts.weights, {**parts.tables, **tables}, parts.model, parts.hints)


def test_what_depends_on_what_is_not_asked_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is about all s-ops below; with thousands of selectors this took hours."""
    monkeypatch.setattr(program_of_tables, "MOST", program_of_tables.MOST // 1000)
    parts, start = _long_selectors(), time.process_time()
    assert check_parts(parts, tmp_path).reason == "too many joint values in all"
    assert time.process_time() - start < 30
