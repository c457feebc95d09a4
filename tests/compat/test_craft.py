"""Labelled spaces, vectors and functions under the names existing code uses, and a model's sub-layers over them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agreement import some_inputs
from tests.library import LIBRARY
from tracr.compiler import nodes
from tracr.compiler.compiling import TracrOutput, compile_rasp_to_model
from tracr.compiler.rasp_to_graph import extract_rasp_graph
from tracr.craft.bases import (
    BasisDirection,
    VectorInBasis,
    VectorSpaceWithBasis,
    direct_sum,
    join_vector_spaces,
)
from tracr.craft.transformers import MLP, AttentionHead, MultiAttentionHead
from tracr.craft.vectorspace_fns import Linear, ScalarBilinear, project
from tracr.errors import ExpressionError
from tracr.rasp import programs, rasp

BOS = "compiler_bos"
NAMES = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)


# Spaces and vectors


def test_directions_have_labels_and_an_order() -> None:
    """`name` or `name:value`; by name and value, and by text where values cannot be compared."""
    assert [str(BasisDirection(*parts)) for parts in (("x",), ("x", 1), ("x", False), ("x", frozenset("ba")))] == [
        *("x", "x:1", "x:False", "x:{'a', 'b'}")
    ]
    mixed = [BasisDirection("x", "b"), BasisDirection("x", 2), BasisDirection("x"), BasisDirection("a", "z")]
    assert [str(direction) for direction in sorted(mixed)] == ["a:z", "x", "x:2", "x:b"]
    assert len({BasisDirection("x", 1), BasisDirection("x", 1)}) == 1


def test_spaces_keep_their_order_and_sort_sets() -> None:
    """A list is the order of the dimensions; a set has none."""
    assert [d.name for d in VectorSpaceWithBasis.from_names("cab").basis] == ["c", "a", "b"]
    assert [d.name for d in VectorSpaceWithBasis.from_names({"c", "a", "b"}).basis] == ["a", "b", "c"]
    space = VectorSpaceWithBasis.from_values("x", {3, 1, 2})
    assert [d.value for d in space.basis] == [1, 2, 3]
    assert space.num_dims == 3
    assert space == VectorSpaceWithBasis.from_values("x", [2, 3, 1])
    assert len({space, VectorSpaceWithBasis.from_values("x", [2, 3, 1])}) == 1
    assert BasisDirection("x", 3) in space
    assert BasisDirection("x", 4) not in space


def test_sums_of_spaces() -> None:
    """Direct sums keep the order and refuse overlaps; joins sort."""
    ba, cb = VectorSpaceWithBasis.from_names("ba"), VectorSpaceWithBasis.from_names("cb")
    d = VectorSpaceWithBasis.from_names("d")
    assert [one.name for one in direct_sum(d, ba).basis] == ["d", "b", "a"]
    assert [one.name for one in join_vector_spaces(cb, ba).basis] == ["a", "b", "c"]
    assert ba.issubspace(join_vector_spaces(cb, ba))
    assert not ba.issubspace(cb)
    with pytest.raises(ExpressionError, match="two spaces have the direction b"):
        direct_sum(ba, cb)


@given(NAMES, st.randoms())
def test_vectors_are_matched_by_direction(names: list[str], rng: random.Random) -> None:
    """Whatever the order of the directions: equality, sums, projections, membership."""
    other = rng.sample(names, len(names))
    space, shuffled = VectorSpaceWithBasis.from_names(names), VectorSpaceWithBasis.from_names(other)
    values = {name: rng.randrange(9) for name in names}
    vector = space.make_vector([values[name] for name in names])
    twin = shuffled.make_vector([values[name] for name in other])
    assert vector == twin
    assert vector in shuffled
    assert twin + vector == 2 * vector == VectorInBasis.sum([vector, twin]) == vector * 4 / 2
    assert vector - twin == -(twin - vector) == space.null_vector()
    assert VectorInBasis.stack([vector, twin]).magnitudes.tolist() == [vector.magnitudes.tolist()] * 2
    assert vector.project(shuffled).magnitudes.tolist() == twin.magnitudes.tolist()
    assert project(space, shuffled)(vector) == twin
    for direction, unit in zip(space.basis, space.basis_vectors(), strict=True):
        assert unit == shuffled.vector_from_basis_direction(direction)


def test_projections_drop_and_add_directions() -> None:
    """A projection drops directions that the new space lacks, and adds the others with 0."""
    ab, bc = VectorSpaceWithBasis.from_names("ab"), VectorSpaceWithBasis.from_names("bc")
    vectors = ab.make_vector([[1, 2], [3, 4]])
    assert vectors.project(bc).magnitudes.tolist() == [[2, 0], [4, 0]]
    assert vectors.add_directions(bc.make_vector([10, 20])).magnitudes.tolist() == [[1, 12], [3, 14]]


def test_what_does_not_fit_is_an_error() -> None:
    """Both TypeError and ValueError, as existing code may expect either."""
    ab, bc = VectorSpaceWithBasis.from_names("ab"), VectorSpaceWithBasis.from_names("bc")
    wrong: list[Any] = [
        lambda: VectorInBasis(ab.basis, np.zeros(3)),
        lambda: ab.null_vector() + bc.null_vector(),
        lambda: project(ab, bc)(bc.null_vector()),
        lambda: Linear(ab, bc, np.zeros((2, 3))),
        lambda: ScalarBilinear(ab, bc, np.zeros((1, 2))),
        lambda: MLP(project(ab, bc), project(ab, bc)),
    ]
    for build in wrong:
        with pytest.raises(TypeError):
            build()
        with pytest.raises(ValueError):  # noqa: PT011
            build()


def test_linear_and_bilinear_functions_from_actions() -> None:
    """Their matrices are over the bases as they are ordered; parallel ones add up."""
    ba, c = VectorSpaceWithBasis.from_names("ba"), VectorSpaceWithBasis.from_names("c")
    size = {"a": 2.0, "b": 3.0}
    one = Linear.from_action(ba, c, lambda direction: c.make_vector([size[str(direction)]]))
    assert one.matrix.tolist() == [[3], [2]]
    both = Linear.combine_in_parallel([one, project(ba, VectorSpaceWithBasis.from_names("a"))])
    assert both(ba.make_vector([1, 10])) == VectorSpaceWithBasis.from_names("ac").make_vector([10, 23])
    product = ScalarBilinear.from_action(ba, ba, lambda x, y: size[str(x)] * 10 + size[str(y)])
    assert product(ba.make_vector([1, 0]), ba.make_vector([0, 1])) == 32


# A model's sub-layers, and its program's graph


@pytest.mark.parametrize(("name", "causal"), LIBRARY)
def test_the_craft_model_computes_the_residual_stream(name: str, causal: bool) -> None:
    """Its sub-layers over labelled vectors give the stream of the weights; its directions are the stream's labels."""
    example = programs.EXAMPLES[name]
    model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len, causal=causal)
    craft = model.craft_model
    named = {str(direction): direction for direction in craft.residual_space.basis}
    assert named.keys() <= set(model.residual_labels)
    stream = [named.get(label, BasisDirection(label)) for label in model.residual_labels]
    for xs in some_inputs(example.vocab, example.max_seq_len, 3):
        output = model.apply([BOS, *xs])
        found = craft.apply(VectorInBasis(stream, output.input_embeddings[0].astype(np.float64)))
        expected = VectorInBasis(stream, output.transformer_output[0]).project(craft.residual_space)
        assert np.allclose(found.magnitudes, expected.magnitudes, atol=1e-4)


def test_the_sub_layers_are_in_order_and_say_what_they_read_and_write() -> None:
    """frac_prevs: an MLP writes is_x, a head reads it and writes the mean."""
    model = compile_rasp_to_model(programs.make_frac_prevs((rasp.tokens == "x").named("is_x")), "xy", 3)
    neurons, attention = model.craft_model.blocks
    assert isinstance(neurons, MLP)
    assert isinstance(attention, MultiAttentionHead)
    (head,) = attention.heads()
    assert isinstance(head, AttentionHead)

    def names(space: VectorSpaceWithBasis) -> set[str]:
        return {str(direction.name) for direction in space.basis}

    assert "tokens" in names(neurons.fst.input_space)
    assert names(neurons.snd.output_space) == {"is_x"}
    assert "is_x" in names(head.w_ov.input_space)
    assert names(head.w_ov.output_space) == {"frac_prevs"}
    assert "indices" in names(head.w_qk.left_space) & names(head.w_qk.right_space)


def test_a_result_is_used_as_a_model_or_as_a_model_with_its_graph() -> None:
    """Forks return the model inside a `TracrOutput`; its names are on ours."""
    networkx = pytest.importorskip("networkx")
    program = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ), rasp.tokens == "x")
    result = compile_rasp_to_model(program.named("mean"), "xy", 3)
    assert result.model is result
    stored = TracrOutput(result.model, result.graph)
    assert stored.model.apply([BOS, "x", "y"]).decoded == [BOS, 1.0, 0.5]
    assert list(networkx.topological_sort(result.graph))[-1] == "mean"
    written = {str(d) for _, data in result.graph.nodes(data=True) for d in data.get(nodes.OUTPUT_BASIS, ())}
    assert written <= set(result.residual_labels)
    for label, data in result.graph.nodes(data=True):
        assert data[nodes.ID] == label
        assert isinstance(data[nodes.EXPR], rasp.RASPExpr)
        assert (nodes.MODEL_BLOCK in data) == (label in {"map", "mean"})
    block = result.graph.nodes["mean"][nodes.MODEL_BLOCK]
    assert block is result.craft_model.blocks[-1]
    assert result.graph.nodes["tokens"][nodes.VALUE_SET] == {"x", "y"}


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_the_graph_of_a_program(name: str) -> None:
    """Every expression under its label, once, though names repeat; edges are children; sources are made of nothing."""
    networkx = pytest.importorskip("networkx")
    program = programs.EXAMPLES[name].program
    extracted = extract_rasp_graph(program)
    assert extracted.sink[nodes.EXPR] is program
    assert networkx.is_directed_acyclic_graph(extracted.graph)
    for label, data in extracted.graph.nodes(data=True):
        expr = data[nodes.EXPR]
        assert expr.label == label == data[nodes.ID]
        assert set(extracted.graph.predecessors(label)) == {child.label for child in expr.children}
    sources = {data[nodes.ID] for data in extracted.sources}
    assert sources == {label for label, degree in extracted.graph.in_degree() if degree == 0}
    assert len(sources) == len(extracted.sources)


def test_only_expressions_have_a_graph() -> None:
    """Others are refused."""
    with pytest.raises(ExpressionError, match="only a RASP expression"):
        extract_rasp_graph("hist")  # type: ignore[arg-type]
