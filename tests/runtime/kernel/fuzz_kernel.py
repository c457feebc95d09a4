"""Broken networks and random programs for the C kernel, built with sanitizers (`make kernel-check`).

    python -m tests.runtime.kernel.fuzz_kernel [--against OTHER_KERNEL.so]

A broken network is refused with a `ValueError`, or it can be run; the sanitizers end the process at the first access
outside of an array. Of networks that are not broken, the logits are compared bit for bit with those of another build.
The same seed is used each time.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import re
from collections import Counter
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import tracr
from tests.agreement import assert_agrees, compile_quietly, some_inputs
from tests.runtime.kernel.networks import random_network
from tracr.ir.parameters import Parameters
from tracr.rasp.generate import random_program
from tracr.runtime.kernel import kernel
from tracr.runtime.kernel.kernel import Kernel, pack

KERNEL: Any = vars(kernel)["_kernel"]  # the extension in C
Array = NDArray[Any]
Change = Callable[[np.random.Generator, Array], Array]

BROKEN = 6_000
SOUND = 300
PROGRAMS = 60
RARE = {"a map that adds is listed by input"}  # it takes many changes at once; `test_reading.py` has one
EXTREME = (-(2**31), -1, 0, 1, 2, 3, 2**16, 2**31 - 1)


def _packed(parameters: Parameters, causal: bool) -> tuple[Array, Array]:
    return pack(parameters.map(lambda array: array.astype(np.float32)), causal)


def _flip_a_bit(rng: np.random.Generator, part: Array) -> Array:
    part.view(np.uint8)[rng.integers(4 * len(part))] ^= np.uint8(1 << rng.integers(8))
    return part


def _replace(rng: np.random.Generator, part: Array) -> Array:
    part.view(np.int32)[rng.integers(len(part))] = rng.choice(EXTREME)
    return part


def _nudge(rng: np.random.Generator, part: Array) -> Array:
    part[rng.integers(len(part))] += rng.choice([-1, 1])
    return part


def _swap(rng: np.random.Generator, part: Array) -> Array:
    first, second = rng.integers(len(part), size=2)
    part[[first, second]] = part[[second, first]]
    return part


def _cut(rng: np.random.Generator, part: Array) -> Array:
    return part[: rng.integers(len(part))]


def _extend(rng: np.random.Generator, part: Array) -> Array:
    return np.concatenate([part, part[: rng.integers(1, len(part) + 1)]])


def _leave_out(rng: np.random.Generator, part: Array) -> Array:
    return np.delete(part, rng.integers(len(part)))


def _repeat(rng: np.random.Generator, part: Array) -> Array:
    place = rng.integers(len(part))
    return np.insert(part, place, part[place])


CHANGES: tuple[Change, ...] = (_flip_a_bit, _replace, _nudge, _swap, _cut, _extend, _leave_out, _repeat)


def broken(rng: np.random.Generator, words: Array, numbers: Array) -> tuple[Array, Array]:
    """The integers and numbers of a network, changed in one to three places."""
    parts = [words.copy(), numbers.copy()]
    with np.errstate(all="ignore"):
        for _ in range(rng.choice([1, 1, 2, 3])):
            which = int(rng.random() < 0.1)
            if len(parts[which]):
                parts[which] = CHANGES[rng.integers(len(CHANGES))](rng, parts[which])
    return parts[0], parts[1]


def run(module: Any, network: object, ids: Array, logits: int) -> Array:
    """The logits of a network."""
    out = np.empty((*ids.shape, logits), np.float32)
    module.run(network, np.array([[0, logits, False]], np.int32), ids, ids.shape[1], out)
    return out


def try_broken(seed: int) -> str:
    """Load a broken network and run it, several times; why it was refused, or nothing."""
    rng = np.random.default_rng(seed)
    parameters, ids = random_network(rng)
    words, numbers = broken(rng, *_packed(parameters, causal=bool(rng.integers(2))))
    try:
        network = KERNEL.load(words, numbers, {}, int(rng.integers(1, 4)))
    except ValueError as refusal:
        return str(refusal).removeprefix("no packed network: ")
    for count in (0, 1, 1, len(ids)):
        try:  # the change may have been to the number of tokens, positions or logits
            run(KERNEL, network, rng.permutation(ids)[:count], parameters.W_U.shape[1])
        except (IndexError, ValueError):
            return ""
    return ""


def check_sound(seed: int, other: Any) -> None:
    """Alone, in a batch, by threads and by another build a network gives the same logits."""
    rng = np.random.default_rng(seed)
    parameters, ids = random_network(rng)
    words, numbers = _packed(parameters, causal=bool(rng.integers(2)))
    logits = parameters.W_U.shape[1]
    alone, threaded = (KERNEL.load(words, numbers, {}, threads) for threads in (1, 3))
    expected = run(KERNEL, alone, ids, logits)
    for row, own in zip(ids, expected, strict=True):
        np.testing.assert_array_equal(run(KERNEL, alone, row[None], logits)[0], own)
    if seed % 10 == 0 and len(ids):
        np.testing.assert_array_equal(run(KERNEL, threaded, ids.repeat(200, 0), logits)[::200], expected)
    if other is not None:
        assert run(other, other.load(words, numbers, {}, 1), ids, logits).tobytes() == expected.tobytes()


def check_program(seed: int) -> bool:
    """Whether a random program compiles; its model then answers as the program does, by the short way and by the other.

    The short way is `Kernel.answer`.
    """
    program = random_program(seed, max_ops=seed % 6, vocab=tuple("abc"), max_seq_len=5)
    try:
        model = compile_quietly(program, "abc", 5, level=seed % 3)
    except tracr.CompileError:
        return False
    inputs = some_inputs("abc", 5, 15, seed)
    assert_agrees(model, program, inputs, reference=3)
    low, high = model.vocabulary.shortest, model.vocabulary.longest
    given: list[Any] = [xs for xs in inputs if low <= len(xs) <= high]
    given += [*("".join(xs) for xs in given), *([xs, xs[::-1]] for xs in given)]
    found = [repr(model(xs)) for xs in given]
    with patch.object(Kernel, "answer", return_value=None):
        assert found == [repr(model(xs)) for xs in given]
    return True


def leaked(work: Callable[[], object]) -> int | None:
    """How many bytes more are allocated each time that this is done; `None` without a sanitizer, which counts them."""
    try:
        allocated = ctypes.CDLL(None).__sanitizer_get_current_allocated_bytes
    except AttributeError:
        return None
    allocated.restype = ctypes.c_size_t
    counts = np.zeros(5, np.int64)
    for number in range(len(counts)):
        work()
        gc.collect()
        counts[number] = allocated()
    return int(np.diff(counts[2:]).min())  # the first times fill caches


def refusals() -> set[str]:
    """All that a network can be refused for."""
    (source,) = Path(__file__).parents[3].glob("src/**/unpack.h")
    return set(re.findall(r'require\(.*, "(.+)"\);', source.read_text()))


def other_build(path: str) -> Any:
    """The kernel as it was built elsewhere."""
    spec = spec_from_file_location("_kernel", path, loader=ExtensionFileLoader("_kernel", path))
    assert spec is not None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Try everything, and say how much it was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", help="another build of the kernel; this one must have sanitizers then")
    against = parser.parse_args().against
    other = other_build(against) if against else None
    assert not against or b"__asan_init" in Path(str(KERNEL.__file__)).read_bytes(), "this kernel has no sanitizers"

    met = Counter(try_broken(seed) for seed in range(BROKEN))
    assert met[""] > BROKEN // 20, "nearly all broken networks are refused: nothing is run"
    assert set(met) >= refusals() - RARE, f"never refused because {refusals() - RARE - set(met)}"
    print(f"{BROKEN:,} broken networks: {BROKEN - met['']:,} refused, {met['']:,} run")

    for seed in range(SOUND):
        check_sound(seed, other)
    print(f"{SOUND} random networks: the same logits{', bit for bit those of the other build' if other else ''}")

    compiled = sum(check_program(seed) for seed in range(PROGRAMS))
    assert compiled > PROGRAMS // 2, "too few programs were compiled"
    print(f"{compiled} random programs: the same answers")

    plain = tracr.compile(random_program(1, vocab=tuple("abc"), max_seq_len=5), "abc", 5)._kernel(np.float32)
    assert plain is not None
    inputs = (["a", "b"], "abc", [["a"], ["b"]], ["?"], [["a"], ["?"]])
    works = (lambda: [try_broken(seed) for seed in range(200)], lambda: [plain.answer(xs) for xs in inputs * 100])
    lost = [leaked(work) for work in works]
    assert not any(lost), f"{lost} bytes leak each time"
    print("no sanitizer that counts leaks" if None in lost else "no byte leaks")


if __name__ == "__main__":
    main()
