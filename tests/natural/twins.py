"""Twins that were not trained: random weights, and no measurements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import tracr
from tracr.ir.parameters import Parameters
from tracr.natural.admission import Admission, Rate, SiteAdmission
from tracr.natural.architecture import architecture_of
from tracr.natural.twin_model import TwinModel
from tracr.rasp import programs, rasp

NONE = Rate(0, 0)
KINDS = [("gelu", True, 8), ("gelu_new", True, 4), ("relu", True, 12), ("gelu", False, 8)]
"""Activation, layer norms, and the width of a head."""


def untrained(
    model: tracr.CompiledModel, activation: str = "gelu", *, layer_norm: bool = True, d_head: int = 8, seed: int = 0
) -> TwinModel:
    """A twin with random weights, biases included."""
    architecture = architecture_of(model, 24, d_head, 20, layer_norm=layer_norm, activation=activation)
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(0, 0.25, shape).astype(np.float32) for name, shape in architecture.shapes(model).items()
    }
    sites = tuple(SiteAdmission(str(site), False, NONE, NONE, 0, 0) for site in architecture.sites.all)
    return TwinModel(model, architecture, Parameters.of(weights), Admission(Rate(0, 100), False, sites), seed, 0)


def exact(twin: TwinModel, ids: Any) -> tuple[Any, float]:
    """The logits in float64, and the error that another pass in float32 may have: a few times the twin's own."""
    wide = replace(twin, parameters=twin.parameters.map(lambda array: array.astype(np.float64)))
    found = wide.logits(ids)
    own = np.abs(twin.logits(ids) - found).max()
    return found, float(4 * own + 4e-6 * np.abs(found).max())


def several() -> tracr.CompiledModel:
    """A model with an output of each encoding."""
    length = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)).named("length")
    share = programs.make_frac_prevs((rasp.tokens == "a").named("is_a"))
    return tracr.compile([length, share.named("share")], "abc", 4)


def students() -> dict[str, tracr.CompiledModel]:
    """Models to make twins of: both masks, one layer and several, numbers, several outputs."""
    return {
        "hist": tracr.compile(programs.make_hist(), "abc", 4),
        "sort": tracr.compile(programs.make_sort_unique(rasp.tokens, rasp.tokens), [1, 2, 3], 3),
        "causal": tracr.compile(programs.make_hist(), "abc", 4, causal=True),
        "number": tracr.compile(programs.make_frac_prevs((rasp.tokens == "a").named("is_a")), "ab", 4, causal=True),
        "several": several(),
    }


def inputs_of(twin: TwinModel, seed: int = 0) -> list[list[Any]]:
    """Random inputs of several lengths."""
    rng = np.random.default_rng(seed)
    vocab, longest = twin.teacher.options.vocab, twin.teacher.options.max_seq_len
    return [[vocab[code] for code in rng.integers(len(vocab), size=length)] for length in (longest, 1, 2, longest)]


def batches(twin: TwinModel) -> list[Any]:
    """Ids of the inputs together, so that some are padded, and of each alone."""
    inputs = inputs_of(twin)
    return [twin.encode(inputs), *(twin.encode([tokens]) for tokens in inputs)]
