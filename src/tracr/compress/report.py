"""Measures a compressed model: its outputs, and whether it still computes them by the program's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracr.compress.mechanism import Readout, Swap, readouts, swaps
from tracr.compress.observing import (
    REPORTED_INPUTS,
    compiled_logits,
    cosine_of,
    layer_losses_of,
    observe,
    output_loss_of,
    report_task,
    right_positions,
    token_positions,
)
from tracr.compress.task import all_are_few
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.compress.model import CompressedModel

__all__ = ["Report", "report"]


@dataclass(frozen=True)
class Report:
    """The measurements of a compressed model against the compiled one.

    `cosine` has, for every sub-layer, the mean cosine similarity of its writes before projection. `accuracy` is a share
    of positions, `exact_inputs` a share of inputs. `read_back` is the size at which each feature is read back;
    `dropped` are those below a tenth. `scope` says which inputs were measured: "all", "a sample of" or "the given".
    """

    dim: int
    method: str
    inputs: int
    accuracy: float
    exact_inputs: float
    output_loss: float
    compiled_output_loss: float
    layer_losses: dict[str, float]
    cosine: dict[str, float]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    sharing: tuple[tuple[str, str, float], ...]
    readouts: tuple[Readout, ...]
    swaps: tuple[Swap, ...]
    read_back: dict[str, float]
    scope: str

    @property
    def layer_loss(self) -> float:
        """The sum over sub-layers."""
        return sum(self.layer_losses.values())

    @property
    def mean_cosine(self) -> float:
        """The mean over sub-layers that write something."""
        return float(np.mean(list(self.cosine.values()))) if self.cosine else 1.0

    def __str__(self) -> str:
        from tracr.compress.model import KEPT

        lines = [
            f"{self.method}, {self.dim} dimensions, {self.scope} {self.inputs:,} inputs",
            f"accuracy {self.accuracy:.2%} of positions, {self.exact_inputs:.2%} of inputs completely right",
            f"output loss {self.output_loss:.3g} (compiled model: {self.compiled_output_loss:.3g}), "
            f"layer loss {self.layer_loss:.3g}",
            "cosine of the writes of sub-layers: "
            + ", ".join(f"{name} {value:.3f}" for name, value in self.cosine.items()),
            "read back with this part of their size: "
            + ", ".join(f"{name} {size:.2f}" for name, size in self.read_back.items()),
            f"dropped (below {KEPT}): {', '.join(self.dropped) or '-'}",
            "sharing dimensions (cosine): "
            + (", ".join(f"{a} ~ {b} {value:+.2f}" for a, b, value in self.sharing[:12]) or "-")
            + (f" and {len(self.sharing) - 12} more" if len(self.sharing) > 12 else ""),
            "variables, read linearly from the last residual stream that needs them, and swapped between inputs:",
        ]
        swaps = {swap.variable: swap for swap in self.swaps}
        last = {readout.variable: readout for readout in self.readouts}
        for name, readout in last.items():
            line = f"  {name}: read-out {readout.accuracy:.2%} right (R² {readout.r2:.3f}) at {readout.place}"
            if name in swaps:
                swap = swaps[name]
                line += f"; swapped, {swap.agreement:.2%} of outputs as the program says"
                if not np.isnan(swap.effective):
                    line += f" ({swap.effective:.2%} where it matters, slope {swap.slope:.2f})"
            lines.append(line)
        return "\n".join(lines)


def report(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None = None) -> Report:
    """Measure a compressed model on the inputs given, by default on every input or a sample."""
    task = report_task(model, inputs)
    outs, logits = observe(model, task, model.network)
    right = right_positions(model.compiled, task, logits)
    tokens = token_positions(task)
    losses = layer_losses_of(task, outs)
    names = [part.name for part in task.network.parts]
    return Report(
        model.d_model,
        model.training.method,
        len(task),
        float(right[tokens].mean()),
        float((right | ~tokens).all(axis=1).mean()),
        output_loss_of(task, logits),
        output_loss_of(task, compiled_logits(model.compiled, task)),
        dict(zip(names, losses, strict=True)),
        {name: cosine_of(task, out, target) for name, out, target in zip(names, outs, task.targets, strict=True)},
        tuple(model.kept),
        tuple(model.dropped),
        tuple(model.sharing),
        readouts(model, task),
        swaps(model, task),
        model.read_back,
        _scope(model, inputs, len(task)),
    )


def _scope(model: CompressedModel, inputs: Sequence[Sequence[Value]] | None, count: int) -> str:
    if inputs is not None:
        return "the given" if count == len(inputs) else "a sample of"
    return "all" if all_are_few(model.compiled) and count < REPORTED_INPUTS else "a sample of"
