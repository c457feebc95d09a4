"""`Grafted`: a host in which compiled parts take the place of a component."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.arguments import whole
from tracr.errors import InputError, TracrError, UnknownName
from tracr.graft.host import BATCH, HostModel, HostSites
from tracr.graft.modules import PartModule, WriteModule
from tracr.graft.part import Part, part_list
from tracr.spelling import did_you_mean
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.graft.replacing import Fitted
    from tracr.graft.reporting import ReplacementReport

__all__ = ["Grafted"]

HOOKS = 'write {"graft.written": lambda written: 0 * written}, for example'
Hook = Callable[["torch.Tensor"], "torch.Tensor | None"]  # texts: the site is built without torch


class Grafted(nn.Module):
    """A host with a replaced component: `grafted(ids)` gives logits.

    The host is not copied and not changed: its hooks are set during a pass only. Its weights are no parameters of this
    module; the graft's own are the maps that read and write.

    Hook points: all of the host, under their names (a hook at the replaced component's output sees the part's), and
    "graft.read.VARIABLE" (scores of its values [batch, token, value]), "graft.out" (what the parts write, [batch,
    token, dimension]) and "graft.written" (what the host gets, [batch, position, d_model]).
    """

    def __init__(
        self,
        host: HostModel,
        sites: HostSites,
        parts: Sequence[PartModule],
        write: WriteModule,
        start: int,
        pad: int | None,
        fitted: Fitted | None = None,
        before: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.hosted, self.sites, self.start, self.pad, self.fitted = host, sites, start, pad, fitted
        self.before = before  # the ids before the first token, if they are the same in all data, such as BOS
        self.compiled_parts, self.write = nn.ModuleList(parts), write
        self.out, self.written = nn.Identity(), nn.Identity()
        self.to(host.device)

    @property
    def host(self) -> nn.Module:
        """The host, unchanged."""
        return self.hosted.module

    @property
    def at(self) -> str:
        """The replaced component."""
        return self.sites.place.name

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in its place."""
        return tuple(one.part for one in self.compiled_parts)

    @property
    def points(self) -> dict[str, nn.Module]:
        """All hook points by name."""
        own: dict[str, nn.Module] = {"graft.out": self.out, "graft.written": self.written}
        for module in self.compiled_parts:
            for variable, read in zip(module.part.inputs, module.reads, strict=True):
                own.setdefault(f"graft.read.{variable.label}", read.scores)
        return {**self.hosted.points, **own}

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, position, ...] for the host's ids [batch, position]."""
        return self._run(ids, {})

    def _run(self, ids: torch.Tensor, hooks: Mapping[str, Hook]) -> torch.Tensor:
        self._check(ids)
        return self.hosted.run_with(self.sites, ids, lambda stream: self.written_for(stream, ids), hooks)

    def _check(self, ids: torch.Tensor) -> None:
        """Refuse ids that are not laid out as in the data that the maps were fitted on."""
        if not isinstance(ids, torch.Tensor) or ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
            raise InputError("a grafted model takes ids [batch, position]", hint="use the host's encode")
        if ids.shape[1] <= self.start:
            raise InputError(
                f"the maps need at least {self.start + 1} positions, not {ids.shape[1]}",
                hint="a token follows the positions before the first token, such as BOS",
            )
        longest = self.start + len(self.write.positions)
        if ids.shape[1] > longest:
            raise InputError(
                f"the maps were fitted on up to {longest} positions, not {ids.shape[1]}",
                hint="fit with longer inputs in the data",
            )
        if self.before is not None and (ids[:, : self.start] != torch.tensor(self.before, device=ids.device)).any():
            raise InputError(
                f"inputs begin with the ids {list(self.before)} in the data that the maps were fitted on, not here",
                hint="put BOS before the tokens, as in the data, and padding after them",
            )
        padding = ids[:, self.start :] == self.pad if self.pad is not None else torch.zeros_like(ids[:, :1]).bool()
        if (padding[:, :-1] & ~padding[:, 1:]).any():
            raise InputError(f"a token follows padding, the id {self.pad}", hint="put padding after the tokens")

    def written_for(self, stream: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """What the parts write [batch, position, d_model], for the normalised stream."""
        tokens = stream[:, self.start :]
        real = torch.ones_like(ids[:, self.start :], dtype=torch.bool)
        if self.pad is not None:
            real = ids[:, self.start :] != self.pad
        out = self.out(torch.cat([part(tokens, real) for part in self.compiled_parts], dim=-1))
        written: torch.Tensor = self.written(self.write(out, real))
        return written

    def run_with_hooks(self, ids: torch.Tensor, hooks: Mapping[str, Hook]) -> torch.Tensor:
        """Logits, with a function for each of some hook points: it gets the activation, and may return another."""
        points = self.points
        if not isinstance(hooks, Mapping):
            raise InputError(f"hooks map names to functions, not {short_repr(hooks)}", hint=HOOKS)
        for name, hook in hooks.items():
            if not callable(hook):
                raise InputError(f"the hook at {name} is {short_repr(hook)}, which is no function", hint=HOOKS)
            if name not in points:
                raise UnknownName(
                    f"there is no hook point {name!r}", hint=did_you_mean(str(name), points, "see points")
                )
        own = {name: hook for name, hook in hooks.items() if name.startswith("graft.")}
        with ExitStack() as stack:
            for name, hook in own.items():
                handle = points[name].register_forward_hook(lambda module, given, found, hook=hook: hook(found))
                stack.callback(handle.remove)
            return self._run(ids, {name: hook for name, hook in hooks.items() if name not in own})

    def run_with_cache(self, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Logits, and the activation at every hook point that the pass reaches."""
        cache: dict[str, torch.Tensor] = {}

        def keep(name: str) -> Hook:
            return lambda tensor: cache.__setitem__(name, tensor.detach())

        leaves = {name for name in self.points if name.rpartition(".")[2].startswith("hook_") or name[:6] == "graft."}
        logits = self.run_with_hooks(ids, {name: keep(name) for name in leaves})
        return logits, cache

    def logits(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits for ids as a numpy array, in batches."""
        device = self.hosted.device
        if not len(ids):
            raise InputError("there are no ids", hint="give ids [input, position] of one input or more")
        rows = [torch.as_tensor(ids[start : start + BATCH], device=device) for start in range(0, len(ids), BATCH)]
        with torch.no_grad():
            return np.concatenate([self(one).float().cpu().numpy() for one in rows])

    def report(self, data: Any = None, *, others: Part | Sequence[Part] = (), seed: int = 0) -> ReplacementReport:
        """What the replacement recovers on inputs that the maps were not fitted on, beside its controls.

        Args:
            data: the inputs to test on, as for `replace`; by default those that `replace` kept for it.
            others: further parts as controls.
            seed: of the controls, the resampled inputs and the bootstrap.
        """
        from tracr.graft.reporting import report_of

        if self.fitted is None:
            raise TracrError("a loaded graft has no data for controls", hint="call replace again for a report")
        return report_of(self, self.fitted, data, part_list("others", others), whole("seed", seed))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the maps and the parts' compiled models into a folder; the host is not written."""
        from tracr.graft.saving import save

        save(self, folder, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Grafted({type(self.host).__name__} with {', '.join(map(repr, self.parts))} at {self.at})"
