"""Reads a variable from a residual stream: which value the coordinates of its directions stand for.

The labels say where a variable is: its directions hold its code from its writer on, until the dimensions are cleared
for other variables (level 2). Elsewhere it is refused. A code is read as the nearest code of a value, measured by the
largest difference of a coordinate, if that is less than half of the smallest distance between two codes; then no other
code is as near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import text
from tracr.craft.variables import NUMBER, Variable
from tracr.errors import InputError, TracrError, UnknownName
from tracr.ir.domains import Domain, Finite
from tracr.ir.layout import ALWAYS, Direction
from tracr.model.interventions import locations
from tracr.model.residual import time_of
from tracr.model.shared_reading import possible_values
from tracr.nearness import ANSWER, margin
from tracr.runtime.tensors import as_numpy, stream_of
from tracr.values import value_text

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.running import RunnableModel

__all__ = ["NOTHING", "HeldVariable", "Nothing", "held_variable", "read_variable", "stream_time"]

Array = NDArray[Any]
SPLIT = re.compile(r"blocks\.(\d+)\.(?:attn\.)?hook_(?:attn_in|[qkv]_input)|blocks\.(\d+)\.ln1\.hook_normalized")
BEFORE_MLP = re.compile(r"blocks\.(\d+)\.(?:hook_mlp_in|ln2\.hook_normalized)")
CELLS = 4_000_000  # differences of one chunk
PLACES = "blocks.N.hook_resid_pre, hook_resid_mid and hook_resid_post"


class Nothing:
    """What a stream holds that is no value of the variable."""

    def __repr__(self) -> str:
        return "nothing"

    def __bool__(self) -> bool:
        return False


NOTHING = Nothing()
"""Read where the stream is near no code of the variable (at BOS, at PAD, after an intervention), or, in a superposed
model, where several values are possible."""


@dataclass(frozen=True, eq=False)
class HeldVariable:
    """A variable that a residual stream holds: its directions there, and the coordinates of its values."""

    label: str
    variable: Variable
    domain: Domain
    places: tuple[int, ...]
    """The directions of the variable that are in the stream, as numbers among its own."""
    slots: tuple[int, ...]
    """Their dimensions."""
    time: int
    """The sub-layer right before."""

    @property
    def codes(self) -> Array:
        """The coordinates [value, direction] of the values of a finite domain."""
        assert isinstance(self.domain, Finite)
        return self.variable.codes(self.domain.values)[:, self.places]


def stream_time(model: RunnableModel, at: str) -> int:
    """The sub-layer right before an activation that holds the whole residual stream, also after a layer norm."""
    shown = at
    if isinstance(at, str):
        if at.endswith("hook_normalized") and model.norm is None:
            raise UnknownName(f"the model has no layer norms, and no activation {at!r}", hint=f"there are {PLACES}")
        if at == "ln_final.hook_normalized":
            return 2 * model.n_layers - 1
        for pattern, name in ((SPLIT, "hook_resid_pre"), (BEFORE_MLP, "hook_resid_mid")):
            if found := pattern.fullmatch(at):
                shown = f"blocks.{next(filter(None, found.groups()))}.{name}"
    time = time_of(shown)
    if time > 2 * model.n_layers - 1:
        raise UnknownName(f"the model has no activation {at!r}", hint=f"its layers are 0 to {model.n_layers - 1}")
    return time


def held_variable(model: RunnableModel, label: str, at: str) -> HeldVariable:
    """A variable with its directions in an activation; refused if it is not there, or only in part."""
    design, time = model.design, stream_time(model, at)
    known = design.variables[text("variable", label)]
    own = known.instead or label
    place = locations(design.program, design.layout).get(own)
    if place is None:
        first = design.variables[own]
        raise InputError(f"{label} is not in the residual stream: {first.reason}", hint=first.hint)
    here = [one for one in design.layout.directions if one.variable is place.variable]
    _check_embedding(design, label, place.variable, at)
    held = [one for one in here if one.held(time)]
    if not held:
        raise _elsewhere(label, at, here, time)
    assert place.variable.node is not None
    domain = design.program.sops[place.variable.node].domain
    found = HeldVariable(
        label, place.variable, domain, tuple(one.place for one in held), tuple(one.slot for one in held), time
    )
    _check_whole(found, at)
    return found


def _check_embedding(design: DesignedModel, label: str, variable: Variable, at: str) -> None:
    """Refuse one half of the embedding if the other writes the variable."""
    if at not in ("hook_embed", "hook_pos_embed"):
        return
    by = {
        source.variable: "hook_embed" if source.by_token is not None else "hook_pos_embed"
        for source in design.layout.schedule.embedded
    }
    if by.get(variable, at) != at:
        raise InputError(
            f"{label} is not in {at}: it is in {by[variable]}", hint="their sum is blocks.0.hook_resid_pre"
        )


def _elsewhere(label: str, at: str, directions: Sequence[Direction], time: int) -> InputError:
    since, until = min(one.since for one in directions), max(one.until for one in directions)
    if time < since:
        return InputError(
            f"{label} is not yet in the stream at {at}: blocks.{since // 2}.{'mlp' if since % 2 else 'attn'} writes it",
            hint=f"read it at {_hook(since)}" + ("" if until == ALWAYS else f", or until {_hook(until - 1)}"),
        )
    return InputError(
        f"{label} is not in the stream any more at {at}: blocks.{until // 2}.mlp clears it",
        hint=f"read it until {_hook(until - 1)}, or compile at level 1",
    )


def _hook(time: int) -> str:
    if time < 0:
        return "blocks.0.hook_resid_pre"
    return f"blocks.{time // 2}.hook_resid_{'post' if time % 2 else 'mid'}"


def _check_whole(held: HeldVariable, at: str) -> None:
    """Refuse a variable of which the stream holds only a part that does not tell its values apart."""
    hint = 'compile with passes={"prune": False, "factor": False}, or at level 0'
    if held.variable.numerical:
        missing = [one for one in (NUMBER, None) if held.variable.index.get(one, held.places[0]) not in held.places]
        if missing:
            what = "its number" if missing[0] is NUMBER else "whether it is None"
            raise InputError(f"the stream at {at} has only a part of {held.label}, not {what}", hint=hint)
        return
    assert isinstance(held.domain, Finite)
    _, numbers = np.unique(held.codes, axis=0, return_inverse=True)
    same = np.flatnonzero(np.bincount(numbers.ravel())[numbers.ravel()] > 1)
    if len(same):
        first, second = same[0], np.flatnonzero(numbers.ravel() == numbers.ravel()[same[0]])[1]
        texts = [value_text(held.domain.values[number]) for number in (first, second)]
        raise InputError(
            f"the stream at {at} has only a part of {held.label}, in which {texts[0]} and {texts[1]} are the same",
            hint=hint,
        )


def read_variable(model: RunnableModel, stream: Any, label: str, at: str) -> Array:
    """The values of a variable in a residual stream; see `RunnableModel.read`."""
    held = held_variable(model, label, at)
    coordinates: Any = getattr(model, "coordinates", None)
    if coordinates is None:
        raise TracrError(f"a {type(model).__name__} has no directions for its variables", hint="use its compiled model")
    numbers = as_numpy(coordinates(stream_of(stream, model.d_model))).astype(np.float64)[..., held.slots]
    flat = numbers.reshape(-1, len(held.slots))
    soft = model.options.soft
    if (gram := model.read_through) is not None:
        found = _only_values(held, possible_values(held, flat, gram, model.design.layout.directions, held.time))
    elif held.variable.numerical:
        found = _numbers(held, flat, 0.0 if soft is None else soft.error)
    else:
        found = _values(held, flat)
    return found.reshape(numbers.shape[:-1])


def _only_values(held: HeldVariable, possible: NDArray[np.bool_]) -> Array:
    """The value of each row that has one possible value."""
    return _named(held, np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), possible.shape[1]))


def _named(held: HeldVariable, numbers: Array) -> Array:
    """Values for their numbers in the domain; the number after the last is `NOTHING`."""
    assert isinstance(held.domain, Finite)
    known = np.empty(len(held.domain) + 1, dtype=object)
    for number, value in enumerate((*held.domain.values, NOTHING)):
        known[number] = value
    return known[numbers]


def _values(held: HeldVariable, coordinates: Array) -> Array:
    """The value of each row of coordinates."""
    codes = held.codes
    rows = max(1, CELLS // max(1, codes.size))
    found = np.full(len(coordinates), len(codes))
    radius = _radius(held)
    for start in range(0, len(coordinates), rows):
        off = np.abs(coordinates[start : start + rows, None] - codes).max(axis=2)
        near = off.argmin(axis=1)
        found[start : start + rows] = np.where(off.min(axis=1) < radius, near, len(codes))
    return _named(held, found)


def _radius(held: HeldVariable) -> float:
    """Half of the smallest distance between two codes; the entries of one-hot codes differ by 1."""
    if held.variable.codebook is None:
        return 0.5
    codes = held.codes
    nearest = [np.abs(np.delete(codes, row, axis=0) - codes[row]).max(axis=1).min() for row in range(len(codes))]
    return min(nearest) / 2 if len(codes) > 1 else 0.5


def _numbers(held: HeldVariable, coordinates: Array, soft: float) -> Array:
    """The number of each row, as the value that it is near, or as itself; `None` where its direction says so."""
    at = {place: column for column, place in enumerate(held.places)}
    numbers = coordinates[:, at[held.variable.index[NUMBER]]]
    found = np.array([float(number) for number in numbers], dtype=object)
    domain = held.domain
    if isinstance(domain, Finite):
        values = [value for value in domain.values if value is not None]
        known = np.array([float(value) for value in values])  # type: ignore[arg-type]
        near = np.abs(numbers[:, None] - known).argmin(axis=1)
        allowed = domain.closest * max(0.25, soft)
        exact = np.minimum(domain.closest / 2, np.maximum(margin(known[near], ANSWER), held.variable.noise.error))
        for row in np.flatnonzero(np.abs(numbers - known[near]) <= np.maximum(allowed, exact)).tolist():
            found[row] = values[near[row]]
    if held.variable.maybe_none:
        found[coordinates[:, at[held.variable.index[None]]] > 0.5] = None
    return found
