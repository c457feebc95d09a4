"""Parts: components of compiled models, their variables and their values. Needs numpy only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tracr import graft
from tracr.errors import TracrError, UnknownName
from tracr.graft.observed import coded, observe
from tracr.graft.part import Part, parts_of
from tracr.graft.parts_library import distinct, library
from tracr.graft.place import place_of
from tracr.rasp import programs, rasp


def hist(level: int = 1) -> tracr.CompiledModel:
    return tracr.compile(programs.make_hist(), "abc", 4, level=level)


def test_a_part_names_its_variables_with_their_kinds() -> None:
    """A head of `hist` reads the tokens, one-hot, and writes one number."""
    head, neurons = parts_of(hist())
    assert [(one.label, one.kind) for one in head.inputs] == [("tokens", "one-hot")]
    assert [(one.label, one.kind) for one in head.outputs] == [("hist_share", "number")]
    assert [one.label for one in neurons.inputs] == ["hist_share"]
    assert neurons.name == "blocks.0.mlp"
    assert neurons.kind == "mlp"
    assert "count" in head.sentence
    assert repr(head) == "Part(hist blocks.0.attn.0: tokens -> hist_share)"


@pytest.mark.parametrize("level", [0, 1, 2])
def test_structure_is_no_variable(level: int) -> None:
    """BOS, PAD and `one` are known from the ids; no part reads them as variables."""
    for part in parts_of(hist(level)):
        assert not {"one", "tokens:bos", "tokens:pad"} & {one.label for one in part.inputs}
        read = {slot for one in part.inputs for slot in one.slots}
        left = set(part.weights.slots) - read
        codes = part.structure
        place = {slot: number for number, slot in enumerate(part.weights.slots)}
        assert all(codes["token"][place[slot]] in (0, 1) for slot in left)


def test_observed_values_are_the_program_s() -> None:
    """The classes of a variable are the program's values, numbered in the order in which they occur."""
    inputs = [tuple("aab"), tuple("b"), tuple("cbcc")]
    head, neurons = observe(parts_of(hist()), inputs)
    assert head.reads[0].classes.tolist() == [[0, 0, 1, -1], [1, -1, -1, -1], [2, 1, 2, 2]]
    assert neurons.output.classes.tolist() == [[0, 0, 1, -1], [1, -1, -1, -1], [2, 1, 2, 2]]  # 2, 2, 1; 1; 3, 1, 3, 3
    assert head.output.key == neurons.output.key


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=6), st.permutations(range(4)))
def test_keys_are_equal_up_to_renaming(rows: list[list[int]], renamed: list[int]) -> None:
    """Renaming the values of a variable keeps its key; merging two values that occur changes it."""
    real = np.arange(4) < np.array([len(row) for row in rows])[:, None]
    values = np.zeros(real.shape, dtype=int)
    values[real] = [value for row in rows for value in row]
    codes = np.eye(4)[values]
    own = coded(codes, real)
    assert own.key == coded(np.eye(4)[np.array(renamed)[values]], real).key
    present = sorted(set(values[real].tolist()))
    if len(present) > 1:
        merged = np.where(values == present[0], present[1], values)
        assert own.key != coded(np.eye(4)[merged], real).key
    assert (own.codes[own.classes[real]] == codes[real]).all()


def test_a_library_has_the_parts_of_programs_that_take_the_tokens() -> None:
    """Programs that need numbers are left out; equal parts are found once."""
    found = library("ab", 3, names=["hist", "hist2", "sort"])
    assert {part.program for part in found} == {"hist", "hist2"}
    kept = distinct(found, [tuple("ab"), tuple("aab"), tuple("bbb"), tuple("b")])
    titles = [one.part.title for one, _ in kept]
    equal = [title for _, others in kept for title in others]
    assert titles[0] == "hist blocks.0.attn.0"
    assert len(titles) + len(equal) <= len(found)
    assert any(title.startswith("hist2 blocks.0.attn") for title in equal)
    assert len({one.key for one, _ in kept}) == len(kept)


def test_parts_are_of_compiled_models_only() -> None:
    """A variant has other weights; an unknown component is named with a hint."""
    model = hist()
    with pytest.raises(TracrError, match="component of a compiled model"):
        Part(model.rotated(seed=0), "blocks.0.attn.0")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match=r"no component 'blocks\.0\.attn\.1'"):
        Part(model, "blocks.0.attn.1")


def test_a_whole_mlp_is_a_part_beside_its_groups() -> None:
    """With several groups of neurons in a layer, each is a part, and so is all of them."""
    first = rasp.SequenceMap(lambda x, y: x + y, rasp.indices, rasp.length).named("first")
    second = rasp.SequenceMap(lambda x, y: x * y, rasp.indices, rasp.length).named("second")
    model = tracr.compile({"first": first, "second": second}, "ab", 4)
    names = {part.name: part for part in parts_of(model)}
    groups = [name for name in names if name.count(".") == 3 and ".mlp." in name]
    for layer in {name.rpartition(".")[0] for name in groups}:
        mine = [names[name] for name in groups if name.rpartition(".")[0] == layer]
        assert len(mine) > 1
        whole = {slot for part in mine for slot in part.weights.writes}
        assert set(names[layer].weights.writes) == whole


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        ("blocks.0.mlp.0", "no place"),
        ("blocks.x.attn", "no place"),
        (f"blocks.0.attn.{'9' * 5000}", "no place"),
        ([], "no place"),
        (["blocks.0.attn.0", "blocks.1.attn.0"], "one layer"),
        (["blocks.0.attn.0", "blocks.0.mlp"], "one layer"),
    ],
)
def test_places_that_do_not_exist_are_refused(at: str | list[str], wrong: str) -> None:
    """The message says what to write."""
    with pytest.raises(TracrError, match=wrong):
        place_of(at)


def test_public_names_exist() -> None:
    """Every public name that needs no torch can be had without it."""
    assert graft.Part is Part
    assert graft.parts_of is parts_of
    assert graft.library is library
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = graft.nothing  # type: ignore[attr-defined]
