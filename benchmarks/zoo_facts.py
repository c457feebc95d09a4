"""Measures every program of the zoo, and writes the table that `zoo.facts` reads.

    python benchmarks/zoo_facts.py                     all programs; minutes
    python benchmarks/zoo_facts.py hist sort           these, the rest of the table stays

For each program at its default size: sizes and roles of the components at level 1; for levels 0, 1 and 2 whether the
checker accepts the model in float32, padded, or the reason why not; how many twins of docs/natural/results.json were
admitted. The key of the program's meaning says for which program the row holds (`tests/zoo/test_facts.py` compares it).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from tracr import zoo
from tracr.cli.description import sizes
from tracr.datasets import meaning
from tracr.lab import roles_of
from tracr.natural.cases import case_of
from tracr.version import __version__

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src" / "tracr" / "zoo" / "facts.json"
TWINS = ROOT / "docs" / "natural" / "results.json"


def measured(entry: zoo.Entry, twins: dict[str, Any] | None) -> dict[str, Any]:
    """The row of one program."""
    models = [entry.load(level) for level in (0, 1, 2)]
    size = sizes(models[1])
    return {
        "meaning": meaning(models[1].program),
        "layers": size["layers"],
        "heads": size["heads"],
        "d_model": size["d_model"],
        "parameters": size["parameters"],
        "roles": {one.component: list(one.roles) for one in roles_of(models[1]).values()},
        "rejections": [model.certify().reason for model in models],
        "twins": twins,
    }


def trained_twins() -> dict[str, dict[str, Any]]:
    """For each program with twins: its size there, how many were trained and how many admitted."""
    seeds = defaultdict(list)
    for row in json.loads(TWINS.read_text(encoding="utf-8")):
        seeds[row["program"]].append(row)
    found = {}
    for name, rows in seeds.items():
        case = case_of(name)
        size = {"tokens": len(case.vocab), "length": case.max_seq_len}
        assert all((row["tokens"], row["length"]) == (size["tokens"], size["length"]) for row in rows), name
        found[name] = {"trained": len(rows), "admitted": sum(row["admitted"] for row in rows), **size}
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs; all if none is named")
    names = parser.parse_args().names
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["programs"] if TABLE.exists() else {}
    twins = trained_twins()
    for entry in [zoo.get(name) for name in names] or zoo.entries():
        rows[entry.name] = measured(entry, twins.get(entry.name))
        refused = [level for level, reason in enumerate(rows[entry.name]["rejections"]) if reason]
        print(entry.name, f"not certified at levels {refused}" if refused else "certified", flush=True)
    rows = {name: rows[name] for name in zoo.names() if name in rows}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    TABLE.write_text(f'{{"tracr": "{__version__}", "programs": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
