"""Prints text and tables, in colour on a terminal and as plain text elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracr.certificate.certifying import shown_certificate
from tracr.cli.description import parts, sizes
from tracr.model.interventions import folded
from tracr.model.stream import Step, cell
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.residual import Dimension

__all__ = [
    "Screen",
    "plain_table",
    "short",
    "show_info",
    "show_list",
    "show_passes",
    "show_run",
    "show_steps",
    "waiting",
]

UNLIMITED = 100_000  # columns if the output is not a terminal: lines are never broken
INDENT = 2
MANY = 8  # variables with at least this many directions are shown without those that are all zero


class Screen:
    """Standard output: in colour and as wide as the terminal, or plain with unlimited lines if it is not one."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.width = self.console.width
        if not self.console.is_terminal:
            self.width = UNLIMITED
            self.console = Console(highlight=False, width=UNLIMITED)

    def print(self, what: RenderableType = "") -> None:
        """Print something, without trailing spaces if the output is not a terminal."""
        if self.console.is_terminal:
            self.console.print(what)
            return
        with self.console.capture() as capture:
            self.console.print(what)
        print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def short(value: Value) -> str:
    """A value in a few printable characters.

    >>> short(1 / 3), short("a"), short("\\n"), short(" ")
    ('0.333333', 'a', "'\\\\n'", "' '")
    """
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if text.isprintable() and text.strip() else repr(text)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a message on the terminal while work goes on for more than a second."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    status = screen.status(text)
    timer = threading.Timer(1.0, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def plain_table(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def show_list(rows: Sequence[tuple[str, str, Sequence[Value], int, str]]) -> None:
    """Print the library: name, description, default tokens and length, and the tokens it is limited to."""
    table = plain_table("program", "what it computes", "tokens", "length", "only for")
    for name, description, vocab, length, right_for in rows:
        tokens = " ".join(map(short, vocab))
        table.add_row(Text(name, "cyan"), Text(description), Text(tokens), f"up to {length}", Text(right_for))
    Screen().print(table)


def show_passes(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the passes in the order they run, then the options: name, lowest level, description."""
    screen = Screen()
    for kind in ("pass", "option"):
        table = plain_table(kind, "from level", "what it does")
        for row in rows:
            if row["kind"] == kind:
                table.add_row(Text(row["name"], "cyan"), _from_level(row), Text(row["does"]))
        screen.print(table)
        screen.print()
    screen.print("A pass without a level always runs. --with and --without switch the other passes and the options.")


def _from_level(row: Mapping[str, Any]) -> str:
    level, switches = row["level"], row["switches"]
    if level is None:
        return f"--with {row['name']}"
    if switches and switches != [row["name"]]:
        return f"{level} (by {', '.join(switches)})"
    return str(level) if switches else ""


def show_run(
    tokens: Sequence[Value], model: Mapping[str, Sequence[Value]], expected: Mapping[str, Sequence[Value]]
) -> None:
    """Print the outputs of the model and of the interpreter, position by position."""
    rows: list[tuple[str, Sequence[Value]]] = [("position", range(len(tokens))), ("token", tokens)]
    for name in model:
        suffix = f" {name}" if len(model) > 1 else ""
        rows += [(f"model{suffix}", model[name]), (f"interpreter{suffix}", expected[name])]
    lines = [(title, [short(value) for value in row]) for title, row in rows]
    first = max(cell_len(title) for title, _ in lines)
    widths = [max(cell_len(row[place]) for _, row in lines) for place in range(len(tokens))]
    screen = Screen()
    for chunk in _chunks(widths, screen.width - first, gap=2):
        if chunk.start:
            screen.print()
        for title, row in lines:
            style = "bold green" if title.startswith("model") else "dim" if title == "position" else ""
            cells = [_padded(title, first), *(_padded(row[place], widths[place]) for place in chunk)]
            screen.print(Text("  ".join(cells).rstrip(), style))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _chunks(widths: Sequence[int], room: int, gap: int) -> list[range]:
    """Ranges of columns, each as long as fits in the width `room`."""
    chunks, start, used = [], 0, 0
    for place, width in enumerate(widths):
        if place > start and used + width + gap > room:
            chunks.append(range(start, place))
            start, used = place, 0
        used += width + gap
    return [*chunks, range(start, len(widths))]


def show_info(model: DesignedModel, name: str, description: str) -> None:
    """Print the sizes, inputs and components of a model."""
    screen = Screen()
    screen.print(Text.assemble((name, "bold"), f": {description}" if description else ""))
    size, (shortest, longest) = sizes(model), model.program.lengths
    facts = plain_table("", "")
    facts.show_header = False
    vocab = [short(token) for token in model.options.vocab]
    shown = " ".join(vocab[:30]) + (f" ... ({len(vocab)} tokens)" if len(vocab) > 30 else "")
    attention = "causal" if model.options.causal else "bidirectional"
    stored = f", for {model.options.dtype}" if model.options.format.short else ""
    facts.add_row("tokens", Text(f"{shown}, and {model.options.bos}, {model.options.pad}"))
    facts.add_row("lengths", f"{shortest} to {longest}")
    facts.add_row("compiled", f"level {model.options.level}, {attention}{stored}")
    facts.add_row("layers", f"{size['layers']}")
    facts.add_row("heads", f"up to {size['heads']} per layer, d_head up to {size['d_head']}")
    facts.add_row("neurons", f"up to {size['d_mlp']} per layer")
    turns = f", for {len(model.residual.dimensions)} directions" if model.residual.shared else ""
    facts.add_row("d_model", f"{size['d_model']}{turns}")
    facts.add_row("parameters", f"{size['parameters']:,}, {size['nonzero']:,} of them not zero")
    for output in model.outputs:
        facts.add_row("output", Text(f"{output.name}, {output.encoding.value} {output.domain}"))
    for variable, one in folded(model.program, model.layout).items():
        facts.add_row("folded", Text(f"{variable}, read from {', '.join(one.made_of) or 'a constant'}"))
    for reason, labels in _not_kept(model).items():
        facts.add_row("not kept", Text(f"{', '.join(labels)}: {reason}"))
    verdict = shown_certificate(model)
    facts.add_row(
        "certificate", Text(verdict.headline if verdict is not None else f"not checked here: tracr certify {name}")
    )
    screen.print(facts)
    screen.print()
    table = plain_table("where", "size", "computes", "what")
    for part in parts(model):
        size_of = f"rank {part.size}" if part.kind == "head" else f"{part.size} neuron{'s' if part.size != 1 else ''}"
        table.add_row(Text(part.where, "cyan"), size_of, Text(", ".join(part.writes), "bold"), Text(part.computes))
    screen.print(table)


def _not_kept(model: DesignedModel) -> dict[str, list[str]]:
    """The variables that the model does not keep, grouped by reason; folded variables are listed elsewhere."""
    found: dict[str, list[str]] = {}
    for label, reason in model.variables.missing.items():
        if model.variables[label].state != "folded":
            found.setdefault(reason, []).append(label)
    return found


def show_steps(
    model: DesignedModel,
    steps: Sequence[Step],
    tokens: Sequence[Value],
    values: Mapping[str, Sequence[Value]],
    everything: bool,
) -> None:
    """Print the residual stream after each sub-layer: the variables it changed, or with `everything` all variables."""
    screen = Screen()
    screen.print(Text("The residual stream after each sub-layer. A * marks what the sub-layer changed.", "dim"))
    for step in steps:
        screen.print()
        screen.print(Text.assemble((step.name, "bold"), "  no-op" if step.idle else ""))
        for computes in step.computes:
            screen.print(Padding(Text(computes, "dim"), (0, 0, 0, INDENT)))
        for table in _step_tables(model, step, tokens, values, everything, screen.width):
            screen.print()
            screen.print(Padding(table, (0, 0, 0, INDENT), expand=False))


def _step_tables(
    model: DesignedModel,
    step: Step,
    tokens: Sequence[Value],
    values: Mapping[str, Sequence[Value]],
    everything: bool,
    room: int,
) -> Iterator[Table]:
    rows = _step_rows(model, step, values, everything)
    if not rows:
        return
    header = [short(model.options.bos), *map(short, tokens)]
    widths = [max(cell_len(header[place]), *(row[2][place].cell_len for row in rows)) for place in range(len(header))]
    first = max(cell_len("variable"), *(cell_len(row[0]) for row in rows)) + max(cell_len(row[1]) for row in rows)
    margin = INDENT + 3  # the space left of the cells, without those two columns
    for chunk in _chunks(widths, room - first - margin, gap=3):
        table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1), pad_edge=False, header_style="bold")
        table.add_column("variable", style="cyan", no_wrap=True)
        table.add_column("", no_wrap=True)
        for place in chunk:
            table.add_column(Text(header[place]), justify="right", no_wrap=True, min_width=widths[place])
        _fill(table, rows, chunk)
        yield table


Row = tuple[str, str, list[Text]]


def _step_rows(model: DesignedModel, step: Step, values: Mapping[str, Sequence[Value]], everything: bool) -> list[Row]:
    """The rows of the variables that a step changed, or with `everything` of all variables."""
    groups: dict[str, list[Dimension]] = {}
    for dimension in model.residual:
        groups.setdefault(dimension.variable, []).append(dimension)
    rows: list[Row] = []
    for name, group in groups.items():
        if not everything and not step.changed[:, [d.number for d in group]].any():
            continue
        gone = [d for d in group if not d.held(step.time)] if model.residual.shared else []
        there = [d for d in group if d not in gone]
        rows += _group_rows(name, there, step, values, everything) if there else ()
        rows += _gone_rows("" if there else name, gone, step, len(there))
    return rows


def _fill(table: Table, rows: Sequence[Row], places: Sequence[int]) -> None:
    """Add the cells of some positions to a table, with a line between variables."""
    before = ""
    for variable, label, cells in rows:
        if before and variable and variable != before:
            table.add_section()
        before = variable or before
        table.add_row(Text(variable), Text(label), *(cells[place] for place in places))


def _gone_rows(title: str, gone: Sequence[Dimension], step: Step, others: int) -> Iterator[Row]:
    """One row for the directions not written yet and one for those cleared; a * if this step cleared them."""
    for word, some in (
        ("not written yet", [dimension for dimension in gone if dimension.since > step.time]),
        ("cleared", [dimension for dimension in gone if dimension.since <= step.time]),
    ):
        if some:
            changed = step.changed[:, [dimension.number for dimension in some]]
            marks = [Text("*" if row.any() else "", "yellow") for row in changed]
            yield title, f"{len(some)} {word}" if others else word, marks


def _group_rows(
    name: str, group: Sequence[Dimension], step: Step, values: Mapping[str, Sequence[Value]], everything: bool
) -> Iterator[Row]:
    """A row with the interpreter's values of a variable, then a row for each direction."""
    title = name
    if name in values:
        held = [Text("")] + [Text(short(value), "italic magenta") for value in values[name]]
        yield title, "interpreter", held
        title = ""
    hidden = 0
    for dimension in group:
        column, changed = step.stream[:, dimension.number], step.changed[:, dimension.number]
        if not everything and len(group) > MANY and not changed.any() and all(cell(x) == "." for x in column):
            hidden += 1
            continue
        cells = [_cell(number, mark) for number, mark in zip(column.tolist(), changed.tolist(), strict=True)]
        label = "number" if dimension.label == name else short(dimension.label.removeprefix(f"{name}:"))
        yield title, label, cells
        title = ""
    if hidden:
        yield title, f"{hidden} more: zero", [Text("")] * len(step.stream)


def _cell(number: float, changed: bool) -> Text:
    text = cell(number)
    if changed:
        return Text.assemble(("*", "yellow"), (text, "bold yellow"))
    return Text(text, "dim" if text == "." else "")
