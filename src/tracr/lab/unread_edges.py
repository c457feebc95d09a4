"""The edges of a model that do not lead to the output that a case asks for: those of decoys, or of another program."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tracr.ground_truth.data import FINEST, Granularity, GroundTruth
from tracr.ground_truth.edge_keys import coarsened, key_of_edge
from tracr.ground_truth.scores import EdgeKey

__all__ = ["unread_edges"]


def unread_edges(truth: Any, granularity: Granularity = "qkv") -> tuple[EdgeKey, ...]:
    """The wired candidates from whose readers no path leads to the output; none for a twin.

    A candidate that also carries a variable of the program is not among them. A truth about one output of several has
    the truth about all as `whole`; its own edges are those that lead to the output.

    >>> from tracr import lab
    >>> unread_edges(lab.case("hist").model.ground_truth)
    ()
    """
    if isinstance(whole := getattr(truth, "whole", None), GroundTruth):
        read = {*truth.split(granularity)[0]}
        return tuple(key for key in whole.split(granularity)[0] if key not in read)
    if not isinstance(truth, GroundTruth):
        return ()
    edges = truth.edges(FINEST)
    writers: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        writers[edge.target].add(edge.source)
    reached, waiting = {"unembed"}, ["unembed"]
    while waiting:
        new = writers[waiting.pop()] - reached
        reached |= new
        waiting += new
    leads = [(coarsened(key_of_edge(edge), granularity), edge.target in reached) for edge in edges]
    unread = {key for key, read in leads if not read} - {key for key, read in leads if read}
    return tuple(key for key in truth.candidates(granularity) if key in unread)
