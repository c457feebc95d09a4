"""A compressed model: a transformer with d dimensions, made from a compiled model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracr.compress.network import Network, network_of
from tracr.compress.projection import Projection, fold
from tracr.errors import InputError, TracrError
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel, Run
from tracr.runtime.forward import Hook
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.compress.report import Report

__all__ = ["CompressedModel", "Training", "compressed_model"]

Array = NDArray[Any]
KEPT = 0.1  # a feature read back with less than this size is dropped
SHARED = 0.25  # features share dimensions if the cosine of their directions is above this


@dataclass(frozen=True)
class Training:
    """How a projection was trained: method, seed, the loss on all inputs and its parts, and the loss of every start.

    `curve` holds losses over `steps` (for `sgd`: batch losses; for `fast`: the best so far, over seconds).
    """

    method: str
    seed: int = 0
    loss: float = float("nan")
    output_loss: float = float("nan")
    layer_loss: float = float("nan")
    compiled_loss: float = float("nan")
    starts: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()
    curve: tuple[float, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class CompressedModel(CompiledModel):
    """A transformer with d dimensions: `compiled` with the projection folded into its weights.

    It runs like a compiled model, at the input's own length: PAD need not have survived, so padded inputs are cut.
    """

    compiled: CompiledModel = field(kw_only=True)
    projection: Projection = field(kw_only=True)
    training: Training = field(kw_only=True)

    @property
    def d_model(self) -> int:
        """The width of the compressed residual stream."""
        return self.projection.dim

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        return (
            f"CompressedModel({names}: {self.compiled.d_model} → {self.d_model} dimensions, method "
            f"{self.training.method}, loss {self.training.loss:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is pickled: the compiled model, the projection, and the weights."""
        return _restored, (self.compiled, self.projection, self.training, self.parameters)

    # Features

    @property
    def labels(self) -> list[str]:
        """The names of the features, one for each dimension of the compiled model."""
        return self.compiled.residual.labels

    @property
    def W(self) -> Array:
        """The projection [D, d]."""
        return self.projection.W

    @cached_property
    def features(self) -> dict[str, Array]:
        """The direction [d] of every feature."""
        return dict(zip(self.labels, self.W, strict=True))

    @cached_property
    def gram(self) -> Array:
        """W Wᵀ [D, D]: the size at which each feature (row) is read back as each feature (column)."""
        return np.asarray(self.W @ self.projection.read(0).T)

    @cached_property
    def interference(self) -> Array:
        """Cosines between the features' directions [D, D]; 0 for a feature without a direction."""
        size = np.linalg.norm(self.W, axis=1)
        unit = self.W / np.where(size > 0, size, 1.0)[:, None]
        return np.asarray(unit @ unit.T)

    @property
    def dropped(self) -> list[str]:
        """The features that are not represented: they are read back with less than a tenth of their size."""
        return [label for label, size in zip(self.labels, np.diag(self.gram), strict=True) if size < KEPT]

    @property
    def kept(self) -> list[str]:
        """The features that are represented."""
        gone = set(self.dropped)
        return [label for label in self.labels if label not in gone]

    @property
    def sharing(self) -> list[tuple[str, str, float]]:
        """Pairs of kept features that share dimensions, with the cosine of their directions, largest first."""
        places = [self.labels.index(label) for label in self.kept]
        pairs = [
            (self.labels[a], self.labels[b], float(self.interference[a, b]))
            for number, a in enumerate(places)
            for b in places[number + 1 :]
            if abs(self.interference[a, b]) > SHARED
        ]
        return sorted(pairs, key=lambda pair: -abs(pair[2]))

    # Running

    def logits(self, ids: Array, dtype: DTypeLike = np.float32, hook: Hook | None = None) -> Array:
        """Logits for ids that start with BOS; inputs of different lengths are run one length at a time."""
        ids = self._ids(ids)
        lengths = (ids != self.vocabulary.pad_id).sum(axis=1)
        if len(set(lengths.tolist())) <= 1:
            size = int(lengths[0]) if len(lengths) else ids.shape[1]
            found = super().logits(ids[:, :size], dtype, hook)
            return np.pad(found, [(0, 0), (0, ids.shape[1] - size), (0, 0)])
        if hook is not None:
            raise InputError(
                "a compressed model runs inputs of one length at a time if you want its activations",
                hint="pass inputs of one length",
            )
        logits = np.zeros((*ids.shape, self.parameters.W_U.shape[1]), dtype=dtype)
        for size in set(lengths.tolist()):
            rows = lengths == size
            logits[rows, :size] = super().logits(ids[rows, :size], dtype)
        return logits

    def _kernel(self, dtype: DTypeLike) -> None:
        """None: what is done about padding and lengths is done to logits."""

    def run(
        self,
        tokens: Sequence[Any],
        *,
        dtype: DTypeLike = np.float32,
        set: Mapping[str, Sequence[Any]] | None = None,
        hook: Hook | None = None,
    ) -> Run:
        """A forward pass with every activation, all in d dimensions."""
        if set:
            raise TracrError(
                "a compressed model's variables have no dimensions of their own to set",
                hint="set them in model.compiled, or see model.report() for interventions along feature directions",
            )
        return super().run(tokens, dtype=dtype, hook=hook)

    @cached_property
    def network(self) -> Network:
        """The compiled model's sub-layers (without what was trained besides the projection)."""
        return network_of(self.compiled.parameters, self.options.causal)

    def report(self, inputs: Sequence[Sequence[Value]] | None = None) -> Report:
        """What the compressed model computes and how, against the compiled one."""
        from tracr.compress.report import report

        return report(self, inputs)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder of safetensors and JSON, all or nothing; `tracr.load` reads it back."""
        from tracr.compress.saving import save

        save(self, folder, overwrite=overwrite)


def compressed_model(
    compiled: CompiledModel, network: Network, projection: Projection, training: Training
) -> CompressedModel:
    """Fold the projection into the weights."""
    return _restored(compiled, projection, training, fold(compiled.parameters, network, projection))


def _restored(
    compiled: CompiledModel, projection: Projection, training: Training, parameters: Parameters
) -> CompressedModel:
    """The compressed model with these weights."""
    shared = {f.name: getattr(compiled, f.name) for f in fields(CompiledModel) if f.init and f.name != "parameters"}
    return CompressedModel(**shared, parameters=parameters, compiled=compiled, projection=projection, training=training)
