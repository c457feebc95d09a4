"""Methods of models that other packages implement, and the table of the functions that they call.

Exports, figures, saving and ground truth are functions of a model, in modules that import `tracr.model`. A model also
has a method for each, which is easier to find. `METHODS` names the function that each method calls. The function's
module is imported when the method is called: `import tracr` loads none of them. `tests/test_layers.py` reads the table:
nothing else in `tracr.model` may name a module that imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from tracr.extras import need

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from tracr.certificate.certificate import Certificate
    from tracr.ground_truth.data import GroundTruth
    from tracr.model.designed import DesignedModel
    from tracr.model.run import Run
    from tracr.model.variants.variant_model import VariantModel
    from tracr.values import Value
    from tracr.viz.explorer import Explorer

__all__ = ["METHODS", "ModelMethods", "call"]

METHODS = {
    "rotated": "tracr.model.variants.rotation:rotated",
    "with_noise": "tracr.model.variants.noise:with_noise",
    "with_layer_norm": "tracr.model.variants.layer_norm:with_layer_norm",
    "with_weights": "tracr.model.weights:with_weights",
    "ground_truth": "tracr.ground_truth.wiring:ground_truth_of",
    "bounds": "tracr.compiler.optimal.bounds:bounds_of",
    "save": "tracr.certificate.saving:save",
    "certify": "tracr.certificate.certifying:certify",
    "certificate": "tracr.certificate.certifying:certificate_of",
    "__reduce__": "tracr.saving.pickling:pickled",
    "save_pretrained": "tracr.adapters.huggingface.checkpoint:save_pretrained",
    "to_jax": "tracr.adapters:to_jax",
    "to_torch": "tracr.adapters:to_torch",
    "to_transformer_lens": "tracr.adapters:to_transformer_lens",
    "to_onnx": "tracr.adapters:to_onnx",
    "figure": "tracr.viz:figure",
    "explore": "tracr.viz.explorer:explore",
    "_repr_html_": "tracr.viz.notebook:model_html",
    "Run._repr_html_": "tracr.viz.notebook:run_html",
    "Verification._repr_html_": "tracr.viz.notebook:verification_html",
}
"""From each method to the function it calls, whose first argument is the model (the run, the verification)."""


def call(method: str, /, *given: Any, **options: Any) -> Any:
    """Call the function of a method in the table."""
    module, _, function = METHODS[method].partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] != "tracr":
            need(error.name.partition(".")[0])  # its error says how to install the missing library
        raise
    return getattr(found, function)(*given, **options)


class ModelMethods:
    """Methods of a compiled model that other packages implement; each calls its function in `METHODS`."""

    def rotated(self, seed: int = 0) -> VariantModel:
        """The same model in a random orthogonal basis of the residual stream: labels are directions, not dimensions.

        With the compiler's own weights this is proved to change no output. A label for which there is no proof keeps
        its own dimension.
        """
        return call("rotated", self, seed)

    def with_noise(self, scale: float | None = None, seed: int = 0) -> VariantModel:
        """The model with Gaussian noise on every weight.

        Without a `scale`, the strongest noise that changes no output and no variable, checked on up to 2,000 inputs.
        """
        return call("with_noise", self, scale, seed)

    def with_layer_norm(self) -> VariantModel:
        """The same model for an architecture with layer norms, which do not change what it computes."""
        return call("with_layer_norm", self)

    def with_weights(self, weights: Mapping[str, Any], *, attn_scale: float = 1.0) -> DesignedModel:
        """The same model, with the same labels, and with weights that were edited or trained elsewhere.

        Args:
            weights: arrays of any framework under the names of `parameters.named()`: a state dict of `to_torch` or
                `to_transformer_lens`, a parameter tree of `to_jax`. Layers may be filled up with zeros.
            attn_scale: the number by which the attention of the weights' origin divides its scores.

        Unless these are the compiler's own weights, `own_weights` of the result is false.
        """
        return call("with_weights", self, weights, attn_scale)

    @cached_property
    def ground_truth(self) -> GroundTruth:
        """The mechanism as data: the model's components, and the variables that each passes to others."""
        return call("ground_truth", self)

    def certify(self, arithmetic: str = "float32", padded: bool = True) -> Certificate:
        """Prove that the weights compute the program on every input, with the independent checker `tracr_check`.

        Args:
            arithmetic: what the checker assumes of a backend: "float64", "float32", "float32-leak", "float32-fused",
                "float16" or "bfloat16" (docs/certificate.md).
            padded: prove it for inputs with any padding too.

        The result says what is proved and assumed, or why no proof was found. It also works for changed weights.
        """
        return call("certify", self, arithmetic, padded)

    @property
    def certificate(self) -> Certificate | None:
        """The verdict of the last `certify`, or the one recorded in the folder that the model was loaded from."""
        return call("certificate", self)

    @property
    def certified(self) -> bool:
        """Whether the last `certify` accepted these weights; a verdict that was only read from a folder is not enough.

        (`own_weights` says whether the weights are the compiler's.)
        """
        found = self.certificate
        return found is not None and found.accepted and not found.recorded

    def save(self, folder: str | Path, *, overwrite: bool = False, certificate: bool = False) -> None:
        """Write the model to a folder of safetensors and JSON, all or nothing; `tracr.load` reads it back.

        An existing folder is replaced if it is a saved model; any other folder is replaced only with `overwrite`. With
        `certificate`, the folder has the certificate too (made with `certify`, unless the model has an accepted one),
        and `tracr-check FOLDER` can check it; a model that the checker rejects is then not saved.
        """
        call("save", self, folder, overwrite=overwrite, certificate=certificate)

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
            folder: the folder to write; as with `save`, an existing one is replaced if it is a saved model.
            activation: "relu"; or "gelu" or "gelu_new", scaled: a neuron then differs from ReLU by at most about 1e-8.
            numbers: the logits of a numerical output: a word per value ("classes"), one logit that is the number
                ("column"), or classes if they can be distinguished ("auto").
            output: the output to write, if there are several.
            overwrite: replace the folder, whatever its contents.
        """
        options = {"activation": activation, "numbers": numbers, "output": output, "overwrite": overwrite}
        call("save_pretrained", self, folder, **options)

    def to_jax(self, *, dtype: Any = np.float32, check: bool = True) -> tuple[Any, dict[str, Any]]:
        """`apply, params`: a pure function `apply(params, ids) -> logits`, and the weights as a dict of JAX arrays.

        `apply` can be compiled, differentiated and mapped. `encode` gives the ids, and `values` reads the logits. A
        `dtype`, or a later cast, to a format in which the model is not proved to be right is refused, unless `check` is
        off.
        """
        return call("to_jax", self, dtype, check)

    def to_torch(
        self, *, dtype: Any = "float32", device: Any = None, trainable: bool = True, check: bool = True
    ) -> Any:
        """A `torch.nn.Module`: `module(ids) -> logits`; also `module.encode(tokens)` and `module.decode(logits, ids)`.

        Parameters and activations have their TransformerLens names. `module.to_compiled()` converts it back. A `dtype`,
        or a later cast, to a format in which the model is not proved to be right is refused, unless `check` is off.
        """
        return call("to_torch", self, dtype, device, trainable, check)

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

        It has every hook point that `ground_truth` names, and the usual methods of `HookedTransformer` and
        `TransformerBridge`. With `bridge` it is a native `TransformerBridge`, which has fewer hooks. `check` is as in
        `to_torch`.
        """
        return call("to_transformer_lens", self, bridge, dtype, device, trainable, check)

    def to_onnx(self, path: str | Path, *, dtype: DTypeLike = np.float32) -> None:
        """Write an ONNX file, from `ids` [batch, position] to `logits`, for any batch and length.

        `tracr.load` reads it back. `dtype` is float32 or float64.
        """
        call("to_onnx", self, path, dtype)

    def figure(self, kind: str = "stream", tokens: Sequence[Any] | Run | None = None, **options: Any) -> Figure:
        """A publication figure, drawn with matplotlib (extra `viz`); `tracr.viz` documents the `options`.

        Args:
            kind: "stream", the residual stream for an input; "attention", the attention and the selectors for an input;
                "graph", the program; "weights", the weights in their labelled bases; "layers", the components of each
                layer; "slots", the variable in each dimension after each sub-layer.
            tokens: the input, or a run of one input, for "stream" and "attention".
            options: `ax`, the axes to draw in; `width`; and the options of the figure's own function.
        """
        return call("figure", self, kind, tokens, **options)

    def explore(
        self,
        tokens: Sequence[Value] | None = None,
        *,
        set: Mapping[str, Sequence[Any]] | None = None,
        name: str = "",
        description: str = "",
    ) -> Explorer:
        """One HTML page that runs the model and its program, and shows how the model computes the program.

        Save it (`.save("page.html")`), open it (`.open()`), or display it in a notebook. `tokens` is the first input;
        `set` patches variables at the beginning, as in `run`; `name` and `description` are the heading.
        `tracr.viz.explorer.gallery` puts several models into one page.
        """
        return call("explore", self, tokens, set=set, name=name, description=description)

    def _repr_html_(self) -> str:
        return call("_repr_html_", self)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle the model as its tabulated program and its weights, without the user's functions."""
        return call("__reduce__", self)
