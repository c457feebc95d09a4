"""The compiled model: call it on tokens, look into its activations, ask what its directions mean."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracr import arguments
from tracr.adapters import adapter
from tracr.craft.numerics import OUTPUT_TOLERANCE
from tracr.errors import InputError, UnknownName
from tracr.extras import need
from tracr.ir.circuit import Circuit
from tracr.ir.compilation import Compilation
from tracr.ir.graph import Graph
from tracr.ir.layout import Layout
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.program import Aggregation, Program
from tracr.ir.saved_graph import SavedGraph
from tracr.ir.schedule import Schedule
from tracr.model.format_check import BUDGET, FormatCheck, check_format, require_format
from tracr.model.number_formats import format_of
from tracr.model.program_variables import Variables, variables_of
from tracr.model.residual import Residual, residual_of
from tracr.model.setting import Intervention
from tracr.model.variants.basis import Axes, Basis
from tracr.model.verification import Verification, verify
from tracr.runtime.forward import Hook, forward
from tracr.runtime.kernel.kernel import Kernel
from tracr.runtime.outputs import Output
from tracr.runtime.tensors import as_tensor, namespace_of, read_array, stream_of
from tracr.runtime.vocabulary import Vocabulary
from tracr.threads import blas_threads, in_threads
from tracr.values import Value, short_repr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tracr.compiler.optimal.bounds import Bounds
    from tracr.ground_truth.data import GroundTruth
    from tracr.model.variants.layer_norm import LayerNorm
    from tracr.model.variants.variant import Variant
    from tracr.viz.explorer import Explorer

__all__ = ["CompiledModel", "Run"]

Result = TypeVar("Result")
Decoded = Any  # a list of values; a dict of them with several outputs; a list of either for a batch
CHUNK = 250_000  # activations held at once: few enough to stay in a processor's cache
SMALL = 1_000_000_000  # multiplications below which BLAS runs on one thread


@dataclass(frozen=True, eq=False)
class Run(Mapping[str, NDArray[Any]]):
    """A forward pass: every activation under its TransformerLens name, batch axis first; `decoded` is the output."""

    tokens: list[list[Value]]
    activations: dict[str, NDArray[Any]]
    decoded: Decoded
    model: CompiledModel | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self.activations[name]
        except Exception:  # a name that is not there, or none that could be
            raise UnknownName(
                f"no activation {short_repr(name)}", hint=f"there are {', '.join(self.activations)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.activations)

    def __len__(self) -> int:
        return len(self.activations)

    def __repr__(self) -> str:
        inputs = "1 input" if len(self.tokens) == 1 else f"{len(self.tokens)} inputs"
        return f"Run({inputs}, {len(self.activations)} activations)"

    def _repr_html_(self) -> str:
        from tracr.viz.notebook import run_html  # only notebooks ask for it

        return run_html(self)

    @property
    def logits(self) -> NDArray[Any]:
        """The unembedded output, [batch, position, d_vocab_out], BOS position first."""
        return self.activations["logits"]


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A transformer that computes a RASP program, with the stages of its compilation.

    `source` is the text the program was written as, where that is known; `variant` says how the weights differ from
    what the program compiles to (`rotated`, `with_noise`, `with_layer_norm`). `certified` says that they are the
    compiler's own otherwise; labels and ground truth say what the compiler designed, whatever the weights are.
    """

    options: Options
    graph: Graph | SavedGraph
    program: Program
    circuit: Circuit
    schedule: Schedule
    layout: Layout
    parameters: Parameters
    source: str = field(default="", repr=False)
    variant: Variant | None = None
    certified: bool = True

    @classmethod
    def of(cls, compilation: Compilation, source: str = "") -> Self:
        """The model of a compilation; `source` is the text of its program."""
        steps = {field.name: getattr(compilation, field.name) for field in fields(Compilation)}
        return cls(**steps, source=source)

    @property
    def compilation(self) -> Compilation:
        """What each step of the compiler made."""
        return Compilation(*(getattr(self, one.name) for one in fields(Compilation)))

    _cast: dict[Any, Parameters] = field(default_factory=dict, init=False, repr=False)
    _formats: dict[str, FormatCheck] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        shortest, longest = self.program.lengths
        return Vocabulary(self.options.vocab, self.options.bos, self.options.pad, shortest, longest)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs and how the logits hold them."""
        found, start = [], 0
        for (name, number), (_, variable) in zip(self.program.outputs, self.circuit.outputs, strict=True):
            node = self.program.sops[number]
            own = self.certified and self.variant is None
            error = variable.noise.error if own else OUTPUT_TOLERANCE
            found.append(Output(name, node.encoding, node.domain, start, start + len(variable.values), error))
            start += len(variable.values)
        return tuple(found)

    @cached_property
    def residual(self) -> Residual:
        """The labelled dimensions of the residual stream, with writers and readers."""
        return residual_of(self.layout)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program: where the model keeps each, or why it does not; which of them can be set."""
        return variables_of(self)

    @cached_property
    def ground_truth(self) -> GroundTruth:
        """The mechanism as data: the model's parts, and which variable flows from which to which."""
        from tracr.ground_truth.wiring import ground_truth_of  # only who asks for it needs it

        return ground_truth_of(self)

    @cached_property
    def basis(self) -> Basis:
        """Where the labelled coordinates lie: on the axes of the residual stream, or along directions of a variant."""
        return self.variant.basis if self.variant else Axes(self.layout.width)

    @property
    def directions(self) -> NDArray[Any]:
        """The direction [d_model] along which each label of `residual` is written, a row each."""
        return self.basis.write

    @property
    def read_directions(self) -> NDArray[Any]:
        """What reads each label of `residual` off the residual stream, a column [d_model] each.

        `stream @ read_directions` are the coordinates. With layer norms columns include the anchor, so that
        `normalised(stream) @ read_directions` are the coordinates too; and `directions @ read_directions` is the
        identity.
        """
        return self.basis.read

    def coordinates(self, stream: Any) -> Any:
        """What a residual stream [..., d_model] holds under each label of `residual`.

        The stream may be a numpy array, a torch tensor or a JAX array, on any device; the result is of its kind.
        """
        width = self.basis.size if isinstance(self.basis, Axes) else len(self.basis.read)
        return self.basis.get(stream_of(stream, width), range(self.layout.width))

    @cached_property
    def plain(self) -> CompiledModel:
        """The model as its program compiles to it: of a variant, the one it was made from."""
        if self.variant is None and self.certified:
            return self
        from tracr.compiler.residual.assemble import assemble

        parameters = assemble(self.layout, self.options)
        return replace(self, parameters=parameters, variant=None, certified=True)

    @cached_property
    def labelled(self) -> CompiledModel:
        """The model with a dimension per label: of a variant, its weights along its directions, noise included."""
        if self.variant is None:
            return self
        from tracr.model.variants.variant import in_basis

        parameters = in_basis(self.parameters, self.basis.read, self.basis.write)
        return replace(self, parameters=parameters, variant=None)

    def rotated(self, seed: int = 0) -> CompiledModel:
        """The same model in a random orthogonal basis of the residual stream: labels are directions, not dimensions.

        The basis is proved to change no output; labels that it would disturb keep a dimension of their own.
        """
        from tracr.model.variants.rotation import rotated

        return rotated(self, arguments.whole("seed", seed))

    def with_noise(self, scale: float | None = None, seed: int = 0) -> CompiledModel:
        """The model with Gaussian noise on every weight.

        Without a `scale`, as much as leaves outputs and variables as they are, on up to 2,000 inputs.
        """
        from tracr.model.variants.noise import with_noise

        return with_noise(self, scale, arguments.whole("seed", seed))

    def with_layer_norm(self) -> CompiledModel:
        """The same model for an architecture with layer norms, which change nothing but have to be there."""
        from tracr.model.variants.layer_norm import with_layer_norm

        return with_layer_norm(self)

    @property
    def n_layers(self) -> int:
        """How many blocks."""
        return len(self.parameters.layers)

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return int(self.parameters.W_E.shape[1])

    @cached_property
    def n_parameters(self) -> int:
        """How many weights, biases included."""
        return sum(int(array.size) for _, array in self.parameters.named())

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        steps = "".join(f", {step}" for step in self.variant.steps) if self.variant else ""
        note = "" if self.certified else ", not certified"
        return (
            f"CompiledModel({names}: {layers}, {self.d_model} dimensions, "
            f"{self.n_parameters:,} parameters, level {self.options.level}{steps}{note})"
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        """How it is pickled: as its tabulated program and its weights, without the user's functions."""
        from tracr.saving.pickling import pickled  # only who pickles needs it

        return pickled(self)

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: object) -> Self:
        """The model with weights of its own; what never changes is shared."""
        return replace(self, parameters=self.parameters.map(np.copy))

    def _repr_html_(self) -> str:
        from tracr.viz.notebook import model_html  # only notebooks ask for it

        return model_html(self)

    def figure(self, kind: str = "stream", tokens: Sequence[Any] | Run | None = None, **options: Any) -> Figure:
        """A publication figure, which needs matplotlib (extra `viz`); `tracr.viz` says what `options` there are.

        Args:
            kind: "stream", the residual stream for an input; "attention", its attention beside the selectors; "graph",
                the program; "weights", in their labelled bases; "layers", which component is where; "slots", which
                variable is in which dimension, from sub-layer to sub-layer.
            tokens: the input, or a run of one, for "stream" and "attention".
            options: `ax`, an axes to draw in; `width`; and what the figure's own function takes.
        """
        from tracr.viz import figure  # only who draws needs it

        return figure(self, kind, tokens, **options)

    def show(self, stage: str = "assemble") -> str:
        """The text of a stage: trace, infer, lower (or translate), schedule, layout (or construct), assemble.

        "variables" says what became of each variable of the program.
        """
        stages: dict[str, Any] = {
            "trace": self.graph,
            "infer": self.program,
            "lower": self.circuit,
            "translate": self.circuit,
            "schedule": self.schedule,
            "layout": self.layout,
            "construct": self.layout,
            "variables": self.variables,
        }
        arguments.one_of("stage", stage, [*stages, "assemble"])
        if stage == "assemble":
            shapes = [f"{name} {tuple(array.shape)}" for name, array in self.parameters.named()]
            return "\n".join([repr(self), *shapes])
        return str(stages[stage].show())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What had to be assumed for the program to be compiled (`strict=True` refuses instead); mostly nothing.

        Where an aggregate is assumed to select one value, the interpreter raises on inputs for which it does not. Where
        numbers that differ by rounding only are taken for one, the interpreter may tell them apart.
        """
        one = [node for node in self.program.sops.values() if isinstance(node.op, Aggregation) and node.op.assumed]
        selects = (f"{node.source}: is assumed to select values that are all equal" for node in one)
        return (*selects, *(assumption.sentence for assumption in self.program.assumptions))

    def bounds(self) -> Bounds:
        """What the sizes of a model of these components cannot go below, beside what was reached; prints as a table."""
        from tracr.compiler.optimal.bounds import bounds_of  # only who asks for it needs it

        return bounds_of(self.plain.compilation)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder of safetensors and JSON, all or nothing; `tracr.load` reads it back.

        A folder that is there already is replaced if it is a saved model; anything else only with `overwrite`.
        """
        need("safetensors")  # only who saves needs it
        from tracr.saving.models import save

        save(self, folder, overwrite=overwrite)

    def save_pretrained(
        self,
        folder: str | Path,
        *,
        activation: str = "relu",
        numbers: Literal["auto", "classes", "column"] = "auto",
        output: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a GPT-2 checkpoint that `transformers` loads without this package; `tracr.load` reads it back.

        Args:
            folder: where to; as with `save`, replaced if it is ours.
            activation: "relu"; or "gelu" or "gelu_new", scaled until they are as good as ReLU.
            numbers: how a numerical output becomes logits: a word per value ("classes"), one logit that is the number
                ("column"), or classes where they can be told apart ("auto").
            output: which output, if there are several.
            overwrite: replace the folder whatever is in it.
        """
        from tracr.adapters.huggingface.checkpoint import save_pretrained

        save_pretrained(self, folder, activation=activation, numbers=numbers, output=output, overwrite=overwrite)

    def explore(self, tokens: Sequence[Value] | None = None, *, name: str = "", description: str = "") -> Explorer:
        """One HTML page that runs the model and its program and shows how the one computes the other.

        Save it (`.save("page.html")`), open it (`.open()`), or let a notebook show it. `tokens` is the input to begin
        with, `name` and `description` the heading.
        """
        from tracr.viz.explorer import explore  # only who asks for it needs it

        return explore(self, tokens, name=name, description=description)

    def to_jax(self, *, dtype: Any = np.float32, check: bool = True) -> tuple[Any, dict[str, Any]]:
        """`apply, params`: a pure function `apply(params, ids) -> logits`, and the weights as a dict of JAX arrays.

        It can be compiled, differentiated and mapped; ids come from `encode`, `values` reads the logits. A `dtype`, or
        a cast later, to a format in which the model is not proved to be right is refused, unless `check` is off.
        """
        return adapter("jax").to_jax(self, dtype, check)  # type: ignore[no-any-return]

    def to_torch(
        self, *, dtype: Any = "float32", device: Any = None, trainable: bool = True, check: bool = True
    ) -> Any:
        """A `torch.nn.Module`: `module(ids) -> logits`; also `module.encode(tokens)` and `module.decode(logits, ids)`.

        Parameters and activations have their TransformerLens names. `module.to_compiled()` is the way back. A `dtype`,
        or a cast later, to a format in which the model is not proved to be right is refused, unless `check` is off.
        """
        return adapter("torch").to_torch(self, dtype, device, trainable, check)

    def to_transformer_lens(
        self,
        *,
        bridge: bool = False,
        dtype: Any = "float32",
        device: Any = None,
        trainable: bool = True,
        check: bool = True,
    ) -> Any:
        """A TransformerLens model: `run_with_cache`, `run_with_hooks`, and its patching and attribution tools.

        It has every hook point that `ground_truth` names, and what users of `HookedTransformer` and `TransformerBridge`
        call. With `bridge` it is a native `TransformerBridge`, which has fewer hooks. `check` is that of `to_torch`.
        """
        return adapter("transformer_lens").to_transformer_lens(self, bridge, dtype, device, trainable, check)

    def to_onnx(self, path: str | Path, *, dtype: DTypeLike = np.float32) -> None:
        """Write an ONNX file: `ids` [batch, position] to `logits`, any batch and length; `tracr.load` reads it back.

        `dtype` is float32 or float64.
        """
        adapter("onnx").to_onnx(self, path, dtype)

    def with_weights(self, weights: Mapping[str, Any], *, attn_scale: float = 1.0) -> CompiledModel:
        """The same model, with the same labels, with weights that were edited or trained elsewhere.

        Args:
            weights: arrays of any framework under the names of `parameters.named()`: a state dict of `to_torch` or
                `to_transformer_lens`, a parameter tree of `to_jax`. Layers may be filled up with zeros.
            attn_scale: what the attention that the weights come from divides its scores by.

        Unless the weights are the compiler's own, the result is no longer `certified`.
        """
        from tracr.model.weights import with_weights

        return with_weights(self, weights, arguments.number("attn_scale", attn_scale, above=0))

    def verify(self, budget: int = 100_000, *, seed: int = 0, progress: bool = False) -> Verification:
        """Compare the model with its program on all inputs up to `budget`, else on a stratified sample of that size.

        The result is true if nothing differs, and prints as a report; a counterexample is shrunk to the shortest.
        """
        budget, seed = arguments.whole("budget", budget, 1), arguments.whole("seed", seed)
        return verify(self, budget, seed, arguments.flag("progress", progress))

    def cast(self, dtype: Any, *, check: bool = True) -> Parameters:
        """The weights in another float type, in which the model is proved to be right; in any one without `check`."""
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

    def check_format(self, dtype: Any, budget: int = BUDGET) -> FormatCheck:
        """For which inputs the model is proved to be right in a number format: "float16", "bfloat16", "tf32".

        Bounds on rounding errors are computed for all inputs up to `budget`, else for a sample of some 200. The result
        is true if they prove every answer, and prints as a report. `tracr.model.rounding` has the proof.
        """
        if arguments.whole("budget", budget, 1) != BUDGET:
            return check_format(self, dtype, budget)
        key = str(dtype)
        if key not in self._formats:
            self._formats[key] = check_format(self, dtype)
        return self._formats[key]

    def logits(self, ids: NDArray[Any], dtype: DTypeLike = np.float32, hook: Hook | None = None) -> NDArray[Any]:
        """Logits [batch, position, d_vocab_out] for ids [batch, position] that start with BOS."""
        ids, hook = self._ids(ids), arguments.function("hook", hook)
        if hook is None and (kernel := self._kernel(dtype)):
            return self._checked(*kernel.logits(ids))
        rows = self._rows(ids) if hook is None else max(1, len(ids))
        starts = range(0, len(ids), rows)
        small = len(starts) > 1 or ids.size * self.n_parameters < SMALL
        parameters = self.cast(dtype)
        with blas_threads(1 if small else None):
            parts = in_threads(lambda start: self.forward(parameters, ids[start : start + rows], hook), starts)
        return np.concatenate(parts) if parts else np.zeros((0, ids.shape[1], self.parameters.W_U.shape[1]))

    def codes(self, ids: NDArray[Any], dtype: DTypeLike = np.float32) -> list[NDArray[Any]]:
        """What each output is for ids [batch, position] that start with BOS, as codes into its domain."""
        ids = self._ids(ids)
        kernel = self._kernel(dtype)
        if kernel is None:
            logits = self.logits(ids, dtype)
            return [output.codes(logits) for output in self.outputs]
        return self._checked(*kernel.codes(ids))

    def _ids(self, ids: Any) -> NDArray[np.int64]:
        """Ids that the model can take, or an error."""
        return self.vocabulary.checked_ids(ids, len(self.parameters.W_pos))

    def _kernel(self, dtype: DTypeLike) -> Kernel | None:
        """The pass for who does not look at the activations, where there is one."""
        return self._float32_kernel if dtype is np.float32 or format_of(dtype) == "float32" else None

    @cached_property
    def _float32_kernel(self) -> Kernel | None:
        if self.norm:
            return None
        return Kernel.of(self.cast(np.float32), self.vocabulary, self.outputs, self.options.causal)

    @property
    def norm(self) -> LayerNorm | None:
        """What the readers of the residual stream see it through, if there is something."""
        return self.variant.layer_norm if self.variant else None

    def forward(self, parameters: Parameters, ids: NDArray[Any], hook: Hook | None = None) -> NDArray[Any]:
        """One pass with the given weights.

        Whether a product of matrices was valid is told by its result: kernels of BLAS work on lanes that belong to
        no entry, and on some processors what lies there raises the floating-point flag that numpy warns about.
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

    def normalised(self, stream: Any) -> Any:
        """What readers see of a residual stream, of any framework: itself, or what a layer norm makes of it."""
        return self.norm(as_tensor(stream), namespace_of(stream)) if self.norm else stream

    def _rows(self, ids: NDArray[Any]) -> int:
        """How many inputs to run at once."""
        length = ids.shape[1]
        per_row = length * max(self.d_model, self.parameters.W_U.shape[1])
        for layer in self.parameters.layers:
            heads, d_head = layer.b_Q.shape
            per_row = max(per_row, heads * length * length, 3 * heads * d_head * length, layer.b_in.size * length)
        return max(1, CHUNK // max(1, int(per_row)))

    def __call__(self, tokens: Sequence[Any], *, dtype: DTypeLike = np.float32) -> Decoded:
        """The program's output on an input (no BOS); a batch, a list of inputs, gives a list of outputs.

        A string is one input: its characters are the tokens. In a list, lists and arrays are inputs, and so are tuples
        unless the vocabulary has a tuple; everything else is a token, every string too. So `model(["ab", "c"])` is one
        input of two tokens, whatever the vocabulary; a batch of two is `model([list("ab"), list("c")])`.

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
        dtype: DTypeLike = np.float32,
        set: Mapping[str, Sequence[Any]] | None = None,
        hook: Hook | None = None,
    ) -> Run:
        """A forward pass with every activation.

        `set` maps variables (`model.variables`) to values, one per token: their codes are written where the variables
        live, right after whatever computes them, and the model runs on from there. The outputs are what the program
        computes with these expressions replaced; values for which the model does not compute that are refused.
        `hook(name, activation)` is called with every activation and may return another to take its place.

        With `set` or `hook` a number that is no value of the output is decoded as it is, not as the nearest value.
        """
        batch, single = self.vocabulary.inputs(tokens)
        ids, given, real = self.vocabulary.encode(batch)
        hook = arguments.function("hook", hook)
        activations: dict[str, NDArray[Any]] = {}
        shown = [self.vocabulary.decode(row) for row in ids.tolist()]
        inputs = [row[1 : length + 1] for row, length in zip(shown, real, strict=True)]
        change = None if set is None else Intervention(self, set, inputs, given, single=single)

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
            decoded = self._listed([output.unrounded(logits[:, 1:]) for output in self.outputs], given, real)
        return Run(shown, activations, decoded[0] if single else decoded, self)

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
                hint="pass what the model gives for the same ids, every position of it",
            )
        tokens = (np.cumsum(given[:, 1:] == self.vocabulary.pad_id, axis=1) == 0).sum(axis=1).tolist()
        return self.decode(found, tokens, tokens)

    def decode(self, logits: NDArray[Any], given: list[int], real: list[int]) -> list[Any]:
        """The output for each input, from its logits; `given` and `real` count its tokens with and without PAD."""
        return self._decode([output.codes(logits) for output in self.outputs], given, real)

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
