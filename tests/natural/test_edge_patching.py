"""The AUROC of exact edge patching on twins: patches in JAX agree with those in numpy, and labels with the teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracr
from tests.natural.twins import students, untrained
from tracr import natural
from tracr.lab.methods.data import TOLERANCE, MethodData
from tracr.lab.methods.passes import patching_of

pytest.importorskip("jax")

from tracr.natural import edge_patching
from tracr.natural.answers import PART_OF_RANGE
from tracr.natural.examiner import Examiner
from tracr.natural.network import network_of
from tracr.natural.teacher import inputs_of, teacher_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", students())
def test_shares_agree_with_numpy(name: str) -> None:
    """For every edge the pairs in which an answer changes, up to answers that rounding decides."""
    model = students()[name]
    twin = untrained(model)
    rng = np.random.default_rng(0)
    vocab, longest = model.options.vocab, model.options.max_seq_len
    lengths = rng.integers(1, longest + 1, size=40).tolist()
    pairs = [tuple([vocab[code] for code in rng.integers(len(vocab), size=n)] for _ in "ab") for n in lengths]
    data, patching = MethodData.of(pairs), patching_of(twin)
    clean_ids, corrupted_ids, token = data.ids(twin.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    sites = twin.architecture.sites
    expected = patching.run(
        clean,
        corrupted.written,
        [[(str(site.writer), str(site.reader))] for site in sites.edges],
        lambda logits: data.change(twin.outputs, token, clean.logits, logits),
    )
    teacher = teacher_of(model, sites, inputs_of(model, None))
    lessons, _ = edge_patching._patches(teacher, clean_ids, corrupted_ids, sites.coded[len(sites.nodes) :])
    examiner = Examiner(network_of(model, twin.architecture), teacher)
    _, same = examiner.agreement({name: array[None] for name, array in twin.parameters.named()}, lessons)
    found = ~same[0].reshape(expected.shape)
    assert (found != (expected > 0)).mean() < 0.005
    assert 0 < found.mean() < 1
    assert TOLERANCE == PART_OF_RANGE


def test_labels_are_the_teachers() -> None:
    """Edges needed alone are those of `minimal`; an edge that the teacher does not have is inert."""
    model = tracr.compile(tracr.rasp.programs.make_hist(), "abc", 4)
    twin = untrained(model)
    found = natural.edge_auroc(twin, pairs=200)
    named = {"->".join(key) for key in twin.ground_truth.candidates()}
    assert {*found.needed, *found.inert, *found.undecided} == named
    assert set(found.needed) == {
        "embed->blocks.0.attn.0.q",
        "embed->blocks.0.attn.0.k",
        "blocks.0.attn.0->blocks.0.mlp",
        "blocks.0.mlp->unembed",
    }
    assert found.pairs == 200
    assert found.auroc is not None
    assert found.auroc < 0.999  # random weights do not separate them
    again = natural.edge_aurocs([twin, twin], pairs=200)
    assert again == [found, found]


def test_a_model_like_its_teacher_separates_the_edges() -> None:
    """A twin whose weights are the teacher's own has AUROC 1, and its inert edges change nothing."""
    model = tracr.compile(tracr.rasp.programs.make_count_less_freq(2), "abc", 4)
    own: Any = model.cast(np.float32)
    twin = untrained(model, "relu", layer_norm=False)
    heads = max(len(layer.W_Q) for layer in own.layers)
    assert heads == 1
    architecture = replace(twin.architecture, width=model.d_model, d_head=model.d_model)
    alike = replace(twin, parameters=own, architecture=architecture)
    found = natural.edge_auroc(alike, pairs=100)
    assert found.auroc == 1
    assert min(found.needed.values()) > max(found.inert.values()) == 0


def test_twins_of_different_teachers_are_refused() -> None:
    """They would be compared with the wrong teacher."""
    made = students()
    with pytest.raises(tracr.TracrError, match="different teachers"):
        natural.edge_aurocs([untrained(made["hist"]), untrained(made["causal"])])
    assert natural.edge_aurocs([]) == []
