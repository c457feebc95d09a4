"""Inputs for a graft: tokens for the part's program, ids for the host, and the answers that the host should give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from tracr.arguments import as_list, whole
from tracr.errors import InputError, TracrError
from tracr.graft.observed import tokens_of
from tracr.ir.domains import Finite
from tracr.model.verification import chosen_inputs
from tracr.rasp.annotations import Encoding
from tracr.runtime.outputs import Output
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import short_repr

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["GraftData", "HostAnswers", "data_of_ids", "data_of_program", "exchanged_inputs", "inputs_of"]

Array = NDArray[Any]
FAR = 0.01  # a number without listed values is right up to this


@dataclass(frozen=True, eq=False)
class HostAnswers:
    """What logits `start` to `stop` should say at each token: a class, or numbers; `scored` [input, token].

    `wanted` is [input, token] with classes, or [input, token, logit] with numbers, which `output` decodes.
    """

    start: int
    stop: int
    wanted: Array
    scored: NDArray[np.bool_]
    output: Output | None = None

    def rows(self, chosen: NDArray[np.intp], longest: int) -> HostAnswers:
        """The answers to some of the inputs, at the first tokens."""
        return replace(self, wanted=self.wanted[chosen, :longest], scored=self.scored[chosen, :longest])

    def right(self, logits: Array) -> NDArray[np.bool_]:
        """Which answers [input, token] are right."""
        mine = logits[..., self.start : self.stop].astype(np.float64)
        if self.wanted.ndim == 2:
            return np.asarray(mine.argmax(axis=-1) == self.wanted)
        assert self.output is not None
        whole = replace(self.output, start=0, stop=mine.shape[-1])
        given, wanted = whole.codes(mine), whole.codes(self.wanted)
        if isinstance(whole.domain, Finite):
            return np.asarray(given == wanted)
        return np.asarray((np.abs(given - wanted) <= FAR) | (np.isnan(given) & np.isnan(wanted)))

    def same(self, logits: Array, others: Array) -> NDArray[np.bool_]:
        """Where [input, token] two logits give the same answer."""
        mine, theirs = (one[..., self.start : self.stop].astype(np.float64) for one in (logits, others))
        if self.wanted.ndim == 2:
            return np.asarray(mine.argmax(axis=-1) == theirs.argmax(axis=-1))
        return replace(self, start=0, stop=mine.shape[-1], wanted=theirs).right(mine)

    def losses(self, logits: torch.Tensor, reference: torch.Tensor | None = None) -> torch.Tensor:
        """Cross-entropy of classes, squared error of numbers, [input, token]; with `reference`, from its answers.

        The classes of a reference are its probabilities: the loss is the divergence from them.
        """
        mine = logits[..., self.start : self.stop]
        other = None if reference is None else reference[..., self.start : self.stop].to(mine)
        if self.wanted.ndim == 3:
            wanted = torch.as_tensor(self.wanted, dtype=mine.dtype, device=mine.device) if other is None else other
            return ((mine - wanted) ** 2).sum(dim=-1)
        logs = mine.log_softmax(dim=-1)
        if other is not None:
            return (other.softmax(dim=-1) * (other.log_softmax(dim=-1) - logs)).sum(dim=-1)
        classes = torch.as_tensor(np.maximum(self.wanted, 0), device=mine.device)
        return -logs.gather(-1, classes[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class GraftData:
    """Inputs of a host.

    Args:
        inputs: the tokens of each input, for the programs of parts; PAD and BOS not included.
        ids: the ids [input, position] of the host, with padding after the tokens.
        start: the number of positions before the first token: 1 if the host has BOS.
        pad: the id of padding; `None` if no input is padded.
        answers: the right answers; several if the host has several outputs.
        longest: the number of places for tokens.
    """

    inputs: tuple[tuple[Any, ...], ...]
    ids: NDArray[np.int64]
    start: int
    pad: int | None
    answers: tuple[HostAnswers, ...]
    longest: int

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def real(self) -> NDArray[np.bool_]:
        """Which places [input, token] hold a token."""
        return tokens_of(self.inputs, self.longest)

    @property
    def before(self) -> tuple[int, ...] | None:
        """The ids before the first token; `None` if they differ between inputs."""
        found = self.ids[:, : self.start]
        return None if (found != found[:1]).any() else tuple(found[0].tolist())

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Which places [input, token] are scored: those that every output has an answer for."""
        return np.asarray(np.logical_and.reduce([self.real, *(one.scored for one in self.answers)]))

    def rows(self, chosen: NDArray[np.intp], *, cut: bool = True) -> GraftData:
        """Some of the inputs; `cut` leaves out the positions that hold no token in any of them."""
        inputs = tuple(self.inputs[row] for row in chosen)
        longest = max((len(one) for one in inputs), default=0) if cut else self.real.shape[1]
        answers = tuple(one.rows(chosen, longest) for one in self.answers)
        return GraftData(inputs, self.ids[chosen, : self.start + longest], self.start, self.pad, answers, longest)

    def score(self, logits: Array) -> tuple[NDArray[np.bool_], Array]:
        """Whether all answers at a token are right, and their losses, both [input, token]; false and 0 if unscored."""
        rights = [one.right(logits[:, self.start :]) for one in self.answers]
        return np.logical_and.reduce([self.scored, *rights]), self.losses(
            torch.as_tensor(logits, dtype=torch.float64)
        ).numpy()

    def same(self, logits: Array, others: Array) -> NDArray[np.bool_]:
        """Where [input, token] two logits give the same answers; false if unscored."""
        found = [one.same(logits[:, self.start :], others[:, self.start :]) for one in self.answers]
        return np.asarray(np.logical_and.reduce([self.scored, *found]))

    def losses(self, logits: torch.Tensor, reference: torch.Tensor | None = None) -> torch.Tensor:
        """The losses of all answers at each token, 0 if unscored; with `reference`, from its answers instead."""
        other = None if reference is None else reference[:, self.start :]
        total = sum(one.losses(logits[:, self.start :], other) for one in self.answers)
        assert isinstance(total, torch.Tensor)
        return torch.where(torch.as_tensor(self.scored, device=total.device), total, 0.0)

    def check_answers(self, logits: int) -> None:
        """Refuse data on which nothing is asked, and answers that are no number of one of the host's logits."""
        if not self.scored.any():
            raise InputError(
                f"no answer is asked for in the {len(self)} inputs of one side", hint="give more inputs with answers"
            )
        for one in self.answers:
            most = int(one.wanted.max()) if one.wanted.ndim == 2 else 0
            if most >= min(one.stop, logits) - one.start:
                raise InputError(
                    f"there is an answer {most}, but the host has {min(one.stop, logits) - one.start} logits",
                    hint="answers are the host's own numbers of tokens",
                )

    def split(self, share: float, seed: int) -> tuple[GraftData, GraftData]:
        """Inputs to fit with and inputs to test with, in random order; equal inputs are on one side."""
        keys = {one: number for number, one in enumerate(dict.fromkeys(self.inputs))}
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(keys))
        fitted = order < round(share * len(keys))
        mine = np.array([fitted[keys[one]] for one in self.inputs], dtype=bool)
        if mine.all() or not mine.any():
            raise InputError(
                f"{len(keys)} different inputs cannot be divided into inputs to fit with and inputs to test with",
                hint="give more inputs, or another share",
            )
        fit, test = (rng.permutation(np.flatnonzero(one)) for one in (mine, ~mine))
        return self.rows(fit, cut=False), self.rows(test, cut=False)  # one of them may have no input of the full length


def exchanged_inputs(data: GraftData, rng: np.random.Generator) -> NDArray[np.intp]:
    """For each input another one of its length, if there is one."""
    lengths = data.real.sum(axis=1)
    order = np.arange(len(lengths))
    for length in np.unique(lengths):
        mine = np.flatnonzero(lengths == length)
        drawn = rng.permutation(mine)
        order[drawn] = np.roll(drawn, 1)
    return order


def inputs_of(model: DesignedModel, most: int = 2_000, seed: int = 0) -> list[tuple[Any, ...]]:
    """All inputs of a model if they are at most so many; otherwise a sample of about that many, each once."""
    if not hasattr(model, "program") or not hasattr(model, "options"):
        raise TracrError(
            f"inputs are drawn for a compiled model, not for {short_repr(model)}",
            hint="pass tracr.compile(...), or twin.teacher",
        )
    batches, _ = chosen_inputs(model, whole("most", most, 2), whole("seed", seed))
    tokens = model.options.vocab
    found = [tuple(tokens[code] for code in row) for batch in batches for row in batch.tolist()]
    return list(dict.fromkeys(found))


def data_of_program(model: DesignedModel, inputs: Sequence[Sequence[Any]]) -> GraftData:
    """Data for a model of a program: a compiled model, a variant, or (with its teacher) a twin.

    Inputs on which the program raises have no answers and are left out.
    """
    listed = _token_rows(inputs)
    if not listed:
        raise InputError("there are no inputs", hint="give a list of inputs")
    wanted = evaluate_batch(model.program, [list(one) for one in listed])
    there = np.flatnonzero(~wanted.errors)
    kept = tuple(listed[row] for row in there)
    values = {name: [rows[row] for row in there] for name, rows in wanted.outputs().items()}
    answers = tuple(_answers(output, values[output.name], tokens_of(kept)) for output in model.outputs)
    ids = np.asarray(model.encode([list(one) for one in kept]), dtype=np.int64)
    return GraftData(kept, ids, 1, model.vocabulary.pad_id, answers, ids.shape[1] - 1)


def _answers(output: Output, values: list[list[Any]], real: NDArray[np.bool_]) -> HostAnswers:
    if output.encoding is Encoding.CATEGORICAL:
        assert isinstance(output.domain, Finite)
        classes = np.full(real.shape, -1, dtype=np.int64)
        classes[real] = [output.domain.index[value] for row in values for value in row]
        return HostAnswers(output.start, output.stop, classes, real)
    numbers = np.zeros((*real.shape, output.stop - output.start))
    flat = [value for row in values for value in row]
    numbers[real, 0] = [0.0 if value is None else float(value) for value in flat]
    if numbers.shape[-1] > 1:
        numbers[real, 1] = [float(value is None) for value in flat]
    return HostAnswers(output.start, output.stop, numbers, real, output)


def data_of_ids(
    inputs: Sequence[Sequence[Any]], ids: Any, answers: Any, *, start: int = 0, pad: int | None = None
) -> GraftData:
    """Data for any host, such as a language model.

    Args:
        inputs: the tokens of each input, as the programs of the parts take them.
        ids: the host's ids [input, position], with padding after the tokens.
        answers: the right ids [input, token]; -1 where no answer is asked for.
        start: the number of positions before the first token, such as 1 for BOS.
        pad: the id of padding, if inputs are padded.
    """
    kept = tuple(_token_rows(inputs))
    start, pad = whole("start", start), None if pad is None else whole("pad", pad)
    numbers, wanted = (_whole_table(one) for one in (ids, answers))
    real = tokens_of(kept)
    if numbers.ndim != 2 or numbers.shape != (len(kept), start + real.shape[1]) or wanted.shape != real.shape:
        raise InputError(
            f"{len(kept)} inputs of up to {real.shape[1]} tokens need ids {(len(kept), start + real.shape[1])} and "
            f"answers {real.shape}, not {numbers.shape} and {wanted.shape}",
            hint="pad shorter inputs after their tokens; answers have a place for each token",
        )
    if pad is None and not real.all():
        raise TracrError("the inputs have different lengths, so some are padded", hint="pass pad=, the id of padding")
    if pad is not None and not ((numbers[:, start:] != pad) == real).all():
        row = int(np.flatnonzero(((numbers[:, start:] != pad) != real).any(axis=1))[0])
        raise InputError(
            f"input {row} has {len(kept[row])} tokens, but its ids have the padding {pad} at other places",
            hint="padding comes after the tokens, and its id is that of no token",
        )
    if wanted.min(initial=0) < -1 or numbers.min(initial=0) < 0:
        raise InputError("ids are 0 or more, and answers -1 or more", hint="-1 is where nothing is asked")
    width = int(wanted.max(initial=0)) + 1
    logits = HostAnswers(0, max(width, 2**31 - 1), wanted, real & (wanted >= 0))
    return GraftData(kept, numbers, start, pad, (logits,), real.shape[1])


def _token_rows(inputs: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The tokens of each input."""
    rows = as_list("inputs", inputs, error=InputError)
    for one in rows:
        if not isinstance(one, Iterable):
            raise InputError(
                f"an input is a list of tokens, not {short_repr(one)}", hint='write [("a", "b"), ("c",)], for example'
            )
    return [tuple(one) for one in rows]


def _whole_table(given: Any) -> NDArray[np.int64]:
    """A table of whole numbers."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "iuf" and np.isfinite(found).all() and (found == np.floor(found)).all():
            return found.astype(np.int64)
    except (ValueError, TypeError, OverflowError):  # rows of different lengths, or no numbers
        pass
    raise InputError(
        "ids and answers must be tables of whole numbers, [input, position] and [input, token]",
        hint="pad shorter inputs after their tokens; answers are -1 where nothing is asked",
    )
