"""A host: any torch module whose hook points have TransformerLens's names.

Such are `to_torch()` and `to_transformer_lens()` of compiled models, variants and twins, TransformerLens's own models,
and Hugging Face models through its bridge. Hooks are there during a pass only; a host is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.errors import InputError, TracrError
from tracr.graft.norm import HostNorm, norm_before
from tracr.graft.place import GraftPlace
from tracr.nearness import ANSWER, LAST_SUM, nearly_equal

__all__ = ["HostModel", "HostRecord", "HostSites", "check_repeats", "is_causal", "recorded", "without_heads"]

Hooks = Mapping[str, Callable[["torch.Tensor"], "torch.Tensor | None"]]  # texts: the site is built without torch
Write = Callable[[torch.Tensor], torch.Tensor]
BATCH = 512
COMPARED = 64  # inputs that tell whether a host sees later tokens
TWICE = 8  # inputs that a host in training mode must answer twice in the same way
NAMES = (
    "hooks have TransformerLens's names; for a Hugging Face model pass "
    "transformer_lens.model_bridge.TransformerBridge.boot_transformers(folder)"
)


class HostModel:
    """A module with its hook points by name."""

    def __init__(self, module: nn.Module) -> None:
        if not isinstance(module, nn.Module):
            raise TracrError(
                f"a host is a torch module with TransformerLens's hook names, not a {type(module).__name__}",
                hint="pass model.to_torch(), or a model of TransformerLens",
            )
        self.module = module
        self.points: dict[str, nn.Module] = {**dict(module.named_modules()), **getattr(module, "hook_dict", {})}

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(iter([*self.module.parameters(), *self.module.buffers()])).device

    @property
    def width(self) -> int | None:
        """The dimensions of the residual stream, if the host says them."""
        found = getattr(getattr(self.module, "cfg", None), "d_model", None)
        if found is None:
            found = next((one.W_O.shape[-1] for one in self.module.modules() if hasattr(one, "W_O")), None)
        return None if found is None else int(found)

    def require(self, place: GraftPlace) -> HostSites:
        """The hooks of a place, or an error if the host does not have it."""
        stream = place.stream if place.stream in self.points else place.stream.replace("_mid", "_pre")
        named = [stream, place.out, *([place.z] if place.heads else [])]
        missing = [name for name in named if name not in self.points]
        if missing:
            layers = {name.split(".")[1] for name in self.points if name.startswith("blocks.")}
            raise TracrError(
                f"the host has no hook {missing[0]}, which a part at {place.name} needs",
                hint=f"it has layers 0 to {len(layers) - 1}" if layers else NAMES,
            )
        count = self._head_count(place)
        if place.heads and max(place.heads) >= count:
            raise TracrError(f"layer {place.layer} of the host has {count} heads", hint="heads count from 0")
        return HostSites(place, stream, norm_before(self.module, self.points, place), count)

    def _head_count(self, place: GraftPlace) -> int:
        if not place.heads:
            return 0
        count = getattr(getattr(self.module, "cfg", None), "n_heads", None)
        return int(count if count is not None else self.points[f"blocks.{place.layer}.attn"].W_O.shape[0])

    def run(self, ids: torch.Tensor, hooks: Hooks, first: Hooks = MappingProxyType({})) -> torch.Tensor:
        """Logits for ids, with functions of activations that may replace them; those of `first` are called first."""

        def calling(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Any:
            return lambda module, given, found: change(found)

        handles = [self.points[name].register_forward_hook(calling(change)) for name, change in hooks.items()]
        for name, change in first.items():
            handles.append(self.points[name].register_forward_hook(calling(change), prepend=True))
        try:
            found = self.module(ids)
        except IndexError as error:
            shown = f"from {int(ids.min())} to {int(ids.max())} at {ids.shape[1]} positions" if ids.numel() else "none"
            raise InputError(
                f"the host has no place for these ids, {shown}: {error}",
                hint="ids are the host's own numbers of tokens",
            ) from error
        finally:
            for handle in handles:
                handle.remove()
        logits: torch.Tensor = getattr(found, "logits", found)
        return logits

    def run_with(self, sites: HostSites, ids: torch.Tensor, write: Write, hooks: Hooks | None = None) -> torch.Tensor:
        """Logits for ids, where a component writes a function of what it reads; `hooks` see the replaced output.

        `write` gets the residual stream as the component reads it, normalised, and gives [batch, position, d_model].
        """
        place = sites.place
        streams: list[torch.Tensor] = []

        def replace(out: torch.Tensor) -> torch.Tensor:
            written = write(sites.norm(streams.pop())).to(out.dtype)
            return out + written if place.heads else written

        first: dict[str, Any] = {place.out: replace}
        if place.heads:
            first[place.z] = lambda z: without_heads(z, sites)
        given = dict(hooks or {})
        own = given.get(sites.stream)

        def read(stream: torch.Tensor) -> torch.Tensor | None:
            changed = None if own is None else own(stream)
            streams.append(stream if changed is None else changed)
            return changed

        return self.run(ids, {**given, sites.stream: read}, first)


@dataclass(frozen=True)
class HostSites:
    """What a place needs of a host: the hook that it reads, the layer norm there, and the number of heads."""

    place: GraftPlace
    stream: str
    norm: HostNorm
    heads: int


@dataclass(frozen=True, eq=False)
class HostRecord:
    """A host on inputs: what a component reads (normalised), what it writes, and the logits; [input, position, ...]."""

    stream: NDArray[np.float64]
    written: NDArray[np.float64]
    logits: NDArray[np.float32]


def without_heads(z: torch.Tensor, sites: HostSites) -> torch.Tensor:
    """The outputs of heads [..., head, d_head] or [..., head x d_head], those of the place set to 0."""
    split = z if z.ndim == 4 else z.reshape(*z.shape[:-1], sites.heads, -1)
    kept = torch.ones(split.shape[-2], dtype=z.dtype, device=z.device)
    kept[list(sites.place.heads)] = 0
    return (split * kept[:, None]).reshape(z.shape)


def recorded(host: HostModel, sites: HostSites, ids: NDArray[np.int64]) -> HostRecord:
    """Run a host on ids.

    Heads write the difference that they make to the output of attention, which is linear in them.
    """
    parts = [_recorded(host, sites, ids[start : start + BATCH]) for start in range(0, len(ids), BATCH)]
    streams, written, logits = (np.concatenate(one) for one in zip(*parts, strict=True))
    if not (np.isfinite(streams).all() and np.isfinite(written).all()) or np.isnan(logits).any():
        raise InputError("the host computes numbers that are not finite", hint="check its weights and its format")
    return HostRecord(streams, written, logits)


def is_causal(host: HostModel, ids: NDArray[np.int64]) -> bool:
    """Whether no position of a host sees later ones.

    If the host does not say it: whether the last id of an input changes nothing before it, on some inputs.
    """
    options = getattr(getattr(host.module, "compiled", None), "options", None)  # of a model that tracr made
    direction = getattr(getattr(host.module, "cfg", None), "attention_dir", None)
    if options is not None or direction in ("causal", "bidirectional"):
        return direction == "causal" if options is None else bool(options.causal)
    some = ids[:COMPARED]
    other = np.concatenate([some[:, :-1], np.roll(some, 1, axis=0)[:, -1:]], axis=1)
    if (some == other).all() or ids.shape[1] < 2:
        return False
    with torch.no_grad():
        given = [torch.as_tensor(one, device=host.device) for one in (some, other)]
        before, after = (host.run(one, {})[:, :-1].double().cpu().numpy() for one in given)
    before, after = (np.where(np.isfinite(one), one, 0.0) for one in (before, after))
    return bool(nearly_equal(before, after, LAST_SUM, scale=max(1.0, np.abs(before).max())).all())


def check_repeats(host: HostModel, ids: NDArray[np.int64]) -> None:
    """Refuse a host in training mode that answers the same input differently, because it drops values at random."""
    if not host.module.training:
        return
    given = torch.as_tensor(ids[:TWICE], device=host.device)
    with torch.no_grad():
        one, other = (np.nan_to_num(host.run(given, {}).double().cpu().numpy()) for _ in range(2))
    if not nearly_equal(one, other, ANSWER).all():
        raise TracrError("the host is in training mode and drops values at random", hint="call host.eval() before")


def _recorded(host: HostModel, sites: HostSites, ids: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    given = torch.as_tensor(ids, device=host.device)
    place = sites.place
    seen: dict[str, torch.Tensor] = {}

    def keep(name: str) -> Callable[[torch.Tensor], None]:
        return lambda tensor: seen.__setitem__(name, tensor.detach())

    with torch.no_grad():
        logits = host.run(given, {sites.stream: keep("stream"), place.out: keep("out")})
        written = seen["out"]
        if place.heads:
            host.run(given, {place.z: lambda z: without_heads(z, sites), place.out: keep("rest")})
            written = written - seen["rest"]
    stream = sites.norm(seen["stream"].double())
    return stream.cpu().numpy(), written.double().cpu().numpy(), logits.float().cpu().numpy()
