"""TransformerLens (4 or newer): a model on `HookedRootModule` with all hook points, and its native bridge.

The hooked model runs the shared forward pass. All its layers have the same size, as TransformerLens's tools expect:
missing heads and neurons are zeros. Scores are not divided by √d_head. The bridge has its own arithmetic, which does
divide them; its query weights are multiplied by √d_head first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformer_lens import ActivationCache, HookedRootModule, TransformerBridgeConfig
from transformer_lens.hook_points import HookPoint

from tracr.adapters.lens_circuits import LensCircuits
from tracr.adapters.lens_loss import program_loss
from tracr.adapters.lens_tokens import LensTokens
from tracr.adapters.lens_weights import lens_config, lens_weights
from tracr.adapters.torch import TorchModel, as_dtype
from tracr.errors import InputError
from tracr.ir.parameters import Parameters
from tracr.model.format_check import require_format
from tracr.runtime.uniform import uniform

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.variable_values import VariableValues

__all__ = ["LensModel", "config", "to_bridge", "to_transformer_lens"]

FLAGS = {
    "attn_in": "use_attn_in",
    "qkv_input": "use_split_qkv_input",
    "result": "use_attn_result",
    "mlp_in": "use_hook_mlp_in",
}
INPUTS = ("hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input")  # of a block, or of its attention


def to_transformer_lens(
    model: DesignedModel, bridge: bool, dtype: Any, device: Any, trainable: bool, check: bool
) -> Any:
    """The model with all hook points, or as a bridge."""
    if not bridge:
        cfg = config(lens_config(model), dtype, device)
        return LensModel(model, cfg, uniform(model.parameters), dtype, device, trainable, check)
    if check:
        require_format(model, as_dtype(dtype))
    return to_bridge(config(lens_config(model), dtype, device), lens_weights(model), trainable)


def config(sizes: Mapping[str, Any], dtype: Any, device: Any) -> TransformerBridgeConfig:
    """The sizes of a model (`lens_config`), and its device."""
    return TransformerBridgeConfig(**sizes, dtype=as_dtype(dtype), device=str(device or "cpu"))


class LogitsAndLoss(NamedTuple):
    """The result for `return_type="both"`."""

    logits: torch.Tensor
    loss: torch.Tensor


class LensCache(ActivationCache):
    """The activations of a pass, and the program's value of every variable on its inputs."""

    given: Any = None
    """The inputs: tokens, or ids; `None` if the pass began with a residual stream."""

    @property
    def variables(self) -> VariableValues:
        """The values of each variable by its label, one per token: `cache.variables["nth"]`."""
        if self.given is None:
            raise InputError("a pass that begins with a residual stream has no tokens", hint="pass tokens or ids")
        model: DesignedModel = self.model.compiled
        if not isinstance(self.given, torch.Tensor | np.ndarray):
            return model.interpret(self.given)
        ids = model.vocabulary.checked_ids(self.given, len(model.parameters.W_pos))
        return model.interpret([model.vocabulary.decode(row[1:]) for row in ids.tolist()])


class LensModel(LensTokens, LensCircuits, TorchModel, HookedRootModule):
    """A compiled model in TransformerLens: every hook point that the ground truth names, under those names."""

    point = HookPoint

    def __init__(
        self,
        model: Any,
        cfg: TransformerBridgeConfig,
        parameters: Parameters,
        dtype: Any,
        device: Any,
        trainable: bool,
        check: bool,
    ) -> None:
        cfg.use_attn_scale, cfg.default_prepend_bos = False, True
        for flag in FLAGS.values():
            setattr(cfg, flag, True)
        object.__setattr__(self, "cfg", cfg)
        super().__init__(model, parameters, dtype, device, trainable, check)
        for block in self.blocks:
            block.hook_out_is_single_residual_stream = True  # its logit lens needs this
        self.setup()

    def _activations(self, parameters: Parameters) -> list[str]:
        """The names of all activations. TransformerLens 2 and 3 have heads' inputs at the block, 4 at its attention."""
        names = super()._activations(parameters)
        return names + [_of_attention(name) for name in names if name.endswith(INPUTS)]

    def _see(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        tensor = super()._see(name, tensor)
        return super()._see(_of_attention(name), tensor) if name.endswith(INPUTS) else tensor

    @property
    def fine(self) -> Collection[str]:
        """The inputs of heads and MLPs and the results of heads, unless switched off with `set_use_...`."""
        return {point for point, flag in FLAGS.items() if getattr(self.cfg, flag)}

    def set_use_attn_in(self, use: bool) -> None:
        """Whether `hook_attn_in` is filled."""
        self.cfg.use_attn_in = use

    def set_use_split_qkv_input(self, use: bool) -> None:
        """Whether `hook_q_input`, `hook_k_input` and `hook_v_input` are filled."""
        self.cfg.use_split_qkv_input = use

    def set_use_attn_result(self, use: bool) -> None:
        """Whether `attn.hook_result` is filled."""
        self.cfg.use_attn_result = use

    def set_use_hook_mlp_in(self, use: bool) -> None:
        """Whether `hook_mlp_in` is filled."""
        self.cfg.use_hook_mlp_in = use

    def forward(
        self,
        input: torch.Tensor | Sequence[Any],
        return_type: Literal["logits", "loss", "both"] | None = "logits",
        *,
        loss_per_token: bool = False,
        prepend_bos: bool | None = None,
        start_at_layer: int | None = None,
        stop_at_layer: int | None = None,
    ) -> Any:
        """Logits [batch, position, d_vocab_out] for ids [batch, position] with BOS in front, or for tokens without.

        Args:
            input: tokens, ids, or with `start_at_layer` a residual stream [batch, position, d_model].
            return_type: "logits"; "loss", the loss of the program's outputs (`lens_loss.py`); "both"; or `None`.
            loss_per_token: the loss at each token instead of the mean.
            prepend_bos: BOS is required, so off is refused for tokens; ids are used unchanged.
            start_at_layer: begin with this block instead of the embedding.
            stop_at_layer: end before this block, and return the residual stream.
        """
        if return_type not in ("logits", "loss", "both", None):
            raise InputError(f"there is no return_type {return_type!r}", hint='use "logits", "loss", "both" or None')
        if prepend_bos is False and not isinstance(input, torch.Tensor):
            raise InputError("a compiled model needs BOS in front", hint="leave prepend_bos out")
        if start_at_layer is not None and return_type in ("loss", "both"):
            raise InputError("a residual stream does not say what the outputs should be", hint="pass tokens or ids")
        given: Any = input if start_at_layer is not None else self.to_tokens(input, prepend_bos=True)
        found = self.run_blocks(given, start_at_layer, stop_at_layer)
        if stop_at_layer is not None or return_type == "logits":
            return found
        if return_type is None:
            return None
        loss = program_loss(self.compiled, found, given, loss_per_token)
        return loss if return_type == "loss" else LogitsAndLoss(found, loss)

    def run_with_cache(self, *args: Any, return_cache_object: bool = True, **kwargs: Any) -> Any:
        """The result of `forward`, and an `ActivationCache`; `cache.variables` has the program's variables."""
        found, cache = super().run_with_cache(*args, **kwargs)
        if not return_cache_object:
            return found, cache
        made = LensCache(cache, self, has_batch_dim=not kwargs.get("remove_batch_dim", False))
        made.given = None if kwargs.get("start_at_layer") is not None else (*args, kwargs.get("input"))[0]
        return found, made

    def generate(
        self,
        input: torch.Tensor | Sequence[Any],
        max_new_tokens: int = 10,
        *,
        do_sample: bool = False,
        prepend_bos: bool | None = None,
        verbose: bool = False,
    ) -> Any:
        """The continued input: each output becomes the next token. For causal programs whose outputs are tokens.

        Ends at the longest input, or at a value that is not a token. Gives ids for ids, else tokens. `do_sample` is
        refused, because there is only one answer; `verbose` has no effect.
        """
        if do_sample or prepend_bos is False:
            raise InputError("a compiled model has one answer, and needs BOS", hint="leave out do_sample, prepend_bos")
        compiled = self.compiled
        vocabulary = compiled.vocabulary
        if not compiled.options.causal or len(compiled.outputs) > 1:
            raise InputError("only a causal model with one output can generate", hint="compile with causal=True")
        ids = self.to_tokens(input, prepend_bos=True)
        if len(ids) != 1:
            raise InputError(f"generate takes one input, not {len(ids)}", hint="call it once for each input")
        for _step in range(max_new_tokens):
            if ids.shape[1] > vocabulary.longest:
                break
            value = self.decode(self(ids).detach(), ids)[0][-1]
            if value not in vocabulary.tokens:
                break
            ids = torch.cat([ids, self.encode([value])[:, 1:]], dim=1)
        if isinstance(input, torch.Tensor):
            return ids
        tokens = list(vocabulary.decode(ids[0, 1:].tolist()))
        return "".join(map(str, tokens)) if isinstance(input, str) else tokens

    def enable_compatibility_mode(self, **_: Any) -> None:
        """Nothing to do: no layer norm has weights to fold, and the hooks have their usual names."""

    def _apply(self, fn: Any, recurse: bool = True) -> LensModel:
        """Move or cast the model, and update `cfg`."""
        super()._apply(fn, recurse)
        self.cfg.device, self.cfg.dtype = str(self.device), self.dtype
        return self


def _of_attention(name: str) -> str:
    block, _, leaf = name.rpartition(".")
    return f"{block}.attn.{leaf}"


def to_bridge(cfg: TransformerBridgeConfig, arrays: Mapping[str, NDArray[Any]], trainable: bool) -> Any:
    """A `TransformerBridge` with the weights of `lens_weights`."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    bridge = TransformerBridge.boot_native(cfg, device=cfg.device, dtype=cfg.dtype)
    weights = {name: torch.tensor(array, dtype=cfg.dtype) for name, array in arrays.items()}
    bridge.load_state_dict(convert_tl_checkpoint(weights, cfg))
    bridge.requires_grad_(trainable)
    return bridge.eval()
