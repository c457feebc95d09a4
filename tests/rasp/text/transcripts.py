"""Transcripts of the interpreter in Markdown: what was typed behind `>>` and `..`, and what it answered."""

from __future__ import annotations

from collections.abc import Iterator

PROMPT, CONTINUED = "    >> ", "    .. "


def entries(text: str) -> Iterator[tuple[str, str]]:
    """What was typed, and the lines below it, up to the next entry or the end of the block."""
    typed: list[str] = []
    answer: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith(CONTINUED) and typed:
            typed.append(line[len(CONTINUED) :])
        elif typed and (line.startswith(PROMPT) or not line.startswith("    ")):
            yield "\n".join(typed), "\n".join(line[4:] for line in answer)
            typed, answer = [], []
        elif typed:
            answer.append(line)
        if line.startswith(PROMPT):
            typed = [line[len(PROMPT) :]]
