"""Graphs in ranks: whatever the graph, boxes keep apart and edges run down, around the boxes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tracr.viz.layering import arrange

TOUCH = 1e-5


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[list[int]]]:
    count = draw(st.integers(1, 14))
    size = st.tuples(st.floats(0.3, 2), st.floats(0.2, 0.8))
    inputs = [draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [] for n in range(count)]
    return [draw(size) for _ in range(count)], inputs


@given(graphs())
def test_boxes_are_apart_and_inside(graph: tuple[list[tuple[float, float]], list[list[int]]]) -> None:
    """No two boxes overlap, and all are within the size the layout says it has."""
    sizes, inputs = graph
    layout = arrange(sizes, inputs)
    boxes = []
    for node, (width, height) in enumerate(sizes):
        x, y = layout.middles[node]
        boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    for place, (left, top, right, bottom) in enumerate(boxes):
        assert min(left, top) >= -TOUCH
        assert right <= layout.width + TOUCH
        assert bottom <= layout.height + TOUCH
        for other in boxes[place + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart


@given(graphs())
def test_edges_run_down_and_around_boxes(graph: tuple[list[tuple[float, float]], list[list[int]]]) -> None:
    """An edge leaves the bottom of its source, never rises, ends at the top of its target, and meets no other box."""
    sizes, inputs = graph
    layout = arrange(sizes, inputs)
    assert set(layout.routes) == {(source, node) for node, read in enumerate(inputs) for source in read}
    for (source, node), route in layout.routes.items():
        assert abs(route[0][1] - layout.middles[source][1] - sizes[source][1] / 2) < TOUCH
        assert abs(route[-1][1] - layout.middles[node][1] + sizes[node][1] / 2) < TOUCH
        for (x, y), (_, lower) in pairwise(route):
            assert y <= lower + TOUCH
            for other, (width, height) in enumerate(sizes):
                middle, centre = layout.middles[other]
                beside = abs(x - middle) > width / 2
                past = lower <= centre - height / 2 + TOUCH or y >= centre + height / 2 - TOUCH
                assert beside or past or other in (source, node)


def test_a_late_node_stands_right_above_its_reader() -> None:
    """A constant read at the end of a chain is not at the top."""
    layout = arrange([(1, 0.3)] * 4, [[], [0], [], [1, 2]], late=[2])
    assert layout.middles[2][1] == layout.middles[1][1]
