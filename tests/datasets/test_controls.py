"""The difficulty controls of random programs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.strategies import SEEDS
from tracr.datasets import Controls, to_python
from tracr.rasp import generate, rasp
from tracr.rasp.size import size_of
from tracr.rasp.traversal import topological

ranges = st.tuples(st.integers(0, 5), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(seed=SEEDS, ops=ranges, depth=ranges, selectors=st.tuples(st.integers(0, 2), st.integers(0, 2)))
@settings(max_examples=60, deadline=None)
def test_sizes_are_within_their_limits(
    seed: int, ops: tuple[int, int], depth: tuple[int, int], selectors: tuple[int, int]
) -> None:
    """Ops, depth and selectors lie where they are asked to, wherever that is possible."""
    low, more = selectors
    min_ops, max_ops = max(ops[0], depth[0], low), max(ops[1], depth[0], low)
    program = tracr.random_program(
        seed,
        min_ops=min_ops,
        max_ops=max_ops,
        min_depth=depth[0],
        max_depth=max(depth[1], min_ops),
        min_selectors=low,
        max_selectors=low + more,
    )
    size = size_of(program)
    assert min_ops <= size.ops <= max_ops
    assert depth[0] <= size.depth <= max(depth[1], min_ops)
    assert low <= size.selectors <= low + more


def test_shallow_programs() -> None:
    """`max_depth` alone limits the depth, and leaves the other measures to chance."""
    sizes = [size_of(tracr.random_program(seed, max_depth=2)) for seed in range(60)]
    assert {size.depth for size in sizes} == {0, 1, 2}
    assert max(size.ops for size in sizes) > 2


def test_causal_programs_do_not_read_length() -> None:
    """They could not be evaluated causally."""
    for seed in range(60):
        assert not any(isinstance(e, rasp.Length) for e in topological([tracr.random_program(seed, causal=True)]))


def test_vocabulary_and_length_are_respected() -> None:
    """A program over numbers runs on them, at the longest length."""
    for seed in range(60):
        assert len(tracr.random_program(seed, vocab={1, 2, 3}, max_seq_len=8)([1, 2, 3, 3, 2, 1, 1, 2])) == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_ops": 3, "max_ops": 2}, "at least 3 and at most 2 ops"),
        ({"min_depth": 3, "max_ops": 2}, "at least 3 and at most 2 depth"),
        ({"min_selectors": 2, "max_selectors": 1}, "at least 2 and at most 1 selectors"),
        ({"min_selectors": 1, "max_depth": 0}, "no selectors"),
        ({"min_ops": -1}, "min_ops must be .* not -1"),
        ({"vocab": []}, "the vocabulary is empty"),
        ({"vocab": ["bos"]}, "BOS"),
        ({"max_seq_len": 0}, "max_seq_len"),
    ],
)
def test_impossible_controls_are_refused(options: dict[str, object], message: str) -> None:
    """They are refused with the reason."""
    with pytest.raises(tracr.TracrError, match=message):
        tracr.random_program(0, **options)  # type: ignore[arg-type]


def test_impossible_wishes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only drawing can show to be impossible ends with an error too, not never."""
    monkeypatch.setattr(generate, "RESTARTS", 1)
    with pytest.raises(tracr.ExpressionError, match="no random program of at least"):
        tracr.random_program(0, min_selectors=20, max_ops=1)


def test_programs_are_the_same_in_every_process() -> None:
    """Hash seeds do not matter."""
    code = "import tracr; from tracr.datasets import to_python; print(to_python(tracr.random_program([3, 4])), end='')"
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == to_python(tracr.random_program([3, 4]))


def test_controls_are_data() -> None:
    """They come back from JSON with every token's type."""
    controls = Controls((1, "1", 1.5, ("a", None)), 3, causal=True, max_depth=2)
    again = Controls.from_json(controls.to_json())
    assert again == controls
    assert list(map(type, again.vocab)) == list(map(type, controls.vocab))
    with pytest.raises(tracr.FormatError, match="controls"):
        Controls.from_json({"vocab": []})
