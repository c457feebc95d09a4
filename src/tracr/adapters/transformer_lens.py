"""TransformerLens (4 or newer): a model on `HookedRootModule` with all hook points, and its native bridge.

The hooked model runs the shared forward pass. Its layers are all alike, as TransformerLens's tools expect: heads and
neurons that a layer lacks are zeros. Scores are not divided by √d_head. The bridge has arithmetic of its own, which
does divide them; its query weights are multiplied by √d_head first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformer_lens import ActivationCache, HookedRootModule, TransformerBridgeConfig
from transformer_lens.hook_points import HookPoint

from tracr.adapters.lens_weights import lens_config, lens_weights
from tracr.adapters.torch import TorchModel, as_dtype
from tracr.errors import InputError
from tracr.model.format_check import require_format
from tracr.model.parameters import Parameters
from tracr.model.uniform import uniform

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["LensModel", "config", "to_transformer_lens"]

FLAGS = {
    "attn_in": "use_attn_in",
    "qkv_input": "use_split_qkv_input",
    "result": "use_attn_result",
    "mlp_in": "use_hook_mlp_in",
}
INPUTS = ("hook_attn_in", "hook_q_input", "hook_k_input", "hook_v_input")  # of a block, or of its attention


def to_transformer_lens(
    model: CompiledModel, bridge: bool, dtype: Any, device: Any, trainable: bool, check: bool
) -> Any:
    """The model with all hook points, or as a bridge."""
    if not bridge:
        return LensModel(model, dtype, device, trainable, check)
    if check:
        require_format(model, as_dtype(dtype))
    return to_bridge(model, dtype, device, trainable)


def config(model: CompiledModel, dtype: Any, device: Any) -> TransformerBridgeConfig:
    """The sizes of the model, and where it is."""
    return TransformerBridgeConfig(**lens_config(model), dtype=as_dtype(dtype), device=str(device or "cpu"))


class LensModel(TorchModel, HookedRootModule):
    """A compiled model in TransformerLens: every hook point that the ground truth names, under those names."""

    point = HookPoint

    def __init__(self, model: CompiledModel, dtype: Any, device: Any, trainable: bool, check: bool) -> None:
        cfg = config(model, dtype, device)
        cfg.use_attn_scale = False
        for flag in FLAGS.values():
            setattr(cfg, flag, True)
        object.__setattr__(self, "cfg", cfg)
        super().__init__(model, uniform(model.parameters), dtype, device, trainable, check)
        self.setup()

    def _activations(self, parameters: Parameters) -> list[str]:
        """TransformerLens 2 and 3 have the inputs of heads at the block, 4 has them at its attention: both are here."""
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

    def forward(self, input: torch.Tensor | Sequence[Any], return_type: str | None = "logits") -> Any:
        """Logits [batch, position, d_vocab_out] for ids [batch, position] with BOS in front, or for tokens without."""
        if return_type not in ("logits", None):
            raise InputError(f"no return_type {return_type!r}", hint='"logits" or None')
        logits = super().forward(self.to_tokens(input))
        return logits if return_type else None

    def run_with_cache(self, *args: Any, return_cache_object: bool = True, **kwargs: Any) -> Any:
        """The logits and an `ActivationCache`."""
        logits, cache = super().run_with_cache(*args, **kwargs)
        if not return_cache_object:
            return logits, cache
        return logits, ActivationCache(cache, self, has_batch_dim=not kwargs.get("remove_batch_dim", False))

    def to_tokens(self, input: torch.Tensor | Sequence[Any]) -> torch.Tensor:
        """Ids of an input or a list of inputs, with BOS in front; ids stay as they are."""
        return input if isinstance(input, torch.Tensor) else self.encode(input)

    def to_str_tokens(self, input: torch.Tensor | Sequence[Any]) -> list[str]:
        """The tokens of one input as text, BOS included."""
        (ids,) = self.to_tokens(input).tolist()
        return list(map(str, self.compiled.vocabulary.decode(ids)))

    def to_single_token(self, value: str) -> int:
        """The number of the logit whose label is `value`: a value of the output, or "output:value"."""
        labels = [(label, label.removeprefix(f"{out.name}:")) for out in self.compiled.outputs for label in out.labels]
        found = [number for number, names in enumerate(labels) if value in names]
        if len(found) != 1:
            hint = f"they are {', '.join(label for label, _ in labels)}"
            raise InputError(f"{value!r} names {len(found)} logits", hint=hint)
        return found[0]

    def tokens_to_residual_directions(self, tokens: str | int | torch.Tensor) -> torch.Tensor:
        """What the unembedding reads for logits, given by number or label: [..., d_model]."""
        numbers = self.to_single_token(tokens) if isinstance(tokens, str) else tokens
        return self.W_U.T[numbers]

    def accumulated_bias(self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True) -> torch.Tensor:
        """The sum of the output biases of all blocks before `layer`, and of its attention if the MLP is asked for."""
        total = torch.zeros_like(self.W_U[:, 0])
        for number, block in enumerate(self.blocks):
            if number < layer or (number == layer and mlp_input):
                total = total + block.attn.b_O
            if number < layer and include_mlp_biases:
                total = total + block.mlp.b_out
        return total

    def to(self, *args: Any, **kwargs: Any) -> LensModel:
        """Move or cast the model, and say so in `cfg`."""
        super().to(*args, **kwargs)
        self.cfg.device, self.cfg.dtype = str(self.device), self.dtype
        return self

    def __getattr__(self, name: str) -> Any:
        """`W_E`, `W_pos`, `W_U`, and the weights of all layers stacked: `W_Q` [layer, head, d_model, d_head], ..."""
        if name[:2] not in ("W_", "b_"):
            return super().__getattr__(name)
        weights = self.weights()
        if hasattr(weights, name):
            return getattr(weights, name)
        if weights.layers and hasattr(weights.layers[0], name):
            return torch.stack([getattr(layer, name) for layer in weights.layers])
        return super().__getattr__(name)


def _of_attention(name: str) -> str:
    block, _, leaf = name.rpartition(".")
    return f"{block}.attn.{leaf}"


def to_bridge(model: CompiledModel, dtype: Any, device: Any, trainable: bool) -> Any:
    """A `TransformerBridge` with the model's weights."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    cfg = config(model, dtype, device)
    bridge = TransformerBridge.boot_native(cfg, device=cfg.device, dtype=cfg.dtype)
    weights = {name: torch.tensor(array, dtype=cfg.dtype) for name, array in lens_weights(model).items()}
    bridge.load_state_dict(convert_tl_checkpoint(weights, cfg))
    bridge.requires_grad_(trainable)
    return bridge.eval()
