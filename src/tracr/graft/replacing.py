"""`replace`: fits the maps that read and write, and puts parts in the place of a component."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.arguments import as_list, number, one_of, whole
from tracr.errors import InputError, TracrError
from tracr.graft.data import GraftData, data_of_program, exchanged_inputs, inputs_of
from tracr.graft.fitting import MANY, Gram, ReadMap, WriteMap, exemplars, fit_read, fit_write, gram_of
from tracr.graft.grafted import Grafted
from tracr.graft.host import BATCH, HostModel, HostRecord, HostSites, check_repeats, is_causal, recorded
from tracr.graft.modules import PartModule, WriteModule
from tracr.graft.observed import CodedValues, ObservedPart, coded, observe
from tracr.graft.part import Part, part_list
from tracr.graft.place import GraftPlace, place_of

__all__ = [
    "Fitted",
    "FittedRead",
    "Workbench",
    "as_data",
    "check_ahead",
    "check_kinds",
    "joint_output",
    "replace",
    "workbench",
]

Swaps = Mapping[int, Mapping[tuple[str, int], Any]]
FEW = 256  # inputs on which maps that write are compared
AHEAD = 1e-3  # a head that attends less to later tokens does not look at them
DRAWS = 6  # maps made of tokens that were drawn


@dataclass(frozen=True, eq=False)
class FittedRead:
    """A map that reads a variable; how often such a map is right on tokens to fit with (those left out), and to test
    with."""

    map: ReadMap
    halved: float
    tested: float


@dataclass(frozen=True, eq=False)
class Workbench:
    """A host at a place on inputs: everything that the maps of any part are fitted from.

    `fit` and `test` are the inputs to fit with and to test with; `record` and `test_record` the host on them. `aim` is
    "host" or "answers": what the maps that write are compared by. `tokens` is "all" or "scored": the tokens at which
    maps are fitted. `interchanged`: maps that write are also compared while the component computes on another input of
    the same length than the rest of the host.
    """

    host: HostModel
    sites: HostSites
    fit: GraftData
    test: GraftData
    record: HostRecord
    test_record: HostRecord
    aim: str
    seed: int
    tokens: str = "all"
    interchanged: bool = False

    def reads_at(self, data: GraftData) -> NDArray[np.bool_]:
        """The tokens at which reading counts. Heads read all of them as keys."""
        return self.writes_at(data) if self.sites.place.kind == "mlp" else data.real

    def writes_at(self, data: GraftData) -> NDArray[np.bool_]:
        """The tokens at which writing counts."""
        return data.scored if self.tokens == "scored" else data.real

    @cached_property
    def gram(self) -> Gram:
        """The Gram matrix of what the component reads at the tokens to fit with."""
        return gram_of(self.record.stream[:, self.fit.start :][self.reads_at(self.fit)])

    @cached_property
    def halves(self) -> tuple[Gram, Gram]:
        """The same for either half of the inputs to fit with."""
        middle = int(self.reads_at(self.fit)[: len(self.fit) // 2].sum())
        rows = self.gram.rows + self.gram.mean
        return gram_of(rows[:middle]), gram_of(rows[middle:])

    @cached_property
    def reads(self) -> dict[str, FittedRead]:
        """The maps that were fitted, by the key of their variable."""
        return {}

    @cached_property
    def few(self) -> GraftData:
        """Some of the inputs to fit with, for the choice of the map that writes."""
        return self.fit.rows(np.arange(len(self.fit))[:FEW])

    @property
    def inputs(self) -> tuple[tuple[Any, ...], ...]:
        """The inputs to fit with, then those to test with."""
        return (*self.fit.inputs, *self.test.inputs)

    def observed(self, parts: Sequence[Part]) -> list[ObservedPart]:
        """The values of the parts' variables on `inputs`."""
        return observe(parts, self.inputs)

    def fitted_rows(self, values: CodedValues) -> CodedValues:
        """The values on the inputs to fit with."""
        return CodedValues(values.classes[: len(self.fit), : self.fit.real.shape[1]], values.codes)

    def test_rows(self, values: CodedValues) -> CodedValues:
        """The values on the inputs to test with."""
        return CodedValues(values.classes[len(self.fit) :, : self.test.real.shape[1]], values.codes)

    def read(self, values: CodedValues) -> FittedRead:
        """The map that reads a variable, and how often it is right."""
        key = self.read_key(values)
        if key not in self.reads:
            classes = self.fitted_rows(values).classes[self.reads_at(self.fit)]
            found, halved = fit_read(self.gram, self.halves, classes, values.codes)
            self.reads[key] = FittedRead(found, halved, self.accuracy_of(found, values))
        return self.reads[key]

    @staticmethod
    def read_key(values: CodedValues) -> str:
        """What the maps of `reads` are stored under: equal for variables with the same values and codes."""
        return f"{values.key} {values.codes.tobytes().hex()}"

    @cached_property
    def causal(self) -> bool:
        """Whether no position of the host sees later tokens."""
        lengths = self.fit.real.sum(axis=1)
        common = int(np.bincount(lengths).argmax())
        return is_causal(self.host, self.fit.ids[lengths == common, : self.fit.start + common])

    def looks_ahead(self, observed: ObservedPart) -> bool:
        """Whether a part attends to later tokens, which the host does not see."""
        if observed.part.kind == "mlp" or observed.part.model.options.causal or not self.causal:
            return False
        few = len(self.few)
        real = torch.as_tensor(observed.output.classes[:few] >= 0)
        maps = [ReadMap(np.zeros((0, values.count)), np.zeros(values.count), values.codes) for values in observed.reads]
        values = [torch.as_tensor(np.maximum(values.classes[:few], 0)) for values in observed.reads]
        pattern = PartModule(observed.part, maps).pattern(values, real)[:, 1:, 1:]
        return bool((pattern * real[:, :, None]).triu(diagonal=1).max() > AHEAD)

    def accuracy_of(self, found: ReadMap, values: CodedValues) -> float:
        """How often a map reads the right value at the tokens to test with."""
        there = self.reads_at(self.test)
        rows = self.test_record.stream[:, self.test.start :][there]
        return float((found.classes(rows) == self.test_rows(values).classes[there]).mean())

    def write(self, output: CodedValues) -> WriteMap:
        """The map that writes an output: that with which the host loses least on `few` inputs."""
        mine = self.fitted_rows(output)
        maps = self.write_maps(output, DRAWS)
        shown = CodedValues(mine.classes[: len(self.few), : self.few.real.shape[1]], mine.codes)
        return maps[int(np.argmin([self.missed(one.written(shown.classes)) for one in maps]))]

    def write_maps(self, output: CodedValues, draws: int) -> list[WriteMap]:
        """The maps that write an output, to choose from: least squares, and what was written at some tokens.

        An output with many values has no tokens to draw from for each.
        """
        mine, written, start = self.fitted_rows(output), self.record.written, self.fit.start
        there = self.writes_at(self.fit)
        fitted = fit_write(mine, written, start, there)
        if output.count > MANY:
            return fitted
        seeds = (None, *range(draws))
        return [*fitted, *(exemplars(fitted[-1], mine, written, start, there, seed) for seed in seeds)]

    def missed(self, written: NDArray[Any]) -> float:
        """How far the host is from the aim on `few` inputs, if the component writes this; also if `interchanged`."""
        found, own = (torch.as_tensor(one) for one in (self.logits(self.few, written), self.record.logits))
        total = self.few.losses(found, self.reference(own[: len(self.few), : found.shape[1]])).sum()
        if self.interchanged:
            source, other = self.few_interchanged
            total += self.few.losses(torch.as_tensor(self.logits(self.few, written[source])), other).sum()
        return float(total)

    @cached_property
    def few_interchanged(self) -> tuple[NDArray[np.intp], torch.Tensor]:
        """For each of the `few` inputs another one, and the host's logits if its own component computes on that one."""
        source = exchanged_inputs(self.few, np.random.default_rng(self.seed))
        written = self.record.written[: len(self.few), : self.few.ids.shape[1]]
        return source, torch.as_tensor(self.logits(self.few, written[source]))

    def computed(
        self, parts: Iterable[PartModule], write: WriteModule, data: GraftData, streams: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The numbers [input, token] of the output values that parts compute on data, with the host's streams there."""
        device = self.host.device
        stream = torch.as_tensor(streams[:, data.start :], dtype=torch.float32, device=device)
        real = torch.as_tensor(data.real, device=device)
        with torch.no_grad():
            out = [part.to(device)(stream, real) for part in parts]
            found = write.to(device).values(torch.cat(out, dim=-1), real)
        return np.asarray(found.cpu().numpy())

    def divergence(self, logits: NDArray[Any]) -> float:
        """How far logits on the inputs to test with are from the host's own, at a scored token."""
        found, own = torch.as_tensor(logits), torch.as_tensor(self.test_record.logits)
        return float(self.test.losses(found, own).sum() / max(1, int(self.test.scored.sum())))

    def reference(self, logits: torch.Tensor) -> torch.Tensor | None:
        """The logits to come near to: the host's own, or `None` for the right answers."""
        return logits if self.aim == "host" else None

    def score(self, data: GraftData, written: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Whether the host is right at each token, and its losses, if the component writes this."""
        return data.score(self.logits(data, written))

    def logits(self, data: GraftData, written: NDArray[Any]) -> NDArray[np.float32]:
        """The host's logits if the component writes this [input, position, d_model]."""
        device, found = self.host.device, []
        for first in range(0, len(data), BATCH):
            ids = torch.as_tensor(data.ids[first : first + BATCH], device=device)
            mine = torch.as_tensor(written[first : first + BATCH], dtype=torch.float32, device=device)
            with torch.no_grad():
                logits = self.host.run_with(self.sites, ids, partial(_instead, mine))
            found.append(logits.float().cpu().numpy())
        return np.concatenate(found)

    def modules(self, observed: Sequence[ObservedPart], swaps: Swaps | None = None) -> list[PartModule]:
        """Parts with the maps that read their variables; `swaps` of each part make others of them."""
        reads = [[self.read(values).map for values in one.reads] for one in observed]
        return [
            PartModule(one.part, maps, (swaps or {}).get(number))
            for number, (one, maps) in enumerate(zip(observed, reads, strict=True))
        ]

    def graft(
        self, observed: Sequence[ObservedPart], output: CodedValues, *, refine: int = 0, swaps: Swaps | None = None
    ) -> Grafted:
        """The host with parts whose joint output has these values."""
        write = WriteModule(self.write(output))
        fitted = Fitted(self, tuple(observed), output, refine)
        parts = self.modules(observed, swaps)
        start, before = self.fit.start, self.fit.before
        grafted = Grafted(self.host, self.sites, parts, write, start, self.fit.pad, fitted, before)
        if refine:
            from tracr.graft.refining import refine_maps

            refine_maps(grafted, refine, self.seed)
        return grafted


@dataclass(frozen=True, eq=False)
class Fitted:
    """How a graft was fitted: the workbench, the values of its parts' variables, and the steps of refining."""

    bench: Workbench
    observed: tuple[ObservedPart, ...]
    output: CodedValues
    refine: int


def _instead(written: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
    return written


def as_data(host: nn.Module, data: Any) -> GraftData:
    """Data as it is; for a host that knows its program, a list of inputs, or by default the inputs of the program."""
    if isinstance(data, GraftData):
        return data
    model = getattr(host, "compiled", None)
    if model is None or not hasattr(model, "program"):
        raise InputError(
            "a host that was not made by tracr needs data with ids and answers",
            hint="pass graft.data_of_ids(inputs, ids, answers), or graft.data_of_program(model, inputs), as data",
        )
    return data_of_program(model, inputs_of(model) if data is None else as_list("data", data, error=InputError))


def workbench(
    host: nn.Module,
    at: str | Sequence[str],
    data: Any,
    *,
    share: float,
    seed: int,
    aim: str = "host",
    tokens: str = "all",
    interchanged: bool = False,
) -> Workbench:
    """Run a host on data, divided into inputs to fit with (a share of them) and inputs to test with.

    With `interchanged` and the host's own answers as the aim, maps that write are fitted to interchanges as well.
    """
    found = HostModel(host)
    sites = found.require(place_of(at))
    fit, test = as_data(host, data).split(_share(share), whole("seed", seed))
    aim, tokens = one_of("aim", aim, ("host", "answers")), one_of("tokens", tokens, ("all", "scored"))
    check_repeats(found, fit.ids)
    records = recorded(found, sites, fit.ids), recorded(found, sites, test.ids)
    for side, record in zip((fit, test), records, strict=True):
        side.check_answers(record.logits.shape[-1])
    return Workbench(found, sites, fit, test, *records, aim, seed, tokens, interchanged and aim == "host")


def _share(given: Any) -> float:
    """A share of the inputs, neither none nor all of them."""
    found = number("share", given, above=0)
    if found >= 1:
        raise InputError(
            f"share must be below 1, not {found:g}",
            hint="write share=0.5, for example: the other inputs are for testing",
        )
    return found


def joint_output(observed: Sequence[ObservedPart]) -> CodedValues:
    """The outputs of several parts as one."""
    if len(observed) == 1:
        return observed[0].output
    classes = [one.output.classes for one in observed]
    codes = [one.output.codes[np.maximum(one.output.classes, 0)] for one in observed]
    return coded(np.concatenate(codes, axis=-1), classes[0] >= 0)


def check_kinds(place: GraftPlace, parts: Sequence[Part]) -> None:
    """Refuse neurons in the place of heads, and heads in the place of neurons."""
    kind = {"attn": "head", "mlp": "mlp"}[place.kind]
    if not parts or any(one.kind != kind for one in parts):
        raise TracrError(
            f"{place.name} takes parts that are {kind}s", hint="heads take the place of heads, neurons that of an MLP"
        )


def check_ahead(bench: Workbench, observed: Sequence[ObservedPart]) -> None:
    """Refuse parts that look at later tokens in a host that does not see them: they may know what it has to guess."""
    for one in observed:
        if bench.looks_ahead(one):
            raise TracrError(
                f"the part {one.part.title} looks at later tokens, which the host does not see",
                hint="compile its program with causal=True; graft.library(..., causal=True) does",
            )


def replace(
    host: nn.Module,
    at: str | Sequence[str],
    part: Part | Sequence[Part],
    data: Any = None,
    *,
    share: float = 0.5,
    refine: int = 0,
    aim: str = "host",
    tokens: str = "all",
    seed: int = 0,
) -> Grafted:
    """Replace a component of a host by compiled parts.

    Linear maps read the variables of the parts off the stream that the component reads, the compiled components
    compute, and a linear map writes what they computed. The maps are fitted in closed form to the program's values and
    to what the component wrote (`fitting.py`). The host's weights stay as they are.

    Args:
        host: a torch module with TransformerLens's hook names.
        at: the component: "blocks.0.attn.1", a list of heads of a layer, "blocks.0.attn" (all heads), "blocks.0.mlp".
        part: a part, or several whose outputs are written together.
        data: `GraftData`; for a host made by tracr, a list of inputs is enough, and by default the inputs are those of
            `inputs_of`.
        share: the share of the inputs to fit with; the others are for `report`.
        refine: steps of gradient descent on the maps (`refining.py`) after the closed form.
        aim: what the host's answers should be near to, when maps that write are compared or refined: its own ("host"),
            or the right ones ("answers"), to repair a damaged component.
        tokens: where the maps are fitted: at "all" tokens, or at the "scored" ones, for a component whose output
            matters there only, as in the last layer. Heads read all tokens in any case.
        seed: of the division of the inputs, and of refining.
    """
    parts = part_list("part", part)
    if not parts:
        raise TracrError("there is no part to put in", hint="pass graft.Part(model, name), or a list of them")
    bench = workbench(host, at, data, share=share, seed=seed, aim=aim, tokens=tokens)
    check_kinds(bench.sites.place, parts)
    observed = bench.observed(parts)
    check_ahead(bench, observed)
    return bench.graft(observed, joint_output(observed), refine=whole("refine", refine))
