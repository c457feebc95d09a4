"""Edges without their variables: a writer and a reader's input, as a pair of names or as one string.

Writers are `embed` (token and position embedding together), heads and MLPs; readers are the inputs of heads (with
`.q`, `.k`, `.v` where these are apart), MLPs and `unembed`. A candidate is a writer and a reader that comes later in
the forward pass, wired or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from tracr.errors import InputError, UnknownName
from tracr.ground_truth.data import FINEST, Edge, Granularity
from tracr.ground_truth.scores import EdgeKey
from tracr.spelling import did_you_mean

__all__ = ["Found", "all_later", "as_text", "coarsened", "key_of_edge", "read_found"]

Found = Mapping[Any, Any] | Collection[Any]
"""What a method found: numbers or booleans for edges, or a set of edges. An edge is an `Edge`, a pair or a string."""


def as_text(key: EdgeKey) -> str:
    """The key as one string.

    >>> as_text(("embed", "blocks.0.attn.0.q"))
    'embed->blocks.0.attn.0.q'
    """
    return "->".join(key)


def key_of_edge(edge: Edge) -> EdgeKey:
    """The key of an edge of the ground truth, at the granularity of the edge."""
    writer = "embed" if edge.source == "pos_embed" else edge.source
    return writer, edge.target if edge.input == "in" else f"{edge.target}.{edge.input}"


def coarsened(key: EdgeKey, granularity: Granularity) -> EdgeKey:
    """The key of the edge that contains this one at a coarser granularity.

    >>> coarsened(("embed", "blocks.0.attn.0.q"), "component")
    ('embed', 'blocks.0.attn')
    """
    return _merged(key[0], granularity), _merged(key[1], granularity)


def _merged(name: str, granularity: Granularity) -> str:
    parts = name.split(".")
    if "mlp" in parts:
        return ".".join(parts if granularity == FINEST else parts[:3])
    return ".".join(parts[: {"component": 3, "head": 4}.get(granularity, len(parts))])


def all_later(writers: Iterable[str], readers: Iterable[str]) -> tuple[EdgeKey, ...]:
    """All pairs of a writer and a reader that comes later, in the order of the writers.

    >>> all_later(["embed", "blocks.0.attn.0"], ["blocks.0.attn.0.q", "blocks.0.mlp"])
    (('embed', 'blocks.0.attn.0.q'), ('embed', 'blocks.0.mlp'), ('blocks.0.attn.0', 'blocks.0.mlp'))
    """
    inputs = list(readers)
    return tuple((writer, reader) for writer in writers for reader in inputs if _time(writer) < _time(reader))


def _time(name: str) -> float:
    """The sub-layer of a component, counted from 0; the embedding comes before, the unembedding after all."""
    if name in ("embed", "unembed"):
        return -1 if name == "embed" else np.inf
    _, layer, kind, *_ = name.split(".")
    return 2 * int(layer) + (kind == "mlp")


def read_found(found: Found, known: Mapping[EdgeKey, EdgeKey]) -> tuple[dict[EdgeKey, float], bool]:
    """The finite numbers given to edges, and whether edges are a set: all with a number were found.

    `known` maps the edges that may be given to those that they are part of. Several that are part of one edge give it
    the largest of their numbers.
    """
    given = found if isinstance(found, Mapping) else dict.fromkeys(_listed(found), True)
    as_set = all(isinstance(value, bool | np.bool_) for value in given.values())
    numbers: dict[EdgeKey, float] = {}
    for edge, value in given.items():
        key = _known(edge, known)
        number = _number(edge, value)
        if number or not as_set:
            numbers[key] = max(number, numbers.get(key, number))
    return numbers, as_set


def _listed(found: Any) -> list[Any]:
    if isinstance(found, str) or not isinstance(found, Collection):
        raise InputError(
            f"edges are given as a mapping to numbers or as a set, not as {type(found).__name__}",
            hint='such as {"embed->blocks.0.attn.0.q": 0.7}',
        )
    return [tuple(edge) if isinstance(edge, list) else edge for edge in found]


def _known(edge: Any, known: Mapping[EdgeKey, EdgeKey]) -> EdgeKey:
    key = _key(edge)
    if key not in known:
        names = dict.fromkeys(as_text(one) for one in known.values())
        raise UnknownName(
            f"the truth has no candidate {as_text(key)} at this granularity",
            hint=did_you_mean(as_text(key), names, "candidates(granularity) lists all"),
        )
    return known[key]


def _key(edge: Any) -> EdgeKey:
    if isinstance(edge, Edge):
        return key_of_edge(edge)
    parts = [part.strip() for part in edge.split("->")] if isinstance(edge, str) else edge
    if isinstance(parts, tuple | list) and len(parts) == 2 and all(isinstance(part, str) for part in parts):
        return "embed" if parts[0] == "pos_embed" else parts[0], parts[1]
    raise InputError(
        f"{edge!r} is not an edge",
        hint='write "embed->blocks.0.attn.0.q" or ("embed", "blocks.0.attn.0.q"), or pass an edge of the ground truth',
    )


def _number(edge: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number) or isinstance(value, str):
        shown = edge if isinstance(edge, str) else as_text(_key(edge))
        raise InputError(f"the edge {shown} has {value!r}, not a finite number or a boolean", hint="leave the edge out")
    return number
