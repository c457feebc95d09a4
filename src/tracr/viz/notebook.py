"""The notebook display of models, runs and verification reports: self-contained HTML for dark and light themes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.craft.heads import Head
from tracr.ir.layout import ALWAYS
from tracr.model.designed import DesignedModel
from tracr.model.interventions import folded
from tracr.model.stream import Step, steps
from tracr.viz.labels import domain_label, number_label, shortened, value_label, visible
from tracr.viz.rows import Group, Row, grouped

if TYPE_CHECKING:
    from tracr.ir.circuit import Component
    from tracr.model.residual import Dimension, Residual
    from tracr.model.run import Run
    from tracr.model.verification import Verification

__all__ = ["model_html", "run_html", "verification_html"]

TABLE_STYLE = """<style>
.tracr {overflow-x: auto; font-size: 13px}
.tracr table {border-collapse: collapse; table-layout: auto; margin: 4px 0; font-size: inherit; color: inherit}
.tracr tr {background: none !important}
.tracr th, .tracr td {text-align: left; padding: 1px 8px; border: 0; background: none; white-space: nowrap}
.tracr th {font-weight: 600}
.tracr .soft {opacity: .65}
.tracr table.stream {font-size: 11px; line-height: 1.35}
.tracr .stream th, .tracr .stream td {padding: 0 3px; text-align: center}
.tracr .stream td {min-width: 22px; border: 1px solid rgba(128,128,128,.18)}
.tracr .stream tr.first > * {border-top: 1px solid rgba(128,128,128,.8)}
.tracr .stream .left {text-align: right; font-weight: normal; vertical-align: middle}
.tracr .stream .edge {border-left: 6px solid transparent; background-clip: padding-box}
.tracr .stream .gone {background: rgba(128,128,128,.16); border-color: transparent}
.tracr .stream .new {box-shadow: inset 0 0 0 1.5px #e03131}
.tracr .good {color: #2b8a3e; font-weight: 600}
.tracr .bad {color: #e03131; font-weight: 600}
</style>"""
SHOWN_INPUTS = 12  # most inputs of a batch that are shown
NAMES_LENGTH = 40  # most characters of a list of names


def model_html(model: DesignedModel) -> str:
    """A model as HTML: its sizes, inputs, components and the dimensions of its residual stream."""
    options, (shortest, longest) = model.options, model.program.lengths
    vocab = [value_label(token) for token in options.vocab]
    tokens = " ".join(vocab[:30]) + (f" … ({len(vocab)} tokens)" if len(vocab) > 30 else "")
    facts = [
        ("tokens", f"{tokens}, and {value_label(options.bos)}, {value_label(options.pad)}"),
        ("lengths", f"{shortest} to {longest}, {'causal' if options.causal else 'bidirectional'} attention"),
        *(("output", f"{visible(o.name)}, {o.encoding.value} {domain_label(o.domain, 60)}") for o in model.outputs),
    ]
    components = []
    for sublayer in model.schedule.sublayers():
        where = f"blocks.{sublayer.layer}.{sublayer.kind}"
        for place, part in enumerate(sublayer.components):
            says = shortened(model.explanations[f"{where}.{place}"].sentence, 120)
            components.append((sublayer.title, _written(part), says, _size(part)))
    components += [
        ("", visible(name), f"folded: its readers read {_names(one.made_of) or 'a constant'} instead", "")
        for name, one in folded(model.program, model.layout).items()
    ]
    return _page(
        f"<b>{escape(repr(model))}</b>",
        _table((), facts),
        _table(("where", "computes", "how", "size"), components),
        _details(
            f"residual stream, {_plural(model.d_model, 'dimension')}",
            _residual(model.residual),
        ),
    )


def _residual(residual: Residual) -> str:
    """The variables, their number of dimensions and, if dimensions are shared, the MLP that clears them."""
    held: dict[str, list[Dimension]] = {}
    for dimension in residual:
        held.setdefault(dimension.variable, []).append(dimension)
    rows = []
    for variable, dimensions in held.items():
        name = visible(variable)
        values = [visible(dimension.label.removeprefix(f"{variable}:")) for dimension in dimensions]
        row = [name, str(len(values)), "" if values == [name] else shortened(", ".join(values), 100)]
        rows.append([*row, _turn(dimensions)] if residual.shared else row)
    return _table(("variable", "dimensions", "values", *(("cleared by",) if residual.shared else ())), rows)


def _turn(dimensions: Sequence[Dimension]) -> str:
    """The MLP that clears the dimensions, and how many of them it clears."""
    cleared = [dimension.until for dimension in dimensions if dimension.until < ALWAYS]
    if not cleared:
        return ""
    some = "" if len(cleared) == len(dimensions) else f" ({len(cleared)} of them)"
    return f"MLP {cleared[0] // 2}{some}"


def run_html(run: Run) -> str:
    """A run as HTML: inputs and outputs, and for a single input the residual stream after each sub-layer."""
    rows = run.decoded if len(run.tokens) > 1 or _is_batch(run) else [run.decoded]
    table = []
    for tokens, decoded in list(zip(run.tokens, rows, strict=True))[:SHOWN_INPUTS]:
        outputs = decoded if isinstance(decoded, dict) else {"": decoded}
        for name, values in outputs.items():
            given = tokens[1 : len(values) + 1]
            table.append((" ".join(map(value_label, given)), visible(name) if name else "", _list(values)))
    if len(run.tokens) > SHOWN_INPUTS:
        table.append((f"… and {len(run.tokens) - SHOWN_INPUTS:,} more", "", ""))
    shapes = [(name, str(tuple(array.shape))) for name, array in run.activations.items()]
    parts = [
        f"<b>{escape(repr(run))}</b>",
        _table(("input", "", "output"), table),
        _details("activations", _table(("name", "shape"), shapes)),
    ]
    if isinstance(run.model, DesignedModel) and len(run.tokens) == 1:
        parts.insert(2, _stream(run.model, run))
    return _page(*parts)


def verification_html(verification: Verification) -> str:
    """A verification report as HTML: what was compared, and the counterexample if there is one."""
    example = verification.counterexample
    verdict = '<span class="good">✓</span>' if verification else '<span class="bad">✗</span>'
    if example is None:
        return _page(f"{verdict} {escape(str(verification))}")
    scope = str(verification).partition(": MISMATCH")[0]
    rows = [
        ("input", _list(example.tokens) + (" (padded)" if example.padded else "")),
        (f"{example.output} should be", _list(example.expected)),
        ("but is", _list(example.got)),
    ]
    if example.variable is not None:
        first = f"{example.variable} at position {example.position}" if example.variable else "none"
        rows.append(("first wrong variable", first))
    return _page(f"{verdict} {escape(scope)}: the model is wrong", _table((), rows))


def _is_batch(run: Run) -> bool:
    """Whether the input of a run was given as a batch of one."""
    rows = run.decoded
    return isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], list | dict)


def _names(labels: Iterable[str]) -> str:
    return ", ".join(map(visible, labels))


def _written(component: Component) -> str:
    return shortened(_names(variable.label for variable, _ in component.writes), NAMES_LENGTH)


def _size(component: Component) -> str:
    if isinstance(component, Head):
        return f"rank {component.rank}"
    return _plural(component.read.width, "neuron")


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _list(values: Iterable[Any]) -> str:
    return ", ".join(map(value_label, values))


def _page(*parts: str) -> str:
    return f'<div class="tracr">{TABLE_STYLE}{"".join(f"<div>{part}</div>" for part in parts)}</div>'


def _details(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _stream(model: DesignedModel, run: Run) -> str:
    """The residual stream as one table, with a block of columns for each sub-layer that is not a no-op."""
    stream = steps(model, run)
    shown = [step for step in stream if not step.idle]
    idle = [step.name for step in stream if step.idle]
    tokens = [value_label(token) for token in run.tokens[0]]
    titles = "".join(f'<th class="edge" colspan="{len(tokens)}">{step.name}</th>' for step in shown)
    columns = "".join(f"<th{_edge(place)}>{escape(token)}</th>" for _ in shown for place, token in enumerate(tokens))
    body = "".join(_group(group, shown) for group in grouped(model, stream))
    note = f'<div class="soft">no-ops: {", ".join(idle)}</div>' if idle else ""
    head = f'<tr><th colspan="2"></th>{titles}</tr><tr><th colspan="2"></th>{columns}</tr>'
    return f'<table class="stream">{head}{body}</table>{note}'


def _edge(place: int) -> str:
    return ' class="edge"' if place == 0 else ""


def _group(group: Group, shown: Sequence[Step]) -> str:
    rows = []
    for place, row in enumerate(group.rows):
        name = escape(shortened(group.variable, NAMES_LENGTH))
        bold = f"<b>{name}</b>" if group.output else name
        title = f'<th class="left" rowspan="{len(group.rows)}">{bold}</th>' if place == 0 else ""
        label = "" if group.single else escape(shortened(row.label, NAMES_LENGTH))
        cells = "".join(_cells(group, row, step) for step in shown)
        rows.append(f'<tr{" class=first" if place == 0 else ""}>{title}<th class="left soft">{label}</th>{cells}</tr>')
    return "".join(rows)


def _cells(group: Group, row: Row, step: Step) -> str:
    if row.dimension is None:
        return "".join(f"<td{_edge(place)}></td>" for place in range(len(step.stream)))
    cells = []
    values, changed = step.stream[:, row.dimension], step.changed[:, row.dimension] & (step.name != "embed")
    for place, (value, new) in enumerate(zip(values.tolist(), changed.tolist(), strict=True)):
        kinds = (("edge", place == 0), ("gone", not row.there(step)), ("new", new))
        classes = " ".join(word for word, holds in kinds if holds)
        text = number_label(value) if row.number else ""
        cells.append(
            f"<td{f' class={chr(34)}{classes}{chr(34)}' if classes else ''}{_shade(value / group.scale)}>{text}</td>"
        )
    return "".join(cells)


def _shade(value: float) -> str:
    """The background colour of a number from -1 to 1."""
    if abs(value) < 5e-4:
        return ""
    color = "31,119,220" if value > 0 else "214,118,20"
    return f' style="background-color:rgba({color},{0.15 + 0.7 * float(np.clip(abs(value), 0, 1)):.2f})"'
