"""Changes that matter at few streams of models for longer inputs, against chosen and random inputs.

The mutants of `test_mutants.py` are of models for three tokens, which run on every input. Models for longer inputs have
other constructions: codes in bits, staircases, counts of several heads, tables in factors. Here they run on inputs with
one token only, with two in turn, with one that differs, and on random ones, of several lengths, padded.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.tiers import usual
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.certificate.trials.mutants import mutant
from tracr.certificate.trials.trial import check_parts, parts_of
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp

TOKENS = "abcd"
SAME = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
HIST = rasp.SelectorWidth(SAME).named("hist")
NUMBER = rasp.Map(lambda token: {"a": 1, "b": 2, "c": None, "d": 5}[token], rasp.tokens)
IS_B = rasp.numerical(rasp.Map(lambda token: int(token == "b"), rasp.tokens))
NOT_LATER = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
EVERY_THIRD = rasp.Select(rasp.indices, rasp.indices, lambda key, query: (key + query) % 3 == 0)

PROGRAMS: dict[str, rasp.SOp] = {
    "bits": rasp.SequenceMap(lambda count, index: count * 100 + index, HIST, rasp.indices).named("bits"),
    "pairs": rasp.SequenceMap(lambda index, token: (index * 3 + ord(token)) % 7, rasp.indices, rasp.tokens).named("p"),
    "none": rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 2), NUMBER).named("none"),
    "default": rasp.Aggregate(
        rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q + 3), rasp.tokens, default="d"
    ).named("default"),
    "mean": rasp.Aggregate(NOT_LATER, IS_B).named("mean"),
    "several heads": rasp.SelectorWidth(SAME | EVERY_THIRD).named("either"),
    "not": rasp.SelectorWidth(SAME & ~rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)).named("not_later"),
    "sum": rasp.Map(lambda total: total % 5, HIST * 10 + rasp.indices).named("sum"),
}
QUICK = {("none", 2), ("several heads", 1)}


def inputs(model: CompiledModel, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ids of inputs that are likely to meet what is rare."""
    longest, rows = model.options.max_seq_len, []
    for length in {1, 2, longest // 2, longest - 1, longest}:
        for one in range(len(TOKENS)):
            other = (one + int(rng.integers(1, len(TOKENS)))) % len(TOKENS)
            differs, ordered = np.full(length, one), np.sort(rng.integers(len(TOKENS), size=length))
            differs[rng.integers(length)] = other
            rows += [np.full(length, one), np.resize([one, other], length), differs, ordered]
            rows += list(rng.choice(len(TOKENS), (4, length), p=rng.dirichlet([0.5] * len(TOKENS))))
    ids = np.full((len(rows), longest + 1), model.vocabulary.pad_id)
    ids[:, 0] = model.vocabulary.bos_id
    for row, tokens in zip(ids, rows, strict=True):
        row[1 : len(tokens) + 1] = tokens
    return ids


def answers(model: CompiledModel, weights: Any, ids: NDArray[np.int64], order: str = "blas") -> NDArray[Any]:
    """The codes of the output at tokens; -1 where a logit is not finite."""
    with np.errstate(all="ignore"):
        weights = {name: array.astype(np.float32) for name, array in weights.items()}
        logits = execute(weights, ids, False, ORDERS[order])
        codes = np.where(np.isfinite(logits).all(-1), model.outputs[0].codes(np.nan_to_num(logits)), -1)
    return np.where(ids < len(TOKENS), codes, 0)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow)
        for case in ((name, level) for name in PROGRAMS for level in (0, 1, 2))
    ],
)
def test_no_change_that_harms_rarely_is_accepted(name: str, level: int, tmp_path: Path) -> None:
    """Neurons, components, readings and steps that matter at few streams; most changes without harm are accepted."""
    model = tracr.compile(PROGRAMS[name], TOKENS, 12, level=level)
    parts, rng, found = parts_of(model), np.random.default_rng([level, *name.encode()]), Counter[str]()
    ids = inputs(model, rng)
    right = answers(model, parts.weights, ids)
    for _ in range(usual(20, long=100)):
        one = mutant(parts, rng, "rare")
        wrong = int((answers(model, one.parts.weights, ids) != right).any(1).sum())
        accepted = check_parts(one.parts, tmp_path).accepted
        assert not (accepted and wrong), (one.what, wrong)
        if accepted:
            assert (answers(model, one.parts.weights, ids, "one by one") == right).all(), one.what
        found[f"{'harmful' if wrong else 'harmless'} {accepted}"] += 1
    assert found["harmful False"] >= 1, found
    assert found["harmless True"] >= 1, found
