"""Measurements of an injected model: what changed elsewhere, and how often its answers are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError
from tracr.extras import need
from tracr.graft.injection.host import GPT2Host
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.running import log_probabilities, run_host
from tracr.ir.program import Tables
from tracr.runtime.table_interpreter import evaluate_batch

if TYPE_CHECKING:
    from tracr.graft.injection.injected import Injected

__all__ = ["Elsewhere", "TaskScore", "as_ids", "expected", "logits_of", "measure_elsewhere", "score_task"]

Array = NDArray[Any]
AT_A_TIME = 16  # inputs of one forward pass
SILENT, UNDEFINED = -1, -2


@dataclass(frozen=True)
class Elsewhere:
    """The change of the host where nothing is asked: losses in nats per token, differences of logits, divergences."""

    positions: int
    loss_before: float
    loss_after: float
    largest_logit_change: float
    mean_divergence: float
    largest_divergence: float
    other_first_choice: int
    """The positions whose most likely token is another one."""

    @property
    def perplexity_before(self) -> float:
        """exp of the loss of the host."""
        return math.exp(self.loss_before)

    @property
    def perplexity_after(self) -> float:
        """exp of the loss of the injected model."""
        return math.exp(self.loss_after)

    def __str__(self) -> str:
        return (
            f"{self.positions:,} positions: perplexity {self.perplexity_before:.6f} before, "
            f"{self.perplexity_after:.6f} after; logits change by at most {self.largest_logit_change:.2g}, divergence "
            f"at most {self.largest_divergence:.2g} nats; another first choice at {self.other_first_choice:,} positions"
        )


@dataclass(frozen=True)
class TaskScore:
    """How often the most likely token is the program's answer, where the program was asked and has an answer.

    `silent`: asked positions whose answer has no token. `undefined`: asked positions of inputs on which the program
    raises. Neither is scored.
    """

    right: int
    asked: int
    silent: int
    undefined: int

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return self.right / self.asked if self.asked else math.nan

    def __str__(self) -> str:
        left = f"; not scored: {self.silent} without a token, {self.undefined} undefined"
        return f"{self.right} of {self.asked} answers right{left if self.silent or self.undefined else ''}"


def as_ids(ids: object, interface: Interface, host: GPT2Host) -> Array:
    """Inputs as an array [input, position] of ids that begin with BOS."""
    wrong = "inputs must be a table of ids, [input, position]"
    try:
        found = np.asarray(ids)
    except ValueError as error:  # rows of different lengths
        raise InputError(wrong, hint="give inputs of one length") from error
    if found.ndim != 2 or not found.size or not np.issubdtype(found.dtype, np.integer):
        raise InputError(wrong, hint="give inputs of one length")
    if found.min() < 0 or found.max() >= host.words or found.shape[1] > host.positions:
        what = f"inputs must have ids from 0 to {host.words - 1} and at most {host.positions} positions"
        raise InputError(what, hint="encode them with the host's tokenizer")
    if (found[:, 0] != interface.bos).any():
        raise InputError(
            f"an input does not begin with BOS, token {interface.bos}: the circuit counts and looks for defaults there",
            hint="put BOS before every input",
        )
    return found.astype(np.int64)


def expected(program: Tables, interface: Interface, ids: Array) -> Array:
    """The token that the program answers at each position: SILENT if there is none, UNDEFINED if it raises."""
    longest = program.options.max_seq_len
    seen = ids[:, 1 : longest + 1]
    found = np.full(ids.shape, SILENT)
    evaluation = evaluate_batch(program, [interface.values(row) for row in seen])
    ((_, answers),) = evaluation.outputs().items()
    for row, values in enumerate(answers):
        tokens = [interface.answers.get(value, SILENT) for value in values]
        found[row, 1 : len(values) + 1] = UNDEFINED if evaluation.errors[row] else tokens
    return np.where(interface.asked(ids, longest), found, SILENT)


def logits_of(model: Any, ids: Array) -> Array:
    """The logits of a GPT-2, of transformers or in numpy, in float32."""
    if isinstance(model, GPT2Host):
        return run_host(model, ids, np.float32).logits
    torch = need("torch", "torch")
    with torch.no_grad():
        return np.asarray(model(torch.as_tensor(ids)).logits.float().cpu().numpy())


def _in_parts(function: Callable[[Array], Sequence[Array]], ids: Array) -> list[Array]:
    """The results of a function of inputs, a few inputs at a time."""
    parts = [function(ids[start : start + AT_A_TIME]) for start in range(0, len(ids), AT_A_TIME)]
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


def measure_elsewhere(injected: Injected, ids: Array, model: Any) -> Elsewhere:
    """Compare a model with the host wherever the circuit is not asked."""

    def compared(some: Array) -> tuple[Array, ...]:
        logits = [logits_of(one, some) for one in (injected.host, model)]
        before, after = map(log_probabilities, logits)
        away = ~injected.interface.asked(some, injected.longest)
        following = away[:, :-1]
        losses = [-np.take_along_axis(one[:, :-1], some[:, 1:, None], -1)[..., 0][following] for one in (before, after)]
        divergence = (np.exp(before) * (before - after)).sum(axis=-1)[away]
        changed = (before.argmax(axis=-1) != after.argmax(axis=-1))[away]
        return (*losses, np.abs(logits[1] - logits[0]).max(axis=-1)[away], divergence, changed)

    before, after, change, divergence, other = _in_parts(compared, ids)
    numbers = (float(before.mean()), float(after.mean()), float(change.max()))
    spread = (max(float(divergence.mean()), 0.0), max(float(divergence.max()), 0.0))
    return Elsewhere(len(divergence), *numbers, *spread, int(other.sum()))


def score_task(injected: Injected, ids: Array, model: Any) -> TaskScore:
    """Compare a model's first choices with the program's answers."""
    (chosen,) = _in_parts(lambda some: (logits_of(model, some).argmax(axis=-1),), ids)
    wanted, asked = expected(injected.program, injected.interface, ids), injected.interface.asked(ids, injected.longest)
    scored = wanted >= 0
    silent, undefined = (int((asked & (wanted == one)).sum()) for one in (SILENT, UNDEFINED))
    return TaskScore(int((chosen == wanted)[scored].sum()), int(scored.sum()), silent, undefined)
