"""The compiled model as a teacher: its answers under interventions, and where the program is defined."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.natural.answers import Answer, Answers
from tracr.natural.defined import Defined, defined_of
from tracr.natural.network import Patch, Tree, TwinNetwork
from tracr.natural.sites import EMBED, Sites
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import short_repr

__all__ = ["Effect", "Inputs", "Lesson", "Teacher", "inputs_of", "teacher_of"]

Array = Any  # of JAX
MOST = 40_000  # the most inputs that are kept
SHOWN = 8_000  # inputs used to learn the codes of variables


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs on which the program is defined, as ids [input, position] with BOS and PAD, and their lengths."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    tokens: list[list[Any]]
    everything: bool
    """Whether these are all inputs of the model."""

    def __len__(self) -> int:
        return len(self.ids)


def inputs_of(model: DesignedModel, data: Sequence[Sequence[Any]] | None, seed: int = 0) -> Inputs:
    """The given inputs; else all inputs the model takes, or many random ones."""
    _check_data(data)
    vocab, (shortest, longest) = model.options.vocab, model.program.lengths
    everything = False
    if data is None:
        total = sum(len(vocab) ** length for length in range(max(1, shortest), longest + 1))
        everything = total <= MOST
        data = _all(vocab, shortest, longest) if everything else _some(vocab, shortest, longest, seed)
    listed = [list(tokens) for tokens in data if len(tokens)]
    errors = evaluate_batch(model.program, listed).errors
    kept = [tokens for tokens, wrong in zip(listed, errors.tolist(), strict=True) if not wrong]
    if len(kept) < 2:
        raise TracrError("the program is defined on fewer than two of the inputs", hint="pass data=, more inputs")
    ids, _, lengths = model.vocabulary.encode(kept)
    return Inputs(ids.astype(np.int32), np.array(lengths, dtype=np.int32), kept, everything)


def _check_data(data: Any) -> None:
    """Refuse what is not a list of inputs; a text is one input, not a list of them."""
    listed = isinstance(data, Sequence) and not isinstance(data, str)
    if data is None or (listed and all(isinstance(tokens, Sequence) for tokens in data)):
        return
    raise TracrError(f"not a list of inputs: {short_repr(data)}", hint='write ["abca", "bb"], for example')


def _all(vocab: Sequence[Any], shortest: int, longest: int) -> list[list[Any]]:
    return [list(xs) for n in range(max(1, shortest), longest + 1) for xs in itertools.product(vocab, repeat=n)]


def _some(vocab: Sequence[Any], shortest: int, longest: int, seed: int) -> list[list[Any]]:
    """Random inputs, half of them of the longest length; with few and with many distinct tokens."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], list[Any]] = {}
    while len(found) < MOST and len(found) < 0.9 * len(vocab) ** longest:
        length = longest if rng.random() < 0.5 else int(rng.integers(max(1, shortest), longest + 1))
        few = rng.choice(len(vocab), size=int(rng.integers(1, len(vocab) + 1)), replace=False)
        row = tuple(rng.choice(few, size=length).tolist())
        found[row] = [vocab[code] for code in row]
        if rng.random() < 0.2 and length <= len(vocab):  # all tokens different
            row = tuple(rng.permutation(len(vocab))[:length].tolist())
            found[row] = [vocab[code] for code in row]
    return list(found.values())


class Lesson(NamedTuple):
    """Interventions with the teacher's answers: on the base input, and under the intervention."""

    base: Array
    source: Array
    patch: Patch
    before: Answer
    after: Answer


class Effect(NamedTuple):
    """For each lesson how far the answer moves, in tolerances (infinite where a code changes), and if it is defined."""

    moved: Array
    defined: Array


@dataclass(frozen=True, eq=False)
class Teacher:
    """A compiled model that answers under interventions."""

    network: TwinNetwork
    weights: Tree
    answers: Answers
    defined: Defined
    wired: NDArray[np.bool_]
    """For each site, whether the teacher has it."""

    @partial(jax.jit, static_argnums=0)
    def teach(self, base: Array, source: Array, patch: Patch) -> tuple[Lesson, Effect]:
        """The answers on the base inputs and under interventions."""
        logits, change = self.network.difference(self.weights, base, source, patch)
        changed, end = self.network.patched(self.weights, base, patch, change)
        seen, where = self.network.seen(patch)
        token = self.network.tokens(base)
        before, after = self.answers.read(logits), self.answers.read(changed)
        moved = jnp.where(token, self.answers.apart(before, after), 0.0).max(axis=1)
        fine = self.defined(end, seen, change * where[..., None], token)
        return Lesson(base, source, patch, before, after), Effect(moved, (fine | ~token).all(axis=1))

    @partial(jax.jit, static_argnums=0)
    def end(self, base: Array, source: Array, patch: Patch) -> Array:
        """The last residual stream under interventions, [batch, position, d_model]."""
        change = self.network.difference(self.weights, base, source, patch)[1]
        return self.network.patched(self.weights, base, patch, change)[1]


def teacher_of(model: CompiledModel, sites: Sites, inputs: Inputs) -> Teacher:
    """The model as a teacher, for a twin with these sites."""
    if not isinstance(model, CompiledModel):
        raise TracrError(
            "the teacher must be a compiled model with unchanged weights, not a variant", hint="use model.plain"
        )
    network = TwinNetwork(sites, model.options.causal, model.vocabulary.pad_id)
    weights = {name: jnp.asarray(array) for name, array in model.cast(np.float32).named()}
    shown = np.random.default_rng(0).permutation(len(inputs))[:SHOWN]
    nowhere = jnp.zeros(1, dtype=int)
    run = jax.jit(lambda ids: network.writes(weights, ids, jnp.zeros(len(ids), dtype=bool), nowhere)[2])
    stream = np.concatenate([np.asarray(run(inputs.ids[part])) for part in np.array_split(shown, 8)])
    defined = defined_of(model, sites, [inputs.tokens[row] for row in shown.tolist()], stream)
    return Teacher(network, weights, Answers(model.outputs), defined, _wired(model, sites))


def _wired(model: CompiledModel, sites: Sites) -> NDArray[np.bool_]:
    """Which sites are nodes or edges of the model."""
    truth = model.ground_truth
    nodes = {node.id for node in truth.nodes("qkv")}
    edges = set()
    for edge in truth.edges("qkv"):
        writer = EMBED if edge.source in ("embed", "pos_embed") else edge.source
        edges.add((writer, edge.target if edge.input == "in" else f"{edge.target}.{edge.input}"))
    return np.array(
        [site.writer in nodes if site.reader is None else (site.writer, site.reader) in edges for site in sites.all]
    )
