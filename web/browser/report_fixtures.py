"""Reports for the browser tests: `python web/browser/report_fixtures.py FOLDER`.

A report of invented rows for real programs, one with hostile names, one of a single case, and a large one; and what
the leaderboard of the first must show, computed by `tests.lab.result_rows` without the report.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.lab.result_rows import HOSTILE, METHODS, brute_force, failed, result_rows
from tracr import lab

METHOD_NAMES = (
    "exact",
    "eap",
    "eap-ig-inputs",
    "eap-ig-activations",
    "acdc",
    "edge-probing",
    "information-flow",
    "random",
)
WAYS = ("compiled", "rotated", "superposed", "softened", "decoys", "twin")


def main(folder: Path) -> None:
    """Write everything."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = result_rows([case.name for case in lab.cases()[:12]], (0, 1))
    values = [[row["realisation"], row["dials"], row["method"], row["case"], brute_force(row)[0]] for row in rows]
    (folder / "report.json").write_text(json.dumps(values))
    rows[0] = failed(rows[0], "ValueError: it did not work")
    rows[5] = {**rows[5], "admitted": False}
    lab.report(rows, notes="What it means: `nothing`.\n\nWhat it does not: **anything**.").save(folder / "report.html")
    odd = result_rows(HOSTILE, (0, 1), [(name, {}, 1.0) for name in HOSTILE], [("compiled", {}), (HOSTILE[0], {})])
    lab.report(odd, title=HOSTILE[1], notes=HOSTILE[0]).save(folder / "report-odd.html")
    lab.report(result_rows(("hist",), (0,))).save(folder / "report-single.html")
    methods = [(name, METHODS[0][1], 2 - place / 4) for place, name in enumerate(METHOD_NAMES)]
    many = result_rows([f"case {number}" for number in range(100)], (0, 1, 2), methods, [(name, {}) for name in WAYS])
    lab.report(many).save(folder / "report-large.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
