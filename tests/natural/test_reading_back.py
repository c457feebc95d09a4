"""`natural.read_back`: changed weights as changes of the program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import tracr
from tracr import natural
from tracr.errors import FormatError, TracrError, UnknownName
from tracr.ir.domains import Finite
from tracr.ir.ops import Lookup, PairLookup
from tracr.natural.owned_weights import owned_weights
from tracr.natural.reading_back import Cell, ChangedPart
from tracr.rasp import programs, rasp
from tracr.values import Value

T, INDEX, EQ = rasp.tokens, rasp.indices, rasp.Comparison.EQ
SMALL = sorted(name for name, one in programs.EXAMPLES.items() if len(one.vocab) ** one.max_seq_len <= 300)


def weights_of(model: tracr.CompiledModel) -> dict[str, Any]:
    return {name: np.array(array) for name, array in model.parameters.named()}


def words(third: str) -> rasp.SOp:
    """A word for the number of equal tokens."""
    count = rasp.SelectorWidth(rasp.Select(T, T, EQ)).named("count")
    return rasp.Map(lambda n: {1: "one", 2: "few", 3: third}.get(n, "many"), count).named("word")


def previous(by: int) -> rasp.SOp:
    """The token before, in a circle of four; by 1 or 3, which need the same number of coordinates."""
    selector = rasp.Select(INDEX, INDEX, lambda key, query: key == (query - by) % 4)
    return rasp.Aggregate(selector, T, default="a").named("previous")


def in_the_program(model: tracr.CompiledModel, read: natural.ReadBack) -> Iterator[tuple[Cell, tuple[Value]]]:
    """The cells of neurons that compute a table of the program, each with the value in that table."""
    sops = {node.label: node for node in model.program.sops.values()}
    for cell in (cell for group in model.schedule.neurons() for cell in read[group.name].cells):
        node, key = sops.get(cell.table), dict(cell.key)
        if node is None or not isinstance(node.op, Lookup | PairLookup):
            continue
        inner = [model.program.sops[number] for number in node.op.inputs]
        if all(own.label in key for own in inner):
            codes = [cast(Finite, own.domain).index[key[own.label]] for own in inner]
            yield cell, (cast(Finite, node.domain).values[node.op.table[tuple(codes)]],)


def changed(part: ChangedPart) -> list[str]:
    return [str(cell) for cell in part.changed]


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", SMALL)
def test_compiled_weights_read_as_the_program_itself(name: str, level: int) -> None:
    """Nothing moved, no cell changed, every cell has one value; neurons have the program's tables."""
    one = programs.EXAMPLES[name]
    model = tracr.compile(one.program, one.vocab, one.max_seq_len, level=level)
    read = natural.read_back(model, weights_of(model))
    assert read.show() == "no weight moved"
    for part in read.parts:
        assert part.moved == 0
        assert not part.changed, part.name
        assert all(cell.decided for cell in part.cells), part.name
    assert all(cell.after == value for cell, value in in_the_program(model, read))


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", SMALL)
def test_every_weight_has_one_owner(name: str, level: int) -> None:
    """The masks of all parts add up to 1 everywhere."""
    one = programs.EXAMPLES[name]
    model = tracr.compile(one.program, one.vocab, one.max_seq_len, level=level)
    masks = owned_weights(model).values()
    for key, array in model.parameters.named():
        owners = sum((mask[key].astype(int) for mask in masks if key in mask), np.zeros(array.shape))
        assert np.array_equal(owners, np.ones(array.shape)), key


def test_the_weights_of_another_table_read_as_the_cell_that_differs() -> None:
    """Two programs that differ in one cell of a table: the other's weights change this cell of this part only."""
    wrong, right = (tracr.compile(words(third), "ab", 4, level=0) for third in ("many", "few"))
    read = natural.read_back(wrong, weights_of(right))
    assert changed(read["blocks.1.mlp.0"]) == ["word(count = 3): many -> few"]
    assert [part.name for part in read.parts if part.moved] == ["blocks.1.mlp.0"]
    assert read.only("blocks.1.mlp.0")("aaab") == ["few", "few", "few", "one"]
    assert read.without("blocks.1.mlp.0")("aaab") == ["many", "many", "many", "one"] == wrong("aaab")
    assert re.match(r"blocks\.1\.mlp\.0: weights moved by .*%, 1 cell changed\n  word\(count = 3\)", read.show())


@pytest.mark.parametrize("gap", [20, 256])
def test_the_weights_of_another_selector_read_as_the_cells_that_differ(gap: float) -> None:
    """A head that copies: the cells of the selector in which two programs differ."""
    wrong, right = (tracr.compile(previous(by), "ab", 4, level=0, gap=gap) for by in (1, 3))
    inputs = list(itertools.product("ab", repeat=4))
    found = natural.read_back(wrong, weights_of(right), inputs)["blocks.0.attn.0"].changed
    places = {(dict(cell.key)["query indices"], dict(cell.key)["key indices"]): cell.after for cell in found}
    selected = {(query, (query + by) % 4): (by == 1,) for query in range(4) for by in (1, 3)}
    assert places == selected


@pytest.mark.parametrize("gap", [20, 256])
def test_the_selector_of_a_head_that_counts(gap: float) -> None:
    """A key whose logit falls by ln 4 has less than half the weight of a selected key."""
    model = tracr.compile(programs.make_hist(), "ab", 3, level=0, gap=gap)
    vocabulary, a = model.vocabulary, model.residual["tokens:a"].index
    for drop, cells in ((1.5, 0), (4.0, 1)):
        weights = weights_of(model)
        stream = weights["embed.W_E"][[0, 1, vocabulary.bos_id]] + weights["pos_embed.W_pos"][[1, 1, 0]]
        keys = stream @ weights["blocks.0.attn.W_K"][0] + weights["blocks.0.attn.b_K"][0]
        weights["blocks.0.attn.W_Q"][0, a] += np.linalg.pinv(keys) @ [-np.log(drop), 0, 0]  # the keys a, b and BOS
        found = changed(natural.read_back(model, weights)["blocks.0.attn.0"])
        assert found == ["selects(query tokens = a, key tokens = a): True -> False"][:cells]


def test_a_cell_that_depends_on_another_variable_is_not_decided() -> None:
    """Neurons that begin to read another variable have several values in one cell."""
    model = tracr.compile(words("few"), "ab", 4, level=0)
    weights = weights_of(model)
    weights["blocks.1.mlp.W_in"][model.residual["tokens:b"].index] -= 2  # no neuron is active at a token b
    cells = natural.read_back(model, weights)["blocks.1.mlp.0"].changed
    assert cells
    assert not any(cell.decided for cell in cells)
    assert all(set(cell.before) < set(cell.after) for cell in cells)


def test_weights_rounded_to_float32_have_not_moved() -> None:
    """Training starts from the compiled weights in float32; the parts that it does not touch are not listed."""
    model = tracr.compile(words("few"), "ab", 4, level=0)
    weights = {name: array.astype(np.float32) for name, array in model.parameters.named()}
    assert any((weights[name] != array).any() for name, array in model.parameters.named())
    weights["unembed.W_U"] = weights["unembed.W_U"] + 0.5
    assert [part.name for part in natural.read_back(model, weights).parts if part.moved] == ["unembed"]


def test_embedding_and_unembedding_are_tables_too() -> None:
    """Exchanged rows of the embedding, exchanged columns of the unembedding."""
    model = tracr.compile(words("few"), "ab", 4, level=0)
    weights = weights_of(model)
    weights["embed.W_E"][[0, 1]] = weights["embed.W_E"][[1, 0]]
    weights["unembed.W_U"][:, [0, 1]] = weights["unembed.W_U"][:, [1, 0]]
    read = natural.read_back(model, weights)
    assert changed(read["embed"]) == ["tokens(token = a): a -> b", "tokens(token = b): b -> a"]
    assert changed(read["unembed"]) == ["answer word(word = few): few -> many", "answer word(word = many): many -> few"]


def test_what_cannot_be_read_back_is_refused() -> None:
    """Level 2, variants, other shapes, unknown parts, inputs without an answer."""
    model = tracr.compile(words("few"), "ab", 4, level=0)
    own = weights_of(model)
    two = tracr.compile(words("few"), "ab", 4, level=2)
    with pytest.raises(TracrError, match="level 0 or 1"):
        natural.read_back(two, weights_of(two))
    with pytest.raises(TracrError, match="without variants"):
        natural.read_back(model.rotated(0), own)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="lack or should not have"):
        natural.read_back(model, {})
    with pytest.raises(UnknownName, match=r"no part 'blocks\.9'"):
        natural.read_back(model, own).only("blocks.9")
    with pytest.raises(TracrError, match="on none of the inputs"):
        natural.read_back(model, own, [])
