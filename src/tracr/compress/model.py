"""A compressed model: a transformer with d dimensions, made from a compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracr.arguments import flag
from tracr.compress.network import Network, network_of
from tracr.compress.projection import Projection, fold
from tracr.compress.refusals import UNCHECKED, refusal
from tracr.errors import CertificateError, FormatError, InputError, TracrError
from tracr.ir.parameters import Parameters
from tracr.model.derived import DerivedModel
from tracr.model.designed import DesignedModel
from tracr.runtime.forward import Hook
from tracr.runtime.tensors import as_tensor, like, stream_of
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.compress.report import Report

__all__ = ["CompressedModel", "Training", "compressed_model"]

Array = NDArray[Any]
KEPT = 0.1  # a feature read back with less than this size is dropped
SHARED_COSINE = 0.25  # features share dimensions if the cosine of their directions is above this


@dataclass(frozen=True)
class Training:
    """How a projection was trained: method, seed, the loss and its parts, and the loss of every start.

    The loss is measured on the training inputs; for `exact` and `superpose` on all inputs, or on a sample if they are
    many.

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
class CompressedModel(DerivedModel):
    """A transformer with d dimensions: the weights of `compiled` with the projection folded in.

    It has a compiled model but is not one: its dimensions have no labels, and its outputs can be wrong (`verify`,
    `report`). It runs each input at its own length: compression can drop PAD, so padded inputs are cut. A method of
    compiled models that it lacks raises an error that says what to use instead.

    It computes in float64 unless another dtype is given: its features share dimensions, and rounding errors of one
    reach the others. In float32 some models without loss give wrong outputs.
    """

    _dtype = np.float64

    compiled: DesignedModel
    projection: Projection
    training: Training
    folded: Parameters = field(repr=False)

    @property
    def parameters(self) -> Parameters:
        """The weights that the model runs with."""
        return self.folded

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        return (
            f"CompressedModel({names}: {self.compiled.d_model} → {self.d_model} dimensions, method "
            f"{self.training.method}, loss {self.training.loss:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickled form: the compiled model, the projection, and the weights."""
        return CompressedModel, (self.compiled, self.projection, self.training, self.folded)

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

    @property
    def read_through(self) -> Array:
        """The size at which each label (row) is read as each label (column): `directions @ read_directions`."""
        return self.directions @ self.read_directions

    @cached_property
    def interference(self) -> Array:
        """Cosines between the features' directions [D, D]; 0 for a feature without a direction."""
        size = np.linalg.norm(self.W, axis=1)
        unit = self.W / np.where(size > 0, size, 1.0)[:, None]
        return np.asarray(unit @ unit.T)

    @property
    def read_back(self) -> dict[str, float]:
        """The part of its size with which each feature is read back: the diagonal of `gram`."""
        return dict(zip(self.labels, np.diag(self.gram).tolist(), strict=True))

    @property
    def dropped(self) -> list[str]:
        """The features that are read back with less than a tenth of their size (`read_back`)."""
        return [label for label, size in self.read_back.items() if size < KEPT]

    @property
    def kept(self) -> list[str]:
        """The features that are read back with at least a tenth of their size (`read_back`)."""
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
            if abs(self.interference[a, b]) > SHARED_COSINE
        ]
        return sorted(pairs, key=lambda pair: -abs(pair[2]))

    @property
    def directions(self) -> Array:
        """The direction [d] along which each label is written, a row each; refused if writers use several."""
        return self._shared(self.projection.sites.writes, "written along")

    @property
    def read_directions(self) -> Array:
        """The vector [d] that reads each label from the residual stream, a column each; refused if readers use several.

        Labels share dimensions, so `directions @ read_directions` is not the identity: it is `gram`.
        """
        return self._shared(self.projection.sites.reads, "read along").T

    def coordinates(self, stream: Any) -> Any:
        """The coordinates of a residual stream [..., d] along the labels, as the model reads them.

        They are `stream @ read_directions`.

        The stream may be a numpy array, a torch tensor or a JAX array, on any device; the result is of its kind.
        """
        given = as_tensor(stream_of(stream, self.d_model))
        return given @ like(given, self.read_directions)

    def _shared(self, sites: tuple[int, ...], used: str) -> Array:
        """The common matrix of some sites; refused if they have several."""
        if len(set(sites)) > 1:
            raise TracrError(
                f"the model has several projections, so its labels are {used} several directions",
                hint='see model.projection; compress(..., sharing="one") has one',
            )
        return np.asarray(self.projection.matrices[sites[0]])

    if not TYPE_CHECKING:  # a type checker must report missing attributes

        def __getattr__(self, name: str) -> Any:
            """Called for a missing attribute: raises an error that says what to use instead."""
            raise refusal(name)

    # Running

    def logits(self, ids: Array, dtype: DTypeLike | None = None, hook: Hook | None = None) -> Array:
        """Logits for ids that start with BOS; inputs of different lengths are run one length at a time."""
        ids, dtype = self._ids(ids), self._dtype if dtype is None else dtype
        lengths = (ids != self.vocabulary.pad_id).sum(axis=1)
        if len(set(lengths.tolist())) <= 1:
            size = int(lengths[0]) if len(lengths) else ids.shape[1]
            found = super().logits(ids[:, :size], dtype, hook)
            return np.pad(found, [(0, 0), (0, ids.shape[1] - size), (0, 0)])
        if hook is not None:
            raise InputError(
                "a compressed model can only record activations of inputs of one length",
                hint="pass inputs of one length",
            )
        logits = np.zeros((*ids.shape, self.parameters.W_U.shape[1]), dtype=dtype)
        for size in set(lengths.tolist()):
            rows = lengths == size
            logits[rows, :size] = super().logits(ids[rows, :size], dtype)
        return logits

    def _kernel(self, dtype: DTypeLike | None) -> None:
        """None: the kernel does not cut padding, as `logits` does."""

    def _intervention(self, changes: object, inputs: object, padded: object, *, single: bool) -> None:
        if changes:
            raise TracrError(
                "a compressed model's variables share dimensions and cannot be set",
                hint="set them in model.compiled, or see model.report() for interventions along feature directions",
            )

    @cached_property
    def network(self) -> Network:
        """The compiled model's sub-layers, with their original weights."""
        return network_of(self.compiled.parameters, self.options.causal)

    def report(self, inputs: Sequence[Sequence[Value]] | None = None) -> Report:
        """Measure the compressed model against the compiled one."""
        from tracr.compress.report import report

        return report(self, inputs)

    def save(self, folder: str | Path, *, overwrite: bool = False, certificate: bool = False) -> None:
        """Write the model as a folder of safetensors and JSON, completely or not at all; `tracr.load` reads it.

        With `certificate` it is refused: the checker has no rules for projected weights.
        """
        from tracr.compress.saving import save

        if flag("certificate", certificate, error=FormatError):
            raise CertificateError(
                f"a compressed model has no certificate to save: {UNCHECKED}",
                hint="save it without certificate=True; model.compiled can have a certificate",
            )
        save(self, folder, overwrite=overwrite)


def compressed_model(
    compiled: DesignedModel, network: Network, projection: Projection, training: Training
) -> CompressedModel:
    """Fold the projection into the weights."""
    return CompressedModel(compiled, projection, training, fold(compiled.parameters, network, projection))
