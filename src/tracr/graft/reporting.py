"""`report()`: what a replacement recovers, beside ablations and controls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from tracr.errors import InputError, UnknownName
from tracr.graft.controls import ablations_of, controls_of, read_right, read_variables
from tracr.graft.host import recorded
from tracr.graft.recovery import LEAST, HostScore, Recovery, ShareInterval, recovered_loss
from tracr.graft.replacing import as_data, joint_output

if TYPE_CHECKING:
    from tracr.graft.data import GraftData
    from tracr.graft.grafted import Grafted
    from tracr.graft.part import Part
    from tracr.graft.replacing import Fitted

__all__ = ["ReplacementReport", "ReportLine", "as_the_program_says", "departure", "report_of"]

PART = 0.9  # of the accuracy: a replacement that recovers less counts for a part
EXCESS = 0.02  # by how much a part may be right more often than the values of its own program


@dataclass(frozen=True)
class ReportLine:
    """The host with one thing in the component's place.

    `kind` is "host", "ablation", "replaced", "program" or that of a control. `beaten` says of a control whether the
    replacement is right more often (the lower bound of the 95 % interval of the difference is above 0).
    """

    kind: str
    name: str
    loss: float
    accuracy: float
    recovered: ShareInterval | None
    recovered_loss: float | None
    beaten: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and texts."""
        share = None if self.recovered is None else self.recovered.to_dict()
        return {**self.__dict__, "recovered": share}


@dataclass(frozen=True, repr=False)
class ReplacementReport:
    """A replacement on inputs that its maps were not fitted on.

    `positions` has the recovered share at each token's position, `reads` how often each variable was read right.
    `unseen` is the share of tokens at which the part's output is a value that no fitted input has: what to write there
    is not known. `excess` is by how much the replacement is right more often than with the output that the part's
    program says, on the same maps that write. A replacement that is right *because* its variables are read wrong does
    not do what its program says, and does not count. `costs` says by how much the host is right more often than
    mean-ablated, and than resampled ("mean", "resampled"); `raises`, by how much the replacement is right more often
    than the host. `fitted` says how many of the inputs, if the caller gave them, are among those that the maps were
    fitted on: with any of them nothing counts.
    """

    at: str
    part: str
    inputs: int
    lines: tuple[ReportLine, ...]
    positions: tuple[ShareInterval | None, ...]
    reads: dict[str, float]
    unseen: float
    costs: dict[str, ShareInterval]
    excess: ShareInterval
    raises: ShareInterval
    fitted: int = 0

    def line(self, name: str) -> ReportLine:
        """The line of a name: "host", "zeroed", "mean", "resampled", "replaced", "program", or that of a control."""
        for one in self.lines:
            if one.name == name:
                return one
        raise UnknownName(
            f"the report has no line {name!r}", hint=f"it has {', '.join(one.name for one in self.lines)}"
        )

    @property
    def recovered(self) -> ShareInterval | None:
        """The share of the accuracy that the replacement recovers; `None` if the ablation costs nothing."""
        return self.line("replaced").recovered

    @property
    def cost(self) -> float:
        """What the mean ablation costs in accuracy."""
        return self.costs["mean"].value

    @property
    def matters(self) -> bool:
        """Whether the host needs the component: each ablation costs half a point or more, for certain."""
        return all(one.low >= LEAST for one in self.costs.values())

    @property
    def controls(self) -> tuple[ReportLine, ...]:
        """The lines of the controls."""
        return tuple(one for one in self.lines if one.beaten is not None)

    @property
    def counts(self) -> bool:
        """Whether the replacement recovers something, as its program says, and beats every control."""
        share = self.recovered
        if share is None or share.low <= 0 or not self.matters or self.fitted:
            return False
        return self.faithful and all(one.beaten for one in self.controls)

    @property
    def faithful(self) -> bool:
        """Whether the part's own output, as its program says, is as often right, up to 2 points."""
        return departure(self.excess) is None

    @property
    def verdict(self) -> str:
        """Whether it counts, and why not, in a sentence."""
        if self.recovered is None:
            return "does not count: the ablation costs less than half a point, so there is nothing to recover"
        if not self.matters:
            name, cost = min(self.costs.items(), key=lambda one: one[1].low)
            done = {"mean": "the mean ablation", "resampled": "the component's output on another input"}[name]
            return f"does not count: {done} costs {cost} of the accuracy, which may be less than half a point"
        if self.fitted:
            return f"does not count: the maps were fitted on {self.fitted} of the {self.inputs} inputs"
        unbeaten = [f"{one.kind} ({one.name})" for one in self.controls if not one.beaten]
        if unbeaten:
            return f"does not count: not better than {', '.join(unbeaten)}"
        if reason := departure(self.excess):
            return reason
        if not self.counts:
            return "does not count: recovers nothing for certain"
        part = "" if self.recovered.value >= PART else f", though it recovers only {self.recovered.value:.0%}"
        tried = "" if any(one.kind == "another function" for one in self.controls) else "; none is another function"
        return f"counts: better than every control{tried}{part}"

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers and texts, for JSON."""
        return {
            "at": self.at,
            "part": self.part,
            "inputs": self.inputs,
            "fitted": self.fitted,
            "cost": self.cost,
            "costs": {name: one.to_dict() for name, one in self.costs.items()},
            "raises": self.raises.to_dict(),
            "counts": self.counts,
            "verdict": self.verdict,
            "lines": [one.to_dict() for one in self.lines],
            "positions": [None if one is None else one.to_dict() for one in self.positions],
            "reads": dict(self.reads),
            "unseen": self.unseen,
            "excess": self.excess.to_dict(),
        }

    def __str__(self) -> str:
        rows = [("", "", "loss", "accuracy", "recovered", "beaten")]
        for one in self.lines:
            beaten = "" if one.beaten is None else "yes" if one.beaten else "no"
            share = "" if one.recovered is None else str(one.recovered)
            rows.append((one.kind, one.name, f"{one.loss:.4f}", f"{one.accuracy:.4f}", share, beaten))
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        kind = f", {self.fitted} of them fitted on" if self.fitted else " that were not fitted on"
        head = f"{self.part} at {self.at}, {self.inputs} inputs{kind}"
        return "\n".join([head, *table, *self._notes(), self.verdict])

    def _notes(self) -> Iterator[str]:
        """What the report says below its table."""
        reads = ", ".join(f"{label} {right:.4f}" for label, right in self.reads.items()) or "nothing"
        yield f"read right: {reads}"
        places = ", ".join("-" if one is None else f"{one.value:.3f}" for one in self.positions)
        yield f"recovered by position: {places}"
        if self.unseen:
            yield f"the part's output at {self.unseen:.1%} of the tokens is a value that was not fitted"
        if self.raises.low > 0:
            yield f"right more often than the host, by {self.raises} of the tokens"

    __repr__ = __str__  # a notebook and the interpreter show the table


def departure(excess: ShareInterval) -> str | None:
    """Why a replacement that is right more often than its program does not count."""
    if excess.low <= 0 or excess.value <= EXCESS:
        return None
    return (
        f"does not count: right at {excess.value:.1%} more of the tokens than with the output that its program says; "
        "its variables are read otherwise"
    )


def report_of(grafted: Grafted, fitted: Fitted, data: Any, others: Sequence[Part], seed: int) -> ReplacementReport:
    """The report of a graft on the inputs that were kept for it, or on others."""
    if data is not None:
        fitted = _on(fitted, as_data(grafted.host, data))
    bench = fitted.bench
    test = bench.test

    def scored(logits: Any) -> HostScore:
        return HostScore(*test.score(logits))

    host, ablated = scored(bench.test_record.logits), ablations_of(bench, np.random.default_rng(seed))
    recovery = Recovery(test.scored, host, scored(ablated["mean"]), seed)
    replaced = scored(grafted.logits(test.ids))
    lines = [_line(recovery, "host", "host", host)]
    lines += [_line(recovery, "ablation", name, scored(logits)) for name, logits in ablated.items()]
    lines.append(_line(recovery, "replaced", "replaced", replaced))
    said = scored(as_the_program_says(grafted, fitted))
    lines.append(_line(recovery, "program", "program", said))
    for control in controls_of(grafted, fitted, others, seed):
        score = scored(control.logits)
        beaten = recovery.difference(replaced, score).low > 0
        lines.append(replace(_line(recovery, control.kind, control.name, score), beaten=beaten))
    return ReplacementReport(
        grafted.at,
        "; ".join(part.title for part in grafted.parts),
        len(test),
        tuple(lines),
        tuple(recovery.recovered(replaced, at) for at in range(test.longest)),
        _reads(grafted, fitted),
        _unseen(fitted),
        {name: recovery.difference(host, scored(ablated[name])) for name in ("mean", "resampled")},
        recovery.difference(replaced, said),
        recovery.difference(replaced, host),
        len([*filter(set(bench.fit.inputs).__contains__, test.inputs)]),
    )


def as_the_program_says(grafted: Grafted, fitted: Fitted) -> NDArray[Any]:
    """The host's logits on the inputs to test with, if the graft writes the output that the parts' programs say."""
    bench = fitted.bench
    wanted = bench.test_rows(fitted.output)
    codes = torch.as_tensor(wanted.codes[np.maximum(wanted.classes, 0)], dtype=torch.float32, device=bench.host.device)
    with torch.no_grad():
        written = grafted.write(codes, torch.as_tensor(bench.test.real, device=codes.device))
    return bench.logits(bench.test, written.cpu().numpy())


def _line(recovery: Recovery, kind: str, name: str, score: HostScore) -> ReportLine:
    loss, accuracy = recovery.loss(score), recovery.accuracy(score)
    return ReportLine(kind, name, loss, accuracy, recovery.recovered(score), recovered_loss(recovery, score))


def _reads(grafted: Grafted, fitted: Fitted) -> dict[str, float]:
    """How often the graft reads each variable right at tokens that were not fitted on."""
    return {label: read_right(fitted.bench, read, values) for label, read, values in read_variables(grafted, fitted)}


def _unseen(fitted: Fitted) -> float:
    """The share of tokens with an output that no fitted input has."""
    bench = fitted.bench
    known = np.unique(bench.fitted_rows(fitted.output).classes[bench.writes_at(bench.fit)])
    mine = bench.test_rows(fitted.output).classes[bench.writes_at(bench.test)]
    return float((~np.isin(mine, known)).mean())


def _on(fitted: Fitted, data: GraftData) -> Fitted:
    """The same fit, to be tested on other inputs."""
    bench = fitted.bench
    if data.longest > bench.fit.longest:
        raise InputError(
            f"the maps were fitted on inputs of up to {bench.fit.longest} tokens, not {data.longest}",
            hint="fit with longer inputs in the data",
        )
    if (data.start, data.pad) != (bench.fit.start, bench.fit.pad):
        raise InputError(
            f"the maps were fitted with start={bench.fit.start} and pad={bench.fit.pad}, "
            f"not with start={data.start} and pad={data.pad}",
            hint="make the data in the same way",
        )
    record = recorded(bench.host, bench.sites, data.ids)
    data.check_answers(record.logits.shape[-1])
    moved = replace(bench, test=data, test_record=record)
    observed = moved.observed([one.part for one in fitted.observed])
    return replace(fitted, bench=moved, observed=tuple(observed), output=joint_output(observed))
