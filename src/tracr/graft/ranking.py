"""`explain`: which part of a library does what a component of a host does?

What a component does for a host shows in the host's answers on an input, and in its answers while the component
computes on another input of the same length than the rest (an interchange). A part that knows the *answer*, in the
place of a component that computes a step towards it, is right on every input, and wrong if interchanged. The
*agreement* of a part is the share of tokens at which the host answers as it does with its own component: the mean of
the share on the inputs as they are, and of that on `SWAPS` interchanges. (With `aim="answers"` the component is not
trusted: the agreement is then the share of right answers, without interchanges.)

1. The host runs once. Parts that read and write the same values on the data, up to renaming, are one candidate.
2. Every candidate is tried on a few inputs to fit with: its variables are read, and a few maps that write are tried.
   The candidates with the best agreement go on; of those that agree equally, those whose output has less entropy go
   first.
3. The candidates that go on are grafted as `replace` does it, except that maps that write are chosen (and refined) on
   interchanged inputs as well, and scored on inputs to test with.
4. If maps may be refined, those of the candidates that agree most are. If a part recovers 99 % and agrees at 99 % in
   closed form, only simpler parts that recover half or more are refined: a part with more values has more vectors to
   write, and may recover everything in closed form where the true part needs refining.

Of the parts whose agreement is the best up to `TIE` (up to `TRIAL`, if the interval of the difference has 0: a few
tokens decide nothing):

- those are put behind that do not compute what their programs say, because their variables cannot be read;
- the first of the others is the one whose output has the least entropy. A part that says more than the component needs
  (a count and the token) agrees as much as the true one; therefore the simplest is taken. A simpler part than the
  true one is put first if the rest of the host needs no more.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tracr.arguments import whole
from tracr.errors import InputError, TracrError
from tracr.graft.controls import recovery_of
from tracr.graft.data import GraftData, exchanged_inputs
from tracr.graft.fitting import fit_write, fit_write_means
from tracr.graft.grafted import Grafted
from tracr.graft.modules import WriteModule
from tracr.graft.observed import CodedValues, ObservedPart
from tracr.graft.part import Part, part_list
from tracr.graft.parts_library import distinct
from tracr.graft.recovery import HostScore, Recovery, ShareInterval, recovered_loss
from tracr.graft.replacing import Workbench, check_ahead, workbench

__all__ = ["ExplainedBy", "PartRanking", "explain"]

TRIAL = 0.02  # shares that differ by less count as equal in the first trial, and in the end if it may be chance
TIE = 0.01  # the same in the end: twins are admitted if 99 % of their answers to interventions are right
FAITHFUL = 0.05  # the same, of what parts compute
SWAPS = 4  # exchanges of inputs
SHOWN = 96  # inputs of the first trial
ENOUGH = 0.99  # if a part recovers this, and agrees so often, in closed form, only simpler parts are refined,
HALF = 0.5  # if they recover this
FEWER = 5  # candidates whose maps are refined

Candidate = tuple[ObservedPart, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class ExplainedBy:
    """A part in the component's place: what it recovers, how its variables were read, and the parts equal to it.

    - `agreement`: the share of tokens at which the host answers as it does with its own component, the mean of inputs
      as they are and of interchanged ones; `behind`, by how much that is less than the best.
    - `swapped`: the share on interchanged inputs alone: the component computes on another input than the rest.
    - `faithful`: the share of tokens at which the part, with the values that were read, writes what its program says.
    - `told`: the share of the variance of what the component writes, around the mean at each position, that the part's
      output tells.
    - `divergence`: that of the host's answers with the part from its own.
    - `bits`: the entropy of the output.
    - `output`: the program's values on all inputs; `computed`, those that the part computed on inputs to test with.
    """

    part: Part
    recovered: ShareInterval | None
    recovered_loss: float | None
    accuracy: float
    agreement: float
    behind: ShareInterval
    faithful: float
    swapped: float
    told: float
    divergence: float
    reads: dict[str, float]
    bits: float
    equal: tuple[str, ...]
    output: CodedValues
    computed: CodedValues

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        return {
            "part": self.part.title,
            "does": self.part.sentence,
            "recovered": None if self.recovered is None else self.recovered.to_dict(),
            "recovered_loss": self.recovered_loss,
            "accuracy": self.accuracy,
            "agreement": self.agreement,
            "behind": self.behind.to_dict(),
            "faithful": self.faithful,
            "swapped": self.swapped,
            "told": self.told,
            "divergence": self.divergence,
            "reads": dict(self.reads),
            "bits": self.bits,
            "equal": list(self.equal),
        }


@dataclass(frozen=True, eq=False, repr=False)
class PartRanking:
    """The parts of a library at a place of a host, best first; `tried` candidates had the first trial."""

    at: str
    host: float
    ablated: float
    tried: int
    rows: tuple[ExplainedBy, ...]

    @property
    def best(self) -> ExplainedBy:
        """The first."""
        return self.rows[0]

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and texts, for JSON."""
        rows = [one.to_dict() for one in self.rows]
        return {"at": self.at, "host": self.host, "ablated": self.ablated, "tried": self.tried, "rows": rows}

    def __str__(self) -> str:
        head = f"{self.at}: host {self.host:.4f}, mean-ablated {self.ablated:.4f}, {self.tried} parts tried"
        columns = f"     {'recovered':22}  {'agreement':9}  {'entropy':>10}  part"
        lines = [
            f"{number:3d}  {one.recovered or '-'!s:22}  {one.agreement:9.3f}  {one.bits:5.2f} bits  {one.part.title}"
            + (f" (and {len(one.equal)} equal)" if one.equal else "")
            for number, one in enumerate(self.rows, 1)
        ]
        return "\n".join([head, columns, *lines])

    __repr__ = __str__  # a notebook and the interpreter show the table


def explain(
    host: nn.Module,
    at: str | Sequence[str],
    parts: Part | Sequence[Part],
    data: Any = None,
    *,
    share: float = 0.5,
    grafted: int = 12,
    refine: int = 0,
    aim: str = "host",
    tokens: str = "all",
    seed: int = 0,
) -> PartRanking:
    """Rank parts by how well they do what a component does, and by how little they say.

    Args:
        host: a torch module with TransformerLens's hook names.
        at: the component, as for `replace`.
        parts: the candidates; those that are no heads (for an MLP: no neurons) are left out, and heads that look at
            later tokens if the host does not see them.
        data: as for `replace`.
        share: the share of the inputs to fit with.
        grafted: how many candidates go on after the first trial.
        refine: steps of gradient descent on the maps of the best five of these (as many again with inputs
            interchanged); if one recovers 99 % and agrees at 99 % in closed form, on those of simpler ones.
        aim: as for `replace`.
        tokens: as for `replace`.
        seed: of the division of the inputs and of the intervals.
    """
    count, steps = whole("grafted", grafted, 1), whole("refine", refine)
    bench = workbench(host, at, data, share=share, seed=seed, aim=aim, tokens=tokens, interchanged=True)
    candidates = _candidates(bench, part_list("parts", parts))
    chosen = _first_trial(bench, [one for one, _ in candidates])[:count]
    recovery = recovery_of(bench, seed)
    going = [candidates[number] for number in chosen]
    grafts = [bench.graft([one], one.output) for one, _ in going]
    rows = _explained(bench, recovery, going, grafts)
    if steps and (refined := _worth_refining(rows)):
        for number in refined:
            one = going[number][0]
            grafts[number] = bench.graft([one], one.output, refine=steps)
        rows = _explained(bench, recovery, going, grafts)
    return PartRanking(
        bench.sites.place.name,
        recovery.accuracy(recovery.host),
        recovery.accuracy(recovery.ablated),
        len(candidates),
        tuple(_ordered(rows)),
    )


def _candidates(bench: Workbench, parts: Sequence[Part]) -> list[Candidate]:
    """The parts that can be at the place, one of each kind; an error if there are none."""
    name, kind = bench.sites.place.name, "head" if bench.sites.place.kind == "attn" else "mlp"
    mine = [one for one in parts if one.kind == kind]
    if not mine:
        raise TracrError(
            f"no part of the library can be at {name}: none of {len(parts)} is of the kind {kind}",
            hint="heads take the place of heads, neurons that of an MLP",
        )
    found = distinct(mine, bench.inputs)
    if not found:
        raise InputError(
            f"no part of the library can be at {name}: all outputs are constant on the {len(bench.inputs)} inputs",
            hint="give more inputs, or other parts",
        )
    fair = [one for one in found if not bench.looks_ahead(one[0])]
    if not fair:
        check_ahead(bench, [one for one, _ in found])
    return fair


def _first_trial(bench: Workbench, candidates: Sequence[ObservedPart]) -> list[int]:
    """The numbers of the candidates, in the order of their agreement on a few inputs."""
    data = bench.fit.rows(np.arange(min(SHOWN, len(bench.fit))), cut=False)
    asked = HostAgreement.of(bench, data, bench.record.logits[: len(data)], bench.record.written[: len(data)], 1)
    shares = []
    for one in candidates:
        maps = bench.write_maps(one.output, 2)
        shown = bench.computed(bench.modules([one]), WriteModule(maps[0]), data, bench.record.stream[: len(data)])
        shares.append(max(asked.with_written(found.written(shown))[0].sum() for found in maps) / data.scored.sum())
    found = np.array(shares)
    return _simplest_first(found, [one.output.bits for one in candidates], found.max(initial=0.0) - TRIAL)


def _simplest_first(values: Any, bits: Sequence[float], enough: float) -> list[int]:
    """Those with at least `enough`, by entropy; then the others, best first."""
    return sorted(
        range(len(values)),
        key=lambda one: (
            (0, round(bits[one], 9), -values[one]) if values[one] >= enough else (1, -values[one], bits[one])
        ),
    )


def _worth_refining(rows: Sequence[ExplainedBy]) -> list[int]:
    """The numbers of the candidates whose maps are refined: the best; if one is enough, the best simpler ones."""
    shares = [one.recovered.value if one.recovered else 1.0 for one in rows]
    right = [min(share, one.agreement) >= ENOUGH for one, share in zip(rows, shares, strict=True)]
    enough = min((one.bits for one in itertools.compress(rows, right)), default=None)
    if enough is None:
        found = list(range(len(rows)))
    else:
        found = [number for number, one in enumerate(rows) if one.bits < enough and shares[number] >= HALF]
    return sorted(found, key=lambda number: -rows[number].agreement)[:FEWER]


def _explained(
    bench: Workbench, recovery: Recovery, candidates: Sequence[Candidate], grafts: Sequence[Grafted]
) -> list[ExplainedBy]:
    """The candidates as they are grafted, scored."""
    test, streams = bench.test, bench.test_record.stream
    made = [bench.computed(one.compiled_parts, one.write, test, streams) for one in grafts]
    logits = [one.logits(test.ids) for one in grafts]
    scores = [HostScore(*test.score(one)) for one in logits]
    asked = HostAgreement.of(bench, test, bench.test_record.logits, bench.test_record.written, SWAPS)
    agreed = [asked.with_written(one.write.map.written(found)) for one, found in zip(grafts, made, strict=True)]
    agreements, swapped = ([HostScore(pair[place], np.zeros_like(pair[place])) for pair in agreed] for place in (0, 1))
    best = max(agreements, key=recovery.accuracy)
    rows, there = [], bench.writes_at(bench.test)
    for number, (observed, equal) in enumerate(candidates):
        reads = {
            variable.label: bench.accuracy_of(read.map, values)
            for variable, read, values in zip(
                observed.part.inputs, grafts[number].compiled_parts[0].reads, observed.reads, strict=True
            )
        }
        computed, wanted = CodedValues(made[number], observed.output.codes), bench.test_rows(observed.output)
        row = ExplainedBy(
            part=observed.part,
            recovered=recovery.recovered(scores[number]),
            recovered_loss=recovered_loss(recovery, scores[number]),
            accuracy=recovery.accuracy(scores[number]),
            agreement=recovery.accuracy(agreements[number]),
            behind=recovery.difference(best, agreements[number]),
            faithful=float((computed.classes == wanted.classes)[there].mean()),
            swapped=recovery.accuracy(swapped[number]),
            told=told_of_writing(bench, observed.output),
            divergence=bench.divergence(logits[number]),
            reads=reads,
            bits=observed.output.bits,
            equal=equal,
            output=observed.output,
            computed=computed,
        )
        rows.append(row)
    return rows


@dataclass(frozen=True, eq=False)
class HostAgreement:
    """What a host answers with its own component: on inputs as they are, and while the component computes on others.

    `sources` has for each interchange the input on which the component computes. With `aim="answers"` the inputs as
    they are have their right answers, and there are no interchanges.
    """

    bench: Workbench
    data: GraftData
    own: NDArray[Any] | None
    sources: tuple[NDArray[np.intp], ...]
    answers: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, bench: Workbench, data: GraftData, logits: Any, written: NDArray[Any], swaps: int) -> HostAgreement:
        """The host on data, given its logits there and what its component wrote."""
        if bench.aim == "answers":
            return cls(bench, data, None, (), ())
        rngs = [np.random.default_rng([bench.seed, number]) for number in range(swaps)]
        sources = tuple(exchanged_inputs(data, rng) for rng in rngs)
        return cls(bench, data, logits, sources, tuple(bench.logits(data, written[one]) for one in sources))

    def with_written(self, written: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where [input, token] the host answers the same if the component writes this on each input.

        The first is the mean of inputs as they are and of interchanges, the second that of interchanges alone.
        """
        logits = self.bench.logits(self.data, written)
        if self.own is None:
            right = self.data.score(logits)[0].astype(np.float64)
            return right, right
        own = self.data.same(self.own, logits).astype(np.float64)
        pairs = zip(self.sources, self.answers, strict=True)
        same = [self.data.same(wanted, self.bench.logits(self.data, written[source])) for source, wanted in pairs]
        swapped = np.mean(same, axis=0)
        return (own + swapped) / 2, swapped


def told_of_writing(bench: Workbench, output: CodedValues) -> float:
    """The share of the variance of what the component writes that an output tells, at tokens to test with.

    The variance is that around the mean at each position; the maps are fitted on the inputs to fit with.
    """
    there, start = bench.writes_at(bench.test), bench.test.start
    written = bench.test_record.written[:, start:][there]
    means = fit_write_means(bench.record.written, bench.fit.real, start).written(np.where(bench.test.real, 0, -1))
    fitted = fit_write(bench.fitted_rows(output), bench.record.written, start, bench.writes_at(bench.fit))[-1].written(
        bench.test_rows(output).classes
    )
    left, all_of_it = (((written - one[:, start:][there]) ** 2).sum() for one in (fitted, means))
    return float(1 - left / max(all_of_it, 1e-12))


def _equally_right(behind: ShareInterval) -> bool:
    """Whether a part agrees as often as the best, by how far it is behind."""
    return behind.value <= TIE or (behind.value <= TRIAL and behind.low <= 0)


def _ordered(rows: Sequence[ExplainedBy]) -> list[ExplainedBy]:
    """The order of the ranking, as the module's docstring says it."""
    tied = [one for one in rows if _equally_right(one.behind)]
    faithful = max(one.faithful for one in tied) - FAITHFUL
    first = [one for one in tied if one.faithful >= faithful]

    def place(one: ExplainedBy) -> tuple[float, ...]:
        return (0, round(one.bits, 9), -one.told) if one in first else (1, -one.agreement, one.bits)

    return sorted(rows, key=place)
