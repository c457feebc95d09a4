"""Runs a compiled or compressed model: tokens to ids, ids to logits, logits to values.

Calls that need no activations run the C kernel, if it was built; all others run `runtime/forward.py`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracr import arguments
from tracr.caching import cached_property
from tracr.errors import InputError
from tracr.ir.graph import Graph
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.program import Program
from tracr.model.format_check import BUDGET, FormatCheck, check_format, require_format
from tracr.model.number_formats import format_of
from tracr.model.reading import read_variable
from tracr.model.run import Decoded, Run
from tracr.model.variable_values import VariableValues, values_of
from tracr.model.verification import Verification, verify
from tracr.rasp.expressions import RASPExpr
from tracr.runtime.forward import Hook, forward
from tracr.runtime.kernel.kernel import Kernel
from tracr.runtime.outputs import Output
from tracr.runtime.tensors import read_array
from tracr.runtime.vocabulary import Vocabulary
from tracr.threads import blas_threads, in_threads

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.setting import Intervention
    from tracr.model.variants.layer_norm import LayerNorm

__all__ = ["RunnableModel"]

Result = TypeVar("Result")
CHUNK = 250_000  # activations of one chunk: few enough to fit in a processor's cache
SMALL = 1_000_000_000  # multiplications below which BLAS runs on one thread


class RunnableModel(ABC):
    """A transformer for a program, with everything needed to run it: weights, tokens and outputs."""

    _dtype: ClassVar[type[np.floating[Any]]] = np.float32
    """The type of number to compute with, unless a call gives another."""

    @property
    @abstractmethod
    def options(self) -> Options:
        """The options of the compilation."""

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The traced program."""

    @property
    @abstractmethod
    def expressions(self) -> tuple[RASPExpr, ...]:
        """The expressions that the graph's nodes were traced from; a loaded model has none."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The tabulated program."""

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """The weights of the model as it runs."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs, each with the logits that encode it."""

    @property
    @abstractmethod
    def norm(self) -> LayerNorm | None:
        """The layer norm before every reader of the residual stream, or `None`."""

    @property
    @abstractmethod
    def own_weights(self) -> bool:
        """Whether the weights are the compiler's own, or those of a variant of them."""

    @abstractmethod
    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention | None:
        """The hook that sets variables, or an error if the model's variables cannot be set."""

    @property
    def made_for(self) -> str:
        """The number format that the compiler made these weights for."""
        return "float32"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        shortest, longest = self.program.lengths
        return Vocabulary(self.options.vocab, self.options.bos, self.options.pad, shortest, longest)

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return len(self.parameters.layers)

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return int(self.parameters.W_E.shape[1])

    @cached_property
    def n_parameters(self) -> int:
        """The number of weights and biases."""
        return sum(int(array.size) for _, array in self.parameters.named())

    def cast(self, dtype: Any, *, check: bool = True) -> Parameters:
        """The weights in another float type; refused if the model is not proved right in it, unless `check` is off."""
        if arguments.flag("check", check):
            require_format(self, dtype)
        name = format_of(dtype)
        if name not in self._cast:
            try:
                kind = np.dtype(name)
            except TypeError:
                hint = "use to_torch or to_jax for it, or float32"
                raise InputError(f"numpy has no {name}", hint=hint) from None
            with np.errstate(over="ignore"):
                self._cast[name] = self.parameters.map(lambda array: array.astype(kind, copy=False))
        return self._cast[name]

    @cached_property
    def _cast(self) -> dict[str, Parameters]:
        """The weights in other float types, kept after the first use."""
        return {}

    def forget_casts(self) -> None:
        """Drop the cast weights and the C kernel: the arrays that they were made from may have been changed since."""
        for name in ("_cast", "_float32_kernel"):
            self.__dict__.pop(name, None)

    @cached_property
    def _formats(self) -> dict[str, FormatCheck]:
        """The checks of number formats, kept after the first use."""
        return {}

    def check_format(self, dtype: Any, budget: int = BUDGET, *, stored: bool = True) -> FormatCheck:
        """Check whether the model is proved to be right in a number format: "float16", "bfloat16", "tf32".

        The check computes bounds on rounding errors for all inputs if they are at most `budget`, else for a sample of
        about 200. The result is true if the bounds prove every output, and prints as a report. `tracr.model.rounding`
        has the proof. It assumes that activations are `stored` in the format; with stored=False some may have more
        bits, as where a compiler joins operations (JAX).
        """
        stored = arguments.flag("stored", stored)
        if arguments.whole("budget", budget, 1) != BUDGET:
            return check_format(self, dtype, budget, stored=stored)
        key = f"{dtype} {stored}"
        if key not in self._formats:
            self._formats[key] = check_format(self, dtype, stored=stored)
        return self._formats[key]

    def logits(self, ids: NDArray[Any], dtype: DTypeLike | None = None, hook: Hook | None = None) -> NDArray[Any]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position] that start with BOS."""
        ids, hook = self._ids(ids), arguments.function("hook", hook)
        dtype = self._dtype if dtype is None else dtype
        if hook is None and (kernel := self._kernel(dtype)):
            return self._checked(*kernel.logits(ids))
        rows = self._rows(ids) if hook is None else max(1, len(ids))
        starts = range(0, len(ids), rows)
        small = len(starts) > 1 or ids.size * self.n_parameters < SMALL
        parameters = self.cast(dtype)
        with blas_threads(1 if small else None):
            parts = in_threads(lambda start: self.forward(parameters, ids[start : start + rows], hook), starts)
        return np.concatenate(parts) if parts else np.zeros((0, ids.shape[1], self.parameters.W_U.shape[1]))

    def codes(self, ids: NDArray[Any], dtype: DTypeLike | None = None) -> list[NDArray[Any]]:
        """The value of each output for ids [batch, position] that start with BOS, as codes into its domain."""
        ids = self._ids(ids)
        kernel = self._kernel(dtype)
        if kernel is None:
            logits = self.logits(ids, dtype)
            return [output.codes(logits) for output in self.outputs]
        return self._checked(*kernel.codes(ids))

    def _ids(self, ids: Any) -> NDArray[np.int64]:
        """The ids as an array, or an error if the model cannot take them."""
        return self.vocabulary.checked_ids(ids, len(self.parameters.W_pos))

    def _kernel(self, dtype: DTypeLike | None) -> Kernel | None:
        """The C kernel, if it was built, for calls that need no activations."""
        dtype = self._dtype if dtype is None else dtype
        return self._float32_kernel if dtype is np.float32 or format_of(dtype) == "float32" else None

    @cached_property
    def _float32_kernel(self) -> Kernel | None:
        if self.norm:
            return None
        return Kernel.of(self.parameters, self.vocabulary, self.outputs, self.options.causal)

    def forward(self, parameters: Parameters, ids: NDArray[Any], hook: Hook | None = None) -> NDArray[Any]:
        """The logits of one pass with the given weights.

        The pass ignores numpy's floating-point flag and looks for NaN in the logits. BLAS kernels also compute on
        unused lanes, and on some processors the contents of these lanes raise the flag.
        """
        with np.errstate(invalid="ignore"):
            logits = np.asarray(forward(parameters, ids, np, causal=self.options.causal, hook=hook, norm=self.norm))
        return self._checked(logits, not np.isnan(logits).any())

    @staticmethod
    def _checked(result: Result, numbers: bool) -> Result:
        """The result of a pass, with a warning if some logits were not numbers."""
        if not numbers:
            warnings.warn("some logits are not numbers (NaN)", RuntimeWarning, stacklevel=3)
        return result

    def _rows(self, ids: NDArray[Any]) -> int:
        """The number of inputs to run together."""
        length = ids.shape[1]
        per_row = length * max(self.d_model, self.parameters.W_U.shape[1])
        for layer in self.parameters.layers:
            heads, d_head = layer.b_Q.shape
            per_row = max(per_row, heads * length * length, 3 * heads * d_head * length, layer.b_in.size * length)
        return max(1, CHUNK // max(1, int(per_row)))

    def __call__(self, tokens: Sequence[Any], *, dtype: DTypeLike | None = None) -> Decoded:
        """The program's output on an input (no BOS); a batch, a list of inputs, gives a list of outputs.

        A string is one input: its characters are the tokens. In a list, lists and arrays are inputs. Tuples are inputs
        unless the vocabulary has a tuple. Everything else is a token, strings included: `model(["ab", "c"])` is one
        input of two tokens, for any vocabulary; a batch of two is `model([list("ab"), list("c")])`.

        Positions that hold PAD give PAD. With several outputs the result is a dict.
        """
        kernel = self._kernel(dtype)
        if kernel is not None and (found := kernel.answer(tokens)) is not None:
            return found
        batch, single = self.vocabulary.inputs(tokens)
        ids, given, real = self.vocabulary.encode(batch)
        decoded = self._decode(self.codes(ids, dtype), given, real)
        return decoded[0] if single else decoded

    def run(
        self,
        tokens: Sequence[Any],
        *,
        dtype: DTypeLike | None = None,
        set: Mapping[str, Sequence[Any]] | None = None,
        hook: Hook | None = None,
    ) -> Run:
        """A forward pass with every activation.

        `set` maps variables (`model.variables`) to values, one per token. Their codes are written to the variables'
        directions right after the component that computes them, and the pass continues from there. The outputs are
        those of the program with these expressions replaced; values for which the model would compute something else
        are refused. `hook(name, activation)` is called with every activation and may return a replacement for it.

        With `set` or `hook` a number that is not a value of the output is decoded unchanged, not to the nearest value.
        """
        batch, single = self.vocabulary.inputs(tokens)
        ids, given, real = self.vocabulary.encode(batch)
        hook = arguments.function("hook", hook)
        activations: dict[str, NDArray[Any]] = {}
        shown = [self.vocabulary.decode(row) for row in ids.tolist()]
        inputs = [row[1 : length + 1] for row, length in zip(shown, real, strict=True)]
        change = None if set is None else self._intervention(set, inputs, given, single=single)

        def keep(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
            for edit in (change, hook):
                changed = None if edit is None else edit(name, tensor)
                tensor = tensor if changed is None else changed
            activations[name] = tensor
            return tensor

        logits = self.logits(ids, dtype, keep)
        if change is not None and hook is None:
            change.check(logits)
        if change is None and hook is None:
            decoded = self.decode(logits, given, real)
        else:
            decoded = self.decode_unrounded(logits, given, real)
        replaced = None if change is None else change.replaced
        variables = values_of(self, inputs, given, single=single, replaced=replaced)
        return Run(shown, activations, decoded[0] if single else decoded, variables, self)

    def interpret(self, tokens: Sequence[Any], *, set: Mapping[str, Sequence[Any]] | None = None) -> VariableValues:
        """The program's value of every variable, by label, without running the weights; `run(...).variables`.

        `set` is as in `run`.
        """
        inputs, given, single = self._inputs(tokens)
        change = None if set is None else self._intervention(set, inputs, given, single=single)
        return values_of(self, inputs, given, single=single, replaced=None if change is None else change.replaced)

    def setting(self, tokens: Sequence[Any], set: Mapping[str, Sequence[Any]]) -> Intervention | None:
        """The hook that sets variables during a pass on these inputs, as `run(set=...)` does; for other frameworks."""
        inputs, given, single = self._inputs(tokens)
        return self._intervention(set, inputs, given, single=single)

    def _inputs(self, tokens: Sequence[Any]) -> tuple[list[list[Any]], list[int], bool]:
        """The inputs without PAD, their lengths with it, and whether there is one input rather than a batch."""
        batch, single = self.vocabulary.inputs(tokens)
        ids, given, real = self.vocabulary.encode(batch)
        decoded = [self.vocabulary.decode(row[1 : length + 1]) for row, length in zip(ids.tolist(), real, strict=True)]
        return decoded, given, single

    def read(self, stream: Any, variable: str, at: str) -> NDArray[Any]:
        """The values of a variable that a residual stream [..., d_model] of numpy, torch or JAX holds, as objects.

        Args:
            stream: an activation of this model, or a part of it; the result has its shape without the last axis.
            variable: the label of a variable (`model.variables`).
            at: the name of the activation: "blocks.1.hook_resid_pre", `hook_resid_mid`, `hook_resid_post`,
                "blocks.1.ln1.hook_normalized", ... A variable that the stream does not hold there is refused.

        A number that is near a value of the variable is that value; any other is itself. A code that is near none of
        the variable's codes reads as `NOTHING`; so does one of a superposed model that several values may have. At BOS
        and PAD the stream holds no value of the program.
        """
        return read_variable(self, stream, variable, at)

    @property
    def read_through(self) -> NDArray[Any] | None:
        """The size at which each label (row) is read as each (column), if labels share dimensions; else `None`."""
        return None

    @property
    @abstractmethod
    def design(self) -> DesignedModel:
        """The model with the labels that describe this one: itself, or its compiled model."""

    def verify(self, budget: int = 100_000, *, seed: int = 0, progress: bool = False) -> Verification:
        """Compare the model with its program on all inputs if they are at most `budget`, else on a stratified sample.

        The sample has about `budget` inputs. The result is true if nothing differs, and prints as a report; a
        counterexample is made as short as possible.
        """
        return verify(self, budget, seed, progress)

    def encode(self, tokens: Sequence[Any]) -> NDArray[np.int64]:
        """Ids [batch, position] of an input or a batch (see `__call__`), with BOS in front and PAD behind."""
        return self.vocabulary.encode(self.vocabulary.inputs(tokens)[0])[0]

    def values(self, logits: Any, ids: Any) -> list[Any]:
        """The output for each input, from the logits that any framework computed for `ids`; PAD is left out."""
        given, found = self._ids(ids), read_array("logits", logits, error=InputError)
        expected = (*given.shape, self.parameters.W_U.shape[1])
        if found.shape != expected or found.dtype.kind in "OSU":
            raise InputError(
                f"the logits of these ids are numbers of shape {expected}, not {found.dtype} of shape {found.shape}",
                hint="pass the model's logits for the same ids, at all positions",
            )
        tokens = (np.cumsum(given[:, 1:] == self.vocabulary.pad_id, axis=1) == 0).sum(axis=1).tolist()
        return self.decode(found, tokens, tokens)

    def decode(self, logits: NDArray[Any], given: list[int], real: list[int]) -> list[Any]:
        """The output for each input, from its logits; `given` and `real` count its tokens with and without PAD."""
        return self._decode([output.codes(logits) for output in self.outputs], given, real)

    def decode_unrounded(self, logits: NDArray[Any], given: list[int], real: list[int]) -> list[Any]:
        """The same after an intervention: a number that is not a value of its output stays as it is."""
        return self._listed([output.unrounded(logits[:, 1:]) for output in self.outputs], given, real)

    def _decode(self, codes: Sequence[NDArray[Any]], given: list[int], real: list[int]) -> list[Any]:
        """The output for each input, from its codes."""
        values = [output.decode(row[:, 1:]) for output, row in zip(self.outputs, codes, strict=True)]
        return self._listed(values, given, real)

    def _listed(self, values: Sequence[NDArray[Any]], given: list[int], real: list[int]) -> list[Any]:
        """The output for each input, from the values [batch, position] of each output; PAD gives PAD."""
        columns: list[list[Any]] = [rows.tolist() for rows in values]
        if any(number < values[0].shape[1] for number in real):
            pad = self.options.pad
            for column in columns:
                column[:] = [
                    row[:tokens] + [pad] * (length - tokens)
                    for row, length, tokens in zip(column, given, real, strict=True)
                ]
        if len(columns) == 1:
            return columns[0]
        names = [output.name for output in self.outputs]
        return [dict(zip(names, rows, strict=True)) for rows in zip(*columns, strict=True)]
