"""The inputs that a model is checked on: all of them if they are few, else a stratified sample."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.ops import ERROR
from tracr.ir.program import Tables
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch

if TYPE_CHECKING:
    from tracr.model.running import RunnableModel

__all__ = [
    "Codes",
    "EveryLength",
    "chosen_inputs",
    "every_evaluation",
    "every_length",
    "ids_of",
    "inputs_of",
    "is_small",
]

ROWS = 4096  # inputs of one batch
CELLS = 1_000_000  # positions × positions of all inputs, padded, up to which all lengths are one batch

Codes = NDArray[np.int32]


def chosen_inputs(model: RunnableModel, budget: int, seed: int) -> tuple[Iterator[Codes], int]:
    """All inputs if they are at most `budget`, else a sample of about that many; and the number of them."""
    return inputs_of(model.program, budget, seed)


def inputs_of(program: Tables, budget: int, seed: int) -> tuple[Iterator[Codes], int]:
    """`chosen_inputs` of the model of a program."""
    shortest, longest = program.lengths
    size = len(program.options.vocab)
    total = sum(size**length for length in range(shortest, longest + 1))
    if total <= budget:
        return _every_input(size, shortest, longest), total
    return _sample(size, shortest, longest, budget, seed), total


def _every_input(size: int, shortest: int, longest: int) -> Iterator[Codes]:
    """All inputs, length by length, in batches of one length."""
    for length in range(shortest, longest + 1):
        every = itertools.product(range(size), repeat=length)
        while rows := list(itertools.islice(every, ROWS)):
            yield np.array(rows, dtype=np.int32)


def _sample(size: int, shortest: int, longest: int, budget: int, seed: int) -> Iterator[Codes]:
    """Random inputs of every length, in batches of one length; if enough, they have every token at every position.

    Half of each length's share is uniform; the other half draws from a few tokens, to make repetitions and empty
    selections likely.
    """
    rng = np.random.default_rng(seed)
    lengths = range(shortest, longest + 1)
    share = max(1, budget // len(lengths))
    for length in lengths:
        rows = rng.integers(size, size=(share, length), dtype=np.int32)
        few = rng.integers(size, size=(share, 3), dtype=np.int32)
        half = share // 2
        picks = rng.integers(3, size=(half, length))
        rows[:half] = np.take_along_axis(few[:half], picks, axis=1)
        first = rng.permutation(size)[: max(1, share // 2)] if size > share // 2 else np.arange(size)
        rows[share - len(first) :] = (first[:, None] + np.arange(length)) % size  # rows of a Latin square of tokens
        for start in range(0, share, ROWS):
            yield rows[start : start + ROWS]


def is_small(program: Tables, budget: int) -> bool:
    """Whether the inputs of all lengths are at most `budget`, and few and short enough to be one batch."""
    shortest, longest = program.lengths
    if longest**2 > CELLS:
        return False
    total: int = sum(len(program.options.vocab) ** length for length in range(shortest, longest + 1))
    return total <= min(budget, ROWS, CELLS // max(1, longest**2))


@dataclass(frozen=True, eq=False)
class EveryLength:
    """All inputs of all lengths as one batch, and the ids to run: the batch padded, then each shorter length alone.

    `cells` are the places in the batch, of row × longest + position, of all tokens in all runs, one run after another.
    """

    batch: Batch
    runs: tuple[NDArray[np.int64], ...]
    cells: NDArray[np.intp]

    def of_tokens(self, results: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The results [row, position] of the runs, which begin with BOS, at the tokens: for each of `cells` one."""
        padded, *shorter = (result[:, 1:] for result in results)
        return np.concatenate([padded[self.batch.valid], *(result.ravel() for result in shorter)])


@functools.lru_cache(maxsize=4)
def every_length(size: int, shortest: int, longest: int) -> EveryLength:
    """All inputs of a vocabulary of `size` tokens, which must be few. They are kept, and cannot be changed."""
    groups = list(_every_input(size, shortest, longest))
    lengths = np.repeat([codes.shape[1] for codes in groups], list(map(len, groups))).astype(np.int32)
    codes = np.full((len(lengths), longest), ERROR, dtype=np.int32)
    ids = np.full((len(lengths), longest + 1), size + 1, dtype=np.int64)
    ids[:, 0] = size
    numbers = np.arange(codes.size).reshape(codes.shape)
    batch = Batch(codes, lengths)
    runs, cells, start = [ids], [numbers[batch.valid]], 0
    for group in groups:
        rows, width = slice(start, start + len(group)), group.shape[1]
        codes[rows, :width] = group
        ids[rows, 1 : width + 1] = group
        if width < longest:
            runs.append(ids[rows, : width + 1])
            cells.append(numbers[rows, :width].ravel())
        start += len(group)
    for array in (codes, lengths, ids):
        array.flags.writeable = False
    return EveryLength(batch, tuple(runs), np.concatenate(cells))


@functools.lru_cache(maxsize=1)
def every_evaluation(program: Tables) -> Evaluation:
    """The program's values on all inputs (`is_small`); those of the last program are kept."""
    return evaluate_batch(program, every_length(len(program.options.vocab), *program.lengths).batch)


def ids_of(model: RunnableModel, codes: Codes, padded: bool) -> NDArray[np.int64]:
    """Token ids with BOS in front, and PAD up to the longest input behind."""
    vocabulary = model.vocabulary
    width = vocabulary.longest if padded else codes.shape[1]
    ids = np.full((len(codes), width + 1), vocabulary.pad_id, dtype=np.int64)
    ids[:, 0] = vocabulary.bos_id
    ids[:, 1 : codes.shape[1] + 1] = codes
    return ids
