"""Changes a saved model: weights, neurons, heads, a cell of a table, the program, or the hints of its certificate."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.certificate.trials.compensating import compensate
from tracr.certificate.trials.exchanging import exchange
from tracr.certificate.trials.program_changes import change_model, pick
from tracr.certificate.trials.rare import matter_rarely

__all__ = ["KINDS", "Mutant", "SavedParts", "mutant", "transplants"]

Array = NDArray[Any]
FACTORS = (1 + 2e-7, 1 + 1e-5, 1 + 1e-3, 1.03, 0.8, 1.5, -1.0, 0.0)
NEW = (1e-6, 1e-3, 0.05, 0.5, -0.5, 1.0, -3.0, 300.0)
SHARES = (1.0, 1.0, 1.0 + 1e-3, 0.5, -1.0)  # of its half that one half of a neuron or a head writes
SINGLE = ("weight",) * 4
KINDS = (
    *SINGLE,
    "weights",
    "neuron",
    "head",
    "compensating",
    "exchanging",
    "rare",
    "table",
    "program",
    "hints",
    "definitions",
)
"""Kinds of mutants, as often as they are drawn."""


@dataclass(frozen=True)
class SavedParts:
    """A saved model in parts: weights, tables, `model.json` parsed, and the hints."""

    weights: Mapping[str, Array]
    tables: Mapping[str, Array]
    model: Mapping[str, Any]
    hints: Mapping[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A changed model: its kind, what was changed in words, and its parts."""

    kind: str
    what: str
    parts: SavedParts = field(repr=False)


def mutant(parts: SavedParts, rng: np.random.Generator, kind: str | None = None) -> Mutant:
    """A random mutant, of one kind or of any; whatever the order of the arrays (safetensors reads them in any)."""
    parts = _with(parts, weights=dict(sorted(parts.weights.items())), tables=dict(sorted(parts.tables.items())))
    kind = KINDS[int(rng.integers(len(KINDS)))] if kind is None else kind
    what, changed = MAKERS[kind](parts, rng)
    return Mutant(kind, what, changed)


def transplants(models: Mapping[str, SavedParts], rng: np.random.Generator) -> Iterator[Mutant]:
    """The program of one model with the weights of another of the same shapes; hints of either, layer by layer."""
    for (name, parts), (other, given) in itertools.permutations(models.items(), 2):
        if _shapes(parts) == _shapes(given):
            both = [parts.hints, given.hints]
            hints = copy.deepcopy({part: {**both[0][part], **both[1][part]} for part in ("aux", "parts", "sums")})
            share = pick(rng, (0.0, 0.5, 1.0))
            taken = [both[int(rng.random() < share)]["layers"][at] for at in range(len(both[0]["layers"]))]
            hinted = {**hints, "layers": copy.deepcopy(taken)}
            yield Mutant("transplant", f"{name} by {other}", _with(parts, weights=given.weights, hints=hinted))


def _shapes(parts: SavedParts) -> dict[str, tuple[int, ...]]:
    """Heads and neurons may be more or fewer; the logits are those of as many values."""
    named = ("embed.W_E", "pos_embed.W_pos", "unembed.W_U")
    found: dict[str, tuple[int, ...]] = {name: parts.weights[name].shape for name in named}
    return found | {"layers": (len(parts.hints["layers"]),)}


def _with(parts: SavedParts, **changed: Any) -> SavedParts:
    return SavedParts(**{**vars(parts), **changed})


def _weight(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """One weight: a factor if it is not zero, or a number where it is."""
    name = pick(rng, [name for name, array in parts.weights.items() if array.size])
    array = parts.weights[name].copy()
    flat = array.reshape(-1)
    filled = np.flatnonzero(flat)
    if len(filled) and rng.random() < 0.7:
        at, factor = int(rng.choice(filled)), float(rng.choice(FACTORS))
        flat[at] *= factor
        what = f"times {factor:.8g}"
    else:
        at, number = int(rng.integers(flat.size)), float(rng.choice(NEW))
        flat[at] += number
        what = f"plus {number:g}"
    place = tuple(int(i) for i in np.unravel_index(at, array.shape))
    return f"{name}{list(place)} {what}", _with(parts, weights={**parts.weights, name: array})


def _weights(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """Several weights of one array: two rows exchanged, a row scaled, all rounded, or two entries moved alike."""
    name = pick(rng, [name for name, array in parts.weights.items() if array.size > 1])
    array = parts.weights[name].copy()
    axis = int(rng.integers(array.ndim))
    moved = np.moveaxis(array, axis, 0)
    one, other = (int(rng.integers(len(moved))) for _ in range(2))
    way = int(rng.integers(4))
    if way == 0:
        moved[[one, other]] = moved[[other, one]]
    elif way == 1:
        moved[one] *= float(rng.choice(FACTORS))
    elif way == 2:
        scale = 2.0 ** int(rng.integers(2, 16))
        array[...] = np.round(array * scale) / scale
    else:
        step = float(rng.choice(NEW))
        moved[one] += step * (moved[one] != 0)
        moved[other] += step * (moved[other] != 0)
    what = f"{name}: {('exchanged', 'scaled', 'rounded', 'moved')[way]} {one}, {other} of axis {axis}"
    return what, _with(parts, weights={**parts.weights, name: array})


def _neuron(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """One neuron more: another one in two halves, or one that is on where a few dimensions are."""
    layer = f"blocks.{int(rng.integers(len(parts.hints['layers'])))}.mlp."
    w_in, b_in, w_out = (parts.weights[layer + name] for name in ("W_in", "b_in", "W_out"))
    row, column, bias = (np.zeros(shape, w_in.dtype) for shape in ((1, len(w_in)), (len(w_in), 1), 1))
    if len(b_in) and rng.random() < 0.5:
        old, share = int(rng.integers(len(b_in))), float(rng.choice(SHARES))
        column[:, 0], bias[0], row[0], w_out = w_in[:, old], b_in[old], w_out[old] / 2, w_out.copy()
        w_out[old] = row[0] * share
        what = f"half of {old}, which keeps {share:g} of its half"
    else:
        dims, signs = rng.choice(len(w_in), min(len(w_in), 3), replace=False), rng.choice([-1.0, 0.0, 1.0], 3)
        column[dims, 0] = signs[: len(dims)] * 2.0 ** int(rng.integers(0, 8))
        bias[0] = -rng.choice([0.25, 0.5, 0.9, 1.0]) * np.maximum(column, 0).sum()
        out = int(rng.integers(row.shape[1]))
        row[0, out] = rng.choice(NEW)
        what = f"reads {dims.tolist()} as {column[dims, 0].tolist()}, writes {row[0, out]:g} into {out}"
    changed = {"W_in": np.hstack([w_in, column]), "b_in": np.append(b_in, bias), "W_out": np.vstack([w_out, row])}
    weights = {**parts.weights, **{layer + name: array for name, array in changed.items()}}
    return f"{layer} a new neuron: {what}", _with(parts, weights=weights)


def _head(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """A head in two halves, each with the hints of the whole; one half may write less, or attend otherwise."""
    layer = f"blocks.{(place := int(rng.integers(len(parts.hints['layers']))))}.attn."
    names = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")
    arrays = {layer + name: parts.weights[layer + name] for name in names}
    if not (count := len(arrays[f"{layer}W_O"])):
        return _weight(parts, rng)
    old, share = int(rng.integers(count)), float(rng.choice(SHARES))
    arrays = {name: np.concatenate([array, array[old : old + 1]]) for name, array in arrays.items()}
    arrays[f"{layer}W_O"][[old, count]] *= 0.5
    arrays[f"{layer}W_O"][count] *= share
    hints = json.loads(json.dumps(parts.hints))
    heads = hints["layers"][place]["heads"]
    heads.append(heads[old])
    what, changed = f"{layer} head {old} in two halves, one times {share:g}", _with(parts, hints=hints)
    if rng.random() < 0.5:
        name = layer + str(pick(rng, names[:4]))
        factor = float(rng.choice(FACTORS))
        arrays[name][count] *= factor
        what += f", its {name} times {factor:.8g}"
    return what, _with(changed, weights={**parts.weights, **arrays})


def _compensating(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """Several weights that make up for each other, all but one of them or all."""
    weights, hints = {name: array.copy() for name, array in parts.weights.items()}, copy.deepcopy(dict(parts.hints))
    what = compensate(weights, hints, rng)
    return what, _with(parts, weights=weights, hints=hints)


def _exchanging(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """Things that look alike, exchanged in the weights or in the hints."""
    weights, hints = {name: array.copy() for name, array in parts.weights.items()}, copy.deepcopy(dict(parts.hints))
    what = exchange(weights, hints, rng)
    return what, _with(parts, weights=weights, hints=hints)


def _rare(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """Weights that matter at few streams."""
    weights = {name: array.copy() for name, array in parts.weights.items()}
    what = matter_rarely(parts.model, weights, rng)
    return what, _with(parts, weights=weights)


def _table(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """One cell of a table of the program: another code, the other truth, or a mark."""
    if not parts.tables:
        return _weight(parts, rng)
    name = pick(rng, parts.tables)
    table = parts.tables[name].copy()
    flat = table.reshape(-1)
    at = int(rng.integers(flat.size))
    before = int(flat[at])
    others = {0, 1} if name.startswith("selectors") else set(range(int(table.max()) + 1))
    marks = {-1, -2} if rng.random() < 0.1 else set()
    flat[at] = pick(rng, sorted((others | marks) - {before}) or [before])
    return f"{name}[{at}] {before} -> {int(flat[at])}", _with(parts, tables={**parts.tables, name: table})


def _program(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """The program, but for its tables."""
    model = copy.deepcopy(dict(parts.model))
    what = change_model(model, rng)
    return what, _with(parts, model=model)


def _hints(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """The hints, and often a weight too: wrong hints must not make a wrong model pass."""
    hints = json.loads(json.dumps(parts.hints))
    places = _places(hints)
    what = "nothing"
    if places:
        holder, key = pick(rng, places)
        owners = [h[k] for h, k in places if not isinstance(h[k], dict | list)]
        if rng.random() < 0.25:
            del holder[key]
            what = f"the hint {key} deleted"
        else:
            holder[key] = pick(rng, [*owners, 0, 1, "c0.0"])
            what = f"the hint {key} is {holder[key]}"
    changed = _with(parts, hints=hints)
    if rng.random() < 0.7:
        more, changed = _weight(changed, rng)
        what += f", {more}"
    return what, changed


def _definitions(parts: SavedParts, rng: np.random.Generator) -> tuple[str, SavedParts]:
    """A definition or a part that owns dimensions of others, and often other weights."""
    hints, program = copy.deepcopy(dict(parts.hints)), parts.model["program"]
    sops, number = [sop["id"] for sop in program["sops"]], str(100_000 + len(hints["aux"]))
    selectors = [sop["op"]["selector"] for sop in program["sops"] if "selector" in sop["op"]] or [0]
    source, kind = pick(rng, sops), str(rng.choice(["pair", "width", "sum", "units"]))
    about = {"of": [source, pick(rng, sops)] if kind == "pair" else source, "selector": pick(rng, selectors)}
    about |= {"above": float(rng.choice([-1, 0, 1])), "times": float(rng.choice([1, 2, 3]))}
    fields = {"pair": ("of",), "width": ("selector",), "sum": ("selector", "of"), "units": tuple(about)}[kind]
    hints["aux"][number] = {"kind": kind, **{name: about[name] for name in fields}}
    place = int(rng.integers(len(hints["layers"])))
    layer = hints["layers"][place]
    owner: int | str = int(number)
    owned, what = layer["mlp"], str(hints["aux"][number])
    if layer["heads"] and rng.random() < 0.7:
        head, letter = int(rng.integers(len(layer["heads"]))), str(rng.choice(list("csp")))
        owner = f"{letter}{place}.{head}{'' if letter == 'c' else f'.{source}'}"
        hints["parts"][owner], owned = (None if letter == "c" else source), layer["heads"][head]
        hints["sums"].setdefault(pick(rng, (number, *map(str, sops))), []).append([owner])
        what += f", of {owner}"
    owned |= {dim: owner for dim in owned if rng.random() < 0.8}
    changed = _with(parts, hints=hints)
    if rng.random() < 0.7:
        more, changed = pick(rng, (_weight, _weights, _compensating))(changed, rng)
        what += f", {more}"
    return what, changed


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every leaf of JSON: what holds it, and its name or number there."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found: list[tuple[Any, Any]] = []
    for key, inner in pairs:
        found += _places(inner) if isinstance(inner, dict | list) else [(data, key)]
    return found


MAKERS = {
    "weight": _weight,
    "weights": _weights,
    "neuron": _neuron,
    "head": _head,
    "compensating": _compensating,
    "exchanging": _exchanging,
    "rare": _rare,
    "table": _table,
    "program": _program,
    "hints": _hints,
    "definitions": _definitions,
}
