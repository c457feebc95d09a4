"""Whether a compressed model still computes by the program's variables: linear read-outs and interchange
interventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.observing import by_length, decoded_alike, token_positions
from tracr.compress.task import Task
from tracr.model.designed import DesignedModel
from tracr.model.interventions import Location, locations
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from tracr.compress.model import CompressedModel

__all__ = ["Exchange", "Readout", "Swap", "exchanges", "readouts", "slope_of", "swaps"]

Array = NDArray[Any]
PAIRS = 256  # most inputs whose variables are swapped


@dataclass(frozen=True)
class Readout:
    """How well a linear map of the residual stream predicts a variable, on inputs the map was not fitted to.

    `r2` is the explained variance, `accuracy` the share of positions at which the nearest value is right.
    """

    variable: str
    place: str
    r2: float
    accuracy: float


@dataclass(frozen=True)
class Swap:
    """Interchange interventions: a variable gets its value on another input, along the directions of its features.

    `agreement` is the share of positions at which the output equals the program's with the variable replaced;
    `effective` is the same share over the positions where the replacement changes the program's output (NaN if none).
    Decoding to the nearest value hides small effects, so `slope` measures them: the regression of the change of the
    model's logits on the change of the compiled model's, 1 if they change alike and 0 if the variable is not used (NaN
    if nothing should change). Logits of one-hot outputs are centred; a larger scale of them makes a larger slope.
    """

    variable: str
    agreement: float
    effective: float
    slope: float


def readouts(model: CompressedModel, task: Task) -> tuple[Readout, ...]:
    """The readouts of every variable from the residual stream after each sub-layer that has it, fitted on half of the
    inputs."""
    compiled: dict[str, Array] = {}
    squeezed: dict[str, Array] = {}
    _run(model.compiled, model.compiled.parameters, task, compiled)
    _run(model.compiled, model.parameters, task, squeezed)
    places = [name for name in squeezed if name.endswith(("hook_resid_mid", "hook_resid_post"))]
    tokens = token_positions(task)
    fitted = np.zeros_like(tokens)
    fitted[::2] = True
    known = locations(model.compiled.program, model.compiled.layout)
    found = []
    for label, location in known.items():
        live = location.slots[location.slots >= 0]
        codes = _stream(compiled, location.hook)[..., live]
        start = places.index(location.hook) if location.hook in places else 0
        for place in places[start:]:
            if not _needed(model.compiled, location, place):
                continue
            stream = squeezed[place]
            fit, test = (tokens & half for half in (fitted, ~fitted))
            if not test.any():
                test = fit
            solution = np.linalg.lstsq(_with_one(stream[fit]), codes[fit], rcond=1e-9)[0]
            guess, true = _with_one(stream[test]) @ solution, codes[test]
            spread = ((true - true.mean(axis=0)) ** 2).sum()
            r2 = 1 - ((guess - true) ** 2).sum() / spread if spread > 0 else 1.0
            values = np.unique(codes[tokens].round(9), axis=0)
            nearest = ((values**2).sum(axis=1) - 2 * guess @ values.T).argmin(axis=1)
            right = np.abs(values[nearest] - true).max(axis=1) < 1e-6
            found.append(Readout(label, place, float(r2), float(right.mean())))
    return tuple(found)


def _needed(model: DesignedModel, location: Location, place: str) -> bool:
    """Whether a component after `place` still reads the variable."""
    layer, after_mlp = int(place.split(".")[1]), place.endswith("post")
    for slot in location.slots[location.slots >= 0]:
        for reader in model.residual[int(slot)].readers:
            if reader == "unembed":
                return True
            _, number, kind, *_ = reader.split(".")
            if int(number) > layer or (int(number) == layer and kind == "mlp" and not after_mlp):
                return True
    return False


def _with_one(rows: Array) -> Array:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _stream(seen: dict[str, Array], hook: str) -> Array:
    return seen["hook_embed"] + seen["hook_pos_embed"] if hook == "hook_embed" else seen[hook]


def _run(model: DesignedModel, parameters: Any, task: Task, seen: dict[str, Array], hook: Any = None) -> Array:
    """Record every activation at the inputs' own lengths (zeros after them) in `seen`; returns the logits."""
    whole = np.zeros((*task.place.shape, parameters.W_U.shape[1]))
    for size, rows in by_length(task):

        def keep(name: str, tensor: Array, size: int = size, rows: Array = rows) -> Array | None:
            changed = None if hook is None else hook(name, (tensor, rows, size))
            held = tensor if changed is None else changed
            if held.ndim == 3:
                target = seen.setdefault(name, np.zeros((*task.place.shape, held.shape[-1])))
                target[rows, :size] = held
            return changed

        whole[rows, :size] = forward(parameters, task.ids[rows, :size], np, causal=model.options.causal, hook=keep)
    return whole


@dataclass(frozen=True, eq=False)
class Exchange:
    """A variable's values on other inputs: what to add to the stream after a writer, and the compiled model's change.

    `change` [input, position, S] is added on the dimensions `dims` after writer `writer` (0: the embedding), at `hook`;
    `wanted` and `base` are the compiled model's logits with and without it.
    """

    variable: str
    hook: str
    writer: int
    dims: Array
    change: Array
    wanted: Array
    base: Array


def exchanges(model: DesignedModel, task: Task) -> tuple[Task, list[Exchange]]:
    """Give every variable its values on another input of the same length; the task has the inputs that are used."""
    longest = task.real.sum(axis=1) == task.real.sum(axis=1).max()
    rows = np.flatnonzero(longest)[:: max(1, int(longest.sum()) // PAIRS)][:PAIRS]
    task = task.take(rows)
    other = np.random.default_rng(0).permutation(len(task))
    seen: dict[str, Array] = {}
    base = _run(model, model.parameters, task, seen)
    tokens = token_positions(task)
    writers = {part.name: number + 1 for number, part in enumerate(task.network.parts)}
    found = []
    for label, location in locations(model.program, model.layout).items():
        live = location.slots[location.slots >= 0]
        if not live.size:
            continue
        codes = _stream(seen, location.hook)[..., live]
        change = np.where(tokens[..., None], codes[other] - codes, 0.0)
        part = location.hook.replace("hook_resid_mid", "attn").replace("hook_resid_post", "mlp")
        wide = np.zeros((*change.shape[:2], task.network.width))
        wide[..., live] = change
        wanted = _run(model, model.parameters, task, {}, _adding(location.hook, wide))
        found.append(Exchange(label, location.hook, writers.get(part, 0), live, change, wanted, base))
    return task, found


def swaps(model: CompressedModel, task: Task) -> tuple[Swap, ...]:
    """Exchange every variable in both models, and compare the outputs."""
    task, exchanged = exchanges(model.compiled, task)
    before = _run(model.compiled, model.parameters, task, {})
    tokens = token_positions(task)
    found = []
    for one in exchanged:
        change = one.change @ model.projection.write(one.writer)[one.dims]
        got = _run(model.compiled, model.parameters, task, {}, _adding(one.hook, change))
        agrees = decoded_alike(model.compiled, got, one.wanted)
        matters = tokens & ~decoded_alike(model.compiled, one.wanted, one.base)
        effective = float(agrees[matters].mean()) if matters.any() else float("nan")
        slope = slope_of(model.compiled, (got - before)[tokens], (one.wanted - one.base)[tokens])
        found.append(Swap(one.variable, float(agrees[tokens].mean()), effective, slope))
    return tuple(found)


def slope_of(model: DesignedModel, got: Array, wanted: Array) -> float:
    """The slope of changes of logits [position, logit] over those wanted, through the origin; NaN if none is wanted."""
    got, wanted = got.copy(), wanted.copy()
    for output in model.outputs:
        if output.encoding is Encoding.CATEGORICAL:
            mine = slice(output.start, output.stop)
            got[:, mine] -= got[:, mine].mean(axis=1, keepdims=True)
            wanted[:, mine] -= wanted[:, mine].mean(axis=1, keepdims=True)
    size = float((wanted**2).sum())
    return float((got * wanted).sum()) / size if size > 1e-18 else float("nan")


def _adding(where: str, change: Array) -> Any:
    def hook(name: str, given: tuple[Array, Array, int]) -> Array | None:
        tensor, rows, size = given
        return tensor + change[rows, :size] if name == where else None

    return hook
