"""An invalid packed network is refused when it is read, and arrays of wrong sizes are refused when they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracr
from tests.runtime.kernel.fuzz_kernel import EXTREME, run, try_broken
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.kernel import kernel
from tracr.runtime.kernel.kernel import pack

KERNEL: Any = vars(kernel)["_kernel"]  # the extension in C
pytestmark = pytest.mark.skipif(KERNEL is None, reason="installed without a C compiler")

# A network with everything in it once: 2 tokens, 2 positions, a residual stream of 1, a head, a neuron, a logit.
SMALL: dict[str, list[int]] = {
    "rows": [4],
    "stream": [1],
    "layers": [1],
    "heads": [1],
    "causal": [0],
    "width": [1],
    "ordinal": [0],
    "tokens": [2],
    "token start": [0, 1, 2],
    "token column": [0, 0],
    "positions": [2],
    "position start": [0, 0, 0],
    "kinds": [2],
    "kind": [0, 1],
    "heads of layer": [1],
    "query": [1, 0, 1],  # width, whether it is known, row
    "key": [1, 1],
    "key class": [0, 1],
    "key classes": [2, 0, 1, 2, 0, 0],
    "key positions": [2, 0, 0, 0],
    "value": [1, 1],
    "value class": [0, 1],
    "value classes": [2, 0, 1, 2, 0, 0],
    "value positions": [2, 0, 0, 0],
    "shares": [0],
    "head row": [2],
    "sides inputs": [0],
    "sides entries": [1, 0, 1, 0],
    "sides outputs": [1, 1],
    "output": [0, 1, 0, 1, 2, 1, 0],  # inputs; rows of entries, start, columns; outputs, targets
    "in": [0, 1, 0, 1, 0, 1, 1],
    "out": [0, 1, 0, 1, 1, 1, 0],
    "unembed": [0, 1, 0, 1, 0, 1, 1],
    "logits": [1],
    "logit": [1],
}
NUMBERS = np.ones(16, np.float32)  # 2 of tokens, 4 of classes, and a weight and a bias of each of 5 maps

WRONG: list[tuple[str, list[int], str]] = [
    ("rows", [-1], "a count is negative"),
    ("rows", [0], "the residual stream is larger than memory"),
    ("rows", [2**31 - 1], "a count is larger than the network"),
    ("layers", [2**31 - 1], "a count is larger than the network"),
    ("heads", [2**31 - 1], "a count is larger than the network"),
    ("heads", [0], "there are more heads than it says"),
    ("heads", [2], "there are fewer heads than it says"),
    ("causal", [2], "a flag is neither 0 nor 1"),
    ("width", [2**31 - 1], "its integers end too early"),
    ("ordinal", [1], "an index is out of range"),
    ("tokens", [2**31 - 1], "its integers end too early"),
    ("token start", [1, 1, 2], "the first row does not begin with the first entry"),
    ("token start", [0, 2, 1], "a row ends before it begins"),
    ("token start", [0, 0, 2], "the columns of a row are not in ascending order"),
    ("token column", [0, 1], "an index is out of range"),
    ("token column", [-1, 0], "an index is out of range"),
    ("kinds", [3], "there are more kinds of tokens than tokens"),
    ("kind", [0, 2], "an index is out of range"),
    ("query", [2, 0, 1], "a query, key or value is wider than the widest"),
    ("query", [1, 0, 4], "a query, key or value is out of memory's rows"),
    ("query", [1, 0, 2**31 - 1], "a query, key or value is out of memory's rows"),
    ("query", [0, 0, 1], "queries and keys differ in width"),
    ("key class", [0, 2], "a class is out of range"),
    ("key classes", [2, 0, 1, 2, 0, 1], "an index is out of range"),
    ("key positions", [1, 0, 0], "a head has other positions than the network"),
    ("shares", [1], "there are shares of what is not known"),
    ("head row", [4], "an index is out of range"),
    ("sides inputs", [1, 4], "an index is out of range"),
    ("sides entries", [2, 0, 1, 1, 0], "a map has entries of something else"),
    ("sides entries", [1, 0, 1, 4], "an index is out of range"),
    ("sides outputs", [1, 4], "an index is out of range"),
    ("output", [1, 2, 1, 0, 1, 0, 1, 0], "a map that adds is listed by input"),
    ("logit", [4], "an index is out of range"),
    ("logit", [1, 0], "its integers go on behind its end"),
    ("logit", [], "its integers end too early"),
]


def _words(changed: str = "", to: list[int] | None = None) -> np.ndarray:
    parts = [to if name == changed and to is not None else own for name, own in SMALL.items()]
    return np.array([word for part in parts for word in part], np.int32)


def _load(words: Any, numbers: Any = NUMBERS) -> object:
    return KERNEL.load(words, numbers, {}, 1)


def test_the_small_network_is_one() -> None:
    assert run(KERNEL, _load(_words()), np.array([[0, 1]]), 1).tolist() == [[[9.0], [9.0]]]


@pytest.mark.parametrize(("part", "to", "reason"), WRONG)
def test_a_broken_part_is_refused(part: str, to: list[int], reason: str) -> None:
    """Each for its own reason: every other part is as in a network that is taken."""
    with pytest.raises(ValueError, match=f"^no packed network: {reason}$"):
        _load(_words(part, to))


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (NUMBERS[:-1], "its numbers end too early"),
        (np.ones(17, np.float32), "its numbers go on behind its end"),
        (NUMBERS.tobytes()[:-1], "its buffers do not hold 32 bits each"),
    ],
)
def test_numbers_end_where_the_network_does(numbers: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _load(_words(), numbers)


def _compiled(name: str) -> tuple[np.ndarray, np.ndarray]:
    example = EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    return pack(model.cast(np.float32), causal=False)


@pytest.mark.parametrize("name", ["hist", "sort", "dyck1"])
def test_every_beginning_of_a_network_is_refused(name: str) -> None:
    words, numbers = _compiled(name)
    for size in range(len(words)):
        with pytest.raises(ValueError, match="no packed network"):
            _load(words[:size], numbers)
    for size in range(len(numbers)):
        with pytest.raises(ValueError, match="no packed network"):
            _load(words, numbers[:size])


def test_every_integer_may_be_anything() -> None:
    """A network in which one integer is another is refused, or can be run."""
    words, numbers = _compiled("hist")
    taken = 0
    for place in range(len(words)):
        for value in EXTREME:
            changed = words.copy()
            changed[place] = value
            try:
                network = _load(changed, numbers)
            except ValueError:
                continue
            run(KERNEL, network, np.array([[3, 0, 1]]), 1)
            taken += 1
    assert 0 < taken < len(words) * len(EXTREME) / 2


def test_broken_networks_are_refused_or_run() -> None:
    """As `fuzz_kernel.py` tries many more of, under sanitizers."""
    found = [try_broken(seed) for seed in range(500)]
    assert 20 < found.count("") < 250
    assert len(set(found)) > 10


def _shifted(array: np.ndarray) -> memoryview:
    """The same bytes, beginning at an address that is not a multiple of their size."""
    room = bytearray(array.nbytes + 1)
    start = 1 - np.frombuffer(room, np.uint8).ctypes.data % 2
    part = memoryview(room)[start : start + array.nbytes]
    part[:] = array.tobytes()
    return part


LOGIT = np.array([[0, 1, 0]], np.int32)
IDS = np.array([[0, 1]])
OUT = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("readings", "ids", "length", "out"),
    [
        (np.array([[0, 2, 0]], np.int32), IDS, 2, np.zeros(4, np.float32)),
        (np.array([[-1, 1, 0]], np.int32), IDS, 2, np.zeros(4, np.float32)),
        (np.array([[1, 0, 0]], np.int32), IDS, 2, OUT),
        (LOGIT[0, :2], IDS, 2, OUT),
        (_shifted(LOGIT), IDS, 2, OUT),
        (LOGIT, _shifted(IDS), 2, OUT),
        (LOGIT, IDS, 2, _shifted(OUT)),
        (LOGIT, IDS, 2, OUT[:1]),
        (LOGIT, IDS, 2, np.zeros(3, np.float32)),
        (LOGIT, IDS, 0, OUT),
        (LOGIT, IDS, -1, OUT),
        (LOGIT, IDS, 3, OUT),
        (LOGIT, IDS.repeat(2), 4, np.zeros(4, np.float32)),
        (LOGIT, IDS + 1, 2, OUT),
        (LOGIT, IDS - 1, 2, OUT),
        (LOGIT, IDS + 2**32, 2, OUT),
    ],
)
def test_arrays_that_do_not_fit_are_refused(readings: Any, ids: Any, length: int, out: Any) -> None:
    network = _load(_words())
    with pytest.raises((ValueError, IndexError)):
        KERNEL.run(network, readings, ids, length, out)
    assert KERNEL.run(network, LOGIT, IDS, 2, OUT) == 0


@pytest.mark.parametrize(
    ("readings", "values", "middles"),
    [
        (np.zeros((0, 3), np.int32), ("a",), None),
        (np.array([[0, 0, 0]], np.int32), ("a",), np.zeros(0)),
        (LOGIT, ("a",), None),  # the logit is a number, no value's number
        (np.array([[0, 2, 1]], np.int32), ("a",), None),
        (LOGIT, ("a", "b"), _shifted(np.zeros(1))),
        (LOGIT, ("a", "b"), b"1234567"),
    ],
)
def test_an_output_that_is_none_is_refused(readings: Any, values: Any, middles: Any) -> None:
    network = KERNEL.load(_words(), NUMBERS, {"a": 0}, 1)
    with pytest.raises(ValueError, match=r"readings are not of 1 logits|do not say what an output is"):
        KERNEL.answer(network, readings, 0, values, middles, ["a"])
    assert KERNEL.answer(network, LOGIT, 0, None, None, ["a"]) == [9.0]


SIZES = [2, 3, 4, 5, 1, 2, 3]  # tokens, positions, dimensions, logits; a layer's heads, their inside, its neurons
COUNT = 2 * 4 + 3 * 4 + 3 * (4 * 2 + 2) + 2 * 4 + 4 + 4 * 3 + 3 + 3 * 4 + 4 + 4 * 5


def test_all_weights_of_a_model_can_be_packed() -> None:
    words, numbers = KERNEL.pack(np.ones(COUNT, np.float32), np.array(SIZES, np.int32), False)
    KERNEL.load(words, numbers, {"a": 0, "b": 1}, 1)


@pytest.mark.parametrize(
    ("count", "sizes", "reason"),
    [
        (COUNT - 1, SIZES, "its weights end too early"),
        (COUNT + 1, SIZES, "its weights go on behind its end"),
        (COUNT, [*SIZES[:4], 2**30, 2**30, 2**30], "its weights end too early"),
        (COUNT, [2**31 - 1, *SIZES[1:]], "its weights end too early"),
        (COUNT, [-2, *SIZES[1:]], "a size is negative"),
        (COUNT, SIZES[:-1], "its sizes are not those of layers"),
        (COUNT, [], "its sizes are not those of layers"),
    ],
)
def test_weights_of_other_sizes_are_not_packed(count: int, sizes: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^no model to pack: {reason}$"):
        KERNEL.pack(np.ones(count, np.float32), np.array(sizes, np.int32), False)


def test_only_numbers_of_32_bits_are_packed() -> None:
    with pytest.raises(ValueError, match="do not hold 32 bits each"):
        KERNEL.pack(b"abc", np.array(SIZES, np.int32), False)
