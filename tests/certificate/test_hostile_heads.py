"""Heads that nobody compiled: hand-made networks with random hints, and folders that would need too much memory."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.certificate.one_head import Made, accepted, made, wrong
from tracr.certificate.trials.trial import check_parts
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.following import Follower
from tracr_check.program_file import read_program
from tracr_check.proving import Claim, prove
from tracr_check.verdict import Rejected

NAMES = ("float32", "float32", "float16", "bfloat16", "float32-leak", "float32-fused", "float64")


def drawn(seed: int) -> tuple[Made, str, bool]:
    """A network, an arithmetic, and whether inputs are padded."""
    rng = np.random.default_rng([5, seed])
    return made(rng), NAMES[seed % len(NAMES)], bool(rng.random() < 0.6)


def test_hand_made_heads_that_are_accepted_are_right() -> None:
    """Selectors, masks, weights of BOS and PAD, values and owners at random; sums in random trees, on every input."""
    seen: Counter[str] = Counter()
    for seed in range(500):
        one, arithmetic, padded = drawn(seed)
        reason = accepted(one, arithmetic, padded)
        if not reason or seed % 20 == 0:
            harmful = wrong(one, arithmetic, padded, seed)
            assert reason or not harmful, seed
            seen["harmful" if harmful else one.kind if not reason else "strict"] += 1
    assert seen["width"] > 20
    assert seen["copy"] + seen["mean"] > 5
    assert seen["harmful"] > 5


def test_a_promise_to_select_one_key_is_an_assumption(tmp_path: Path) -> None:
    """A mean of numbers that promises one key: the verdict says so. Without the promise, it is wrong and rejected."""
    found = (drawn(seed)[0] for seed in range(5000))
    means = (one for one in found if one.kind != "width" and not _promised(one, True))
    one = next(one for one in means if _promised(one, False) and wrong(one, "float32", False, 0))
    _promised(one, True)
    verdict = check_parts(one.parts, tmp_path, padded=False)
    assert verdict.accepted
    assert "s3 never selects several keys" in verdict.assumptions


def _promised(one: Made, promise: bool) -> str:
    """Why a network is rejected, with or without the promise."""
    one.parts.model["program"]["sops"][3]["op"]["assumed"] = promise
    return accepted(one, "float32", False)


def large(vocabulary: int, longest: int, rank: int) -> tuple[Any, dict[str, NDArray[np.float32]], Any]:
    """A model that computes the length, whose head can be given many classes of queries, keys or values."""

    def sop(number: int, kind: str, values: range) -> dict[str, Any]:
        domain = {"kind": "finite", "values": list(values)}
        return {"id": number, "label": kind, "op": {"kind": kind}, "domain": domain, "encoding": "categorical"}

    sops = [sop(0, "tokens", range(vocabulary)), sop(1, "length", range(1, longest + 1))]
    model = {
        "options": {"max_seq_len": longest, "causal": False, "vocab": list(range(vocabulary))},
        "program": {"lengths": [1, longest], "sops": sops, "selectors": [], "outputs": [["out", 1]]},
        "outputs": [["out", 0, longest]],
    }
    shapes = {
        "attn.W_Q": (1, 5, rank),
        "attn.W_K": (1, 5, rank),
        "attn.W_V": (1, 5, rank),
        "attn.W_O": (1, rank, 5),
        "attn.b_Q": (1, rank),
        "attn.b_K": (1, rank),
        "attn.b_V": (1, rank),
        "attn.b_O": (5,),
        "mlp.W_in": (5, 0),
        "mlp.b_in": (0,),
        "mlp.W_out": (0, 5),
        "mlp.b_out": (5,),
    }
    weights = {f"blocks.0.{name}": np.zeros(shape, np.float32) for name, shape in shapes.items()}
    embed, places = np.zeros((vocabulary + 2, 5), np.float32), np.zeros((longest + 1, 5), np.float32)
    embed[:, 0], embed[:, 2], embed[vocabulary, 3] = np.arange(vocabulary + 2), 1, 1
    places[:, 1] = np.arange(longest + 1)
    weights |= {"embed.W_E": embed, "pos_embed.W_pos": places, "unembed.W_U": np.zeros((5, longest), np.float32)}
    weights["blocks.0.attn.W_V"][0, 3, 0] = weights["blocks.0.attn.W_O"][0, 0, 4] = 1
    return model, weights, {"aux": {}, "parts": {}, "sums": {}, "layers": [{"heads": [{"4": "L"}], "mlp": {}}]}


def _many_queries(weights: dict[str, NDArray[np.float32]]) -> None:
    """Tokens and positions are in two components: 20,000 times 4,000 classes of queries, two by two."""
    weights["blocks.0.attn.W_Q"][0, [0, 1], [0, 1]] = 1
    weights["blocks.0.attn.W_K"][0, 2, :2] = 1e-3


def _many_keys(weights: dict[str, NDArray[np.float32]]) -> None:
    """All components of keys depend on both."""
    weights["blocks.0.attn.W_K"][0, :2] = weights["blocks.0.attn.W_Q"][0, 2] = 1


def _many_values(weights: dict[str, NDArray[np.float32]]) -> None:
    """All components of values depend on both."""
    weights["blocks.0.attn.W_V"][0, :2] = weights["blocks.0.attn.W_O"][0, :, 4] = 1


def _large_scores(weights: dict[str, NDArray[np.float32]]) -> None:
    """30,000 classes of queries and as many of keys, whose scores would have to be compared with the largest number."""
    weights["blocks.0.attn.W_Q"][0, 0, 0] = weights["blocks.0.attn.W_K"][0, 0, 0] = 1e12


@pytest.mark.parametrize(
    ("alter", "sizes"),
    [
        (_many_queries, (20_000, 4_000, 2)),
        (_many_keys, (1_000, 1_900, 60)),
        (_many_values, (1_000, 1_900, 60)),
        (_large_scores, (30_000, 2, 1)),
    ],
)
def test_heads_with_too_many_classes_are_rejected_in_little_memory(alter: Any, sizes: tuple[int, int, int]) -> None:
    """Each of them took more than 7 GB and a minute before it was rejected."""
    model, weights, hints = large(*sizes)
    alter(weights)
    resource = pytest.importorskip("resource")
    claim = Claim(read_program(model, {}), model["outputs"], hints, ARITHMETICS["float32"], padded=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Rejected, match=r"classes$|classes of queries|components"):
        prove(claim, claim.weights(weights), Follower())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (2**30 if sys.platform == "darwin" else 2**20)
