"""A twin: a trained transformer that computes a program by the compiled model's mechanism, as far as was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.adapters import adapter
from tracr.arguments import flag, text
from tracr.arguments import path as file_path
from tracr.extras import need
from tracr.ir.parameters import Parameters
from tracr.model.run import Run
from tracr.model.variable_values import VariableValues, values_of
from tracr.natural.admission import Admission
from tracr.natural.architecture import Architecture
from tracr.natural.exports import TrainedExports
from tracr.natural.refusals import refusal
from tracr.natural.truth import TwinTruth
from tracr.runtime.forward import Hook, forward

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.runtime.outputs import Output
    from tracr.runtime.vocabulary import Vocabulary

__all__ = ["TwinModel"]


@dataclass(frozen=True, eq=False)
class TwinModel(TrainedExports):
    """A standard pre-norm transformer, trained to answer like its teacher, a compiled model, under interventions.

    Call it on tokens like the teacher. `admission` has the measurements of every node and edge; `ground_truth` is the
    teacher's mechanism with those measurements. Variables have no known directions in a twin.
    """

    PACKAGE = "tracr.natural"

    teacher: CompiledModel
    architecture: Architecture
    parameters: Parameters = field(repr=False)
    admission: Admission
    seed: int
    steps: int

    @property
    def admitted(self) -> bool:
        """Whether accuracy and every node and edge were measured to be the teacher's."""
        return self.admission.admitted

    @property
    def ground_truth(self) -> TwinTruth:
        """The teacher's nodes and edges, each with its measurements."""
        return TwinTruth(self.teacher.ground_truth, self.admission)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs, which are the teacher's."""
        return self.teacher.outputs

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens and their ids, which are the teacher's."""
        return self.teacher.vocabulary

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return self.architecture.width

    @property
    def n_parameters(self) -> int:
        """The number of weights, biases included."""
        return sum(int(array.size) for _, array in self.parameters.named())

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.teacher.outputs)
        layers = f"{self.architecture.layers} layer{'s' if self.architecture.layers != 1 else ''}"
        verdict = "admitted" if self.admitted else "not admitted"
        return (
            f"TwinModel({names}: {layers}, width {self.architecture.width}, {self.n_parameters:,} parameters, "
            f"seed {self.seed}, {verdict})"
        )

    def __call__(self, tokens: Sequence[Any]) -> Any:
        """The twin's output on `tokens` (no BOS); a list of sequences gives a list of outputs, as with the teacher."""
        return self.run(tokens, keep=False).decoded

    def run(self, tokens: Sequence[Any], *, hook: Hook | None = None, keep: bool = True) -> Run:
        """A forward pass with every activation under its TransformerLens name.

        `hook(name, activation)` is called with every activation and may return a replacement.
        """
        batch, single = self.teacher.vocabulary.inputs(tokens)
        ids, given, real = self.teacher.vocabulary.encode(batch)
        activations: dict[str, NDArray[Any]] = {}

        def see(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
            changed = None if hook is None else hook(name, tensor)
            tensor = tensor if changed is None else changed
            if keep:
                activations[name] = tensor
            return tensor

        logits = self.logits(ids, see)
        decoded = self.teacher.decode(logits, given, real)
        shown = [self.teacher.vocabulary.decode(row) for row in ids.tolist()]
        inputs = [row[1 : length + 1] for row, length in zip(shown, real, strict=True)]
        variables = values_of(self.teacher, inputs, given, single=single)
        return Run(shown, activations, decoded[0] if single else decoded, variables, None)

    def interpret(self, tokens: Sequence[Any]) -> VariableValues:
        """The program's value of every variable, by label; the twin was trained to have its mechanism."""
        return self.teacher.interpret(tokens)

    def logits(self, ids: NDArray[Any], hook: Hook | None = None) -> NDArray[Any]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position] that start with BOS."""
        return np.asarray(
            forward(
                self.parameters,
                ids,
                np,
                causal=self.teacher.options.causal,
                hook=hook,
                norm=self.architecture.norm,
                activation=self.architecture.act(np),
            )
        )

    def encode(self, tokens: Sequence[Any]) -> NDArray[np.int64]:
        """Ids [batch, position] of an input or a list of inputs, with BOS before and PAD after the tokens."""
        return self.teacher.encode(tokens)

    def values(self, logits: Any, ids: Any) -> list[Any]:
        """The output for each input, from the logits that any framework computed for `ids`; PAD is left out."""
        return self.teacher.values(logits, ids)

    # Other frameworks

    def to_jax(self, *, dtype: Any = np.float32, check: bool = True) -> tuple[Any, dict[str, Any]]:
        """`apply, params`: a pure function `apply(params, ids) -> logits`, and the weights as a dict of JAX arrays.

        `check` is as in `to_torch`.
        """
        adapter("jax")  # its error says how to install JAX
        from tracr.natural.in_jax import to_jax

        return to_jax(self, dtype, flag("check", check))

    def to_onnx(self, path: str | Path) -> None:
        """Write an ONNX file in float32, from `ids` [batch, position] to `logits`, for any batch and length.

        The teacher and the measurements are not in it: use `save` for a twin to load again.
        """
        adapter("onnx")  # its error says how to install ONNX
        from tracr.natural.in_onnx import to_onnx

        to_onnx(self, file_path("path", path))

    def save_pretrained(self, folder: str | Path, *, output: str | None = None, overwrite: bool = False) -> None:
        """Write a GPT-2 checkpoint that `transformers` loads without this package; `tracr.load` reads the twin back.

        Args:
            folder: the folder to write; an existing one is replaced if it is such a checkpoint, with unchanged weights.
            output: the output to write, if there are several: GPT-2 has one head.
            overwrite: replace the folder, whatever its contents.
        """
        need("safetensors")
        from tracr.natural.pretrained import save_pretrained

        name = None if output is None else text("output", output)
        save_pretrained(self, file_path("folder", folder), output=name, overwrite=flag("overwrite", overwrite))

    if not TYPE_CHECKING:  # a type checker must report missing attributes

        def __getattr__(self, name: str) -> Any:
            """Called for a missing attribute: raises an error that says what to use instead."""
            raise refusal(name)
