"""PyTorch: a plain `nn.Module` around the shared forward pass.

Every weight and every activation has its TransformerLens name: `module.blocks[0].attn.W_Q` is a parameter,
`module.blocks[0].attn.hook_pattern` a submodule that the attention pattern passes through. PyTorch hooks and
nnsight can read and change it there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from tracr.errors import InputError
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.format_check import require_format
from tracr.model.number_formats import format_of
from tracr.model.run import Run
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from pathlib import Path

    from tracr.model.designed import DesignedModel
    from tracr.model.setting import Intervention

__all__ = ["TorchModel", "as_dtype", "to_torch", "used_format"]


def to_torch(model: DesignedModel, dtype: Any, device: Any, trainable: bool, check: bool) -> TorchModel:
    """The model as a module."""
    return TorchModel(model, model.parameters, dtype, device, trainable, check)


def as_dtype(dtype: Any) -> torch.dtype:
    """A torch dtype, from a torch dtype, a name or a numpy dtype."""
    return getattr(torch, format_of(dtype))


def _changed(change: Intervention, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The activation with what is to be set in it; the same tensor if there is nothing."""
    before = tensor.detach().cpu().numpy()
    after = change(name, before)
    return tensor if after is before else torch.as_tensor(after, dtype=tensor.dtype, device=tensor.device)


def used_format(dtype: torch.dtype, device: str) -> str:
    """The shortest format of matrix products: that of the weights, or one that torch is set to use.

    The latter is autocast's; for float32 also tf32 or bfloat16, if the older (`torch.set_float32_matmul_precision`)
    or newer settings (`torch.backends...fp32_precision`) allow it.
    """
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    if dtype is not torch.float32:
        return str(dtype).removeprefix("torch.")
    backend = torch.backends.cuda if device == "cuda" else torch.backends.mkldnn
    settings = {getattr(place, "fp32_precision", "none") for place in (backend.matmul, torch.backends)}
    with contextlib.suppress(RuntimeError):  # torch raises if only the newer settings were used
        settings.add(torch.get_float32_matmul_precision())
    if settings & {"medium", "bf16"}:
        return "bfloat16"
    return "tf32" if settings & {"high", "tf32"} else "float32"


@dataclass(frozen=True)
class Origin:
    """The model that a module was made from; copies of the module share it."""

    model: Any

    def __deepcopy__(self, memo: object) -> Origin:
        return self


class TorchModel(nn.Module):
    """A compiled model; `module(ids)` gives logits [batch, position, d_vocab_out] for ids that start with BOS."""

    point: Callable[[], nn.Module] = nn.Identity
    """A module that an activation passes through."""

    def __init__(
        self, model: Any, parameters: Parameters, dtype: Any, device: Any, trainable: bool, check: bool
    ) -> None:
        super().__init__()
        self._origin, self._check = Origin(model), check
        if check:
            self._require_format(as_dtype(dtype))
        self.blocks = nn.ModuleList(nn.Module() for _ in parameters.layers)
        for name, array in parameters.named():
            place, _, leaf = name.rpartition(".")
            weight = torch.tensor(array, dtype=as_dtype(dtype), device=device)
            self._part(place).register_parameter(leaf, nn.Parameter(weight, requires_grad=trainable))
        self._points: dict[str, nn.Module] = {}
        for name in self._activations(parameters):
            place, _, leaf = name.rpartition(".")
            self._points[name] = self.point()
            self._part(place).add_module(leaf, self._points[name])
        self.eval()

    def _part(self, name: str) -> nn.Module:
        """The submodule of that name; created if it does not exist."""
        module: nn.Module = self
        for step in filter(None, name.split(".")):
            if not hasattr(module, step):
                module.add_module(step, nn.Module())
            module = getattr(module, step)
        return module

    def _activations(self, parameters: Parameters) -> list[str]:
        """The names of all activations."""
        names: list[str] = []
        ids, norm = np.zeros((1, 1), dtype=np.int64), self._functions()["norm"]
        forward(parameters, ids, np, causal=False, hook=lambda name, _: names.append(name), fine=self.fine, norm=norm)
        return names

    def _functions(self) -> dict[str, Any]:
        """The mask, layer norm and activation function of the forward pass."""
        return {"causal": self.compiled.options.causal, "norm": self.compiled.norm, "activation": None}

    def _require_format(self, dtype: Any, *, stored: bool = True) -> None:
        """Refuse a number format in which the model may be wrong; `stored`: activations have it, too."""
        require_format(self.compiled, dtype, stored=stored)

    @property
    def compiled(self) -> DesignedModel:
        """The model that this module was made from, unchanged."""
        return self._origin.model  # type: ignore[no-any-return]

    @property
    def fine(self) -> Collection[str]:
        """The activations beyond the usual ones."""
        return ()

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.embed.W_E.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.embed.W_E.dtype

    def weights(self) -> Parameters:
        """The weights in the form that the forward pass takes."""
        layers = []
        for block in self.blocks:
            held = block.attn._parameters | block.mlp._parameters
            layers.append(LayerParameters(**{field.name: held[field.name] for field in fields(LayerParameters)}))
        return Parameters(self.embed.W_E, self.pos_embed.W_pos, tuple(layers), self.unembed.W_U)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, position, d_vocab_out] for ids [batch, position], BOS included."""
        return self.run_blocks(ids)

    def run_blocks(self, ids: torch.Tensor, start: int | None = None, stop: int | None = None) -> torch.Tensor:
        """A pass from block `start` (takes its residual stream, not ids), or up to `stop` (returns it, not logits)."""
        longest, width = self.pos_embed.W_pos.shape
        if start is None and (ids.ndim != 2 or ids.shape[1] > longest):
            raise InputError(f"ids have the shape {tuple(ids.shape)}, not [batch, up to {longest}]", hint="use encode")
        if start is not None and (ids.ndim != 3 or ids.shape[1] > longest or ids.shape[2] != width):
            wanted = f"[batch, up to {longest}, {width}]"
            raise InputError(
                f"a residual stream has the shape {wanted}, not {tuple(ids.shape)}",
                hint="pass an activation of this model",
            )
        if self._check:
            used = used_format(self.dtype, self.device.type)
            self._require_format(used, stored=used == format_of(self.dtype))
        return forward(
            self.weights(), ids, torch, hook=self._see, fine=self.fine, start=start, stop=stop, **self._functions()
        )

    def _see(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        return self._points[name](tensor)

    def encode(self, tokens: Sequence[Any]) -> torch.Tensor:
        """Ids [batch, position] of an input or a list of inputs, with BOS before and PAD after the tokens."""
        return torch.tensor(self.compiled.encode(tokens), device=self.device)

    def decode(self, logits: torch.Tensor, ids: torch.Tensor) -> list[Any]:
        """The program's output for each input, from the logits for `ids`."""
        return self.compiled.values(logits, ids)

    def run(self, tokens: Sequence[Any], *, set: Mapping[str, Sequence[Any]] | None = None) -> Run:
        """A forward pass with every activation, as tensors that can be differentiated, and the program's variables.

        Forward hooks on the module's activations take part in it. The output is decoded from the logits. `set` maps
        variables to values, as in the `run` of the compiled model; no gradient passes an activation in which a
        variable is set.
        """
        ids, model = self.encode(tokens), self.compiled
        single = model.vocabulary.inputs(tokens)[1]
        change = None if set is None else model.setting(tokens, set)
        seen: dict[str, Any] = {}

        def keep(name: str) -> Any:
            def see(module: Any, given: Any, found: torch.Tensor) -> torch.Tensor:
                seen[name] = found if change is None else _changed(change, name, found)
                return seen[name]

            return see

        handles = [point.register_forward_hook(keep(name)) for name, point in self._points.items()]
        try:
            logits = self.run_blocks(ids)
        finally:
            for handle in handles:
                handle.remove()
        shown = [model.vocabulary.decode(row) for row in ids.tolist()]
        decoded = self.decode(logits.detach(), ids) if change is None else self._decode_changed(logits, tokens, change)
        return Run(shown, seen, decoded[0] if single else decoded, model.interpret(tokens, set=set))

    def _decode_changed(self, logits: torch.Tensor, tokens: Sequence[Any], change: Intervention) -> list[Any]:
        """The output for each input of a pass in which variables were set; refused if it is not the program's."""
        found = logits.detach().double().cpu().numpy()
        change.check(found)
        _, given, real = self.compiled.vocabulary.encode(self.compiled.vocabulary.inputs(tokens)[0])
        return self.compiled.decode_unrounded(found, given, real)

    def to_compiled(self) -> DesignedModel:
        """The model with the present weights; `own_weights` is false if they were changed."""
        return self.compiled.with_weights(self.state_dict())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the present weights with all labels; `tracr.load` reads them back."""
        self.to_compiled().save(folder, overwrite=overwrite)
