"""Draws the circuit of a case as SVG: components in the order of the forward pass, and the needed edges.

The drawing is made from the edges in the table alone. An edge needed alone with every seed is a full line, one that is
needed alone with some seeds or only jointly is dashed. Inputs q, k and v of a head are three places on its upper side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from tracr.lab.reporting.results_table import ResultRow
from tracr.viz.layering import Arrangement, arrange

__all__ = ["CircuitDrawing", "component_name", "draw_circuit"]

INCH = 84  # pixels
BOX = 34  # the height of a box, in pixels
CHARACTER = 7.2
MARGIN = 8
LONGEST = 24  # characters of a name in a box
PORTS = {"q": 0.22, "k": 0.5, "v": 0.78}
"""The places of a head's inputs on its upper side, as fractions of its width."""
BLOCK = re.compile(r"blocks\.(\d+)\.(attn|mlp)(?:\.(\d+))?")


@dataclass(frozen=True)
class CircuitDrawing:
    """A drawing: its SVG, the components in it, and the edges that it shows."""

    svg: str
    components: tuple[str, ...]
    edges: tuple[str, ...]


def component_name(component: str) -> str:
    """The name of a component for readers.

    >>> [component_name(name) for name in ("embed", "blocks.0.attn.2", "blocks.1.mlp", "unembed")]
    ['embed', 'head 0.2', 'MLP 1', 'output']
    """
    found = BLOCK.fullmatch(component)
    if not found:
        return "output" if component == "unembed" else component
    layer, kind, head = found.groups()
    if kind == "mlp":
        return f"MLP {layer}"
    return f"attention {layer}" if head is None else f"head {layer}.{head}"


def draw_circuit(title: str, rows: Iterable[ResultRow], about: Mapping[str, tuple[str, str]]) -> CircuitDrawing:
    """Draw the circuit that rows of one case and realisation share.

    Args:
        title: what is drawn, for readers who do not see it.
        rows: the rows, of all seeds.
        about: for some components a word, written into the box, and a sentence, which the browser shows.
    """
    truths = {row.seed: row for row in rows if row.candidates}
    candidates = list(dict.fromkeys(edge for row in truths.values() for edge in row.candidates))
    drawn = _kinds(truths.values())
    components = sorted(dict.fromkeys(part for edge in candidates for part in _ends(edge)), key=_time)
    place = {name: number for number, name in enumerate(components)}
    inputs: list[list[int]] = [[] for _ in components]
    for edge in drawn:
        writer, reader = _ends(edge)
        inputs[place[reader]].append(place[writer])
    boxes = [_Box.of(name, about) for name in components]
    layout = arrange([(box.width / INCH, BOX / INCH) for box in boxes], inputs, ranks=_ranks(components, drawn))
    middles = {number: (x * INCH + MARGIN, y * INCH + MARGIN) for number, (x, y) in layout.middles.items()}
    lines = [_line(edge, kind, place, layout, middles, boxes) for edge, kind in drawn.items()]
    nodes = [box.svg(number, *middles[number]) for number, box in enumerate(boxes)]
    width, height = layout.width * INCH + 2 * MARGIN, layout.height * INCH + 2 * MARGIN
    svg = (
        f'<svg class="circuit" role="img" aria-label="{escape(title)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><g class="edges">{"".join(lines)}</g><g class="overlay"></g>'
        f"{''.join(nodes)}</svg>"
    )
    return CircuitDrawing(svg, tuple(components), tuple(drawn))


@dataclass(frozen=True)
class _Box:
    """A component: its name, a word about it, a sentence for its tooltip, and its width in pixels."""

    name: str
    word: str
    sentence: str
    width: float

    @staticmethod
    def of(component: str, about: Mapping[str, tuple[str, str]]) -> _Box:
        name = component_name(component)
        name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        word, sentence = about.get(component, ("", ""))
        return _Box(name, word, sentence or component, 18 + CHARACTER * max(len(name), len(word), 8))

    def svg(self, number: int, x: float, y: float) -> str:
        left, top = x - self.width / 2, y - BOX / 2
        lines = [(self.name, y - 2 if self.word else y + 4, "name"), (self.word, y + 11, "word")]
        texts = "".join(
            f'<text class="{kind}" x="{x:.0f}" y="{at:.0f}">{escape(text)}</text>' for text, at, kind in lines if text
        )
        return (
            f'<g class="node" data-node="{number}"><title>{escape(self.sentence)}</title><rect x="{left:.1f}" '
            f'y="{top:.1f}" width="{self.width:.1f}" height="{BOX}" rx="5"/>{texts}</g>'
        )


def _ends(edge: str) -> tuple[str, str]:
    """The components of an edge; the input of a head belongs to the head."""
    writer, _, reader = edge.partition("->")
    return writer, reader.removesuffix(f".{_port(reader)}") if _port(reader) else reader


def _port(reader: str) -> str:
    """The input of a head that a reader is, or nothing."""
    last = reader.rpartition(".")[2]
    return last if last in PORTS and BLOCK.match(reader) else ""


def _kinds(rows: Iterable[ResultRow]) -> dict[str, str]:
    """The needed edges: "always" alone with every seed, "sometimes" alone or jointly."""
    rows = list(rows)
    alone: dict[str, int] = {}
    jointly: dict[str, int] = {}
    for row in rows:
        for edges, counts in ((row.alone, alone), (row.jointly, jointly)):
            for edge in edges:
                counts[edge] = counts.get(edge, 0) + 1
    return {edge: "always" if alone.get(edge) == len(rows) else "sometimes" for edge in {**alone, **jointly}}


def _time(component: str) -> tuple[float, int]:
    """The sub-layer, and the head; what is no part of a layer comes last, but for the embedding."""
    found = BLOCK.fullmatch(component)
    if not found:
        return (-1.0 if component == "embed" else float("inf")), 0
    layer, kind, head = found.groups()
    return 2.0 * int(layer) + (kind == "mlp"), int(head or 0)


def _ranks(components: Sequence[str], edges: Iterable[str]) -> list[int] | None:
    """The number of each component's sub-layer among those that are there; `None` if an edge does not go down."""
    times = {name: _time(name)[0] for name in components}
    order = {time: number for number, time in enumerate(sorted({*times.values()}))}
    if any(times[reader] <= times[writer] for writer, reader in map(_ends, edges)):
        return None
    return [order[times[name]] for name in components]


def _line(
    edge: str,
    kind: str,
    place: Mapping[str, int],
    layout: Arrangement,
    middles: Mapping[int, tuple[float, float]],
    boxes: Sequence[_Box],
) -> str:
    writer, reader = _ends(edge)
    source, target = place[writer], place[reader]
    points = [(x * INCH + MARGIN, y * INCH + MARGIN) for x, y in layout.routes[source, target]]
    port = _port(edge.partition("->")[2])
    if port:
        at = middles[target][0] + (PORTS[port] - 0.5) * boxes[target].width
        shift = 16 * (PORTS[port] - 0.5)
        inner = [(x + shift, y) for x, y in points[1:-1]]
        below = [(x, y) for x, y in inner if y < points[-1][1] - 1]
        points = [(points[0][0] + shift, points[0][1]), *below, (at, points[-1][1])]
    name = escape(edge)
    return f'<path class="edge {kind}" data-edge="{name}" d="{_curve(points)}"><title>{name}</title></path>'


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A smooth downward line through points."""
    first = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    parts = []
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return first + "".join(parts)
