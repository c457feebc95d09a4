"""Checks that a model still computes its program and stores its variables: decodes outputs, reads variables back.

A variable is read back after every sub-layer from the one that writes it to the one that clears it. The error of a
code's coordinate may be up to 1/4. The error of a number may be up to 1e-4 times max(1, |number|), or the compiled
model's own bound if that is larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import NUMBER, Variable
from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.model.interventions import locations
from tracr.model.verification import HALF, chosen_inputs, ids_of, verify
from tracr.nearness import ANSWER, margin
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch

if TYPE_CHECKING:
    from tracr.ir.layout import Direction
    from tracr.model.designed import DesignedModel
    from tracr.model.variants.variant_model import VariantModel

__all__ = ["BUDGET", "checked", "first_problem", "held_and_wanted"]

Array = NDArray[Any]
BUDGET = 2_000  # inputs for the check of a variant
ROWS = 64  # inputs of each length that are run with all activations


def checked(model: VariantModel, hint: str) -> VariantModel:
    """The model, if no problem is found on up to `BUDGET` inputs."""
    problem = first_problem(model)
    if problem:
        raise TracrError(f"{model.variant.steps[-1]} would make the model wrong: {problem}", hint=hint)
    return model


def first_problem(model: DesignedModel, budget: int = BUDGET, seed: int = 0) -> str:
    """A wrong output, or a variable that cannot be read back, on all inputs or a sample; "" if none is found.

    Outputs are compared on up to `budget` inputs, variables on up to `ROWS` of each length, padded and unpadded.
    """
    found = verify(model, budget, seed, False)
    if found.counterexample is not None:
        return str(found.counterexample)
    seen: dict[int, int] = {}
    for codes in chosen_inputs(model, budget, seed)[0]:
        length = codes.shape[1]
        rows = codes[np.random.default_rng(seed).permutation(len(codes))[: ROWS - seen.get(length, 0)]]
        seen[length] = seen.get(length, 0) + len(rows)
        if len(rows) and (problem := _unreadable(model, rows)):
            return problem
    return ""


def _unreadable(model: DesignedModel, codes: Array) -> str:
    """The first variable that cannot be read back on inputs of one length."""
    evaluation = evaluate_batch(model.program, Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32)))
    for padded in (False, True) if codes.shape[1] < model.program.lengths[1] else (False,):
        for label, hook, wrong in _differences(model, evaluation, ids_of(model, codes, padded)):
            wrong &= ~evaluation.errors[:, None]
            if wrong.any():
                row, position = np.argwhere(wrong)[0].tolist()
                tokens = [model.options.vocab[code] for code in codes[row].tolist()]
                return f"on {tokens!r} {label} cannot be read back at {hook}, position {position}"
    return ""


def _differences(model: DesignedModel, evaluation: Evaluation, ids: Array) -> Iterator[tuple[str, str, Array]]:
    """Each variable after each sub-layer where it has directions, with the inputs and positions where it is wrong."""
    for variable, hook, held, wanted in held_and_wanted(model, evaluation, ids):
        exact = variable in (ONE, BOS, PAD) or not variable.numerical
        allowed = np.maximum(HALF if exact else margin(wanted, ANSWER), variable.noise.error)
        yield variable.label, hook, (np.abs(held - wanted) > allowed).any(axis=-1)


def held_and_wanted(
    model: DesignedModel, evaluation: Evaluation, ids: Array
) -> Iterator[tuple[Variable, str, Array, Array]]:
    """Each variable after each sub-layer where it has directions: the coordinates it has, and those of its value.

    Both are [input, position, direction], for the directions that are part of the model; without BOS. This includes the
    labels of BOS and PAD, which are 0 at tokens, and of the constant `one` at level 0.
    """
    streams = _streams(model, ids)
    length = evaluation.batch.codes.shape[1]
    directions: dict[Variable, list[Direction]] = {}
    for one in model.layout.directions:
        directions.setdefault(one.variable, []).append(one)
    own = {
        location.variable: _wanted(location.variable, evaluation)
        for location in locations(model.program, model.layout).values()
    }
    flags = {
        variable: np.full((1, 1, 1), float(variable is ONE)) for variable in (ONE, BOS, PAD) if variable in directions
    }
    for variable, wanted in (own | flags).items():
        for hook, time, stream in streams:
            here = [(one.place, one.slot) for one in directions[variable] if one.held(time)]
            if not here:
                continue
            places, slots = map(list, zip(*here, strict=True))
            held = model.basis.get(stream[:, 1 : length + 1], slots)
            yield variable, hook, held, wanted[..., places]


def _streams(model: DesignedModel, ids: Array) -> list[tuple[str, int, Array]]:
    """The residual stream after the embedding and every sub-layer."""
    seen: dict[str, Array] = {}
    model.logits(ids, hook=seen.__setitem__)
    found = [("the embedding", -1, seen["hook_embed"] + seen["hook_pos_embed"])]
    for number in range(model.n_layers):
        for time, part in ((2 * number, "mid"), (2 * number + 1, "post")):
            hook = f"blocks.{number}.hook_resid_{part}"
            found.append((hook, time, seen[hook]))
    return found


def _wanted(variable: Variable, evaluation: Evaluation) -> Array:
    """The coordinates [input, position, direction] of the program's values; NaN if there is no value."""
    assert variable.node is not None
    domain = evaluation.program.sops[variable.node].domain
    shape = evaluation.batch.codes.shape
    codes = np.broadcast_to(evaluation.codes[variable.node], shape)
    if isinstance(domain, Finite):
        rows = variable.codes(domain.values)
        return np.where((codes >= 0)[..., None], rows[np.maximum(codes, 0)], np.nan)
    wanted = np.zeros((*shape, variable.size))
    missing = np.isnan(codes)
    wanted[..., variable.index[NUMBER]] = np.where(missing, 0.0, codes)
    if variable.maybe_none:
        wanted[..., variable.index[None]] = missing
    return wanted
