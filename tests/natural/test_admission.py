"""Admission: exact intervals, and what they decide."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import tracr
from tests.natural.twins import untrained
from tracr.natural.admission import Admission, Rate, SiteAdmission
from tracr.natural.architecture import architecture_of
from tracr.natural.sites import Sites
from tracr.rasp import programs


def binomial_tail(hits: int, tries: int, p: float) -> float:
    """The probability of at least so many hits, added up term by term."""
    return sum(math.comb(tries, k) * p**k * (1 - p) ** (tries - k) for k in range(hits, tries + 1))


@pytest.mark.parametrize(("hits", "tries"), [(0, 10), (1, 10), (7, 10), (10, 10), (99, 100), (3, 400)])
def test_intervals_are_exact(hits: int, tries: int) -> None:
    """At either end of the interval what was seen, or more extreme, has a probability of 2.5 %."""
    low, high = Rate(hits, tries).interval
    if hits:
        assert binomial_tail(hits, tries, low) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0
    if hits < tries:
        assert 1 - binomial_tail(hits + 1, tries, high) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1


def site(agree: tuple[int, int], changed: tuple[int, int]) -> SiteAdmission:
    return SiteAdmission("blocks.0.mlp", True, Rate(*agree), Rate(*changed), 10_000, 0)


@pytest.mark.parametrize(
    ("agree", "changed", "verdict"),
    [
        ((3000, 3000), (0, 3000), "admitted"),
        ((0, 0), (0, 3000), "never changes"),
        ((999, 999), (0, 3000), "too few pairs"),
        ((3000, 3000), (0, 999), "too few pairs"),
        ((2950, 3000), (0, 3000), "missed"),
        ((3000, 3000), (20, 3000), "missed"),
        ((991, 1000), (0, 3000), "missed"),  # 99.1 %, but its lower bound is below 99 %
        ((0, 0), (20, 3000), "missed"),
    ],
)
def test_verdicts(agree: tuple[int, int], changed: tuple[int, int], verdict: str) -> None:
    """The bounds of the interval decide, and 1,000 pairs of each kind are the least."""
    assert site(agree, changed).verdict == verdict


def test_one_missed_edge_is_enough() -> None:
    """A twin is admitted only if it is accurate and everything in it is known."""
    good, bad = site((3000, 3000), (0, 3000)), site((2900, 3000), (0, 3000))
    assert Admission(Rate(1000, 1000), True, (good, good)).admitted
    assert not Admission(Rate(1000, 1000), True, (good, bad)).admitted
    assert not Admission(Rate(998, 1000), True, (good, good)).admitted
    assert "blocks.0.mlp: missed" in str(Admission(Rate(1000, 1000), True, (good, bad)))


def test_sites() -> None:
    """Every writer has an edge to every reader that comes later, and to no other."""
    sites = Sites(2, 3)
    assert len(sites.writers) == 1 + 2 * 4
    assert len(sites.readers) == 2 * 10 + 1
    names = {str(edge) for edge in sites.edges}
    assert "embed->blocks.0.attn.2.q" in names
    assert "blocks.0.attn.1->blocks.0.mlp" in names
    assert "blocks.1.mlp->unembed" in names
    assert not any(name in names for name in ("blocks.0.attn.0->blocks.0.attn.1.q", "blocks.0.mlp->blocks.0.mlp"))
    assert len(names) == 21 + 3 * 12 + 11 + 3 * 2 + 1  # of the embedding, then layer by layer of the heads and the MLP


def test_a_truth_that_is_not_admitted_says_so() -> None:
    """In `show` and `repr`, with what is missed beyond the teacher's nodes and edges."""
    twin = untrained(tracr.compile(programs.make_hist(), "abc", 4))
    first, *lines = twin.ground_truth.show().splitlines()
    assert first.startswith(
        "NOT ADMITTED (right on 0.00% of the inputs it was measured on; 22 nodes and edges are missed"
    )
    assert "not in the teacher: blocks.0.attn.2: too few pairs" in "\n".join(lines)
    assert len(lines) == 22
    assert "not admitted" in repr(twin.ground_truth)
    pairs = [("abca", "bbca")]
    assert repr(twin.ground_truth.minimal(pairs=pairs)).endswith("the teacher's: the twin is NOT ADMITTED)")
    enough = Rate(2000, 2000), Rate(0, 2000)
    known = tuple(replace(site, agreement=enough[0], false_changes=enough[1]) for site in twin.admission.sites)
    admitted = replace(twin, admission=replace(twin.admission, accuracy=Rate(100, 100), sites=known))
    assert "NOT" not in admitted.ground_truth.show() + repr(admitted.ground_truth.minimal(pairs=pairs))
    # right everywhere and the teacher's own sites known: an edge that the teacher lacks still refuses admission
    wrong = tuple(replace(site, false_changes=Rate(90, 2000)) if "attn.2" in site.site else site for site in known)
    missed = replace(admitted, admission=replace(admitted.admission, sites=wrong))
    assert missed.ground_truth.show().startswith("NOT ADMITTED (right on 100.00%")


def test_a_teacher_must_be_a_compiled_model() -> None:
    """Said in a sentence, before anything is trained."""
    with pytest.raises(tracr.TracrError, match="a twin needs a compiled model as its teacher, not a int"):
        architecture_of(3, 64, 16, 128, layer_norm=True, activation="gelu")  # type: ignore[arg-type]
