"""Cases: their inputs, pairs, metric and roles; private cases; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tracr import lab, zoo
from tracr.lab import InputPair
from tracr.lab.catalogue import CONSTANT
from tracr.lab.sampling import PairKind
from tracr.rasp import rasp
from tracr.rasp.interpreter import evaluate

CASES = lab.cases()
SOME = [CASES[number] for number in range(0, len(CASES), 6)]
RARE = [lab.case(name) for name in ("is_anbn", "equal_counts", "shuffle_dyck2")]


def names(cases: list[lab.Case]) -> list[str]:
    return [case.name for case in cases]


def test_all_programs_but_constant_ones_are_cases() -> None:
    """Those left out are refused with a sentence; with more tokens than positions, sorting is a case."""
    assert len(CASES) >= 85
    assert {*names(CASES)} == {*zoo.names()} - CONSTANT
    for name in CONSTANT:
        with pytest.raises(tracr.TracrError, match=f"{name} is no case: all inputs of length . over .*same answer"):
            lab.case(name)
    assert lab.case("sort_unique", vocab=range(6)).pairs(4, changing=1)[0].changes
    assert names(lab.cases("ngrams")) == zoo.names("ngrams")


@pytest.mark.parametrize("case", [*SOME, *RARE], ids=lambda case: case.name)
def test_pairs(case: lab.Case) -> None:
    """Equal lengths, right answers, the stated share of changing answers; minimal ones differ in one token."""
    kinds: tuple[PairKind, ...] = ("resampled", "minimal")
    for kind in kinds:
        pairs = case.pairs(16, seed=3, kind=kind)
        assert pairs == case.pairs(16, seed=3, kind=kind)
        assert sum(pair.changes for pair in pairs) >= 12
        assert all(pair.changes for pair in case.pairs(6, kind=kind, changing=1))
        for pair in pairs:
            assert len(pair.clean) == len(pair.corrupted) == case.length
            assert pair.clean != pair.corrupted
            for tokens, answer in ((pair.clean, pair.clean_answer), (pair.corrupted, pair.corrupted_answer)):
                assert case.entry.inputs.holds(tokens)
                assert case.model(list(tokens)) == pytest.approx(list(answer), abs=1e-5)
            different = sum(x != y for x, y in zip(pair.clean, pair.corrupted, strict=True))
            assert kind == "resampled" or different == 1
    assert case.pairs(16, seed=3) != case.pairs(16, seed=4)


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_inputs(case: lab.Case) -> None:
    """Different ones, of the case's length, on which the task is defined; the same for the same seed."""
    found = case.inputs(20, seed=1)
    assert found == case.inputs(20, seed=1) != case.inputs(20, seed=2)
    assert len({tuple(xs) for xs in found}) == 20
    assert all(len(xs) == case.length and case.entry.inputs.holds(xs) for xs in found)


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_metric(case: lab.Case) -> None:
    """Larger on the clean input than on the corrupted one wherever the answer changes; 0 elsewhere."""
    pairs = case.pairs(24, changing=0.5)
    weights = case.metric(pairs)
    clean, corrupted = (
        (weights * case.model.logits(case.model.encode([list(tokens) for tokens in side]))).sum((1, 2))
        for side in ([pair.clean for pair in pairs], [pair.corrupted for pair in pairs])
    )
    changes = np.array([pair.changes for pair in pairs])
    assert (clean[changes] > corrupted[changes] + 1e-3).all()
    assert not weights[~changes].any()


def test_metric_by_hand() -> None:
    """Weights of 1 and -1 for one position, halves for two; the sign of the difference for a number."""
    copy = lab.case("copy_first")
    domain = copy.model.outputs[0].domain.values  # type: ignore[union-attr]
    pair = InputPair(tuple("aa"), tuple("ba"), tuple("aa"), tuple("ba"))
    weights = copy.metric([pair])[0]
    expected = np.zeros_like(weights)
    expected[1, domain.index("a")], expected[1, domain.index("b")] = 1, -1
    assert (weights == expected).all()
    mean = lab.case("mean_so_far").metric([InputPair((0, 2), (1, 0), (0, 1.0), (1, 0.5))])[0]
    assert mean[:, 0].tolist() == [0, -0.5, 0.5]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_roles(case: lab.Case) -> None:
    """Every node has a role of the vocabulary and a sentence; heads attend, neurons do not."""
    roles = case.roles()
    assert list(roles) == [node.id for node in case.model.ground_truth.nodes("head")]
    attend = {"count", "copy", "copy_by_position", "average"}
    for name, one in roles.items():
        assert one.roles
        assert {*one.roles} <= {*lab.ROLES}
        assert one.sentence.endswith(".")
        if ".attn." in name or ".mlp" in name:
            assert ({*one.roles} <= attend) == (".attn." in name)


def test_roles_say_what_is_computed() -> None:
    """The previous token, an induction head, a histogram, a mean, a comparison with a constant."""
    said = {
        ("induction_head", "blocks.0.attn.0"): ("copy_by_position", "from the position right before"),
        ("induction_head", "blocks.1.attn.0"): ("copy", "whose previous_token equals this position's token"),
        ("hist", "blocks.0.attn.0"): ("count", "the positions with the same token"),
        ("copy_first", "blocks.0.attn.0"): ("copy_by_position", "from position 0"),
        ("copy_next", "blocks.0.attn.0"): ("copy_by_position", "from the position right after"),
        ("mean_before", "blocks.0.attn.0"): ("average", "over the positions before this one"),
        ("count", "blocks.0.attn.0"): ("count", "the positions whose token is 'a'"),
        ("pair_balance", "blocks.1.mlp"): ("add", "pair_balance = opens - closes"),
        ("sort_composite", "blocks.0.attn.1"): ("count", "as one of 2 heads"),
    }
    for (name, component), (role, words) in said.items():
        found = lab.case(name).roles()[component]
        assert role in found.roles
        assert words in found.sentence


def test_roles_at_level_2() -> None:
    """Neurons that clear have their role."""
    roles = [one for name in zoo.names("library") for one in lab.roles_of(zoo.load(name, level=2)).values()]
    assert {role for one in roles for role in one.roles} == {*lab.ROLES} - {"add", "none"}


def test_private_cases() -> None:
    """The same seed gives the same programs; they compile, have heads, and their answers change."""
    drawn = lab.private(11, 2)
    assert [case.name for case in drawn] == ["private-11-0", "private-11-1"]
    for case, again, other in zip(drawn, lab.private(11, 2), lab.private(12, 2), strict=True):
        assert case.pairs(8) == again.pairs(8) != other.pairs(8)
        heads = [len(layer.heads) for layer in case.model.layout.layers]
        assert 1 <= len(heads) <= 6
        assert 1 <= max(heads) <= 4
        assert sum(pair.changes for pair in case.pairs(64, changing=0)) >= 2
        for tokens in case.inputs(8):
            expected = evaluate(case.entry.program, tokens, causal=case.entry.causal)
            assert case.model(tokens) == pytest.approx(expected, abs=1e-5)
        assert case.roles()


@pytest.mark.slow
def test_many_private_cases() -> None:
    """All of them are cases: pairs, metric and roles."""
    for case in lab.private(0, 40):
        pairs = case.pairs(16)
        assert sum(pair.changes for pair in pairs) >= 12
        assert case.metric(pairs).any()
        assert case.roles()


def test_refusals() -> None:
    """Unknown kinds and shares; programs whose one-token changes never matter."""
    case = lab.case("hist")
    with pytest.raises(tracr.TracrError, match="there is no kind of pairs 'other'"):
        case.pairs(4, kind="other")  # type: ignore[arg-type]
    with pytest.raises(tracr.TracrError, match="changing is a share"):
        case.pairs(4, changing=2)
    with pytest.raises(tracr.TracrError, match="count must be a positive integer"):
        case.pairs(0)
    with pytest.raises(tracr.TracrError, match="the zoo has no program"):
        lab.case("hits")
    nothing = zoo.Entry(
        "nothing",
        lambda vocab, length: rasp.Map(lambda x: 0, rasp.tokens),
        ("a", "b"),
        3,
        ("a",),
        "0",
        lambda xs, vocab: [0] * len(xs),
        ("test",),
    )
    with pytest.raises(tracr.TracrError, match="nothing is no case"):
        lab.Case(nothing)
