"""A learned model: a transformer assembled from parts that were trained alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracr.arguments import flag
from tracr.errors import TracrError, Unavailable
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel
from tracr.model.derived import DerivedModel
from tracr.model.variants.basis import Axes, Basis, Directions
from tracr.model.variants.variant import in_basis
from tracr.model.verification import Verification
from tracr.natural.activations import in_numpy
from tracr.natural.exports import TrainedExports
from tracr.natural.formats import require_format
from tracr.natural.learned.directions import EXACT_READ, LabelDirections, label_errors
from tracr.natural.learned.truth import LearnedTruth
from tracr.runtime.forward import Hook, forward
from tracr.runtime.outputs import Output
from tracr.runtime.tensors import stream_of

__all__ = ["ACTIVATION", "LearnedModel", "LearnedPart"]

Array = NDArray[Any]
ACTIVATION = "gelu_new"
"""The neurons' function: GPT-2's GELU."""


@dataclass(frozen=True)
class LearnedPart:
    """A trained head or group of neurons, and its measurements.

    Each dimension has a margin: the noise that its readers were trained with, and the error that its writer may have.
    `error` and `noisy` were measured on the part alone, `code_error` and `margins` in the assembled model.
    """

    name: str
    variables: tuple[str, ...]
    error: float
    """The largest error on the compiled model's codes, in margins."""
    noisy: float
    """The largest error on codes with noise, in margins."""
    code_error: float
    """The largest error of a coordinate that it writes, at tokens and BOS."""
    margins: float
    """The same in margins: at most 1."""

    def __str__(self) -> str:
        return (
            f"{self.name} ({', '.join(self.variables)}): code error {self.code_error:.2g}, {self.margins:.2g} margins; "
            f"alone {self.error:.2g}, with noise {self.noisy:.2g}"
        )


@dataclass(frozen=True, eq=False)
class LearnedModel(TrainedExports, DerivedModel):
    """A transformer whose heads and MLPs were trained alone on the codes of a compiled model, with noise and GELU.

    Each part reads and writes the dimensions of the compiled part: the compiled model's nodes and edges hold by
    construction. Codes are the compiled model's up to `code_error`. Embedding and unembedding are the compiled model's.
    `weights` has one dimension per label; with `turned` the model runs in other directions, which overlap if it is
    `superposed`.
    """

    PACKAGE = "tracr.natural.learned"

    compiled: CompiledModel
    weights: Parameters = field(repr=False)
    parts: tuple[LearnedPart, ...] = field(repr=False)
    neurons: dict[str, tuple[int, int]] = field(repr=False)
    """For each group, its first neuron in its layer, and the one after its last."""
    verified: Verification
    noise: float
    seed: int
    turned: LabelDirections | None = field(default=None, repr=False)
    superposed: bool = False

    @cached_property
    def parameters(self) -> Parameters:
        """The weights that the model runs with, in float32."""
        if self.turned is None:
            return self.weights
        wide = self.weights.map(lambda array: array.astype(np.float64))
        return in_basis(wide, self.basis.write, self.basis.read).map(lambda array: array.astype(np.float32))

    @property
    def code_error(self) -> float:
        """The largest error of a coordinate at tokens and BOS, over all parts and the inputs that were measured."""
        return max((part.code_error for part in self.parts), default=0.0)

    @property
    def ground_truth(self) -> LearnedTruth:
        """The nodes and edges, which are the compiled model's."""
        return LearnedTruth(self.compiled.ground_truth, self.neurons, self)

    @property
    def activation(self) -> Callable[[Array], Array]:
        """The function of the neurons, GPT-2's GELU, for numpy arrays."""
        return in_numpy(ACTIVATION)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs and their logits."""
        return tuple(replace(output, error=self.code_error) for output in self.compiled.outputs)

    # Directions

    @property
    def labels(self) -> list[str]:
        """The label of each coordinate; they are the compiled model's dimensions."""
        return self.compiled.residual.labels

    @cached_property
    def basis(self) -> Basis:
        """The directions of the labels: the axes, random orthogonal ones, or ones that overlap."""
        if self.turned is None:
            return Axes(self.compiled.d_model)
        return Directions(self.turned.write, self.turned.read)

    @property
    def directions(self) -> Array:
        """The direction [d_model] of each label, a row each; they are orthonormal, unless the model is superposed."""
        return self.basis.write

    @property
    def read_directions(self) -> Array:
        """The vectors [d_model] that read the labels, a column each."""
        return self.basis.read

    def coordinates(self, stream: Any) -> Any:
        """The coordinate of each label in a residual stream [..., d_model] of numpy, torch or JAX.

        In a superposed model, those of `mixed` labels are not the codes.
        """
        return self.basis.get(stream_of(stream, self.d_model), range(self.compiled.d_model))

    @cached_property
    def mixed(self) -> list[str]:
        """The labels whose coordinates cannot be read one by one: superposition keeps what the parts tell apart."""
        if not self.superposed:
            return []
        assert self.turned is not None
        errors = label_errors(self.weights, self.turned)
        return [label for label, error in zip(self.labels, errors, strict=True) if error > EXACT_READ]

    # Running

    def forward(self, parameters: Parameters, ids: Array, hook: Hook | None = None) -> Array:
        """The logits of one pass with the given weights."""
        causal = self.options.causal
        return np.asarray(forward(parameters, ids, np, causal=causal, hook=hook, activation=self.activation))

    def cast(self, dtype: Any, *, check: bool = True) -> Parameters:
        """The weights in another float type; shorter ones than float32 are refused, unless `check` is off."""
        if flag("check", check):
            require_format(dtype, "the learned model")
        return super().cast(dtype, check=False)

    def check_format(self, dtype: Any, budget: int = 0, *, stored: bool = True) -> Any:
        """Refused: bounds on rounding are for compiled models."""
        raise Unavailable("rounding is not bounded for a learned model", hint="use learned.compiled.check_format")

    def _kernel(self, dtype: DTypeLike | None) -> None:
        """None: the kernel has no GELU."""

    def _intervention(self, changes: object, inputs: object, padded: object, *, single: bool) -> None:
        raise TracrError(
            "variables of a learned model cannot be set by name",
            hint="use hook= with learned.basis.put(stream, slots, values), or set= with learned.compiled",
        )

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        turned = "" if self.turned is None else ", superposed" if self.superposed else ", rotated"
        return (
            f"LearnedModel({names}: {layers}, {self.d_model} dimensions, {self.n_parameters:,} parameters{turned}, "
            f"seed {self.seed}, code error {self.code_error:.2g}; {self.verified})"
        )

    if not TYPE_CHECKING:  # a type checker must report missing attributes

        def __getattr__(self, name: str) -> Any:
            """Called for a missing attribute: raises an error that says what to use instead."""
            if name.startswith("_") or not (hasattr(CompiledModel, name) or name in CompiledModel.__dataclass_fields__):
                raise AttributeError(f"'LearnedModel' object has no attribute {name!r}")
            why = ": the checker has no rules for trained parts" if name.startswith("certif") else ""
            raise Unavailable(f"a learned model has no {name}{why}", hint=f"use learned.compiled.{name}")
