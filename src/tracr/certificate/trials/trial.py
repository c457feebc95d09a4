"""Tries the checker on mutants: a mutant is harmful if some input gives a wrong output in some order of summation."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.certificate.certifying import CERTIFICATE, HINTS_VERSION
from tracr.certificate.hints import hints
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.certificate.trials.meaning import Meaning, number_of
from tracr.certificate.trials.mutants import Mutant, SavedParts, mutant
from tracr.model.designed import DesignedModel
from tracr.nearness import ANSWER, nearly_equal
from tracr.saving.models import MODEL, TABLES, WEIGHTS, files_of
from tracr_check import Verdict, check_folder

__all__ = ["EveryInput", "Outcome", "check_parts", "parts_of", "trials", "tried", "wrong_inputs"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """A mutant, on how many inputs its outputs are wrong, and the verdict of the checker."""

    mutant: Mutant
    wrong: int
    verdict: Verdict

    @property
    def unsound(self) -> bool:
        """Whether the checker accepted a model that is wrong."""
        return self.verdict.accepted and self.wrong > 0


def parts_of(model: DesignedModel) -> SavedParts:
    """A model's saved parts."""
    files = files_of(model)
    return SavedParts(
        safetensors.numpy.load(files[WEIGHTS]),
        safetensors.numpy.load(files[TABLES]),
        json.loads(files[MODEL]),
        hints(model),
    )


def check_parts(parts: SavedParts, folder: Path, arithmetic: str = "float32", padded: bool = True) -> Verdict:
    """Write the parts into a folder, with the digests they have, and check it."""
    files = {
        MODEL: json.dumps(parts.model).encode(),
        WEIGHTS: safetensors.numpy.save(dict(parts.weights)),
        TABLES: safetensors.numpy.save(dict(parts.tables)),
    }
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    hinted = {
        "version": HINTS_VERSION,
        "sha256": digests,
        "arithmetic": arithmetic,
        "padded": padded,
        **parts.hints,
    }
    for name, data in {**files, CERTIFICATE: json.dumps(hinted).encode()}.items():
        (folder / name).write_bytes(data)
    return check_folder(folder)


class EveryInput:
    """Every input of a model, with the outputs of its program where it has a meaning."""

    def __init__(self, parts: SavedParts) -> None:
        model = parts.model
        self.causal: bool = model["options"]["causal"]
        self.epsilon: float | None = model.get("variant", {}).get("epsilon")
        self.tokens, self.longest = len(model["options"]["vocab"]), model["options"]["max_seq_len"]
        self.meaning = Meaning(model, parts.tables)
        self.slices = [(start, stop) for _, start, stop in model["outputs"]]
        self.encodings = [self.meaning.sops[number]["encoding"] for _, number in self.meaning.outputs]
        self.batches = list(self._batches())

    def _batches(self) -> Iterator[tuple[Array, int, list[Array]]]:
        """Ids [input, position], the length, and the expected codes of each output; with every padding."""
        shortest, longest = self.meaning.lengths
        for length in range(shortest, longest + 1):
            inputs, rows = [], []
            for tokens in itertools.product(range(self.tokens), repeat=length):
                if (found := self.meaning.codes(tokens)) is not None:
                    inputs.append(tokens)
                    rows.append([found[number] for _, number in self.meaning.outputs])
            if not inputs:
                continue
            expected = [np.array([row[place] for row in rows]) for place in range(len(self.slices))]
            for width in range(length, self.longest + 1):
                ids = np.full((len(inputs), width + 1), self.tokens + 1)
                ids[:, 0], ids[:, 1 : length + 1] = self.tokens, inputs
                yield ids, length, expected

    @property
    def count(self) -> int:
        """The number of runs."""
        return sum(len(ids) for ids, _, _ in self.batches)


def wrong_inputs(
    parts: SavedParts, inputs: EveryInput, orders: Sequence[str] = ("blas", "one by one"), dtype: Any = np.float32
) -> int:
    """On how many inputs the weights give another output than the program, in the worst of some orders."""
    with np.errstate(all="ignore"):
        weights = {name: array.astype(dtype) for name, array in parts.weights.items()}
        return max(_wrong(weights, inputs, order) for order in orders)


def _wrong(weights: dict[str, Array], inputs: EveryInput, order: str) -> int:
    wrong = 0
    for ids, length, expected in inputs.batches:
        logits = execute(weights, ids, inputs.causal, ORDERS[order], epsilon=inputs.epsilon)[:, 1 : length + 1]
        bad = ~np.isfinite(logits).all((1, 2))
        for place, (start, stop) in enumerate(inputs.slices):
            number = inputs.meaning.outputs[place][1]
            found = logits[..., start:stop]
            bad |= (~_agree(inputs, number, inputs.encodings[place], found, expected[place])).any(1)
        wrong += int(bad.sum())
    return wrong


def _agree(inputs: EveryInput, number: int, encoding: str, logits: Array, codes: Array) -> Array:
    """Whether logits decode to codes, entry by entry; no logits decode to nothing."""
    if not logits.shape[-1]:
        return np.zeros(codes.shape, bool)
    if encoding == "categorical":
        return np.asarray(logits.argmax(-1) == codes)
    none = logits[..., 1] > 0.5 if logits.shape[-1] > 1 else np.zeros(codes.shape, bool)
    listed = inputs.meaning.values[number]
    if listed is None:  # the numbers themselves, or None
        wanted = codes.astype(np.float64)
        return np.asarray(np.where(np.isnan(wanted), none, ~none & nearly_equal(wanted, logits[..., 0], ANSWER)))
    numbers = np.array([float(x) if (x := number_of(value)) is not None else np.nan for value in listed])
    wanted, known = numbers[codes], np.unique(numbers[np.isfinite(numbers)])
    nearest = known[np.abs(logits[..., :1].astype(float) - known).argmin(-1)] if len(known) else np.nan
    return np.asarray(np.where(np.isnan(wanted), none, ~none & nearly_equal(nearest, wanted)))


def trials(
    parts: SavedParts, count: int, seed: Sequence[int], folder: Path, kind: str | None = None
) -> Iterator[Outcome]:
    """Mutants of a model with their outcomes; the model itself must be right."""
    inputs = EveryInput(parts)
    if wrong_inputs(parts, inputs):
        raise ValueError("the model itself is wrong")
    rng = np.random.default_rng(list(seed))
    for _ in range(count):
        one = mutant(parts, rng, kind)
        try:
            own = EveryInput(one.parts) if one.kind in ("table", "program") else inputs
            outcome = tried(one, own, folder)
        except (IndexError, KeyError, AssertionError):  # codes that do not exist, or s-ops that come later: no meaning
            continue
        yield outcome


def tried(one: Mutant, inputs: EveryInput, folder: Path) -> Outcome:
    """The outcome of a mutant."""
    return Outcome(one, wrong_inputs(one.parts, inputs), check_parts(one.parts, folder))
