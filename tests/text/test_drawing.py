"""Drawings: what they show, and that they are SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import tracr
from tracr.rasp import rasp
from tracr.rasp.programs import make_hist
from tracr.text.drawing.plan import plan

SOURCE = """
so_far = select(indices, indices, <=);
share = aggregate(so_far, indicator(tokens == "a"));
last = aggregate(select(indices, length - 1, ==), share);
y = last * 10 + selector_width(so_far);
"""


def test_a_plan_has_layers_heads_and_rows() -> None:
    """A head stands after what it reads, aggregates over one selector share it, and the result comes last."""
    drawn = plan(tracr.parse(SOURCE)["y"], "aba")
    assert [[head.label for head in layer.heads] for layer in drawn.layers] == [
        [],
        ["so_far"],
        ["select(indices, length - 1, ==)"],
    ]
    (so_far,) = drawn.layers[1].heads
    assert so_far.grid == ((True, False, False), (True, True, False), (True, True, True))
    assert [row.label for row in so_far.rows] == ["share", "selector_width(so_far)"]
    assert drawn.layers[2].rows[-1].result
    assert drawn.layers[2].rows[-1].values == tuple(tracr.parse(SOURCE)["y"]("aba"))


@pytest.mark.parametrize("given", ["aba", ["<&>", '"', "\x1b[2J"], ["long words here", "a"] * 15])
def test_drawings_are_well_formed(given: list[str]) -> None:
    """Whatever the tokens are, and without anything from outside."""
    drawing = tracr.draw(tracr.parse(SOURCE)["y"], given)
    root = ElementTree.fromstring(drawing.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//{*}rect")) > len(given) ** 2
    assert "href" not in drawing.svg
    assert "script" not in drawing.svg


def test_drawings_and_expressions_show_themselves() -> None:
    """In a notebook: a drawing, an s-op and a selector; on numbers where strings will not do; else not at all."""
    hist = make_hist()
    assert tracr.draw(hist, "ab")._repr_svg_().startswith("<svg")
    assert 'hist("hello")' in str(hist._repr_svg_()).replace("&quot;", '"')
    assert str(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)._repr_svg_()).startswith("<svg")
    assert "[3, 1, 2, 1]" in str((rasp.tokens * 2.5)._repr_svg_())
    assert rasp.ConstantSOp([1, 2])._repr_svg_() is None


def test_drawings_are_saved_whole(tmp_path: Path) -> None:
    """And nothing is left beside them."""
    path = tracr.draw(make_hist(), "ab").save(tmp_path / "h.svg")
    assert path.read_text(encoding="utf-8").endswith("</svg>\n")
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_drawn_is_refused() -> None:
    """Nothing, too much, or no expression."""
    for given in ("", "a" * 61):
        with pytest.raises(tracr.InputError):
            tracr.draw(make_hist(), given)
    with pytest.raises(tracr.ExpressionError):
        tracr.draw(3, "ab")  # type: ignore[arg-type]


def test_draw_statements_are_kept_by_the_module() -> None:
    """A `draw` statement writes no file; the module keeps the drawing for the caller."""
    module = tracr.parse('y = indices + 1;\ndraw(y, "abc");\ndraw(y);')
    assert [repr(drawing) for drawing in module.drawings] == [
        'Drawing(y("abc"): 0 layers, 0 heads)',
        'Drawing(y("hello"): 0 layers, 0 heads)',
    ]
