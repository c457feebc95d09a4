"""The loss of a compiled model: the distance of its logits from the program's outputs.

A language model is scored on the next token. A compiled model predicts its program's output at each position, and is
scored on that: by cross-entropy if the output is one-hot, by the squared error if it is a number (with the squared
error of the flag for `None`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from tracr.ir.domains import Finite
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["program_loss"]


def program_loss(model: DesignedModel, logits: torch.Tensor, ids: torch.Tensor, per_token: bool) -> torch.Tensor:
    """The mean over all tokens; `per_token` gives [batch, position - 1], 0 at PAD and where the program raises."""
    rows = [_tokens(model, row) for row in ids[:, 1:].tolist()]
    evaluation = evaluate_batch(model.program, rows)
    shape = (len(rows), ids.shape[1] - 1)
    counted = np.zeros(shape, dtype=bool)
    for number, row in enumerate(rows):
        counted[number, : len(row)] = not evaluation.errors[number]
    there = torch.tensor(counted, device=logits.device)
    losses = torch.zeros(shape, dtype=logits.dtype, device=logits.device)
    for output in model.outputs:
        wanted = _filled(evaluation.outputs()[output.name], counted)
        losses = losses + _loss(output, logits[:, 1:, output.start : output.stop], wanted)
    losses = torch.where(there, losses, 0)
    return losses if per_token else losses.sum() / there.sum()


def _tokens(model: DesignedModel, ids: list[int]) -> list[Value]:
    pad = model.vocabulary.pad_id
    return list(model.vocabulary.decode(ids[: ids.index(pad)] if pad in ids else ids))


def _filled(values: list[list[Value]], counted: NDArray[np.bool_]) -> NDArray[Any]:
    """The values that count, as an array of objects; `None` elsewhere."""
    found = np.full(counted.shape, None, dtype=object)
    for number, row in enumerate(values):
        for place, value in enumerate(row):
            found[number, place] = value if counted[number, place] else None
    return found


def _loss(output: Output, logits: torch.Tensor, wanted: NDArray[Any]) -> torch.Tensor:
    if output.encoding is Encoding.CATEGORICAL:
        assert isinstance(output.domain, Finite)
        index = output.domain.index
        codes = np.vectorize(lambda value: index.get(value, 0), otypes=[np.int64])(wanted)
        targets = torch.tensor(codes, device=logits.device)
        return functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    nothing = np.vectorize(lambda value: value is None, otypes=[bool])(wanted)
    numbers = np.where(nothing, 0.0, wanted).astype(np.float64)
    targets = torch.tensor(np.stack([numbers, nothing], axis=-1)[..., : logits.shape[-1]]).to(logits)
    return ((logits - targets) ** 2).sum(dim=-1)
