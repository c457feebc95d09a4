"""Trains every part of a compiled model alone, assembles them, and verifies the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.errors import TracrError
from tracr.model.compiled import CompiledModel
from tracr.model.variants.variant_model import VariantModel
from tracr.model.verification import Verification
from tracr.natural.learned.assembly import assembled, check_wiring, spans_of
from tracr.natural.learned.codes import PartCodes, Streams, margins_of, parts_of, spacing_of, streams_of
from tracr.natural.learned.directions import (
    EXACT_READ,
    LabelDirections,
    narrow_reads,
    read_error,
    reading_spaces,
    rotated_by,
    superposed_in,
)
from tracr.natural.learned.fitting import FittedPart, fit, width_of
from tracr.natural.learned.model import LearnedModel, LearnedPart
from tracr.natural.teacher import inputs_of

__all__ = ["PartProgress", "learned_parts"]

Array = NDArray[Any]
TINY = 1e-6  # a smaller error is about the rounding of float32
ROWS = 4096  # inputs of one batch
UNVERIFIED = Verification(0, False, 0, None, own_weights=False)


class PartProgress(NamedTuple):
    """A part that has been trained: how many are, of how many; its name and its largest error alone, in margins."""

    done: int
    total: int
    name: str
    error: float


def learned_parts(
    model: CompiledModel,
    *,
    seed: int = 0,
    noise: float = 0.02,
    steps: int = 2_000,
    rotated: bool = False,
    superposed: bool = False,
    width: int | None = None,
    data: Sequence[Sequence[Any]] | None = None,
    progress: Callable[[PartProgress], None] | None = None,
) -> LearnedModel:
    """A transformer whose heads and MLPs are trained alone on the compiled model's codes, then assembled.

    Each part is trained with noise on the codes it reads; it has GELU and dense weights in the dimensions that the
    compiled part reads and writes, and none in others. The result is compared with the program on all inputs if they
    are at most 100,000, else on a sample, padded and unpadded (`learned.verified`); a wrong one is refused.

    Args:
        model: a compiled model in which no dimension is used twice: compile it at level 0 or 1.
        seed: of the first weights, the noise, and the rotation.
        noise: the size of the noise, as a part of the distance between neighbouring values of a dimension.
        steps: training steps of a part. A part that is not accurate enough is trained up to three times: heads further,
            neurons from the start, with twice as many.
        rotated: whether the residual stream is rotated by a random orthogonal matrix.
        superposed: whether labels get random directions that overlap, in which every part still reads its variables
            exactly (`directions.py`).
        width: the width of the stream; for a rotated one at least the number of the model's dimensions, for a
            superposed one at least the number of directions that the parts tell apart. These are the defaults.
        data: the inputs whose codes are trained on; by default all inputs, or many random ones.
        progress: called after every part.
    """
    _check_model(model)
    seed, steps, noise = arguments.whole("seed", seed), arguments.whole("steps", steps, 1), _noise(noise)
    rotated, superposed = arguments.flag("rotated", rotated), arguments.flag("superposed", superposed)
    width = _width(model, rotated, superposed, width)
    streams = streams_of(model, inputs_of(model, data).ids)
    spacing = spacing_of(streams)
    margins = margins_of(model, spacing, noise)
    parts = list(parts_of(model, streams))
    directions: LabelDirections | None = None
    if superposed:
        directions = superposed_in(model, parts, width, seed)
        parts = [narrow_reads(model, part) for part in parts]
    elif rotated:
        directions = rotated_by(model.d_model, width or model.d_model, seed)
    fitted: dict[str, FittedPart] = {}
    for number, (part, size) in enumerate(zip(parts, _widths(parts), strict=True)):
        own = int(np.random.SeedSequence([seed, 0, number]).generate_state(1)[0])
        found = fit(part, size, spacing, margins, own, steps, model.options.causal)
        _check_part(part, found, margins)
        fitted[part.where.name] = _narrowed(model, part, found) if superposed else found
        if progress is not None:
            progress(PartProgress(number + 1, len(parts), part.where.name, found.error))
    spans = spans_of(model, {name: len(one.weights["out"]) for name, one in fitted.items()})
    weights = assembled(model, {name: one.weights for name, one in fitted.items()}, spans)
    check_wiring(weights, model, spans)
    draft = LearnedModel(model, weights, (), spans, UNVERIFIED, noise, seed, directions, superposed)
    _check_reads(draft)
    errors = _code_errors(draft, streams)
    measured = tuple(_measured(part, fitted[part.where.name], errors, margins) for part in parts)
    verified = _verified(draft)
    _check_codes(measured, noise)
    return LearnedModel(model, weights, measured, spans, verified, noise, seed, directions, superposed)


def _check_model(model: object) -> None:
    """Refuse a model whose parts cannot be learned one by one."""
    if isinstance(model, VariantModel):
        raise TracrError("the parts of a model with other weights cannot be learned", hint="use model.plain")
    if not isinstance(model, CompiledModel):
        raise TracrError(
            f"learned parts need a compiled model, not a {type(model).__name__}", hint="use tracr.compile(...)"
        )
    if model.residual.shared:
        raise TracrError(
            "at level 2 dimensions are cleared and used again, so that a small error would stay in them",
            hint="compile with level=1",
        )
    if not model.n_layers:
        raise TracrError("the model has no layers, so there is nothing to learn", hint="use a program with heads")


def _noise(noise: Any) -> float:
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 < noise <= 0.25:
        raise TracrError(f"noise must be a number above 0 and at most 0.25, not {noise!r}", hint="such as noise=0.02")
    return float(noise)


def _width(model: CompiledModel, rotated: bool, superposed: bool, width: Any) -> int | None:
    """The width that was asked for; refuse one that is too small for orthogonal directions."""
    if width is None:
        return None
    wanted, least = arguments.whole("width", width, 1), model.d_model
    if not rotated and not superposed:
        raise TracrError(
            "a width is for a rotated or superposed stream", hint="pass rotated=True or superposed=True too"
        )
    if wanted < least and not superposed:
        overlap = np.sqrt((least - wanted) / (wanted * (least - 1)))
        raise TracrError(
            f"{least} directions cannot be orthogonal in {wanted} dimensions: two of them overlap by at least "
            f"{overlap:.2f}",
            hint=f"use width={least} or more, or superposed=True, which allows overlaps that no part reads",
        )
    return wanted


def _narrowed(model: CompiledModel, part: PartCodes, found: FittedPart) -> FittedPart:
    """The part, reading only what the compiled part reads; on the codes it was trained on, this changes nothing."""
    spaces = reading_spaces(model, part.where)
    return replace(found, weights={**found.weights, **{name: spaces[name] @ found.weights[name] for name in spaces}})


def _widths(parts: Sequence[PartCodes]) -> list[int]:
    """The neurons of each group, and the d_head of each head: the same in a layer."""
    own = [width_of(part) for part in parts]
    heads: dict[int, int] = {}
    for part, size in zip(parts, own, strict=True):
        if part.pattern is not None:
            heads[part.where.layer] = max(heads.get(part.where.layer, 0), size)
    return [size if part.pattern is None else heads[part.where.layer] for part, size in zip(parts, own, strict=True)]


def _check_part(part: PartCodes, found: FittedPart, margins: Array) -> None:
    """Refuse a part that did not train to its tolerance."""
    if found.error <= 1:
        return
    least = float(margins[list(part.writes)].min())
    hint = "use more steps, another seed, or a smaller noise"
    if least < TINY:
        hint = "a head multiplies its values by a large factor, as in sums over several selectors; rewrite the program"
    raise TracrError(
        f"{part.where.name} ({', '.join(part.where.variables)}) did not train: its error on the codes it reads is "
        f"{found.error:.3g} times the largest that its readers tolerate, {least:.2g}",
        hint=hint,
    )


def _check_reads(draft: LearnedModel) -> None:
    """Refuse superposed directions with which a part reads what it has no edge from, beyond rounding."""
    if draft.superposed and draft.turned is not None:
        error = read_error(draft.weights, draft.turned)
        if error > EXACT_READ:
            raise TracrError(
                f"reads of the superposed directions are off by {error:.2g} of what is written, which is "
                "more than rounding to float32",
                hint="use another seed or a larger width",
            )


def _code_errors(draft: LearnedModel, streams: Streams) -> Array:
    """For each label the largest error of its coordinate, at tokens and BOS, on padded and unpadded inputs."""
    lengths, longest = streams.real.sum(axis=1), streams.ids.shape[1]
    wanted = streams.last if draft.turned is None else draft.coordinates(streams.last @ draft.directions)
    errors = np.zeros(draft.compiled.d_model)
    for size in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == size)
        for some in np.array_split(rows, -(-len(rows) // ROWS)):
            for stop in {size, longest}:
                off = np.abs(_last_codes(draft, streams.ids[some, :stop])[:, :size] - wanted[some, :size])
                errors = np.maximum(errors, off.max(axis=(0, 1)))
    return errors


def _last_codes(draft: LearnedModel, ids: Array) -> Array:
    """The coordinate of each label in the last residual stream."""
    found: list[Array] = []

    def keep(name: str, tensor: Array) -> None:
        if name == f"blocks.{draft.n_layers - 1}.hook_resid_post":
            found.append(draft.coordinates(tensor))

    draft.logits(ids, hook=keep)
    return found[0]


def _measured(part: PartCodes, found: FittedPart, errors: Array, margins: Array) -> LearnedPart:
    writes = list(part.writes)
    largest = float(errors[writes].max(initial=0.0))
    within = float((errors[writes] / margins[writes]).max(initial=0.0))
    return LearnedPart(part.where.name, part.where.variables, found.error, found.noisy, largest, within)


def _verified(draft: LearnedModel) -> Verification:
    """The comparison with the program; a difference is refused."""
    found = draft.verify()
    if not found:
        raise TracrError(
            f"the assembled model is wrong: {found.counterexample or found}",
            hint="use more steps, another seed, or a smaller noise",
        )
    return found


def _check_codes(parts: Sequence[LearnedPart], noise: float) -> None:
    """Refuse codes with larger errors than the noise that their readers were trained with."""
    worst = max(parts, key=lambda part: part.margins)
    if worst.margins > 1:
        raise TracrError(
            f"{worst.name} ({', '.join(worst.variables)}) writes codes with an error of {worst.code_error:.3g}, "
            f"{worst.margins:.3g} times the noise that its readers were trained with",
            hint=f"use more steps, another seed, or another noise than {noise}",
        )
