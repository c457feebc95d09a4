"""Models that are wrong on one input of 4⁴⁰: random tests find nothing, the checker rejects them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tracr
from tests.certificate.needles import COUNT, NEEDLES, PROGRAMS, RARE, Haystack, needle
from tracr.rasp import programs, rasp

COMPARED = {"matching", "mean", "split copy", "conjunction"}
"""Programs with heads that compare the count."""

NONE = {
    *(
        ("writing", name, level)
        for name in PROGRAMS
        for level in (1, 2)
        if (name, level) not in {("step", 1), ("sum", 1)}
    ),
    *(("reading", name, level) for name in ("mean", "table of pairs") for level in (1, 2)),
    *(("component", name, level) for name in PROGRAMS if name not in COMPARED for level in (1, 2)),
}
"""Constructions that have no place for a needle of a kind: no neuron or dimension is special to the rare input."""

CASES = [(kind, name, level) for kind in NEEDLES for name in PROGRAMS for level in (1, 2)]
QUICK = {("pair", "step", 2), ("reading", "matching", 2), ("joint", "conjunction", 2), ("component", "mean", 2)}


@cache
def haystack(name: str, level: int) -> Haystack:
    """The model of a program, compiled once; the checker accepts it."""
    model = tracr.compile(PROGRAMS[name], "abcd", 40, level=level)
    assert model.certify().accepted
    return Haystack.of(model)


@pytest.mark.parametrize(
    ("kind", "name", "level"),
    [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in CASES if case not in NONE],
)
def test_needles_are_rejected(kind: str, name: str, level: int) -> None:
    """Right on all inputs that a random test tries, wrong on the rare one; and the checker says where."""
    hay = haystack(name, level)
    weights = needle(hay, kind)
    assert weights is not None
    model = hay.model.with_weights(weights)
    assert model.verify(300)
    assert model("ab" * 20) != hay.model("ab" * 20)
    found = model.certify()
    assert not found.accepted
    assert found.reason
    assert found.place


@pytest.mark.parametrize("level", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_needle_at_pad_is_rejected(level: int) -> None:
    """PAD after the last token copies its count; a head without the term against PAD sees it if it is twenty."""
    before = programs.shift_by(1, COUNT)
    wanted = rasp.Select(before, rasp.Full(RARE), lambda key, query: key == query)
    model = tracr.compile(rasp.SelectorWidth(wanted).named("twenty_before"), "abcd", 42, level=level)
    assert model.certify().accepted
    weights = {name: array.copy() for name, array in model.parameters.named()}
    layer = next(n for n in reversed(range(model.n_layers)) if weights[f"blocks.{n}.attn.W_K"].size)
    (pad,) = np.flatnonzero(weights["embed.W_E"][model.vocabulary.pad_id])
    assert weights[f"blocks.{layer}.attn.W_K"][:, pad].any()
    weights[f"blocks.{layer}.attn.W_K"][:, pad] = 0.0
    changed = model.with_weights(weights)
    assert changed.verify(300)
    rare = [*"ab" * RARE, model.options.pad, model.options.pad]
    assert changed(rare)[:40] != model(rare)[:40]
    found = changed.certify()
    assert not found.accepted
    assert "PAD" in found.reason


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "level"), sorted(NONE))
def test_the_exceptions_are_needed(kind: str, name: str, level: int) -> None:
    """No needle of this kind is found there."""
    assert needle(haystack(name, level), kind) is None


@pytest.mark.slow
def test_a_million_inputs_do_not_find_a_needle() -> None:
    """Of 4⁴⁰: the counter, as in docs/certificate.md."""
    hay = haystack("counter", 2)
    weights = needle(hay, "pair")
    assert weights is not None
    model = hay.model.with_weights(weights)
    assert model.verify(1_000_000)
    assert not model.certify().accepted
