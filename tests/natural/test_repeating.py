"""Training aims where a twin fails: wrong lessons are repeated, hints weigh alike, spare components are kept quiet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import programs

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr.natural import distilling  # noqa: E402
from tracr.natural.architecture import architecture_of  # noqa: E402
from tracr.natural.distilling import BankSizes, School  # noqa: E402
from tracr.natural.hints import Hints, hints_of  # noqa: E402
from tracr.natural.starts import start_of  # noqa: E402
from tracr.natural.training import State, Trainer, TwinRecipe  # noqa: E402

pytestmark = pytest.mark.slow

HIST = tracr.compile(programs.make_hist(), "abc", 3)
SEEDS = [0, 1]


@pytest.fixture(scope="module")
def school() -> School:
    """A school with few lessons; its architecture can hold the compiled weights exactly."""
    architecture = architecture_of(HIST, 32, 16, 64, layer_norm=False, activation="relu")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HELD_OUT": 50, "IDLE": 50, "TRIES": 2**12, "MANY_TRIES": 2**12}.items():
            patch.setattr(distilling, name, value)
        size = BankSizes(trained=200, idle=50, most_trained=10**6, checked=20, tries=2**13, mined=1_000)
        return School.of(HIST, architecture, None, size)


def trainer_of(school: School, hints: Hints | None = None, **recipe: Any) -> Trainer:
    return Trainer(
        school.network, school.teacher.answers, school.lessons, school.teacher.wired, hints, TwinRecipe(**recipe)
    )


def begun(school: School, start: str) -> State:
    """The state before training."""
    weights = start_of(start, HIST, school.architecture, school.inputs, SEEDS, school.sizes)
    return trainer_of(school).begin(weights)


def errs(school: School, state: State, place: int) -> Any:
    """Whether a seed errs in each lesson, measured one kind at a time."""
    bank = school.lessons
    right, same = school.examiner.agreement(state.averaged, bank.lessons)
    answers = school.teacher.answers
    token = np.asarray(school.network.tokens(jax.numpy.asarray(bank.lessons.base)))
    moves = (np.asarray(answers.apart(bank.lessons.before, bank.lessons.after)) > 1) & token
    return np.where(moves.any(axis=1), ~right[place], ~same[place])


def test_the_lessons_found_wrong_are_wrong(school: School) -> None:
    """Different seeds have different ones. All of the bank is found in time, because known ones are looked at again."""
    state = begun(school, "random")
    wanted = [set(np.flatnonzero(errs(school, state, place)).tolist()) for place in range(2)]
    assert min(map(len, wanted)) > 100
    assert wanted[0] != wanted[1]
    for done in range(0, 12_000, 1_000):
        state = replace(state, wrong=school.wrong(replace(state, done=done)))
        for place, rows in enumerate(state.wrong):
            known = rows[rows >= 0]
            assert set(known.tolist()) <= wanted[place]
            assert (rows[len(known) :] == -1).all()
            assert len(set(known.tolist())) == len(known)
    for place, rows in enumerate(state.wrong):
        assert len(rows[rows >= 0]) > 0.95 * min(len(rows), len(wanted[place]))


def test_lessons_that_are_right_now_are_forgotten(school: School) -> None:
    """The compiled weights answer everything, so nothing stays."""
    state = begun(school, "compiled")
    state = replace(state, wrong=np.resize(np.arange(50, dtype=np.int32), state.wrong.shape))
    assert (school.wrong(state) == -1).all()


@pytest.mark.parametrize(("known", "share"), [(0, 0.0), (10, 0.003), (400, 0.12), (5_000, 0.25)])
def test_wrong_lessons_are_drawn_about_as_often_as_the_recipe_says(school: School, known: int, share: float) -> None:
    """30 times each in a round of 1,000 steps, and at most a quarter of all."""
    trainer = trainer_of(school, batch=100)
    shares = np.zeros(len(school.teacher.wired))
    shares[0] = 1  # all other lessons are of the first site
    wrong = np.full(8_192, -1)
    wrong[:known] = len(school.lessons) - 1
    keys = jax.random.split(jax.random.key(0), 400)
    drawn = np.asarray(jax.vmap(lambda key: trainer._rows(shares, jax.numpy.asarray(wrong), key))(keys))
    assert drawn.min() >= 0
    assert abs((drawn == len(school.lessons) - 1).mean() - share) < 0.01


def test_components_that_write_one_value_have_as_much_weight_as_others() -> None:
    """Reading nothing of a head's only value costs as much as reading nothing of an MLP's five."""
    owned = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]], dtype=np.float32)
    hints = Hints(("blocks.0.attn.0", "blocks.0.mlp"), owned, None)
    held, token = np.ones((4, 3, 6), dtype=np.float32), np.ones((4, 3), dtype=np.float32)
    written = np.ones((4, 2, 3, 1), dtype=np.float32)
    right = np.ones((2, 1, 6), dtype=np.float32)
    shift = np.zeros((2, 6), dtype=np.float32)
    for writer in range(2):
        maps = right.copy()
        maps[writer] = 0
        assert float(hints.loss({"W": maps, "b": shift}, written, held, token)) == pytest.approx(0.5)


def test_spare_components_cost_what_they_write_while_there_are_hints(school: School) -> None:
    """`hist` has one head of two and the MLP; a louder spare head costs its mean square, later nothing."""
    hints = hints_of(school.teacher, school.lessons)
    trainer = trainer_of(school, hints)
    assert trainer.spare == ("blocks.0.attn.1",)
    state = trainer.begin(start_of("random", HIST, school.architecture, school.inputs, SEEDS, school.sizes))
    weights, readers = ({name: array[0] for name, array in tree.items()} for tree in (state.weights, state.readers))
    lesson, held = jax.tree.map(lambda array: array[:64], trainer._lessons)

    def extra(spare: float, hinted: float) -> float:
        recipe = replace(trainer.recipe, spare=spare)
        return float(replace(trainer, recipe=recipe)._loss((weights, readers), lesson, held, hinted))

    kept: dict[str, Any] = {}
    school.network.intervened(weights, lesson.base, lesson.source, lesson.patch, kept)
    token = np.asarray(school.network.tokens(lesson.base))
    loud = float((np.asarray(kept["blocks.0.attn.1"]) ** 2).mean(axis=-1)[token].mean())
    assert loud > 0
    assert extra(1.0, 0.5) - extra(0.0, 0.5) == pytest.approx(0.5 * loud, rel=1e-3)
    assert extra(1.0, 0.0) == extra(0.0, 0.0)
