"""Controls: what else could have been put in the component's place, fitted in the same way.

- *another function*: the part's own component, but values of one of its variables are exchanged before it computes: it
  has the same variables and the same weights, and computes something else. Functions are left out whose output tells
  the part's output at 95 % of the tokens.
- *shuffled*: the part's output on another input of the same length.
- *linear*: an affine map of the stream (for heads, also of its mean over the positions that the head may see) with the
  rank of the part's writing; if the part is refined, once in closed form and once refined.
- *variable*: a variable that is read right at less than 95 % of the tokens, written as it is read. A part that reads
  the answer computes nothing, and does no better.
- *other parts* that the user gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.graft.data import exchanged_inputs
from tracr.graft.fitting import fit_linear, fit_write_means
from tracr.graft.modules import ReadModule, WriteModule
from tracr.graft.observed import CodedValues, coded
from tracr.graft.part import Part
from tracr.graft.recovery import HostScore, Recovery
from tracr.graft.refining import RATE, refine_writing
from tracr.graft.replacing import Fitted, Workbench, check_ahead, check_kinds

if TYPE_CHECKING:
    from tracr.graft.data import GraftData
    from tracr.graft.grafted import Grafted
    from tracr.graft.host import HostRecord

__all__ = [
    "Controlled",
    "ablations_of",
    "controls_of",
    "linear_logits",
    "rank_of",
    "read_right",
    "read_variables",
    "recovery_of",
    "told_by",
]

Array = NDArray[Any]
DRAWN, TRIES = 3, 40
SHORTER = (1, 10, 100)  # by how much the steps of refining a linear map are shorter than others
READABLE = 0.95  # a variable that is read right more often is in the stream
SAME = 1e-4  # codes that differ by less are one code
DIFFERENT = 0.05  # the share of tokens that another function must not tell


@dataclass(frozen=True, eq=False)
class Controlled:
    """A control: its kind, what it is, and the host's logits with it on the inputs to test with."""

    kind: str
    name: str
    logits: Array


def controls_of(grafted: Grafted, fitted: Fitted, others: Sequence[Part], seed: int) -> Iterator[Controlled]:
    """All controls of a graft, each fitted (and refined) like the graft."""
    rng = np.random.default_rng(seed)
    yield from _other_functions(fitted, rng)
    yield Controlled("shuffled", "the part's output on another input", _shuffled(fitted, rng))
    for steps in dict.fromkeys((0, fitted.refine)):
        name = f"an affine map of rank {rank_of(fitted)}{', refined' if steps else ''}"
        yield Controlled("linear", name, linear_logits(fitted, steps))
    yield from _variables_alone(grafted, fitted)
    bench = fitted.bench
    if others:
        check_kinds(bench.sites.place, others)
    observed = bench.observed(others)
    check_ahead(bench, observed)
    for one in observed:
        if one.output.key != fitted.output.key:
            other = bench.graft([one], one.output, refine=fitted.refine)
            yield Controlled("other part", one.part.title, other.logits(bench.test.ids))


def _other_functions(fitted: Fitted, rng: np.random.Generator) -> Iterator[Controlled]:
    bench, seen = fitted.bench, set[str]()
    choices = _exchangeable(fitted)
    for attempt in range(TRIES if choices else 0):
        number, role, place, label = choices[rng.integers(len(choices))]
        count = fitted.observed[number].reads[place].count
        other = rng.permutation(count) if attempt % 2 else rng.integers(count, size=count)
        swaps = {number: {(role, place): other}}
        output = _outputs(fitted, swaps)
        if output.key in seen or output.count < 2 or told_by(output, fitted.output) > 1 - DIFFERENT:
            continue
        seen.add(output.key)
        grafted = bench.graft(fitted.observed, output, refine=fitted.refine, swaps=swaps)
        side = {"Q": " of queries", "K": " of keys", "V": " that are moved"}.get(role, "")
        name = f"values of {label}{side} exchanged, {len(seen)}"
        yield Controlled("another function", name, grafted.logits(bench.test.ids))
        if len(seen) == DRAWN:
            return


def told_by(known: CodedValues, wanted: CodedValues) -> float:
    """The share of tokens at which the best guess of one variable from another is right."""
    real = wanted.classes >= 0
    pairs = known.classes[real] * wanted.count + wanted.classes[real]
    counts = np.bincount(pairs, minlength=known.count * wanted.count).reshape(known.count, wanted.count)
    return float(counts.max(axis=1).sum() / max(1, real.sum()))


def _exchangeable(fitted: Fitted) -> list[tuple[int, str, int, str]]:
    """The variables that can be exchanged: the number of the part, the role, the variable's place and label."""
    found = []
    for number, one in enumerate(fitted.observed):
        weights = one.part.weights
        for role in [name for name in weights.matrices if name not in ("O", "out")]:
            for place, variable in enumerate(one.part.inputs):
                rows = [weights.slots.index(slot) for slot in variable.slots]
                if one.reads[place].count > 1 and weights.matrices[role][rows].any():
                    found.append((number, role, place, variable.label))
    return found


def _outputs(fitted: Fitted, swaps: dict[int, dict[tuple[str, int], Any]]) -> CodedValues:
    """What parts with exchanged values write, given the program's values."""
    real = fitted.output.classes >= 0
    found = []
    for number, (module, one) in enumerate(
        zip(fitted.bench.modules(fitted.observed, swaps), fitted.observed, strict=True)
    ):
        if number not in swaps:
            found.append(one.output.codes[np.maximum(one.output.classes, 0)])
            continue
        values = [torch.as_tensor(np.maximum(values.classes, 0)) for values in one.reads]
        with torch.no_grad():
            found.append(module.compute(values, torch.as_tensor(real)).double().numpy())
    return coded(np.concatenate(found, axis=-1), real)


def _shuffled(fitted: Fitted, rng: np.random.Generator) -> Array:
    bench, output = fitted.bench, fitted.output
    mine = bench.fitted_rows(output).classes[exchanged_inputs(bench.fit, rng)]
    tested = bench.test_rows(output).classes[exchanged_inputs(bench.test, rng)]
    both = np.full(output.classes.shape, -1)
    both[: len(mine), : mine.shape[1]], both[len(mine) :, : tested.shape[1]] = mine, tested
    write = WriteModule(bench.write(CodedValues(both, output.codes))).to(bench.host.device)
    if fitted.refine:

        def written(stream: torch.Tensor, chosen: NDArray[np.intp]) -> torch.Tensor:
            return write.of_classes(torch.as_tensor(mine[chosen], device=stream.device))

        refine_writing(bench, [write.vectors, write.positions], written, fitted.refine, bench.seed)
    with torch.no_grad():
        found = write.of_classes(torch.as_tensor(tested, device=bench.host.device))
    return bench.logits(bench.test, found.cpu().numpy())


def _variables_alone(grafted: Grafted, fitted: Fitted) -> Iterator[Controlled]:
    """Variables that are not quite in the stream, written as they are read: nothing is computed."""
    for variable, read, values in read_variables(grafted, fitted):
        if values.count > 1 and read_right(fitted.bench, read, values) < READABLE:
            yield Controlled("variable", f"{variable} as it is read, nothing computed", _as_read(fitted, read, values))


def read_variables(grafted: Grafted, fitted: Fitted) -> Iterator[tuple[str, ReadModule, CodedValues]]:
    """The variables of a graft's parts: the label, the map that reads, and the program's values."""
    for module, one in zip(grafted.compiled_parts, fitted.observed, strict=True):
        for variable, read, values in zip(one.part.inputs, module.reads, one.reads, strict=True):
            yield variable.label, read, values


def read_right(bench: Workbench, read: ReadModule, values: CodedValues) -> float:
    """How often a variable is read right at tokens to test with. Codes are compared: numbers of values may differ."""
    there = bench.reads_at(bench.test)
    given = read.map.codes[read.map.classes(bench.test_record.stream[:, bench.test.start :][there])]
    wanted = values.codes[bench.test_rows(values).classes[there]]
    return float((np.abs(given - wanted).max(axis=-1) < SAME).mean())


def _as_read(fitted: Fitted, read: ReadModule, values: CodedValues) -> Array:
    bench, device = fitted.bench, fitted.bench.host.device
    write = WriteModule(bench.write(values)).to(device)

    def written(stream: torch.Tensor, real: NDArray[np.bool_]) -> torch.Tensor:
        found: torch.Tensor = write(
            read.codes[read(stream[:, bench.fit.start :])], torch.as_tensor(real, device=device)
        )
        return found

    if fitted.refine:

        def fit(stream: torch.Tensor, chosen: NDArray[np.intp]) -> torch.Tensor:
            return written(stream, bench.fit.real[chosen])

        refine_writing(bench, [write.vectors, write.positions], fit, fitted.refine, bench.seed)
    with torch.no_grad():
        stream = torch.as_tensor(bench.test_record.stream, dtype=torch.float32, device=device)
        found = written(stream, bench.test.real)
    return bench.logits(bench.test, found.cpu().numpy())


def rank_of(fitted: Fitted) -> int:
    """The rank of what the part can write, positions aside."""
    vectors = fitted.bench.write(fitted.output).vectors
    return int(np.linalg.matrix_rank(vectors - vectors.mean(axis=0)))


class LinearModule(nn.Module):
    """An affine map of the stream, and constants before and after the tokens."""

    def __init__(self, **arrays: Array) -> None:
        super().__init__()
        for name, array in arrays.items():
            tensor = torch.tensor(np.asarray(array), dtype=torch.float32)
            self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def forward(self, rows: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """What is written [batch, position, d_model], for rows at tokens."""
        tokens = torch.where(real[..., None], rows @ self.into @ self.out + self.bias, self.pad)
        return torch.cat([self.before.expand(len(rows), *self.before.shape), tokens], dim=1)


def linear_logits(fitted: Fitted, steps: int) -> Array:
    """The host's logits on the inputs to test with, with an affine map of the part's rank in the component's place.

    All numbers that the map reads move what it writes, so it needs shorter steps than a map with a vector for each
    value. Three sizes are tried, and the map with which the host loses least on inputs to fit with is taken.
    """
    bench = fitted.bench
    heads, causal = bench.sites.place.kind == "attn", fitted.observed[0].part.model.options.causal
    rows, tested = (
        torch.as_tensor(_rows(record, data, heads=heads, causal=causal), dtype=torch.float32, device=bench.host.device)
        for record, data in ((bench.record, bench.fit), (bench.test_record, bench.test))
    )
    modules = [_linear_module(fitted, rows)]
    if steps:
        modules = [_refined(fitted, _linear_module(fitted, rows), rows, steps, RATE / by) for by in SHORTER]
    few, found = bench.few, []
    for module in modules:
        with torch.no_grad():
            shown = module(rows[: len(few), : few.real.shape[1]], torch.as_tensor(few.real, device=rows.device))
            found.append((bench.missed(shown.cpu().numpy()), module))
    best = min(found, key=lambda one: one[0])[1]
    with torch.no_grad():
        written = best(tested, torch.as_tensor(bench.test.real, device=tested.device))
    return bench.logits(bench.test, written.cpu().numpy())


def _linear_module(fitted: Fitted, rows: torch.Tensor) -> LinearModule:
    bench = fitted.bench
    there, written = bench.writes_at(bench.fit), bench.record.written
    into, out, bias = fit_linear(
        rows.cpu().double().numpy()[there], written[:, bench.fit.start :][there], rank_of(fitted)
    )
    constants = fit_write_means(written, bench.fit.real, bench.fit.start)
    module = LinearModule(into=into, out=out, bias=bias, before=constants.before, pad=constants.pad)
    module.to(rows.device)
    return module


def _refined(fitted: Fitted, module: LinearModule, rows: torch.Tensor, steps: int, rate: float) -> LinearModule:
    real = torch.as_tensor(fitted.bench.fit.real, device=rows.device)

    def written(stream: torch.Tensor, chosen: NDArray[np.intp]) -> torch.Tensor:
        found: torch.Tensor = module(rows[chosen], real[chosen])
        return found

    refine_writing(fitted.bench, [module.out, module.bias], written, steps, fitted.bench.seed, rate)
    return module


def _rows(record: HostRecord, data: GraftData, *, heads: bool, causal: bool) -> Array:
    """The stream at tokens; for heads, beside its mean over the tokens that are seen."""
    tokens = record.stream[:, data.start :]
    if not heads:
        return tokens
    held = tokens * data.real[..., None]
    if causal:
        totals, counts = held.cumsum(axis=1), data.real.cumsum(axis=1)
    else:
        totals = np.broadcast_to(held.sum(axis=1, keepdims=True), held.shape)
        counts = np.broadcast_to(data.real.sum(axis=1, keepdims=True), data.real.shape)
    return np.concatenate([tokens, totals / np.maximum(counts, 1)[..., None]], axis=-1)


def recovery_of(bench: Workbench, seed: int) -> Recovery:
    """The host and its mean ablation on the inputs to test with, which anything in the component's place is beside."""
    mean = ablations_of(bench, np.random.default_rng(seed))["mean"]
    own, ablated = (HostScore(*bench.test.score(logits)) for logits in (bench.test_record.logits, mean))
    return Recovery(bench.test.scored, own, ablated, seed)


def ablations_of(bench: Workbench, rng: np.random.Generator) -> dict[str, Array]:
    """The host's logits on the inputs to test with, with the component zeroed, mean-ablated and resampled."""
    written, test = bench.test_record.written, bench.test
    means = fit_write_means(bench.record.written, bench.fit.real, bench.fit.start)
    mean = means.written(np.where(test.real, 0, -1))
    return {
        "zeroed": bench.logits(test, np.zeros_like(written)),
        "mean": bench.logits(test, mean),
        "resampled": bench.logits(test, written[exchanged_inputs(test, rng)]),
    }
