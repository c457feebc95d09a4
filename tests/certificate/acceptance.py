"""The golden table of the checker: which models of the library are accepted in which arithmetic.

python -m tests.certificate.acceptance    writes tests/golden/acceptance.txt again
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import tracr
from tracr.certificate.certifying import CERTIFICATE
from tracr.rasp.programs import EXAMPLES
from tracr.saving.models import files_of
from tracr_check import ARITHMETICS, check_folder

__all__ = ["GOLDEN", "rows", "verdicts"]

GOLDEN = Path(__file__).parents[1] / "golden" / "acceptance.txt"
LETTERS = {True: "yes", False: "no"}


def verdicts(name: str, level: int, arithmetics: tuple[str, ...] = tuple(ARITHMETICS)) -> list[str]:
    """Yes or no for each arithmetic, padded, at the program's own size."""
    example = EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    hints = model.certify().hints
    with tempfile.TemporaryDirectory() as folder:
        for file, data in {**files_of(model), CERTIFICATE: hints}.items():
            Path(folder, file).write_bytes(data)
        return [LETTERS[check_folder(folder, arithmetic).accepted] for arithmetic in arithmetics]


def rows() -> dict[tuple[str, int], list[str]]:
    """The golden table."""
    found = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines()[1:]:
        name, level, *letters = line.split()
        found[name, int(level)] = letters
    return found


def main() -> None:
    """Write the table."""
    lines = [f"{'program':<24} level  {'  '.join(f'{name:<13}' for name in ARITHMETICS)}"]
    for name in EXAMPLES:
        for level in (0, 1, 2):
            lines.append(f"{name:<24} {level}      {'  '.join(f'{one:<13}' for one in verdicts(name, level))}")
            print(lines[-1], flush=True)
    GOLDEN.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
