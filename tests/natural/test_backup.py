"""`natural.backup`: a second computation of a variable, which acts if the first is replaced by zeros."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs, compile_quietly, load_compiled
from tests.tally import NotCompared, Tally
from tracr import natural
from tracr.errors import InternalError, TracrError
from tracr.natural import Redundancy
from tracr.rasp import programs, rasp

ONE_BACK = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)
PREVIOUS = rasp.Aggregate(ONE_BACK, rasp.tokens, default="b").named("previous")
REPEATED = rasp.Map(lambda count: count > 1, programs.make_hist()).named("repeated")
BOTH = rasp.SequenceMap(lambda x, y: x + y, rasp.tokens, PREVIOUS).named("both")
TWICE = rasp.Aggregate(ONE_BACK, PREVIOUS, default="a").named("twice")
NUMBER = rasp.numerical(rasp.Map(lambda x: 1 if x == "a" else 3, TWICE)).named("number")
CASES: dict[str, tuple[Any, str]] = {
    "a count, which is the output": (programs.make_hist(), "hist"),
    "a count, which is read": (REPEATED, "hist"),
    "a count that a head compares": (programs.EXAMPLES["count_less_freq"].program, "hist"),
    "a copy with a default": (PREVIOUS, "previous"),
    "a copy that an MLP reads": (BOTH, "previous"),
    "a copy that a head copies, or BOS": (NUMBER, "previous"),
    "a table": (REPEATED, "repeated"),
    "a table of pairs": (BOTH, "both"),
}
INPUTS = all_inputs("ab", 4)


def made_of(name: str, level: int) -> tuple[tracr.CompiledModel, Redundancy]:
    program, variable = CASES[name]
    made = natural.backup(tracr.compile(program, "ab", 4, level=level), variable)
    (one,) = natural.redundancies(made)
    return made, one


class Patch:
    """A hook that replaces what nodes write: by zeros, or by what they write elsewhere."""

    def __init__(self, model: tracr.CompiledModel, nodes: Iterable[str], other: Any = None) -> None:
        self.nodes = [node for node in model.ground_truth.nodes() if node.id in set(nodes)]
        self.other = other

    def __call__(self, name: str, tensor: Any) -> Any:
        changed = tensor.copy()
        for node in self.nodes:
            if node.head is not None and name == f"blocks.{node.layer}.attn.hook_z":
                changed[:, :, node.head] = 0.0 if self.other is None else self.other[name][:, :, node.head]
            if node.neurons is not None and name == f"blocks.{node.layer}.mlp.hook_post":
                part = slice(*node.neurons)
                changed[..., part] = 0.0 if self.other is None else self.other[name][..., part]
        return changed


def patched(model: tracr.CompiledModel, nodes: Iterable[str], other: Any = None) -> Any:
    """The answers with the outputs of nodes replaced."""
    return model.run(INPUTS, hook=Patch(model, nodes, other)).decoded


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_nodes_replaced_by_zeros(name: str, level: int) -> None:
    """Without the backup, or without the first, nothing changes; without both something does."""
    made, one = made_of(name, level)
    assert made.verify()
    answers = made(INPUTS)
    assert patched(made, ()) == answers
    for nodes in (one.second, *([node] for node in one.second), *([node] for node in one.answered)):
        assert patched(made, nodes) == answers, nodes
    assert patched(made, one.first) == answers
    assert patched(made, [one.first[-1], one.second[-1]]) != answers
    assert set(one.answered) == set(one.first)  # of these programs: a count's head, a copying head, or neurons


@pytest.mark.parametrize("name", CASES)
def test_a_resampled_first_is_not_seen(name: str) -> None:
    """It changes answers, and the backup changes none of them: with and without it they are the same."""
    made, one = made_of(name, 1)
    answers = made(INPUTS)
    rows = np.array([len(xs) for xs in INPUTS])
    partner = np.arange(len(INPUTS))
    for length in np.unique(rows):
        own = np.flatnonzero(rows == length)
        partner[own] = np.roll(own, 1)
    elsewhere = made.run([INPUTS[row] for row in partner]).activations
    changed = patched(made, [one.first[-1]], elsewhere)
    assert changed != answers
    assert patched(made, [one.second[-1]], elsewhere) == answers

    def both(hook: str, tensor: Any) -> Any:
        return Patch(made, one.second)(hook, Patch(made, [one.first[-1]], elsewhere)(hook, tensor))

    assert made.run(INPUTS, hook=both).decoded == changed


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_acceptable_circuits(name: str, level: int) -> None:
    """By edges: two circuits under zero ablation and one under resampling; the edges that both lack are needed."""
    made, one = made_of(name, level)
    answers, truth = made(INPUTS), made.ground_truth
    first, second = one.circuits("zero")
    assert one.circuits("resample") == one.circuits("mean") == (first,)
    assert truth.ablate(one.second_edges, data=INPUTS, ablation="zero") == answers
    assert truth.ablate(one.second_edges, data=INPUTS, ablation="resample") == answers
    assert truth.ablate(one.first_edges, data=INPUTS, ablation="zero") == answers
    assert truth.ablate(one.first_edges, data=INPUTS, ablation="resample") != answers
    assert truth.ablate([*one.first_edges, *one.second_edges], data=INPUTS, ablation="zero") != answers
    assert one.accepts(first, INPUTS)
    assert one.accepts(second, INPUTS)
    assert not one.accepts(set(first) & set(second), INPUTS)
    assert not one.accepts(second, INPUTS, "resample")
    assert set(first) | set(second) == set(truth.edges())


@pytest.mark.parametrize("name", CASES)
def test_no_layer_has_a_part_of_both(name: str) -> None:
    """Ablating a whole sub-layer of the first computation spares the backup and the MLP that chooses."""
    made, one = made_of(name, 1)
    nodes = {node.id: node for node in made.ground_truth.nodes()}

    def sublayers(ids: Iterable[str]) -> set[tuple[Any, ...]]:
        return {(nodes[node].layer, nodes[node].kind) for node in ids}

    assert not sublayers(one.first) & sublayers([*one.second, one.chooser])
    assert not sublayers(one.second) & sublayers([one.chooser])


def test_a_mean_answers_to_its_neurons_only() -> None:
    """A mean of 0 is a mean: the head's zeros are not seen to be missing, and `answered` does not list the head."""
    mean = rasp.categorical(programs.make_frac_prevs(rasp.tokens == "a")).named("share_of_a")
    made = natural.backup(tracr.compile(mean, "ab", 4), "share_of_a")
    (one,) = natural.redundancies(made)
    assert len(one.first) == 2
    assert one.answered == one.first[1:]
    answers = made(INPUTS)
    assert patched(made, one.first) == patched(made, one.second) == answers
    assert patched(made, one.first[:1]) != answers


def test_labels_and_readers() -> None:
    """All three codes have labels, and only the MLP that chooses reads the first two."""
    made, one = made_of("a count, which is read", 1)
    for label in ("hist", "hist_backup", "hist_either"):
        assert [direction.value for direction in made.residual.of(label)] == [1, 2, 3, 4]
    readers = {edge.variable: set[str]() for edge in made.ground_truth.edges()}
    for edge in made.ground_truth.edges():
        readers[edge.variable].add(edge.target)
    assert readers["hist"] == readers["hist_backup"] == {one.chooser}
    assert one.chooser not in readers["hist_either"]


def test_the_backup_is_silent_and_the_variable_can_be_set() -> None:
    """Set to other values, the first code is what readers get."""
    made, _ = made_of("a count, which is read", 1)
    assert made.run("abab", set={"hist": [1, 2, 1, 1]}).decoded == [False, True, False, False]


def test_several_backups() -> None:
    """Each variable has its own."""
    model = tracr.compile(REPEATED, "ab", 4)
    made = natural.backup(natural.backup(model, "hist"), "repeated")
    first, second = natural.redundancies(made)
    assert (first.variable, second.variable) == ("hist", "repeated")
    answers = made(INPUTS)
    assert answers == model(INPUTS)
    assert patched(made, [*first.first, *second.first]) == answers
    assert patched(made, [*first.first, *second.second]) == answers
    assert patched(made, [*first.first, *first.second]) != answers


def random_backup(seed: int) -> tracr.CompiledModel:
    """A random program, with a backup of the first of its variables that can have one."""
    given: dict[str, Any] = {"vocab": "ab", "max_seq_len": 3, "causal": bool(seed % 2)}
    program = tracr.random_program([seed, 5], max_ops=5, **given)
    model = compile_quietly(program, **given, level=seed // 2 % 2)
    refused: list[TracrError] = []
    for node in reversed(model.program.sops.values()):
        try:
            return natural.backup(model, node.label)
        except InternalError:
            raise
        except TracrError as refusal:
            refused.append(refusal)
    if any(not refusal.diagnostic.hint for refusal in refused):
        raise AssertionError("refused without advice")
    raise NotCompared("no variable can have a backup")


@pytest.mark.parametrize(
    "seeds", [range(16), pytest.param(range(16, 160), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_programs(seeds: range) -> None:
    """Zeros in place of the first, or of the backup, change no answer; edge by edge and node by node."""
    inputs = all_inputs("ab", 3)
    with Tally(0.6) as tally:
        for seed in seeds:
            with tally.draw():
                made = random_backup(seed)
                assert made.verify()
                (one,) = natural.redundancies(made)
                answers = made.ground_truth.ablate([], data=inputs)
                for nodes in (one.second, [one.first[-1]], *([node] for node in one.answered)):
                    zeros = made.run(inputs, hook=Patch(made, nodes)).decoded
                    assert [zero for zero, row in zip(zeros, answers, strict=True) if row is not None] == [
                        row for row in answers if row is not None
                    ]
                for edges in (one.second_edges, one.first_edges):
                    assert made.ground_truth.ablate(edges, data=inputs, ablation="zero") == answers
                assert made.ground_truth.ablate(one.second_edges, data=inputs, ablation="resample") == answers


def test_saving_and_other_dials(tmp_path: Path) -> None:
    """It is a compiled model: saved, pickled, rotated and softened; the redundancy is found again."""
    made, one = made_of("a count, which is read", 1)
    made.save(tmp_path / "saved")
    for again in (load_compiled(tmp_path / "saved"), pickle.loads(pickle.dumps(made)), made.rotated(seed=1)):
        (found,) = natural.redundancies(again)
        assert (found.first, found.second, found.chooser) == (one.first, one.second, one.chooser)
        assert found.accepts(found.circuits()[1], INPUTS)
    for (name, array), (_, other) in zip(
        made.parameters.named(), load_compiled(tmp_path / "saved").parameters.named(), strict=True
    ):
        assert np.array_equal(array, other), name
    soft = natural.soften(made)
    assert soft(INPUTS) == made(INPUTS)
    assert natural.redundancies(soft)[0].accepts(natural.redundancies(soft)[0].circuits()[0], INPUTS)
    loaded = load_compiled(tmp_path / "saved")
    assert natural.redundancies(natural.backup(loaded.plain, "repeated"))[1].variable == "repeated"


HIST = tracr.compile(REPEATED, "ab", 3)
NUMBERS = programs.make_frac_prevs(rasp.tokens == "a")
AGAIN = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("again")


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        (3, ("hist",), "compiled model"),
        (HIST, (3,), "a text"),
        (HIST, ("hits",), "no variable"),
        (HIST, ("tokens",), "embedding"),
        (HIST, ("hist", "resample"), "ablation 'resample'"),
        (HIST, ("hist", "mean"), "ablation 'mean'"),
        (natural.backup(HIST, "hist"), ("hist",), "already"),
        (HIST.rotated(seed=0), ("hist",), "other weights"),
        (natural.soften(HIST), ("hist",), "softened"),
        (tracr.compile(REPEATED, "ab", 3, level=2), ("hist",), "may merge"),
        (tracr.compile(REPEATED, "ab", 3, passes={"fold": True}), ("hist",), "fold"),
        (tracr.compile(NUMBERS, "ab", 3), ("frac_prevs",), "is a number"),
        (tracr.compile([programs.make_hist(), AGAIN], "ab", 3), ("again",), "the same as hist"),
    ],
)
def test_refused(model: Any, given: Any, says: str) -> None:
    """What cannot have a backup, and why."""
    with pytest.raises(TracrError, match=says) as error:
        natural.backup(model, *given)
    assert error.value.diagnostic.hint


def test_decoys_of_a_model_with_a_backup_are_refused() -> None:
    """Decoys compile the expressions again, which know nothing of backups."""
    for model in (natural.backup(HIST, "hist"), natural.soften(HIST)):
        with pytest.raises(TracrError, match="decoys first") as error:
            natural.decoys(model, PREVIOUS)
        assert error.value.diagnostic.hint


def test_only_compiled_models_have_redundancies() -> None:
    """A model without backups has none."""
    assert natural.redundancies(HIST) == ()
    with pytest.raises(TracrError, match="only compiled models"):
        natural.redundancies(3)  # type: ignore[arg-type]
