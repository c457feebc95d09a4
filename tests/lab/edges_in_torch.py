"""A transformer in PyTorch whose readers add up what they see, written without the package's forward pass.

For gradients at the readers' inputs, with given outputs of writers, and for passes with masks on edges. One input at a
time, in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from tracr.ir.parameters import Parameters
from tracr.natural.learned.model import LearnedModel
from tracr.natural.twin_model import TwinModel

Tensor = Any


class EdgesInTorch:
    """A compiled model, a variant with layer norms, or a twin."""

    def __init__(self, model: Any) -> None:
        twin = isinstance(model, TwinModel)
        self.weights: Parameters = model.parameters.map(lambda array: torch.tensor(array, dtype=torch.float64))
        self.causal = (model.teacher if twin else model).options.causal
        self.activation = torch.nn.functional.gelu if twin else torch.relu
        if isinstance(model, LearnedModel):
            self.activation = partial(torch.nn.functional.gelu, approximate="tanh")
        norm = None if twin else model.norm
        self.epsilon = 1e-5 if twin else getattr(norm, "epsilon", None)
        self.gain = 1.0 if twin or norm is None else norm.epsilon**0.5

    def run(
        self,
        ids: Any,
        given: Mapping[str, Tensor] | None = None,
        shares: Mapping[tuple[str, str], float] | None = None,
        instead: Mapping[str, Tensor] | None = None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """What each writer writes, what is added to each reader's input (0, for gradients), and the logits.

        Writers in `given` write what is given. An edge in `shares` carries this share of the writer's output in
        `instead`, and the rest of what was written.
        """
        w, given, shares = self.weights, given or {}, shares or {}
        written: dict[str, Tensor] = {}
        pushes: dict[str, Tensor] = {}
        biases = torch.zeros_like(w.W_E[0])

        def write(name: str, output: Tensor) -> None:
            written[name] = given.get(name, output)

        def seen(reader: str) -> Tensor:
            total = biases
            for writer, output in written.items():
                share = shares.get((writer, reader), 0.0)
                total = total + (1 - share) * output + (share * instead[writer] if instead else 0)
            pushes[reader] = torch.zeros_like(total, requires_grad=True)
            total = total + pushes[reader]
            if self.epsilon is None:
                return total
            total = total - total.mean(-1, keepdim=True)
            return self.gain * total / (total.square().mean(-1, keepdim=True) + self.epsilon).sqrt()

        write("embed", w.W_E[ids] + w.W_pos[: len(ids)])
        for number, layer in enumerate(w.layers):
            heads = {}
            for head in range(len(layer.W_Q)):
                name = f"blocks.{number}.attn.{head}"
                q = seen(f"{name}.q") @ layer.W_Q[head] + layer.b_Q[head]
                k = seen(f"{name}.k") @ layer.W_K[head] + layer.b_K[head]
                v = seen(f"{name}.v") @ layer.W_V[head] + layer.b_V[head]
                scores = q @ k.T
                if self.causal:
                    scores = scores.masked_fill(~torch.ones_like(scores).tril().bool(), -torch.inf)
                heads[name] = scores.softmax(-1) @ v @ layer.W_O[head]
            for name, output in heads.items():
                write(name, output)
            biases = biases + layer.b_O
            if layer.b_in.numel():
                name = f"blocks.{number}.mlp"
                write(name, self.activation(seen(name) @ layer.W_in + layer.b_in) @ layer.W_out)
            biases = biases + layer.b_out
        return written, pushes, seen("unembed") @ w.W_U

    def gradients(self, ids: Any, metric: Any, given: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """The gradient of the sum of metric times logits at the input of each reader."""
        _, pushes, logits = self.run(ids, given)
        weights = torch.tensor(metric, dtype=torch.float64)
        (logits[: weights.shape[0], : weights.shape[1]] * weights).sum().backward()
        return {reader: torch.zeros_like(push) if push.grad is None else push.grad for reader, push in pushes.items()}
