"""Hints: the values that the teacher's components hold under interventions, as targets for a twin's components."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tracr.rasp import programs

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr.natural.hints import hints_of  # noqa: E402
from tracr.natural.lessons import draw_bank  # noqa: E402
from tracr.natural.sites import Sites  # noqa: E402
from tracr.natural.teacher import inputs_of, teacher_of  # noqa: E402

pytestmark = pytest.mark.slow

HIST = tracr.compile(programs.make_hist(), "abc", 3)


def test_hints_are_what_the_teacher_holds_under_the_intervention() -> None:
    """A head's hint is what it has written: on the base input if the MLP is patched, else if its keys are."""
    sites, inputs = Sites(HIST.n_layers, 2), inputs_of(HIST, None)
    teacher = teacher_of(HIST, sites, inputs)
    bank = draw_bank(teacher, inputs, sites, each=60, idle=20, tries=4096, seed=0)
    hints = hints_of(teacher, bank)
    assert hints is not None
    assert hints.writers == ("blocks.0.attn.0", "blocks.0.mlp")
    assert (hints.owned.sum(axis=0) == 1).all()
    lessons, held = bank.lessons, np.asarray(hints.held, dtype=np.float32)
    token = np.asarray(teacher.network.tokens(jax.numpy.asarray(lessons.base)))
    node = sites.writers.index("blocks.0.mlp")
    rows = np.flatnonzero((lessons.patch.writer == node) & (lessons.patch.reader < 0) & lessons.patch.where.all(axis=1))
    assert len(rows) > 20
    plain = np.asarray(teacher.end(lessons.base, lessons.base, lessons.patch))
    (dimension,) = np.flatnonzero(np.any(np.asarray(teacher.weights["blocks.0.attn.W_O"])[0] != 0, axis=0))
    head = held[..., hints.owned[0] > 0][..., 0]
    slope, shift = np.polyfit(plain[rows][token[rows]][:, dimension], head[rows][token[rows]], 1)
    assert np.allclose(slope * plain[rows][token[rows]][:, dimension] + shift, head[rows][token[rows]], atol=5e-3)
    edge = np.flatnonzero(
        (lessons.patch.writer == sites.writers.index("embed"))
        & (lessons.patch.reader == sites.readers.index("blocks.0.attn.0.k"))
    )
    found = (head[edge] - shift) / slope
    assert (np.abs(found - plain[edge][..., dimension])[token[edge]] > 0.05).any()  # keys of the source change counts


def test_reading_hints_costs_nothing_where_the_maps_are_right() -> None:
    """The loss is 0 for outputs that are the values themselves, and 1 on average for maps to 0."""
    sites, inputs = Sites(HIST.n_layers, 2), inputs_of(HIST, None)
    teacher = teacher_of(HIST, sites, inputs)
    bank = draw_bank(teacher, inputs, sites, each=60, idle=20, tries=4096, seed=0)
    hints = hints_of(teacher, bank)
    assert hints is not None
    values = hints.owned.shape[1]
    held = hints.held.astype("float32")
    written = np.repeat(np.asarray(held)[:, None], len(hints.writers), axis=1)
    token = teacher.network.tokens(jax.numpy.asarray(bank.lessons.base)).astype("float32")
    maps, shifts = np.stack([np.eye(values)] * len(hints.writers)), np.zeros((len(hints.writers), values))
    assert float(hints.loss({"W": maps, "b": shifts}, written, held, token)) < 1e-9
    assert 0.5 < float(hints.loss({"W": 0 * maps, "b": shifts}, written, held, token)) < 2
