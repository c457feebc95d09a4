"""Transcripts of the interpreter in Markdown: what was typed behind `>>` and `..`, and what it answered."""

from __future__ import annotations

from collections.abc import Iterator

PROMPT, CONTINUED = "    >> ", "    .. "


def entries(text: str) -> Iterator[tuple[str, str]]:
    """What was typed, and the lines below it, up to the next entry or the end of the block."""
    program: list[str] = []
    answer: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith(CONTINUED) and program:
            program.append(line[len(CONTINUED) :])
        elif program and (line.startswith(PROMPT) or not line.startswith("    ")):
            yield "\n".join(program), "\n".join(line[4:] for line in answer)
            program, answer = [], []
        elif program:
            answer.append(line)
        if line.startswith(PROMPT):
            program = [line[len(PROMPT) :]]
