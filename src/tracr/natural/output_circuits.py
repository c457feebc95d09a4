"""The circuit of one output, in a model with several: the edges from which a path leads to this output's logits."""

from __future__ import annotations

from tracr.errors import TracrError
from tracr.ground_truth.data import Edge
from tracr.model.designed import DesignedModel
from tracr.natural.sites import UNEMBED
from tracr.spelling import did_you_mean
from tracr.values import short_repr

__all__ = ["output_edges"]


def output_edges(model: DesignedModel, output: str) -> tuple[Edge, ...]:
    """The edges of a compiled model from which a path leads to the logits of an output.

    Ablating all other edges, by any ablation, does not change this output. An edge into the unembedding leads to an
    output if its dimensions have weights for the output's logits: at level 2 these need not be the output's own
    variable, because linear functions are folded into the unembedding. A head that was merged from heads of several
    outputs (from level 1 on) belongs to all of them.

    >>> import tracr
    >>> from tracr.rasp import programs, rasp
    >>> both = tracr.compile([programs.make_hist(), rasp.indices], vocab="ab", max_seq_len=3)
    >>> [str(edge) for edge in output_edges(both, "indices")]
    ['pos_embed -> unembed: indices']
    """
    if not isinstance(model, DesignedModel):
        what = f"output_edges needs a compiled model, not a {type(model).__name__}"
        raise TracrError(what, hint="use tracr.compile([a, b], ...)")
    names = {one.name: one for one in model.outputs}
    if output not in names:
        listed = f"there are {', '.join(names)}"
        hint = did_you_mean(output, list(names), listed) if isinstance(output, str) else listed
        raise TracrError(f"the model has no output {short_repr(output)}", hint=hint)
    chosen, edges = names[output], model.ground_truth.edges()
    logits = model.plain.parameters.W_U[:, chosen.start : chosen.stop]
    last = {edge for edge in edges if edge.target == UNEMBED and logits[list(edge.slots)].any()}
    nodes = {edge.source for edge in last}
    while more := {edge.source for edge in edges if edge.target in nodes} - nodes:
        nodes |= more
    return tuple(edge for edge in edges if edge in last or edge.target in nodes)
