"""The text of every stage for the paper's programs, kept as files: any change of the compiler shows up as a diff.

Write them anew with `python -m tests.compiler.test_goldens` and read what changed before committing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tracr
from tracr.rasp import programs

FOLDER = Path(__file__).parent.parent / "golden"
NAMES = ("frac_prevs", "sort_unique", "sort", "pair_balance", "shuffle_dyck2", "reverse")
STAGES = ("trace", "infer", "translate", "construct")


def text(name: str, *levels: int) -> str:
    """All stages of a program, at some levels."""
    example = programs.EXAMPLES[name]
    parts = []
    for level in levels:
        model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
        parts += [f"== level {level}, {stage}\n{model.show(stage)}\n" for stage in STAGES]
    return "\n".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_stages_print_as_before(name: str) -> None:
    """trace, infer, translate and construct, at levels 0 and 1."""
    assert text(name, 0, 1) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_level_2_prints_as_before(name: str) -> None:
    """The same stages, at level 2."""
    assert text(name, 2) == (FOLDER / f"{name}_2.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in NAMES:
        (FOLDER / f"{name}.txt").write_text(text(name, 0, 1), encoding="utf-8")
        (FOLDER / f"{name}_2.txt").write_text(text(name, 2), encoding="utf-8")
