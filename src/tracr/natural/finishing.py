"""`finish`: further training of twins that were nearly admitted.

The learning rate starts again, lower than at first, and falls. There are no hints. Most lessons are drawn from the
sites where a twin errs; these are found with more checks than during the first training, because a site that must not
matter is missed if it errs in 0.3 % of its lessons. Lessons for admission are not used for this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from tracr.arguments import as_list, number, whole
from tracr.errors import TracrError
from tracr.natural.distilling import Progress, School, sizes_here, train_until_admitted
from tracr.natural.network import Tree
from tracr.natural.training import Trainer, TwinRecipe
from tracr.natural.twin_model import TwinModel

__all__ = ["finish"]

FINER = 3  # times as many checks as in the first training
MISSED = 0.8  # the share of lessons from sites in proportion to their error rates
ROUND = 500


def finish(
    given: Sequence[TwinModel],
    *,
    steps: int = 4_000,
    batch: int = 512,
    data: Sequence[Sequence[Any]] | None = None,
    seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[TwinModel]:
    """Train twins of one model further, until all are admitted or `steps` are done; admitted ones stay as they are.

    Args:
        given: twins with one teacher and one architecture.
        steps: the most further training steps; a twin's `steps` are then those of both trainings.
        batch: interventions per step.
        data: the inputs to train on, as for `twins`.
        seconds: if given, training stops after the round in which this time has passed.
        progress: called after every round; the twins in it are those that were trained further.
    """
    end = math.inf if seconds is None else time.monotonic() + number("seconds", seconds, above=0)
    steps, batch, found = whole("steps", steps, 1), whole("batch", batch, 1), _checked(given)
    places = [place for place, twin in enumerate(found) if not twin.admitted]
    if not places:
        return found
    waiting = [found[place] for place in places]
    sizes = sizes_here()
    school = School.of(waiting[0].teacher, waiting[0].architecture, data, replace(sizes, checked=FINER * sizes.checked))
    recipe = TwinRecipe(steps=steps, batch=batch, start="trained", hint=0.0, missed=MISSED, round=ROUND)
    trainer = Trainer(school.network, school.teacher.answers, school.lessons, school.teacher.wired, None, recipe)
    state = trainer.begin(_weights(waiting))
    state = trainer.weighed(state, school.missed(state.averaged))
    made = train_until_admitted(school, trainer, state, [twin.seed for twin in waiting], None, progress, end)
    for place, before, after in zip(places, waiting, made, strict=True):
        found[place] = replace(after, steps=before.steps + after.steps)
    return found


def _weights(twins: Sequence[TwinModel]) -> Tree:
    """The weights of twins, with a leading axis."""
    each = [dict(twin.parameters.named()) for twin in twins]
    return {name: jnp.asarray(np.stack([weights[name] for weights in each])) for name in each[0]}


def _checked(given: Sequence[TwinModel]) -> list[TwinModel]:
    """The twins, or an error if they cannot be trained together."""
    found = as_list("twins", given)
    for twin in found:
        if not isinstance(twin, TwinModel):
            raise TracrError(f"a {type(twin).__name__} is no twin", hint="pass a list of twins, as `twins` returns it")
        if twin.architecture != found[0].architecture or not _alike(twin, found[0]):
            raise TracrError("the twins have different teachers or architectures", hint="finish them one by one")
    return found


def _alike(one: TwinModel, other: TwinModel) -> bool:
    """Whether two twins have the same teacher."""
    if one.teacher is other.teacher:
        return True
    weights, others = dict(one.teacher.parameters.named()), dict(other.teacher.parameters.named())
    return (
        one.teacher.options == other.teacher.options
        and weights.keys() == others.keys()
        and all(np.array_equal(array, others[name]) for name, array in weights.items())
    )
