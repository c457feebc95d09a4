"""share_neurons: neurons of a layer that read the same, up to a power of two, become one; nothing is rounded."""

from __future__ import annotations

import numpy as np

from tests.compiler.by_hand import components
from tests.compiler.circuits import random_models, some_program
from tracr.compiler.layers.assign import assign_to_layers, in_sublayers, merge_heads, stack
from tracr.compiler.layers.share_neurons import share_neurons
from tracr.craft.linear import ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import NUMBER, Array, Variable
from tracr.ir.circuit import Circuit
from tracr.rasp.annotations import Encoding

X, Y = (Variable(label, Encoding.NUMERICAL, (NUMBER,), low=-8.0, high=8.0) for label in "xy")


def neurons(label: str, kinks: list[tuple[float, float]], writes: list[list[float]], variable: Variable = X) -> MLP:
    """relu(slope * x + bias) for each kink, written to a variable of this name with these weights."""
    read = LinearMap({variable: np.array([[s for s, _ in kinks]]), ONE: np.array([[b for _, b in kinks]])}, len(kinks))
    written = Variable(label, Encoding.CATEGORICAL, tuple(range(len(writes[0]))))
    return MLP(label, read, ((written, np.array(writes)),), f"what {label} is")


def shared(*mlps: MLP) -> tuple[MLP, ...]:
    """The groups of a layer that has just these, shared."""
    circuit = Circuit.of(some_program(), (), tuple(v for one in mlps for v, _ in one.writes), mlps, ())
    (layer,) = share_neurons(stack(in_sublayers(circuit, (1,) * len(mlps)))).layers
    return layer.mlps


def written(parts: tuple[MLP, ...], x: float, y: float = 0.0) -> dict[str, list[float]]:
    """What all variables hold after the layer."""
    found: dict[str, Array] = {}
    for part in parts:
        values = {X: x, Y: y, ONE: 1.0}
        hidden = np.maximum(sum(values[variable] * block[0] for variable, block in part.read.blocks.items()), 0)
        for variable, matrix in part.writes:
            found[variable.label] = found.get(variable.label, 0.0) + hidden @ matrix
    return {label: total.tolist() for label, total in found.items()}


def assert_shared(mlps: tuple[MLP, ...], groups: list[str], sizes: list[int]) -> tuple[MLP, ...]:
    """These groups, of these numbers of neurons, are left, and write the same."""
    after = shared(*mlps)
    assert [part.label for part in after] == groups
    assert [part.read.width for part in after] == sizes
    for x in np.linspace(-8, 8, 33):
        assert written(after, x, 2 * x - 1) == written(mlps, x, 2 * x - 1)
    return after


def test_a_common_kink_makes_one_group() -> None:
    """Two steps at 1 and 2, and at 2 and 3: three neurons for four; the group stands in the place of the first."""
    first = neurons("first", [(1, -1), (1, -2)], [[1], [-1]])
    second = neurons("second", [(1, -2), (1, -3)], [[1, 0], [-1, 5]])
    apart = neurons("apart", [(1, -7)], [[1]])
    (both, _) = assert_shared((first, apart, second), ["first, second", "apart"], [3, 1])
    assert {variable.label for variable, _ in both.writes} == {"first", "second"}
    assert both.what == "what first is; what second is"


def test_powers_of_two_count_as_the_same() -> None:
    """Four times what another reads is four times what it holds; three times is another neuron."""
    one, four = neurons("one", [(1, -2)], [[1]]), neurons("four", [(4, -8)], [[1]])
    (both,) = assert_shared((one, four), ["one, four"], [1])
    assert {v.label: m.tolist() for v, m in both.writes} == {"one": [[1]], "four": [[4]]}
    assert_shared((one, neurons("three", [(3, -6)], [[1]])), ["one", "three"], [1, 1])


def test_neurons_of_one_group_that_are_equal_are_added_up() -> None:
    """Once another group has a kink in common."""
    double = neurons("double", [(1, -2), (1, -2)], [[1], [2]])
    (both,) = assert_shared((double, neurons("one", [(1, -2)], [[7]])), ["double, one"], [1])
    assert {v.label: m.tolist() for v, m in both.writes} == {"double": [[3]], "one": [[7]]}


def test_a_sum_that_would_be_rounded_is_not_made() -> None:
    """float32 does not hold 2^24 + 1: the neuron stays."""
    large = neurons("large", [(1, -2), (1, -2)], [[2.0**24], [1]])
    (both,) = assert_shared((large, neurons("one", [(1, -2)], [[7]])), ["large, one"], [2])
    assert {v.label: m.tolist() for v, m in both.writes} == {"large": [[2.0**24], [1]], "one": [[7], [0]]}


def test_groups_without_a_common_kink_stay() -> None:
    """Another place, another variable, or nothing in common but a constant."""
    first = neurons("first", [(1, -1)], [[1]])
    assert_shared((first, neurons("second", [(1, -2)], [[1]])), ["first", "second"], [1, 1])
    assert_shared((first, neurons("second", [(1, -1)], [[1]], Y)), ["first", "second"], [1, 1])
    constants = (neurons("c", [(0, 1), (1, -1)], [[1], [1]]), neurons("d", [(0, 1), (1, -5)], [[1], [1]]))
    assert_shared(constants, ["c", "d"], [2, 2])


def test_groups_that_touch_through_a_third_are_one() -> None:
    """First and third have nothing in common but the second."""
    parts = (
        neurons("first", [(1, -1)], [[1]]),
        neurons("third", [(1, -3)], [[1]]),
        neurons("second", [(1, -1), (1, -3)], [[1], [1]]),
    )
    assert_shared(parts, ["first, third, second"], [2])


def test_random_programs_keep_their_variables() -> None:
    """No neuron is left that another of its group repeats, unless their sum was rounded; none was added."""
    saved = 0
    for model in random_models(range(40), level=2):
        before = merge_heads(stack(assign_to_layers(model.circuit)))
        after = share_neurons(before)
        after.verify()
        sizes = [sum(p.maps[0].width for p in components(one) if isinstance(p, MLP)) for one in (before, after)]
        saved += sizes[0] - sizes[1]
        assert sizes[1] <= sizes[0]
        wrote = [{v for p in components(one) for v, _ in p.writes} for one in (before, after)]
        assert wrote[0] == wrote[1]
    assert saved > 0
