"""Interventions have a true answer only where the program is defined on the combined values."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracr
from tests.tiers import slow, usual
from tracr.errors import TracrWarning
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program

pytest.importorskip("jax")

from tracr.natural.defined import defined_of
from tracr.natural.network import Patch
from tracr.natural.sites import Sites
from tracr.natural.teacher import Inputs, inputs_of, teacher_of

COUNT = programs.make_count(rasp.tokens, "a")
EARLIER = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)


def raises(key: int, query: int, causal: bool) -> bool:
    """Whether no input has these two counts: they are all equal; with causal attention they never fall."""
    return key > query if causal else key != query


def same(causal: bool) -> rasp.Selector:
    """A selector that raises on pairs of counts that no input has."""

    def predicate(key: int, query: int) -> bool:
        if raises(key, query, causal):
            raise ValueError("no input has these counts")
        return True

    return rasp.Select(COUNT, COUNT, predicate)


def compiled(program: rasp.SOp, vocab: str = "ab", *, causal: bool = False) -> tracr.CompiledModel:
    """The model; that the predicate raises somewhere is a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)
        return tracr.compile(program, vocab, 3, causal)


def lessons_at(model: tracr.CompiledModel, names: Sequence[str]) -> tuple[Inputs, Any, Any, Any, Any, Any]:
    """Random interventions: the inputs; the site, base, source and positions of each, and whether it is defined."""
    heads, count = max(len(layer.W_Q) for layer in model.parameters.layers), 600
    sites, inputs, rng = Sites(model.n_layers, heads), inputs_of(model, None), np.random.default_rng(0)
    base, site = rng.integers(len(inputs), size=count), rng.integers(len(names), size=count)
    source = np.array([rng.choice(np.flatnonzero(inputs.lengths == inputs.lengths[row])) for row in base])
    coded = sites.coded[[list(map(str, sites.all)).index(name) for name in names]][site]
    length = inputs.ids.shape[1]
    where = (rng.random((count, length)) < 0.5) | (rng.random(count) < 0.3)[:, None]
    patch = Patch(coded[:, 0], coded[:, 1], where, rng.random(count) < 0.5)
    _, effect = teacher_of(model, sites, inputs).teach(inputs.ids[base], inputs.ids[source], patch)
    return inputs, site, base, source, where, np.asarray(effect.defined)


PROGRAMS: dict[str, Callable[[rasp.Selector], rasp.SOp]] = {
    "width": rasp.SelectorWidth,
    "aggregate": lambda selector: rasp.Aggregate(selector, rasp.indices),
    "and": lambda selector: rasp.SelectorWidth(selector & EARLIER),
}


@pytest.mark.parametrize("causal", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["bidirectional", "causal"])
@pytest.mark.parametrize("name", ["width", *slow(("aggregate", "and"))])
def test_comparisons_that_raise_have_no_answer(name: str, causal: bool) -> None:
    """A query and a key that the predicate raises on, by patched queries or by patched keys."""
    model = compiled(PROGRAMS[name](same(causal)).named("out"), causal=causal)
    layer = next(
        one.layer for one in model.layout.schedule.heads() if any("out" in v.label for v, _ in one.head.writes)
    )
    sites = [f"blocks.0.mlp->blocks.{layer}.attn.0.{part}" for part in "qk"]
    inputs, site, base, source, where, defined = lessons_at(model, sites)
    found: Counter[tuple[int, bool]] = Counter()
    for row in range(len(base)):
        kept, patched = (_counts(inputs.tokens[number], causal) for number in (base[row], source[row]))
        mixed = [patched[place] if where[row, place + 1] else kept[place] for place in range(len(kept))]
        queries, keys = (kept, mixed) if site[row] else (mixed, kept)
        seen = [(key, query) for i, query in enumerate(queries) for key in keys[: i + 1 if causal else None]]
        expected = not any(raises(*pair, causal) for pair in seen)
        assert bool(defined[row]) is expected
        found[site[row], expected] += 1
    assert len(found) == 4
    assert min(found.values()) > 30


def _counts(tokens: list[Any], causal: bool) -> list[int]:
    return [tokens[: place + 1 if causal else None].count("a") for place in range(len(tokens))]


def everything_defined(model: tracr.CompiledModel) -> bool:
    """Whether the model's own runs, without interventions, count as defined at every token."""
    inputs = inputs_of(model, None)
    heads = max(1, *(len(layer.W_Q) for layer in model.parameters.layers))
    stream = model.run(inputs.tokens)[f"blocks.{model.n_layers - 1}.hook_resid_post"].astype(np.float32)
    sites = Sites(model.n_layers, heads)
    token = np.array(inputs.ids != model.vocabulary.pad_id)
    token[:, 0] = False
    found = defined_of(model, sites, inputs.tokens, stream)
    fine = found(stream, np.zeros((len(inputs), len(sites.readers))), np.zeros_like(stream), token)
    return bool((np.asarray(fine) | ~token).all())


STORED_ALIKE = [3502, 3794]
"""Programs with a function of two s-ops that is not defined everywhere, and values of an argument stored alike."""


@pytest.mark.parametrize("seed", [*STORED_ALIKE, *slow(range(usual(40, long=150)))])
def test_inputs_are_defined(seed: int) -> None:
    """Without interventions every program is defined, also where the model does not tell values apart."""
    model = compiled(random_program(seed), "abc")
    assert not model.n_layers or everything_defined(model)
