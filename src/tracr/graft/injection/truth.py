"""The ground truth of an injected circuit: labels of added dimensions, heads and neurons, and their edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tracr.graft.injection.circuit import BALANCE, IN_RANGE, ZERO, Dim, HeadPlan, InjectedCircuit
from tracr.graft.injection.freeing import FreedHost
from tracr.graft.injection.sizes import InjectedSizes

if TYPE_CHECKING:
    from tracr.graft.injection.injected import Injected

__all__ = ["truth_of"]

FORMAT, VERSION = "tracr injected circuit", 1
SPECIAL = {BALANCE: "minus the sum of the other added dimensions", ZERO: "0"}
Json = dict[str, Any]


def truth_of(injected: Injected) -> Json:
    """The truth as data for JSON."""
    circuit, sizes, interface = injected.circuit, injected.sizes, injected.interface
    longest = injected.program.options.max_seq_len
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": injected.program.show().splitlines(),
        "max_seq_len": longest,
        "bos": interface.bos,
        "tokens": [[word, repr(value)] for word, value in interface.tokens.items()],
        "other": repr(interface.other),
        "trigger": list(interface.trigger),
        "answers": [[repr(value), word] for value, word in interface.answers.items()],
        "host": {"dimensions": injected.host.width, "heads": injected.host.heads, "d_head": injected.host.d_head,
                 "neurons": injected.host.inner, "layers": injected.host.layers},
        **_freed(injected.freed),
        "scale": injected.scales.scale,
        "largest_sigma": injected.scales.largest,
        "dimensions": list(_dimensions(circuit, sizes)),
        "heads": list(_heads(injected)),
        "neurons": list(_neurons(injected)),
        "edges": list(_edges(injected)),
    }  # fmt: skip


def _freed(freed: FreedHost | None) -> Json:
    """The heads and neurons of the host that were replaced by their means, by the numbers that they had."""
    if freed is None:
        return {}
    places = {kind: [[layer, *own] for layer, own in getattr(freed, kind).items()] for kind in ("heads", "neurons")}
    return {"freed": {**places, "tolerance": freed.tolerance, "divergence": freed.divergence}}


def _dimensions(circuit: InjectedCircuit, sizes: InjectedSizes) -> Iterator[Json]:
    for group in circuit.groups:
        for dim, label in zip(group.dims, group.labels, strict=True):
            yield {"dimension": sizes.place[dim], "variable": group.name, "value": label, "kind": group.kind}
    for dim, label in SPECIAL.items():
        yield {"dimension": sizes.place[dim], "variable": dim[0], "value": label, "kind": "constant"}


def _heads(injected: Injected) -> Iterator[Json]:
    for head in injected.circuit.heads:
        layer, number = injected.heads[head.variable]
        yield {"layer": layer, "head": number, "variable": head.variable, "computes": head.computes}


def _neurons(injected: Injected) -> Iterator[Json]:
    for part, (first, last) in zip(injected.circuit.neurons, injected.neurons, strict=True):
        about = {"variable": part.variable, "computes": part.computes}
        yield {"layer": part.layer, "first": first, "last": last, **about}


def _edges(injected: Injected) -> Iterator[Json]:
    """An edge for every variable that a component reads, from the component that writes it."""
    circuit, writers = injected.circuit, _writers(injected)
    for head in circuit.heads:
        layer, number = injected.heads[head.variable]
        for role, dims in _read_by(head).items():
            yield from _into(f"head {layer}.{number}", role, dims, writers)
    for part in circuit.neurons:
        dims = [dim for step in part.steps for dim in step.reads]
        yield from _into(f"neurons {part.layer} {part.variable}", "input", dims, writers)
    yield from _into("logits", "input", circuit.answers, writers)


def _read_by(head: HeadPlan) -> dict[str, list[Dim]]:
    """The dimensions that a head reads; those of BOS are constant."""
    return {
        "query": [dim for column in head.columns for dim in column.query],
        "key": [dim for column in head.columns for dim in column.key],
        "value": [source for source, _ in head.copied],
    }


def _into(node: str, role: str, dims: Iterable[Dim], writers: dict[str, str]) -> Iterator[Json]:
    for variable in dict.fromkeys(group for group, _ in dims):
        yield {"from": writers[variable], "to": node, "variable": variable, "as": role}


def _writers(injected: Injected) -> dict[str, str]:
    """The component that writes each variable."""
    found = {group.name: "positions" if group.kind == "position" else "tokens" for group in injected.circuit.groups}
    found[IN_RANGE[0]] = "positions"
    for head in injected.circuit.heads:
        layer, number = injected.heads[head.variable]
        written = [to for _, to in head.copied] + ([head.share] if head.share else [])
        found |= {group: f"head {layer}.{number}" for group, _ in written}
    return found | {part.variable: f"neurons {part.layer} {part.variable}" for part in injected.circuit.neurons}
