"""The clean and the corrupted pass of a subject, with which most methods start, and a count of all passes.

Costs are counted in passes of one input: a batch of 64 inputs is 64 passes. A method reports its passes with
`count_passes`; `run_method` adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import coarsened
from tracr.ground_truth.patching import CleanPass, EdgePatching, parts_of
from tracr.ground_truth.scores import EdgeKey
from tracr.model.running import RunnableModel
from tracr.natural.activations import in_numpy
from tracr.natural.learned.model import ACTIVATION as LEARNED
from tracr.natural.learned.model import LearnedModel
from tracr.natural.twin_model import TwinModel
from tracr.nearness import nearly_equal

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData
    from tracr.runtime.outputs import Output

__all__ = [
    "GRANULARITIES",
    "BothPasses",
    "PassCounter",
    "activation_of",
    "both_passes",
    "count_passes",
    "counted",
    "merged_edges",
    "model_of",
    "patching_of",
]

Array = NDArray[Any]
ACCURACY = 1e-3  # of the largest logit
GRANULARITIES: tuple[Granularity, ...] = ("component", "head", "qkv")
"""Those of methods, which do not see groups of neurons, from coarse to fine."""


@dataclass
class PassCounter:
    """The passes of a run so far; a backward pass comes with a forward pass, which is counted too."""

    forwards: int = 0
    backwards: int = 0


_COUNTER: ContextVar[PassCounter | None] = ContextVar("counter", default=None)


@contextmanager
def counted() -> Iterator[PassCounter]:
    """Count the passes inside the block."""
    counter = PassCounter()
    token = _COUNTER.set(counter)
    try:
        yield counter
    finally:
        _COUNTER.reset(token)


def count_passes(forwards: int, backwards: int = 0) -> None:
    """Add passes, each of one input, to the cost of the method that runs.

    >>> with counted() as counter:
    ...     count_passes(64, 64)
    >>> counter
    PassCounter(forwards=64, backwards=64)
    """
    counter = _COUNTER.get()
    if counter is not None:
        counter.forwards += forwards
        counter.backwards += backwards


@dataclass(frozen=True, eq=False)
class BothPasses:
    """A model, its edges, and its passes on the clean and the corrupted inputs."""

    model: Any
    patching: EdgePatching
    clean: CleanPass
    corrupted: CleanPass
    token: NDArray[np.bool_]
    """Which positions hold a token, [pair, position]."""
    outputs: Sequence[Output]
    """The outputs whose answers count."""

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.token)


def both_passes(subject: Any, data: MethodData) -> BothPasses:
    """The passes of a subject: a model (compiled, a variant, compressed, a twin) or what has a `model`."""
    model = model_of(subject)
    patching = patching_of(model)
    if not data.clean:
        raise InputError("a method needs pairs of inputs", hint="such as MethodData.of(case.pairs(64))")
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    count_passes(2 * len(token))
    _require_same(model, clean_ids, clean.logits, token)
    return BothPasses(model, patching, clean, corrupted, token, getattr(subject, "outputs", model.outputs))


def _require_same(model: Any, ids: Array, logits: Array, token: NDArray[np.bool_]) -> None:
    """The network whose edges are patched must be the model.

    It is not for models that cut PAD from their inputs, as compressed ones do, nor for kinds of models unknown here.
    """
    own = model.logits(ids)[token]
    if not np.all(nearly_equal(own, logits[token], ACCURACY, scale=float(np.abs(own).max(initial=1)))):
        raise TracrError(
            f"the edges of this {type(model).__name__} cannot be patched on these inputs: its own logits are not those "
            "of a plain forward pass on the padded batch",
            hint="use inputs of one length (compressed models cut padding), or a compiled model, a variant or a twin",
        )


def merged_edges(candidates: Sequence[EdgeKey], granularity: Granularity) -> dict[EdgeKey, list[EdgeKey]]:
    """The edges of a granularity, each with the edges of single queries, keys and values that it stands for."""
    if granularity not in GRANULARITIES:
        raise TracrError(
            f"a method does not know edges of the granularity {granularity!r}",
            hint=f"use {', '.join(GRANULARITIES)}; groups of neurons are not known",
        )
    found: dict[EdgeKey, list[EdgeKey]] = {}
    for key in candidates:
        found.setdefault(coarsened(key, granularity), []).append(key)
    return found


def model_of(subject: Any) -> Any:
    """The model of a subject, which may be the model itself."""
    return getattr(subject, "model", subject)


def activation_of(model: Any) -> str:
    """The name of the function of a model's neurons."""
    if isinstance(model, TwinModel):
        return model.architecture.activation
    return LEARNED if isinstance(model, LearnedModel) else "relu"


def patching_of(model: Any) -> EdgePatching:
    """The edges of a model, with whole MLPs."""
    if isinstance(model, TwinModel):
        causal, weights, norm = model.teacher.options.causal, model.parameters, model.architecture.norm
    elif isinstance(model, RunnableModel):
        causal, weights, norm = model.options.causal, model.cast(np.float32), model.norm
    else:
        what = f"{type(model).__name__} is no model whose edges can be patched"
        raise TracrError(what, hint="pass a model or a subject")
    activation = activation_of(model)
    return EdgePatching(
        weights, causal, parts_of(weights), norm, None if activation == "relu" else in_numpy(activation)
    )
