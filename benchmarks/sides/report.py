"""The tables of docs/benchmarks/README.md, written between two marks; the text around them is written by hand."""

from __future__ import annotations

from pathlib import Path

from cases import PROGRAMS, SIZES, Case
from measures import SPEED, cases_of, middle, ratio, shared
from running import LEVELS, SIDES, Record, Results
from targets import verdicts

__all__ = ["write"]

START, END = "<!-- measured: written by benchmarks/against_original.py -->", "<!-- end of what was measured -->"
MARKS = {True: "reached", False: "**missed**", None: "—"}


def write(results: Results, page: Path) -> None:
    """Write the tables into the page, which is made if it does not exist."""
    before, after = "# Against the original\n\n", ""
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        if START in text and END in text:
            before, after = text[: text.index(START)], text[text.index(END) + len(END) :]
    parts = [_about(results), _targets(results), _summary(results), *(_details(results, size) for size in SIZES)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(before + START + "\n\n" + "\n\n".join(filter(None, parts)) + "\n\n" + END + (after or "\n"))


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _about(results: Results) -> str:
    about = results.data["about"]
    packages = ", ".join(f"{name} {version}" for name, version in about["original"].items() if name != "python")
    programs = len({case.program for case in cases_of(results)})
    return (
        f"{programs} of the {len(PROGRAMS)} programs of the library, measured on {about['machine']}, "
        f"Python {about['ours']['python']}, numpy {about['ours']['numpy']}; the original: {packages}. "
        f"A side was stopped after {results.data['limit']:g} s."
    )


def _targets(results: Results) -> str:
    columns = [{verdict.target: verdict for verdict in verdicts(results, level)} for level in LEVELS]
    rows = []
    for target in columns[1]:
        cells = [column.get(target) for column in columns]
        rows.append([target, *(f"{MARKS[cell.reached]}: {cell.found}" if cell else "" for cell in cells)])
    return "## Targets\n\n" + _table(["target", *LEVELS], rows)


def _summary(results: Results) -> str:
    rows = []
    for size in SIZES:
        for level in LEVELS:
            row = []
            for measure in SPEED:
                found = [ratio(results, case, level, measure) for case in shared(results, sizes=(size,))]
                row.append(str(middle([each for each in found if each is not None]) or "—"))
            if any(cell != "—" for cell in row):
                rows.append([str(size), level, *row])
    text = "## How many times better, the median over the programs both libraries have\n\n"
    return text + _table(["size", "", *SPEED.values()], rows)


def _details(results: Results, size: tuple[int, int]) -> str:
    cases = cases_of(results, sizes=(size,))
    if not cases:
        return ""
    speed = [_speed_row(results, case, level) for case in shared(results, sizes=(size,)) for level in LEVELS]
    head = ["program", "", *SPEED.values()]
    columns = ["program", "", "layers", "dimensions", "heads", "parameters", "non-zeros", "wrong", "wrong, padded"]
    shape = [_shape_row(results, case, side) for case in cases for side in SIDES]
    return (
        f"<details><summary>Vocabulary {size[0]}, length {size[1]}</summary>\n\n"
        f"How many times better:\n\n{_table(head, speed)}\n\n"
        f"Sizes, and inputs with a wrong answer:\n\n{_table(columns, [row for row in shape if row])}\n\n</details>"
    )


def _speed_row(results: Results, case: Case, level: str) -> list[str]:
    cells = [str(ratio(results, case, level, measure) or "—") for measure in SPEED]
    return [case.program if level == LEVELS[0] else "", level, *cells]


def _shape_row(results: Results, case: Case, side: str) -> list[str]:
    record = results.get(case, side)
    name = case.program if side == SIDES[0] else ""
    if record is None:
        return []
    if record["status"] == "absent":
        return [name, f"{side}: {record['reason']}", *[""] * 7]
    note = _note(results, record)
    if "size" not in record:
        return [name, f"{side}{note}", *["—"] * 7]
    keys = ("layers", "dimensions", "heads", "parameters", "non_zeros")
    sizes = [f"{record['size'][key]:,}" for key in keys]
    return [name, f"{side}{note}", *sizes, _wrong(record, "unpadded"), _wrong(record, "padded")]


def _note(results: Results, record: Record) -> str:
    if record["status"] == "stopped":
        return f", stopped after {results.data['limit']:g} s"
    return f", {record['status']}: {record['reason']}" if record["status"] != "done" else ""


def _wrong(record: Record, how: str) -> str:
    if how not in record:
        return "—"
    count = record[how]
    besides = f" ({count['wrong_besides_none']:,} besides `None`)" if count["wrong"] else ""
    return f"{count['wrong']:,} of {count['inputs']:,}{besides}"
