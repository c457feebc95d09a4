"""Small networks of one layer, made by hand from random tables, and an executor that sums in random trees.

The stream holds the token and the position one-hot, a constant, a flag of BOS and one of PAD, and what the heads write.
A head has one component for each value that queries are compared by, and one for BOS and PAD. The output is the value
whose code is nearest to what the heads write: the logits are 2 s x - s². Nothing is as the compiler makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.following import Follower
from tracr_check.program_file import read_program
from tracr_check.proving import Claim, prove
from tracr_check.verdict import Rejected

__all__ = ["Made", "accepted", "made", "wrong"]

Array = NDArray[Any]
TOKENS, LONGEST = 3, 3
SIDES = {"T": TOKENS, "I": LONGEST}
ONE, BOS, PAD = TOKENS + LONGEST, TOKENS + LONGEST + 1, TOKENS + LONGEST + 2
FIRST = PAD + 1  # the dimensions that heads write
VALUES = ((0, 1, 2), (1, 1, 0), (5, 2, 2), (0.5, -1, 3), ("a", "b", "c"), ("a", 1, 2))


@dataclass
class Made:
    """A folder in parts."""

    parts: SavedParts
    causal: bool
    kind: str
    notes: dict[str, Any] = field(default_factory=dict)


def _pick(rng: np.random.Generator, items: Any) -> Any:
    items = list(items)
    return items[int(rng.integers(len(items)))]


def _selector(rng: np.random.Generator) -> tuple[str, str, Array]:
    """The sides of queries and keys, and a random table with few marks."""
    queries, keys = _pick(rng, "TI"), _pick(rng, "TI")
    table = (rng.random((SIDES[queries], SIDES[keys])) < _pick(rng, (0.2, 0.5, 0.8))).astype(np.int8)
    if rng.random() < 0.3:
        table = np.eye(3, dtype=np.int8)[:, rng.permutation(3)]
    if rng.random() < 0.2:
        table[tuple(rng.integers(3, size=2))] = _pick(rng, (-1, -2))
    return queries, keys, table


def made(rng: np.random.Generator) -> Made:
    """A random network with random hints."""
    causal, kind = rng.random() < 0.3, _pick(rng, ("width", "width", "copy", "mean"))
    queries, keys, table = _selector(rng)
    low = _pick(rng, (1, 1, 2, 3))
    values = _pick(rng, VALUES if kind == "copy" else VALUES[:4])
    model, tables, target = _program(rng, kind, (queries, keys, table), values, causal, low)
    heads = _pick(rng, (1, 1, 1, 2))
    real = np.where(table == 1, 1, 0)
    masks = [real]
    if heads == 2:
        split = rng.random(table.shape) < 0.5
        masks = [real * split, real * ~split] if rng.random() < 0.8 else [real, real * split]
    if rng.random() < 0.2:
        one = masks[0]
        one[tuple(rng.integers(3, size=2))] ^= 1
    weights, own = _weights(
        rng, kind, (queries, keys), masks, values, target, model["program"]["sops"][3]["op"].get("default")
    )
    return Made(SavedParts(weights, tables, model, _hinted(rng, kind, heads, own)), causal, kind)


def _program(
    rng: np.random.Generator, kind: str, selector: tuple[str, str, Array], values: Any, causal: bool, low: int
) -> tuple[dict[str, Any], dict[str, Array], list[Any]]:
    """The saved program: its output is the width of the selector, or an aggregate of the token's value."""
    queries, keys, table = selector
    number = {"T": 0, "I": 1}

    def sop(place: int, op: dict[str, Any], listed: Any, encoding: str = "categorical") -> dict[str, Any]:
        domain = {"kind": "finite", "values": list(listed)}
        return {"id": place, "label": f"s{place}", "op": op, "domain": domain, "encoding": encoding}

    distinct = list(dict.fromkeys(values))
    sops = [
        sop(0, {"kind": "tokens"}, "abc"),
        sop(1, {"kind": "indices"}, range(LONGEST)),
        sop(2, {"kind": "lookup", "inner": 0}, distinct),
    ]
    tables = {"selectors.0": table, "sops.2": np.array([distinct.index(value) for value in values], np.int32)}
    if kind == "width":
        target = list(range(LONGEST + 1))
        if rng.random() < 0.3:
            target.remove(_pick(rng, target))
        op: dict[str, Any] = {"kind": "width", "selector": 0}
    else:
        default = _pick(rng, (None, 0, distinct[0], distinct[-1]))
        target = list(dict.fromkeys([*distinct, default]))
        if kind == "mean":
            sums = {(a + b) / 2 for a in distinct for b in distinct}
            sums |= {(a + b + c) / 3 for a in distinct for b in distinct for c in distinct}
            target = [*target, *sorted(one for one in sums if all(abs(one - t) > 1e-6 for t in distinct))]
            target = [one for one in target if one is not None] if default is not None else target
        op = {"kind": "aggregation", "selector": 0, "value": 2, "default": default}
        op["assumed"] = bool(rng.random() < 0.2)
    sops.append(sop(3, op, target))
    model = {
        "options": {"max_seq_len": LONGEST, "causal": causal, "vocab": list("abc")},
        "program": {
            "lengths": [low, LONGEST],
            "sops": sops,
            "selectors": [{"id": 0, "label": "s", "queries": number[queries], "keys": number[keys]}],
            "outputs": [["out", 3]],
        },
        "outputs": [["out", 0, len(target)]],
    }
    return model, tables, target


def _weights(
    rng: np.random.Generator,
    kind: str,
    sides: tuple[str, str],
    masks: list[Array],
    values: Any,
    target: list[Any],
    default: Any,
) -> tuple[dict[str, Array], list[int]]:
    """The network, and the dimension that each head writes."""
    width, heads, rank = FIRST + len(masks), len(masks), 7
    starts = {"T": 0, "I": TOKENS}
    embed, places = np.zeros((TOKENS + 2, width)), np.zeros((LONGEST + 1, width))
    embed[:TOKENS, :TOKENS], places[1:, TOKENS:ONE] = np.eye(TOKENS), np.eye(LONGEST)
    embed[:, ONE], embed[-2, BOS], embed[-1, PAD] = 1, 1, 1
    w_q, w_k, w_v = (np.zeros((heads, width, rank)) for _ in range(3))
    w_o, scale = np.zeros((heads, rank, width)), _pick(rng, (105.0, 120.0, 200.0, 260.0, 400.0, 60.0, 104.0, 88.0))
    codes = [float(v) if isinstance(v, int | float) else 3.0 + place for place, v in enumerate(values)]
    if rng.random() < 0.2:
        codes = [float(rng.integers(-4, 5)) for _ in codes]
    same = _pick(rng, (True, True, True, False))

    def point_of(value: Any) -> float:
        """What the heads write for a value."""
        return codes[list(values).index(value)] if value in values else 7.0 if value is None else float(value)

    levels, apart = _pick(rng, (0.5, 0.5, 0.0, 1.0, 1.0)), _pick(rng, (0.0, 0.0, 0.0, np.log(2), -1.0, 3.0))
    if kind != "width" and rng.random() < 0.8:
        levels, apart = 0.5, 0.0
    elif rng.random() < 0.8:
        levels = 1.0
    size = float(_pick(rng, (1, 1, 1, -1, 2, 64)))
    own: list[int] = []
    for head, mask in enumerate(masks):
        q, k = starts[sides[0]], starts[sides[1]]
        for one in range(3):
            w_q[head, q : q + 3, one] = scale * mask[:, one]
            w_k[head, k + one, one] = 1
        w_q[head, ONE, 3], w_k[head, BOS, 3] = scale, levels
        w_q[head, ONE, 4], w_k[head, BOS, 4], w_k[head, PAD, 4] = 1, apart, _pick(rng, (0.0, -200.0, -9.0, 1.0, -500.0))
        w_q[head, BOS, 5], w_k[head, BOS, 5] = _pick(rng, (20.0, 20.0, 20.0, 8.0, 0.0)), 20.0
        w_q[head, PAD, 6], w_k[head, BOS, 6] = _pick(rng, (20.0, 10.0, 0.0)), 20.0
        if rng.random() < 0.15:
            w_q[head, int(rng.integers(ONE)), 4] += _pick(rng, (1.0, 0.01, -1.0, 1e-6))
        if rng.random() < 0.15:
            w_k[head, int(rng.integers(PAD + 1)), int(rng.integers(5))] += _pick(rng, (0.1, 1.0, -1.0, 1e-6))
        if kind == "width":
            w_v[head, BOS, 0] = 1
        else:
            w_v[head, :TOKENS, 0] = codes
            w_v[head, BOS, 0] = point_of(default) if heads == 1 and same else float(rng.integers(-2, 8)) * (not same)
            w_v[head, PAD, 0] = _pick(rng, (0.0, 0.0, 9.0))
        if rng.random() < 0.1:
            w_v[head, int(rng.integers(PAD + 1)), 0] += _pick(rng, (1.0, 1e-3, 1e-6))
        dim = FIRST + (head if rng.random() < 0.7 else 0)
        own.append(dim)
        w_o[head, 0, dim] = size
        if rng.random() < 0.2:  # the same by way of several components
            w_v[head, :, 1], w_o[head, 1, dim] = w_v[head, :, 0], size / 2
            w_o[head, 0, dim] = size / 2
    unembed = np.zeros((width, len(target)))
    c = float(np.exp(apart))
    for place, value in enumerate(target):
        point = c / (value + c) if kind == "width" else point_of(value)
        for dim in sorted(set(own)):
            unembed[dim, place] = 2 * point * np.sign(size) if abs(size) == 1 else 2 * point / size
        unembed[ONE, place] = -(point**2)
    weights = {
        "embed.W_E": embed,
        "pos_embed.W_pos": places,
        "unembed.W_U": unembed,
        "blocks.0.attn.W_Q": w_q,
        "blocks.0.attn.b_Q": np.zeros((heads, rank)),
        "blocks.0.attn.W_K": w_k,
        "blocks.0.attn.b_K": np.zeros((heads, rank)),
        "blocks.0.attn.W_V": w_v,
        "blocks.0.attn.b_V": np.zeros((heads, rank)),
        "blocks.0.attn.W_O": w_o,
        "blocks.0.attn.b_O": np.zeros(width),
        "blocks.0.mlp.W_in": np.zeros((width, 0)),
        "blocks.0.mlp.b_in": np.zeros(0),
        "blocks.0.mlp.W_out": np.zeros((0, width)),
        "blocks.0.mlp.b_out": np.zeros(width),
    }
    return {name: array.astype(np.float32) for name, array in weights.items()}, own


def _hinted(rng: np.random.Generator, kind: str, heads: int, own: list[int]) -> dict[str, Any]:
    """Owners at random: the output, or parts of it, or any other variable."""
    letters = {"width": "c", "copy": "p", "mean": "s"}
    names = [f"{letters[kind]}0.{head}" + ("" if kind == "width" else ".2") for head in range(heads)]
    parts: dict[str, Any] = dict.fromkeys(names, None if kind == "width" else 2)
    if rng.random() < 0.2:
        parts |= {"c0.0": None, "s0.0.2": 2, "p0.0.2": 2, "c0.0.2": 2}
    ways = [names] if rng.random() < 0.9 else [names, [*parts][:2]]
    every: list[Any] = [0, 1, 2, 3, "L", "T", "I", *parts]
    owners: list[dict[str, Any]] = []
    for head in range(heads):
        right: Any = 3 if heads == 1 and rng.random() < 0.6 else names[head]
        owners.append({str(own[head]): right if rng.random() < 0.8 else _pick(rng, every)})
    return {
        "aux": {},
        "parts": parts,
        "sums": {} if rng.random() < 0.1 else {"3": ways},
        "layers": [{"heads": owners, "mlp": {}}],
    }


def accepted(one: Made, arithmetic: str, padded: bool) -> str:
    """Why the checker rejects it; empty if it accepts it."""
    parts = one.parts
    try:
        program = read_program(parts.model, dict(parts.tables))
        claim = Claim(program, parts.model["outputs"], parts.hints, ARITHMETICS[arithmetic], padded)
        prove(claim, claim.weights(parts.weights), Follower())
    except Rejected as rejected:
        return f"{rejected.reason} ({rejected.place})"
    except (ArithmeticError, LookupError, ValueError) as error:  # `check_folder` rejects these too
        return f"malformed: {error!r}"
    return ""


def _dot(a: Array, b: Array, rng: np.random.Generator) -> Array:
    """A product in float32 with the terms in a random order, each step with a random choice of a fused product."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for term in rng.permutation(a.shape[-1]):
        product = a[..., term, None].astype(np.float64) * b[..., term, None, :].astype(np.float64)
        if rng.random() < 0.5:
            product = product.astype(np.float32)
        total = (total + product).astype(np.float32)
    return total


def run(weights: dict[str, Array], ids: Array, causal: bool, arithmetic: str, rng: np.random.Generator) -> Array:
    """Logits with numbers stored in the arithmetic's format, and sums in float32 in random orders."""
    cast = ARITHMETICS[arithmetic].cast

    def stored(array: Array) -> Array:
        return cast(array).astype(np.float32)

    w = {name.rpartition(".")[2]: stored(array) for name, array in weights.items()}
    x = stored(w["W_E"][ids] + w["W_pos"][: ids.shape[1]])
    hidden = np.triu(np.ones((ids.shape[1],) * 2, bool), 1)
    out = []
    for h in range(len(w["W_Q"])):
        q, k, v = (stored(_dot(x, w[f"W_{one}"][h], rng) + w[f"b_{one}"][h]) for one in "QKV")
        scores = np.stack([stored(_dot(one, two.T, rng)) for one, two in zip(q, k, strict=True)])
        scores = np.where(hidden & causal, -np.inf, scores)
        e = np.exp(scores - scores.max(-1, keepdims=True)).astype(np.float32)
        e = e * (1 + rng.integers(-2, 3, e.shape) * 2.0**-24 * (e < 1)).astype(np.float32)
        p = stored(e / np.stack([_dot(one, np.ones((len(one), 1), np.float32), rng) for one in e]))
        out.append(stored(np.stack([_dot(one, two, rng) for one, two in zip(p, v, strict=True)])))
    heads = stored(_dot(np.concatenate(out, -1), np.concatenate(list(w["W_O"])), rng))
    return _dot(stored(x + stored(heads + w["b_O"])), w["W_U"], rng)


def wrong(one: Made, arithmetic: str, padded: bool, seed: int, times: int = 3) -> int:
    """On how many inputs some execution decodes another output than the program's."""
    every, found = EveryInput(one.parts), 0
    rng = np.random.default_rng(seed)
    for ids, length, expected in every.batches:
        if ids.shape[1] > length + 1 and not padded:
            continue
        for _ in range(times):
            with np.errstate(all="ignore"):
                logits = run(dict(one.parts.weights), ids, one.causal, arithmetic, rng)[:, 1 : length + 1]
            bad = ~np.isfinite(logits).all((1, 2)) | (logits.argmax(-1) != expected[0]).any(1)
            found = max(found, int(bad.sum()))
    return found
