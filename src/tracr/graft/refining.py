"""Refines the maps of a graft by gradient; the compiled components and the host stay as they are.

Maps that read are trained to say the program's values (multinomial logistic regression, with a small penalty on the
weights): a map is kept if it is right more often than the closed form on the half of the tokens that it was not
trained on. The map that writes is then trained through the host, towards the graft's aim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from tracr.errors import TracrError
from tracr.graft.data import exchanged_inputs
from tracr.graft.fitting import Gram, ReadMap
from tracr.graft.replacing import FittedRead

if TYPE_CHECKING:
    from tracr.graft.grafted import Grafted
    from tracr.graft.modules import ReadModule
    from tracr.graft.observed import CodedValues
    from tracr.graft.replacing import Workbench

__all__ = ["refine_maps", "refine_writing"]

Writing = Callable[..., torch.Tensor]

PENALTY = 1e-5
BATCH = 256
RATE = 0.05  # of the size of what is written


def refine_maps(grafted: Grafted, steps: int, seed: int = 0) -> None:
    """Train the maps for so many steps, in place."""
    fitted = grafted.fitted
    if fitted is None:
        raise TracrError("a loaded graft has no data to refine it on", hint="call replace again")
    for module, observed in zip(grafted.compiled_parts, fitted.observed, strict=True):
        for read, values in zip(module.reads, observed.reads, strict=True):
            _refine_read(fitted.bench, read, values, steps)

    def write(stream: torch.Tensor, chosen: NDArray[np.intp]) -> torch.Tensor:
        ids = torch.as_tensor(fitted.bench.fit.ids[chosen], device=stream.device)
        return grafted.written_for(stream, ids)

    refine_writing(fitted.bench, [grafted.write.vectors, grafted.write.positions], write, steps, seed)


def _refine_read(bench: Workbench, read: ReadModule, values: CodedValues, steps: int) -> None:
    closed = bench.read(values)
    if values.count < 2 or closed.halved == 1.0:
        return
    classes = bench.fitted_rows(values).classes[bench.reads_at(bench.fit)]
    first, second = bench.halves
    trained = _logistic(first, classes[: len(first.rows)], values, steps)
    halved = float((trained.classes(second.rows + second.mean) == classes[len(first.rows) :]).mean())
    if halved <= closed.halved:
        return
    found = _logistic(bench.gram, classes, values, steps)
    read.weight.data = torch.as_tensor(found.weight).to(read.weight)
    read.bias.data = torch.as_tensor(found.bias).to(read.bias)
    bench.reads[bench.read_key(values)] = FittedRead(found, halved, bench.accuracy_of(found, values))


def _logistic(gram: Gram, classes: NDArray[np.int64], values: CodedValues, steps: int) -> ReadMap:
    spread = gram.rows.std(axis=0) + 1e-9
    rows, wanted = torch.as_tensor(gram.rows / spread), torch.as_tensor(classes)
    weight = torch.zeros((rows.shape[1], values.count), dtype=rows.dtype, requires_grad=True)
    bias = torch.zeros(values.count, dtype=rows.dtype, requires_grad=True)
    training = torch.optim.LBFGS([weight, bias], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        training.zero_grad()
        found = functional.cross_entropy(rows @ weight + bias, wanted) + PENALTY * (weight * weight).mean()
        found.backward()
        return found

    training.step(loss)
    found = weight.detach().numpy() / spread[:, None]
    return ReadMap(found, bias.detach().numpy() - gram.mean @ found, values.codes)


def _instead(written: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
    return written


def refine_writing(
    bench: Workbench, parameters: Sequence[nn.Parameter], write: Writing, steps: int, seed: int, rate: float = RATE
) -> None:
    """Train the parameters of a function that writes, through the host.

    `write` gets the normalised stream and the numbers of the inputs to fit with that it belongs to. With interchanges,
    every second step is one: the function writes for other inputs than those of the rest of the host, and the host
    should answer as it does with its own component. `rate` is the size of a step, in that of what is written.
    """
    rng = np.random.default_rng(seed)
    size = float(np.sqrt((bench.record.written**2).mean())) or 1.0
    training = torch.optim.Adam(list(parameters), lr=rate * size)
    for one in parameters:
        one.requires_grad_(True)
    try:
        for step in range(2 * steps if bench.interchanged else steps):
            chosen = np.sort(rng.choice(len(bench.fit), size=min(BATCH, len(bench.fit)), replace=False))
            data = bench.fit.rows(chosen, cut=False)
            ids = torch.as_tensor(data.ids, device=bench.host.device)
            if bench.interchanged and step % 2:
                source = chosen[exchanged_inputs(data, rng)]
                stream = torch.as_tensor(bench.record.stream[source], dtype=torch.float32, device=ids.device)
                logits = bench.host.run_with(bench.sites, ids, partial(_instead, write(stream, chosen=source)))
                own = torch.as_tensor(bench.logits(data, bench.record.written[source]), device=logits.device)
            else:
                logits = bench.host.run_with(bench.sites, ids, partial(write, chosen=chosen))
                own = torch.as_tensor(bench.record.logits[chosen], device=logits.device)
            losses = data.losses(logits, bench.reference(own))
            training.zero_grad()
            (losses.sum() / max(1, int(data.scored.sum()))).backward()
            training.step()
    finally:
        for one in parameters:
            one.requires_grad_(False)
            one.grad = None
