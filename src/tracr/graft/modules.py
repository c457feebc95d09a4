"""The pieces of a graft as torch modules: reading, the compiled component, writing. They compute in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.graft.fitting import ReadMap, WriteMap
from tracr.graft.part import Part

__all__ = ["PartModule", "ReadModule", "WriteModule"]


def _tensor(array: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(array), dtype=torch.float32)


def _array(tensor: torch.Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())


class ReadModule(nn.Module):
    """Reads a variable off the stream: the value with the largest score, as its compiled code.

    `scores` is a hook point for the scores [batch, token, value].
    """

    def __init__(self, found: ReadMap) -> None:
        super().__init__()
        self.weight = nn.Parameter(_tensor(found.weight), requires_grad=False)
        self.bias = nn.Parameter(_tensor(found.bias), requires_grad=False)
        self.register_buffer("codes", _tensor(found.codes))
        self.scores = nn.Identity()

    @property
    def map(self) -> ReadMap:
        """The map as arrays."""
        return ReadMap(*(_array(one) for one in (self.weight, self.bias, self.codes)))

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        """The number of the value at each token."""
        scores: torch.Tensor = self.scores(stream.to(self.weight.dtype) @ self.weight + self.bias)
        return scores.argmax(dim=-1)


class PartModule(nn.Module):
    """A compiled component on the codes of the values that were read.

    `swaps` makes another component of it (`controls.py`): for a role and the place of a variable, the number of the
    value that is taken for each value.
    """

    def __init__(
        self, part: Part, reads: Sequence[ReadMap], swaps: Mapping[tuple[str, int], Any] | None = None
    ) -> None:
        super().__init__()
        self.part, self.swaps = part, dict(swaps or {})
        self.reads = nn.ModuleList(ReadModule(one) for one in reads)
        for name, matrix in part.weights.matrices.items():
            self.register_buffer(f"W_{name}", _tensor(matrix))
        for name, bias in part.weights.bias.items():
            self.register_buffer(f"b_{name}", _tensor(bias))
        for name, code in part.structure.items():
            self.register_buffer(f"at_{name}", _tensor(code))
        places = {slot: number for number, slot in enumerate(part.weights.slots)}
        self.places = [[places[slot] for slot in one.slots] for one in part.inputs]

    def forward(self, stream: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """What the component writes [batch, token, dimension], for the stream at tokens; `real` [batch, token]."""
        return self.compute([read(stream) for read in self.reads], real)

    def compute(self, values: Sequence[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
        """What it writes for the numbers of the values [batch, token] of the variables that it reads."""
        if self.part.kind == "mlp":
            rows = self._codes("in", values, real)
            return torch.relu(rows @ self.W_in + self.b_in) @ self.W_out
        return self._attend(values, real)

    def _codes(self, role: str, values: Sequence[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
        rows = torch.where(real[..., None], self.at_token, self.at_pad)
        for number, (value, read) in enumerate(zip(values, self.reads, strict=True)):
            codes = read.codes
            if (role, number) in self.swaps:
                codes = codes[torch.as_tensor(self.swaps[role, number], device=codes.device)]
            rows[..., self.places[number]] = torch.where(real[..., None], codes[value], 0.0)
        return rows

    def _attend(self, values: Sequence[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
        return ((self.pattern(values, real) @ self._projected("V", values, real)) @ self.W_O)[:, 1:]

    def _projected(self, role: str, values: Sequence[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
        bos = self.at_bos.expand(len(real), 1, -1)
        rows = torch.cat([bos, self._codes(role, values, real)], dim=1)
        found: torch.Tensor = rows @ getattr(self, f"W_{role}") + getattr(self, f"b_{role}")
        return found

    def pattern(self, values: Sequence[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
        """How much a head attends to each key [batch, query, key]; BOS comes before the tokens."""
        q, k = (self._projected(role, values, real) for role in "QK")
        scores = q @ k.transpose(1, 2)
        seen = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)[:, None, :]
        if self.part.model.options.causal:
            seen = seen & torch.ones_like(scores[0], dtype=torch.bool).tril()
        return scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)


class WriteModule(nn.Module):
    """Writes the vector of the nearest known output code, and that of the token's position."""

    def __init__(self, found: WriteMap) -> None:
        super().__init__()
        self.register_buffer("codes", _tensor(found.codes))
        for name in ("vectors", "positions", "before", "pad"):
            self.register_parameter(name, nn.Parameter(_tensor(getattr(found, name)), requires_grad=False))

    @property
    def map(self) -> WriteMap:
        """The map as arrays."""
        return WriteMap(*(_array(one) for one in (self.codes, self.vectors, self.positions, self.before, self.pad)))

    def forward(self, out: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """[batch, position, d_model], for outputs [batch, token, dimension]."""
        return self.of_classes(self.values(out, real))

    def values(self, out: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """The numbers [batch, token] of the nearest known output codes; -1 where no token is."""
        value = (2 * out @ self.codes.T - (self.codes * self.codes).sum(dim=-1)).argmax(dim=-1)
        return torch.where(real, value, -1)

    def of_classes(self, classes: torch.Tensor) -> torch.Tensor:
        """[batch, position, d_model], for the numbers of output codes [batch, token]; -1 where no token is."""
        tokens = self.vectors[classes.clamp(min=0)] + self.positions[: classes.shape[1]]
        tokens = torch.where((classes >= 0)[..., None], tokens, self.pad)
        return torch.cat([self.before.expand(len(classes), *self.before.shape), tokens], dim=1)
