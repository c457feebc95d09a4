"""What methods get: activations at a place; and what they do not get: the features, their directions and their firing.

Activations are those of tokens, without BOS, minus the mean over inputs of their position: positions are no features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError
from tracr.lab.features.feature_case import PLACES, FeatureCase
from tracr.lab.methods.passes import model_of
from tracr.lab.variables.network import StreamNetwork, stream_network
from tracr.natural.twin_model import TwinModel
from tracr.runtime.forward import forward
from tracr.values import Value

__all__ = [
    "HELD_OUT",
    "TRAINING",
    "FeatureData",
    "FeatureTruth",
    "feature_case_of",
    "feature_data",
    "feature_truth",
    "names_at",
]

Array = NDArray[Any]
Inputs = list[list[Value]]
TRAINING, HELD_OUT = 4_096, 1_024  # inputs
FIRES = 0.5  # features are 0 or 1


@dataclass(frozen=True, eq=False)
class FeatureData:
    """Activations for training.

    Args:
        place: the place, as a name of a hook.
        activations: [token, dimension].
        atoms: the number of true features at the place; how many atoms a dictionary has is a method's choice.
        inputs: the inputs.
        inputs_of_mlp: the stream that the MLP reads, centred too; `None` except for the place "mlp".
    """

    place: str
    activations: Array = field(repr=False)
    atoms: int
    inputs: Inputs = field(repr=False)
    inputs_of_mlp: Array | None = field(default=None, repr=False)
    means: dict[str, Array] = field(default_factory=dict, repr=False)
    """The mean of each position that was subtracted, by place; held-out activations get the same."""


@dataclass(frozen=True, eq=False)
class FeatureTruth:
    """The features at a place: their names, their directions [feature, dimension], and where they fire [token,
    feature]."""

    names: tuple[str, ...]
    directions: Array = field(repr=False)
    fires: NDArray[np.bool_] = field(repr=False)


def feature_case_of(subject: Any) -> FeatureCase:
    """The case of a subject, which must be one with features."""
    case = getattr(subject, "case", None)
    if not isinstance(case, FeatureCase):
        raise InputError(
            f"{getattr(case, 'name', subject)} is no case with independent features",
            hint='use cases such as "features:density=0.01"; `tracr.lab.features.feature_case` makes them',
        )
    return case


def names_at(case: FeatureCase) -> tuple[str, ...]:
    """The names of the features at the place of a case."""
    kinds = {"pre": ("own",), "mid": ("own", "before"), "post": ("own", "before", case.program.hits)}
    chosen = kinds.get(case.dials.place, (case.program.hits,))
    return tuple(f"{kind}{i}" for kind in chosen for i in range(case.program.features))


def feature_data(
    subject: Any, seed: int, training: int = TRAINING, held_out: int = HELD_OUT
) -> tuple[FeatureData, FeatureData]:
    """The data for training, and those for scores, on other inputs."""
    case, network = feature_case_of(subject), stream_network(subject)
    drawn = case.inputs(training + held_out, seed)
    first = _data(case, network, model_of(subject), drawn[:training], {})
    return first, _data(case, network, model_of(subject), drawn[training:], first.means)


def _data(
    case: FeatureCase, network: StreamNetwork, model: Any, inputs: Inputs, means: dict[str, Array]
) -> FeatureData:
    streams = network.streams(model.encode(inputs))
    at_mlp = case.dials.place == "mlp"
    raw = {"read": streams[PLACES["mid"]]} if at_mlp else {}
    raw[case.place] = streams[PLACES["post"]] - streams[PLACES["mid"]] if at_mlp else streams[case.place]
    tokens = {name: stream[:, 1:] for name, stream in raw.items()}
    used = means or {name: stream.mean(axis=0) for name, stream in tokens.items()}
    rows = {name: (stream - used[name]).reshape(-1, stream.shape[-1]) for name, stream in tokens.items()}
    return FeatureData(case.place, rows[case.place], len(names_at(case)), inputs, rows.get("read"), used)


def feature_truth(subject: Any, inputs: Inputs, fires: NDArray[np.bool_] | None = None) -> FeatureTruth:
    """The truth about a subject's features on some inputs. Firing is the compiled program's, directions the model's.

    `fires` is the firing, if it is known: that of another subject of the case, on the same inputs.
    """
    case, model = feature_case_of(subject), model_of(subject)
    _require_labels(case, model)
    labels = {label: place for place, label in enumerate(case.model.residual.labels)}
    names = names_at(case)
    columns = [labels[name] for name in names]
    directions = np.asarray(model.directions, dtype=np.float64)[columns]
    return FeatureTruth(names, directions, _fires(case, inputs, columns) if fires is None else fires)


def _fires(case: FeatureCase, inputs: Inputs, columns: list[int]) -> NDArray[np.bool_]:
    """Where the features of some labels fire [token, feature], in the compiled model."""
    compiled = case.model
    seen: dict[str, Array] = {}
    forward(compiled.parameters, compiled.encode(inputs), np, causal=compiled.options.causal, hook=seen.__setitem__)
    codes = seen[case.place][:, 1:][..., columns].reshape(-1, len(columns))
    return np.asarray(codes > FIRES)


def _require_labels(case: FeatureCase, model: Any) -> None:
    """Refuse a model whose labels are not those of the case's model: directions would be those of other features."""
    design = None if isinstance(model, TwinModel) else getattr(model, "design", None)
    if design is None or list(design.residual.labels) != list(case.model.residual.labels):
        raise TracrError(
            f"the directions of features are not known in this {type(model).__name__} of {case.name}",
            hint="use the realisations superposed, compiled, rotated or noise, without the dial level",
        )
