"""Questions that patch an edge: its reader sees what its writer writes on another input.

The true answer is measured on the subject itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.data import MethodData
from tracr.lab.methods.passes import BothPasses, both_passes
from tracr.lab.predicted.questions import Answer, Question

if TYPE_CHECKING:
    from tracr.lab.subjects import Subject

__all__ = ["patch_questions", "patched_answers"]

PAIRS = 64  # pairs of inputs of which every edge is patched


def patch_questions(subject: Subject, seed: int, draws: int) -> Iterator[Question]:
    """Random questions, up to a number of them: edges on pairs, in random order."""
    pairs = subject.case.pairs(PAIRS, seed)
    both = both_passes(subject, MethodData.of(pairs))
    edges = [edge for edge in subject.candidates if edge in set(both.patching.candidates)]
    answers = patched_answers(both, [[edge] for edge in edges])
    clean = patched_answers(both, [[]])[0]
    order = np.random.default_rng([seed, 1]).permutation(len(edges) * len(pairs))
    for number in order[:draws].tolist():
        which, pair = divmod(number, len(pairs))
        one = pairs[pair]
        yield Question(0, "patch", one.clean, clean[pair], answers[which][pair], edge=edges[which], other=one.corrupted)


def patched_answers(both: BothPasses, patches: Sequence[Collection[EdgeKey]]) -> list[list[Answer]]:
    """The answers [patch][pair] of the first output, with the edges of each patch patched."""
    output = both.outputs[0]

    def codes(logits: Any) -> Any:
        return output.codes(logits)

    found = both.patching.run(both.clean, both.corrupted.written, [list(patch) for patch in patches], codes)
    values = output.decode(found)
    lengths = both.token.sum(axis=1).tolist()
    return [[tuple(row[1 : length + 1].tolist()) for row, length in zip(rows, lengths, strict=True)] for rows in values]
