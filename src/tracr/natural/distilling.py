"""Trains twins of a compiled model, several seeds together, until they are admitted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from tracr.arguments import as_list, number, whole
from tracr.errors import TracrError
from tracr.ir.parameters import Parameters
from tracr.natural.admission import Admission, admission_of
from tracr.natural.architecture import Architecture, architecture_of
from tracr.natural.checkpoint import Checkpoint
from tracr.natural.examiner import Examiner
from tracr.natural.hints import hints_of
from tracr.natural.lessons import Bank, draw_bank
from tracr.natural.network import Tree, TwinNetwork, network_of
from tracr.natural.starts import check_start, start_of
from tracr.natural.teacher import Inputs, Teacher, inputs_of, teacher_of
from tracr.natural.training import State, Trainer, TwinRecipe
from tracr.natural.twin_model import TwinModel
from tracr.rasp.annotations import Encoding

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Progress", "School", "sizes_here", "train_until_admitted", "twin", "twins"]

Array = NDArray[Any]
HELD_OUT, IDLE = 3_000, 2_000  # lessons for admission: of each kind for each site of the teacher; for other sites
MANY_TRIES = 2**18  # the most interventions drawn for each site, for admission
NEARLY = 0.005  # admission, which takes long, is measured when every site errs in at most this share of its checks
TRIES = 2**17  # the most interventions drawn for each site where none of them changes the answer


@dataclass(frozen=True)
class BankSizes:
    """The sizes of the banks for training and for checks: for each site, lessons of each kind.

    Where few interventions are defined or change the answer, few draws give few lessons; twins stopped improving at
    such sites (docs/natural.md).
    """

    trained: int
    idle: int
    """Lessons for each site that the teacher does not have."""
    most_trained: int
    """The most lessons of one kind for all sites of the teacher; all other sites have at most twice as many."""
    checked: int
    tries: int
    """The most interventions drawn for each site."""
    mined: int
    """How many lessons for training are looked at after each round, to find wrong ones."""

    def each(self, wired: Array) -> tuple[int, int]:
        """In the bank for training, the lessons for each site that the teacher has (`wired`), and for each other."""
        return (
            min(self.trained, self.most_trained // max(1, int(wired.sum()))),
            min(self.idle, 2 * self.most_trained // max(1, int((~wired).sum()))),
        )


LARGE = BankSizes(trained=32_000, idle=2_000, most_trained=2_000_000, checked=600, tries=2**19, mined=2**17)
SIZES = {"cpu": BankSizes(trained=16_000, idle=2_000, most_trained=1_000_000, checked=300, tries=2**17, mined=2**14)}
"""The sizes by device; a CPU would take long to draw large banks."""


def sizes_here() -> BankSizes:
    """The sizes for the device that JAX uses."""
    return SIZES.get(jax.default_backend(), LARGE)


@dataclass(frozen=True)
class Progress:
    """The progress of training: the steps done, all steps, and the loss of each seed over the last round."""

    done: int
    steps: int
    losses: tuple[float, ...]
    worst: tuple[float, ...]
    """For each seed, the lowest agreement of a node or edge on the lessons that training is checked on."""
    admitted: tuple[int, ...]
    """The indices of the admitted seeds."""
    twins: tuple[TwinModel, ...] = ()
    """The admitted twins."""


def twin(model: CompiledModel, *, seed: int = 0, **settings: Any) -> TwinModel:
    """A twin of a compiled model: `twins` with one seed."""
    return twins(model, [seed], **settings)[0]


def twins(
    model: CompiledModel,
    seeds: Sequence[int] = range(4),
    *,
    width: int = 64,
    d_head: int = 16,
    d_mlp: int = 128,
    layer_norm: bool = True,
    activation: str = "gelu",
    steps: int = 20_000,
    batch: int = 512,
    start: str = "random",
    hint: float = 1.0,
    spare: float = 0.0,
    data: Sequence[Sequence[Any]] | None = None,
    checkpoint: str | Path | None = None,
    seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[TwinModel]:
    """Twins of a compiled model, one for each seed, trained together until all are admitted or `steps` are done.

    Args:
        model: the teacher, compiled at level 0 or 1.
        seeds: the other seeds change a twin only by rounding, if they train for the same number of steps.
        width: the width of the residual stream; it has width / d_head heads, at least as many as the teacher.
        d_head: the width of a head.
        d_mlp: the number of neurons in each MLP.
        layer_norm: whether there are layer norms.
        activation: "gelu", "gelu_new" or "relu".
        steps: the most training steps.
        batch: interventions per step.
        start: "random", or "compiled": the compiled weights rotated into the width, which must have room for them.
        hint: the weight of hints (hints.py) at first; more helps programs of several layers, and slows down others.
        spare: while there are hints, the weight of what components write that the teacher does not have: 1 keeps them
            quiet, if a twin shares work among them.
        data: the inputs to train on; by default all inputs of the model, or many random ones.
        checkpoint: a folder for the state of training; a killed run continues from there.
        seconds: if given, training stops after the round in which this time has passed; a checkpoint can be continued.
        progress: called after every round of training.

    Twins that are not admitted are returned too; their `admission` lists the missed nodes and edges.
    """
    end = math.inf if seconds is None else time.monotonic() + number("seconds", seconds, above=0)
    steps, batch = whole("steps", steps, 1), whole("batch", batch, 1)
    hint, spare = number("hint", hint, low=0), number("spare", spare, low=0)
    architecture = architecture_of(model, width, d_head, d_mlp, layer_norm=layer_norm, activation=activation)
    recipe, seeds = TwinRecipe(steps=steps, batch=batch, start=start, hint=hint, spare=spare), _checked(seeds)
    check_start(start, model, architecture)
    kept = Checkpoint.of(checkpoint, model, architecture, recipe, seeds)
    school = School.of(model, architecture, data)
    hints = hints_of(school.teacher, school.lessons)
    trainer = Trainer(school.network, school.teacher.answers, school.lessons, school.teacher.wired, hints, recipe)
    state = trainer.begin(start_of(start, model, architecture, school.inputs, seeds, school.sizes))
    return train_until_admitted(
        school, trainer, state if kept is None else kept.read(state), seeds, kept, progress, end
    )


def _checked(seeds: Sequence[int]) -> list[int]:
    """The seeds, or an error if there is none or a negative one."""
    found = [whole("seed", seed) for seed in as_list("seeds", seeds)]
    if not found:
        raise TracrError("no seed is given to train a twin with", hint="pass seeds=range(4)")
    return found


def train_until_admitted(
    school: School,
    trainer: Trainer,
    state: State,
    seeds: Sequence[int],
    kept: Checkpoint | None,
    progress: Callable[[Progress], None] | None,
    end: float = math.inf,
) -> list[TwinModel]:
    """The twins after training: in rounds, until all are admitted, all steps are done, or the time `end` has come.

    A twin keeps the weights with which it was admitted. A state is written after its admissions, so that a run killed
    at any moment continues with the admissions of the last round written.
    """
    keys, steps = jax.vmap(jax.random.key)(np.array(seeds)), trainer.recipe.steps
    found = {place: school.twin(state, place, seeds[place]) for place in np.flatnonzero(state.admitted_after).tolist()}
    while state.done < steps and len(found) < len(seeds):
        state, losses = trainer.train(state, keys)
        missed = school.missed(state.averaged)
        state = replace(trainer.weighed(state, missed), wrong=school.wrong(state))
        for place in np.flatnonzero(school.nearly(missed)).tolist():
            if place not in found and (one := school.twin(state, place, seeds[place])).admitted:
                found[place], state = one, state.admit(place)
        if kept is not None:
            kept.write(state)
        if progress is not None:
            worst = (1 - missed.max(axis=1)).tolist()
            places = tuple(sorted(found))
            made = tuple(found[place] for place in places)
            progress(Progress(state.done, steps, tuple(losses.tolist()), tuple(worst), places, made))
        if time.monotonic() >= end:
            break
    return [found.get(place) or school.twin(state, place, seed) for place, seed in enumerate(seeds)]


@dataclass(frozen=True, eq=False)
class School:
    """A teacher and three banks of its lessons: for training, for checks during training, and for admission.

    No lesson for admission is in another bank.
    """

    model: CompiledModel
    architecture: Architecture
    inputs: Inputs
    teacher: Teacher
    network: TwinNetwork
    lessons: Bank
    checks: Bank
    held_out: Bank
    size: BankSizes

    @staticmethod
    def of(
        model: CompiledModel,
        architecture: Architecture,
        data: Sequence[Sequence[Any]] | None,
        size: BankSizes | None = None,
    ) -> School:
        """The school of a model; `size` is by default that for the device."""
        sites, inputs = architecture.sites, inputs_of(model, data)
        teacher = teacher_of(model, sites, inputs)
        size = size or sizes_here()
        draw = partial(draw_bank, teacher, inputs, sites)
        each, idle = size.each(teacher.wired)
        lessons = draw(each=each, idle=idle, tries=size.tries, futile=TRIES, seed=0)
        checks = draw(each=size.checked, idle=size.checked // 3, tries=size.tries, futile=TRIES, seed=1)
        held_out = draw(each=HELD_OUT, idle=IDLE, tries=MANY_TRIES, seed=2, held_out=True)
        network = network_of(model, architecture)
        return School(model, architecture, inputs, teacher, network, lessons, checks, held_out, size)

    @property
    def sizes(self) -> Array:
        """The size of each logit: the range of a number, 1 for the others."""
        found = np.ones(self.model.parameters.W_U.shape[1], dtype=np.float32)
        for output in self.model.outputs:
            if output.encoding is Encoding.NUMERICAL:
                found[output.start] = max(1.0, *map(abs, output.domain.ends))
        return found

    @cached_property
    def examiner(self) -> Examiner:
        """The measurements of twins."""
        return Examiner(self.network, self.teacher)

    def missed(self, weights: Tree) -> Array:
        """The error rate of each seed at each site, [seed, site], on the lessons for checks during training."""
        bank, count = self.checks, self.checks.changing + self.checks.staying
        errors = self._errors(weights, bank, np.arange(len(bank)))
        site = np.repeat(np.arange(len(count)), count)
        return np.stack([np.bincount(site, weights=row, minlength=len(count)) / np.maximum(1, count) for row in errors])

    def wrong(self, state: State) -> Array:
        """The lessons for training that each seed gets wrong, as in `State.wrong`: of some of them, others every round.

        Lessons that were wrong are looked at again, and stay until they are right.
        """
        bank, rng = self.lessons, np.random.default_rng(state.done)
        known = np.unique(state.wrong[state.wrong >= 0])
        looked_at = np.union1d(known, rng.choice(len(bank), min(len(bank), self.size.mined), replace=False))
        found = np.full_like(state.wrong, -1)
        for place, errors in enumerate(self._errors(state.averaged, bank, looked_at)):
            rows = rng.permutation(looked_at[errors])[: found.shape[1]]
            found[place, : len(rows)] = rows
        return found

    def _errors(self, weights: Tree, bank: Bank, rows: Array) -> Array:
        """Whether each seed errs in each of these lessons of a bank, [seed, lesson]."""
        lessons = jax.tree.map(lambda array: array[rows], bank.lessons)
        right, same = self.examiner.agreement(weights, lessons)
        return np.where(bank.changes(rows), ~right, ~same)

    def nearly(self, missed: Array) -> Array:
        """Whether each seed may be admitted: every site errs rarely, or in one check only."""
        count = self.checks.changing + self.checks.staying
        found: Array = (missed * count <= np.maximum(1.5, NEARLY * count)).all(axis=1)
        return found

    def admission(self, weights: Tree) -> Admission:
        """The admission of one twin."""
        several = jax.tree.map(lambda array: array[None], weights)
        right, same = self.examiner.agreement(several, self.held_out.lessons)
        return admission_of(
            self.architecture.sites,
            self.teacher.wired,
            self.held_out,
            right[0],
            same[0],
            self.examiner.accuracy(several, self.inputs)[0],
            every_input=self.inputs.everything,
        )

    def twin(self, state: State, place: int, seed: int) -> TwinModel:
        """The twin of one seed, as it was admitted or else is now, measured."""
        weights, steps = state.weights_of(place)
        parameters = Parameters.of({name: np.asarray(array) for name, array in weights.items()})
        return TwinModel(self.model, self.architecture, parameters, self.admission(weights), seed, steps)
