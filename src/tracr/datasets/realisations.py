"""Other models of one program: rotated, with noise, in superposition, softened.

A realisation is measured as it is stored: its weights in float32, run in float32 on the inputs of `verify`. Its record
says on how many of them an output is wrong. Nothing is claimed beyond these inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel
from tracr.model.input_sets import chosen_inputs, ids_of
from tracr.model.verification import differs
from tracr.runtime.forward import forward
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.spelling import did_you_mean

__all__ = ["KINDS", "MeasuredErrors", "RealisationChoice", "Realised", "measured", "read_realisations", "realise"]

KINDS: Mapping[str, str] = {
    "rotated": "the residual stream in a random orthogonal basis",
    "noisy": "Gaussian noise on every weight; the amount is its standard deviation (default: the strongest power of "
    "two for which no wrong output is found)",
    "superposed": "features in random directions of fewer dimensions; the amount is d/D (default: the fewest "
    "dimensions of the closed form without loss)",
    "softened": "soft attention and slopes instead of plateaus; the amount is the largest error of a code (default: "
    "0.25); not random, so one copy",
}
TEXT = re.compile(r"(?P<kind>[a-z]+)(?::(?P<amount>[0-9.eE+-]+))?(?:\*(?P<copies>[0-9]+))?")
ROWS = 512  # inputs of one forward pass


@dataclass(frozen=True)
class RealisationChoice:
    """A kind of model to make of every program, with its amount and how many copies, each with its own seed."""

    kind: str
    amount: float | None = None
    copies: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TracrError(
                f"there is no realisation {self.kind!r}",
                hint=did_you_mean(self.kind, KINDS, f"choose from {', '.join(KINDS)}"),
            )
        if self.copies < 1 or (self.kind == "softened" and self.copies > 1):
            raise TracrError(
                f"{self.kind} cannot be made {self.copies} times",
                hint="softening is not random: leave out the number" if self.copies > 1 else "write at least 1",
            )
        if self.amount is not None and (self.kind == "rotated" or not 0 < self.amount <= 1):
            what = "a rotation has no amount" if self.kind == "rotated" else f"{self.amount:g} is not between 0 and 1"
            raise TracrError(f"{self}: {what}", hint=f"{self.kind}: {KINDS[self.kind]}")

    def __str__(self) -> str:
        amount = "" if self.amount is None else f":{self.amount:g}"
        return f"{self.kind}{amount}{f'*{self.copies}' if self.copies > 1 else ''}"


def read_realisations(text: str) -> tuple[RealisationChoice, ...]:
    """The realisations of a text such as "rotated*2,noisy:1e-4,superposed:0.8,softened".

    >>> [str(one) for one in read_realisations("rotated*2, noisy:0.001")]
    ['rotated*2', 'noisy:0.001']
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = TEXT.fullmatch(part)
        try:
            if match is None:
                raise ValueError
            amount = None if match["amount"] is None else float(match["amount"])
        except ValueError:
            raise TracrError(
                f"{part!r} is not a realisation", hint="write the kind, then :amount and *copies: noisy:1e-4*2"
            ) from None
        found.append(RealisationChoice(match["kind"], amount, int(match["copies"] or 1)))
    if len({str(one) for one in found}) < len(found):
        raise TracrError(f"{text!r} names a realisation twice", hint="write rotated*2 for two rotations")
    return tuple(found)


class Weighted(Protocol):
    """A model with weights."""

    @property
    def parameters(self) -> Parameters: ...


@dataclass(frozen=True)
class MeasuredErrors:
    """On how many of the inputs the stored weights give a wrong output; `padded` if padded inputs were run too."""

    inputs: int
    exhaustive: bool
    wrong: int
    padded: bool


@dataclass(frozen=True, eq=False)
class Realised:
    """One model of a program: its name (such as "rotated.0"), its seed, its amount, and its weights in float32."""

    name: str
    seed: tuple[int, ...] | None
    amount: float | None
    parameters: Parameters
    measured: MeasuredErrors


def realise(
    model: CompiledModel, wanted: Sequence[RealisationChoice], seed: Sequence[int], budget: int
) -> Iterator[Realised | tuple[str, TracrError]]:
    """The realisations of a model, or their names and why they could not be made.

    Each copy has a seed of its own: `seed`, the place of the realisation in the list, the number of the copy.
    """
    for place, one in enumerate(wanted):
        for copy in range(one.copies):
            name = f"{one}".partition("*")[0] + f".{copy}"
            own = (*seed, place, copy)
            number = int(np.random.SeedSequence(own).generate_state(1)[0])
            try:
                made, amount, padded = MAKERS[one.kind](model, one.amount, number)
            except TracrError as error:
                yield name, error
                continue
            weights = made.parameters.map(lambda array: np.ascontiguousarray(array, dtype=np.float32))
            random = None if one.kind == "softened" else own
            yield Realised(name, random, amount, weights, measured(model, weights, budget, padded))


Maker = Callable[[CompiledModel, float | None, int], tuple[Weighted, float | None, bool]]


def _rotated(model: CompiledModel, amount: float | None, seed: int) -> tuple[Weighted, float | None, bool]:
    return model.rotated(seed), None, True


def _noisy(model: CompiledModel, amount: float | None, seed: int) -> tuple[Weighted, float | None, bool]:
    made = model.with_noise(amount, seed)
    return made, made.variant.noise, True


def _superposed(model: CompiledModel, amount: float | None, seed: int) -> tuple[Weighted, float | None, bool]:
    from tracr.compress.lossless import exact_dim
    from tracr.compress.superposing import superpose

    least = exact_dim(model)
    dim = least if amount is None else max(1, round(amount * model.d_model))
    return superpose(model, dim, seed, exact=dim >= least), dim / model.d_model, False


def _softened(model: CompiledModel, amount: float | None, seed: int) -> tuple[Weighted, float | None, bool]:
    from tracr.natural.softening import soften

    error = 0.25 if amount is None else amount
    return soften(model, error=error), error, True


MAKERS: Mapping[str, Maker] = {
    "rotated": _rotated,
    "noisy": _noisy,
    "superposed": _superposed,
    "softened": _softened,
}


def measured(model: CompiledModel, weights: Parameters, budget: int, padded: bool = True) -> MeasuredErrors:
    """Run weights in float32 on the inputs of `model.verify(budget)`, and count those with a wrong output.

    Inputs on which the program raises are left out. Padding is run only if `padded` (superposition may drop PAD).
    """
    batches, total = chosen_inputs(model, budget, 0)
    inputs = wrong = 0
    for codes in batches:
        evaluation = evaluate_batch(model.program, Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32)))
        shorter = codes.shape[1] < model.program.lengths[1]
        bad = np.zeros(len(codes), dtype=bool)
        for pads in (False, True) if padded and shorter else (False,):
            logits = _logits(weights, ids_of(model, codes, pads), model.options.causal)[:, 1 : codes.shape[1] + 1]
            for output, (_, number) in zip(model.outputs, model.program.outputs, strict=True):
                expected = np.broadcast_to(evaluation.codes[number], codes.shape)
                bad |= differs(output.domain, expected, output.codes(logits)).any(axis=1)
        inputs += int((~evaluation.errors).sum())
        wrong += int((bad & ~evaluation.errors).sum())
    return MeasuredErrors(inputs, total <= budget, wrong, padded)


def _logits(weights: Parameters, ids: NDArray[Any], causal: bool) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        parts = [
            np.asarray(forward(weights, ids[start : start + ROWS], np, causal=causal))
            for start in range(0, len(ids), ROWS)
        ]
    return np.concatenate(parts)
