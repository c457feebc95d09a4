"""Hosts without known answers: seeds trained together, and the published experiment on modular addition."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.repository


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks can be imported."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


def test_seeds_trained_together_are_what_they_are_alone(tmp_path: Path) -> None:
    """Each host of a training together has the weights and curves that it has if it trains alone."""
    from plain_training import load_host, train

    for name, seeds in (("together", [0, 1]), ("alone", [1])):
        given = argparse.Namespace(folder=tmp_path / name, steps=4, device="cpu", graph=False)
        train("add_mod_5", seeds, given)
    curves = [
        json.loads((tmp_path / name / "add_mod_5-1" / "training.json").read_text())["curves"]
        for name in ("together", "alone")
    ]
    assert [row[0] for row in curves[0]] == [0, 4]
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-3)
    assert curves[0][1][1] < curves[0][0][1]
    (_, one), (_, other) = (load_host(tmp_path / name / "add_mod_5-1") for name in ("together", "alone"))
    for key, weights in one.state_dict().items():
        np.testing.assert_allclose(weights.numpy(), other.state_dict()[key].numpy(), atol=2e-3)


def test_restricted_logits_keep_the_waves_of_the_sum() -> None:
    """A wave of the sum at a kept frequency and a constant stay; other frequencies and other functions go."""
    from modular_addition import restricted

    prime = 7
    terms = np.array([(one, other) for one in range(prime) for other in range(prime)])
    total = 2 * np.pi * terms.sum(axis=1) / prime
    kept = np.stack([np.cos(2 * total), 0.5 * np.sin(2 * total) + 3.0], axis=1)
    gone = np.stack([np.cos(total), np.sin(2 * np.pi * terms[:, 0] / prime)], axis=1)
    np.testing.assert_allclose(restricted(kept + gone, terms, prime, [2]), kept, atol=1e-12)


def test_inputs_to_test_with_have_all_lengths() -> None:
    """A sample is not in an order that the division of a graft undoes."""
    from plain_training import sample_of

    from tracr import graft, zoo

    model = zoo.load("hist", vocab="ab", max_seq_len=5)
    data = graft.data_of_program(model, graft.inputs_of(model))
    for most in (len(data) + 1, len(data), len(data) - 1, 40):
        sample = sample_of(data, most)
        assert len(sample) == len(set(sample.inputs)) == min(most, len(data))
        _, test = sample.split(0.75, 0)
        assert len({len(one) for one in test.inputs}) > 2


def test_the_tables_of_the_page_are_those_of_the_files() -> None:
    """docs/replacing.md shows the rows of docs/replacing as they are, also in its sentences."""
    import modular_addition
    import own_programs
    import plain_hosts

    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "replacing.md").read_text()
    scripts = {"plain.json": plain_hosts, "modular.json": modular_addition, "own.json": own_programs}
    rows = {file: json.loads((docs / "replacing" / file).read_text()) for file in scripts}
    for file, script in scripts.items():
        table = script.table
        assert table(rows[file]) in page
    assert plain_hosts.summary(rows["plain.json"]) in page
    words = " ".join(page.split())
    for sentence in [*plain_hosts.sentences(rows["plain.json"]), *own_programs.sentences(rows["own.json"])]:
        assert sentence in words


def test_replacements_that_count_are_what_their_programs_say() -> None:
    """Every report of a plain host that counts says by how much it is right more often than its program."""
    docs = Path(__file__).parents[2] / "docs" / "replacing"
    for file, most in (("plain.json", 0.001), ("own.json", 0.0)):
        rows = json.loads((docs / file).read_text())
        reports = [row[kind] for row in rows for kind in ("closed", "refined") if kind in row and row[kind]["counts"]]
        assert max(one["excess"]["value"] for one in reports) <= most
        assert all("raises" in one or "replaced" in one for one in reports)


def test_sentences_about_plain_hosts_hold() -> None:
    """What the page says of tasks in words: all hosts of hist and induction_head, nothing of sort, no wrong guess."""
    docs = Path(__file__).parents[2] / "docs" / "replacing"
    rows = [row for row in json.loads((docs / "plain.json").read_text()) if "closed" in row]

    def counting(task: str, at: str) -> tuple[int, int]:
        mine = [row for row in rows if (row["task"], row["at"]) == (task, at)]
        return sum(row["closed"]["counts"] for row in mine), sum(
            row.get("refined", row["closed"])["counts"] for row in mine
        )

    for place in (("hist", "0.attn"), ("hist", "0.mlp"), ("induction_head", "0.attn"), ("induction_head", "1.attn")):
        assert counting(place[0], f"blocks.{place[1]}") == (3, 3)
    assert counting("depth", "blocks.0.attn") == (3, 2)
    assert counting("dyck1", "blocks.0.attn") == (1, 3)
    assert counting("depth", "blocks.1.attn") == (0, 0)
    assert counting("dyck1", "blocks.1.attn") == (0, 1)
    assert not any(row["closed"]["counts"] for row in rows if row["task"] == "sort")
    (first,) = [row for row in rows if (row["task"], row["seed"], row["at"]) == ("sort", 0, "blocks.0.mlp")]
    assert first["part"] == "induction_head blocks.1.mlp"
    assert first["refined"]["recovered"]["value"] > 0.95
    own = json.loads((docs / "own.json").read_text())
    assert not any(row[kind]["counts"] for row in own for kind in ("closed", "refined") if row["guess"] == "wrong")
    best = {row["seed"]: row for row in rows if (row["task"], row["at"]) == ("sort", "blocks.0.attn")}
    for row in own:
        if (row["task"], row["guess"]) == ("sort", "right"):
            for kind in ("closed", "refined"):
                assert row[kind]["recovered"]["value"] > best[row["seed"]][kind]["recovered"]["value"]


def test_the_tables_of_known_answers_are_those_of_the_files() -> None:
    """The shares, the misses and the intervals of docs/replacing.md come from the rows in docs/replacing."""
    import replacing_tables

    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "replacing.md").read_text()
    intervals = {"twins_frozen.json": "100.0% to 100.0%", "twins_new.json": "75.0% to 94.1%"}
    for file, interval in {**intervals, "twins_h200.json": "92.9% to 99.0%"}.items():
        rows = json.loads((docs / "replacing" / file).read_text())
        costly = [row for row in rows if "ranking" in row]
        assert replacing_tables.senses(costly) in page
        assert replacing_tables.misses(costly) in page
        assert replacing_tables.interval(costly) == interval
        assert interval == "100.0% to 100.0%" or interval in page
    chance, (equal, every) = replacing_tables.drawn(costly)
    assert (round(chance, 3), len(equal), len(every)) == (0.738, 20, 162)
    assert "of the 162 parts in the rankings" in page
    assert "20 (12.3%) are equal in the program" in " ".join(page.split())
    assert "is equal for 73.8% of the components" in page
    assert all(replacing_tables.recovered(row) >= 0.99 for row in costly)


SAMPLES = {
    "decided in advance, the present code (seeds 7, 8)": "twins_again.json",
    "decided in advance (seeds 5, 6)": "twins_unseen.json",
    "rule frozen before (seeds 0, 4)": "twins_frozen.json",
    "older rule, seen in part (seeds 0, 1)": "twins_h200.json",
    "older rule, new twins (seeds 0 to 3)": "twins_new.json",
    "the five in the repository": "twins.json",
}


def test_the_overview_of_known_answers_is_that_of_the_files() -> None:
    """A line for each file."""
    import replacing_tables

    docs = Path(__file__).parents[2] / "docs"
    rows = {name: json.loads((docs / "replacing" / file).read_text()) for name, file in SAMPLES.items()}
    assert replacing_tables.overview(rows) in (docs / "replacing.md").read_text()
    assert {path.name for path in (docs / "replacing").glob("twins*.json")} == set(SAMPLES.values())


@pytest.mark.parametrize(("file", "numbers"), [("twins_unseen.json", (74, 77, 88)), ("twins_again.json", (71, 75, 82))])
def test_the_numbers_of_unseen_twins_are_those_of_the_file(file: str, numbers: tuple[int, int, int]) -> None:
    """Rows are in the order that was fixed before, none is missing, and the page shows their numbers."""
    import replacing
    import unseen_twins

    docs = Path(__file__).parents[2] / "docs"
    rows = json.loads((docs / "replacing" / file).read_text())
    order = [replacing.place_in_order((Path(row["twin"]), row["at"])) for row in rows]
    assert order == sorted(order)
    admitted = {tuple(row["twin"].rsplit("-", 1)) for row in rows}
    twins = [{"program": name, "seed": seed, "admitted": True} for name, seed in admitted]
    assert unseen_twins.with_unfinished(rows, twins) == rows
    page = (docs / "replacing.md").read_text()
    for part in unseen_twins.table(rows).split("\n\n"):
        assert part in page
    costly = unseen_twins.costly_of(rows)
    both = [row for row in costly if unseen_twins.complete(row) and unseen_twins.first(row)]
    assert (len(both), len(costly), len(rows)) == numbers


def test_components_that_were_not_finished_are_counted() -> None:
    """They have short rows, and the first rows of the order end before the first of them."""
    import unseen_twins

    row = {"twin": "count-7", "at": "blocks.0.attn.0", "cost": 0.01}
    rows = unseen_twins.with_unfinished([row], [{"program": "count", "seed": 7, "admitted": True}])
    assert {(one["at"], unseen_twins.finished(one)) for one in rows} == {
        ("blocks.0.attn.0", True),
        ("blocks.0.mlp", False),
    }
    assert "1 of 2 components of 1 twins of 1 programs were finished" in unseen_twins.table(rows)
    assert unseen_twins.with_unfinished([], [{"program": "count", "seed": 7, "admitted": False}]) == []


def test_a_part_counts_as_equal_in_the_program_only_if_it_was_compared() -> None:
    """A miss stays a miss if nothing was compared, if the part says more, or if an exchange was noticed."""
    from replacing_tables import EQUAL, equality

    first = {"part": "other", "true": False, "same": False, "accuracy": 1.0, "swapped": 0.9}
    true = {"part": "true", "true": True, "same": True, "accuracy": 1.0, "swapped": 1.0}
    for more, noticed, level in ((False, 0, 3), (True, 0, 5), (False, 1, 5)):
        compared = {**first, "in_program": {"says_more": more, "exchanges": 9, "noticed": noticed}}
        assert equality({"ranking": [compared, true]}) == level
    assert equality({"ranking": [first, true]}) == len(EQUAL)
    assert equality({"ranking": [{**first, "swapped": 1.0}, true]}) == 4
    assert equality({"ranking": [{**first, "same_at_lengths": True}, true]}) == 2
    assert equality({"ranking": [true]}) == 0
    del first["swapped"]
    assert equality({"ranking": [first, true]}) == len(EQUAL)


def test_the_random_order_depends_on_names_alone(tmp_path: Path) -> None:
    """Other twins in a folder, or another folder, do not change which of two components comes first."""
    from replacing import place_in_order

    names = [(f"hist-{seed}", at) for seed in range(9) for at in ("blocks.0.attn.0", "blocks.0.mlp")]
    order = sorted(((tmp_path / name, at) for name, at in names), key=place_in_order)
    fewer = sorted(((Path("other") / name, at) for name, at in names[::3]), key=place_in_order)
    assert [(place.name, at) for place, at in order if (place.name, at) in names[::3]] == [
        (place.name, at) for place, at in fewer
    ]
    assert [(place.name, at) for place, at in order] != names


def test_controls_are_added_to_ranked_rows(tmp_path: Path) -> None:
    """Rows of a ranking get what a report says; rows with a report, without a ranking or without a twin stay."""
    import replacing

    (tmp_path / "count-0").symlink_to(Path(__file__).parents[2] / "docs" / "natural" / "twins" / "count")
    ranked: dict[str, Any] = {
        "twin": "count-0",
        "at": "blocks.0.mlp",
        "ranking": [{"part": "some"}],
        "closed": {"value": 0.0},
    }
    others: list[dict[str, Any]] = [
        {"twin": "count-0", "at": "blocks.0.attn.0", "ranking": [], "counts": False},
        {"twin": "count-0", "at": "blocks.0.attn.1", "cost": 0.01},
        {"twin": "gone-0", "at": "blocks.0.mlp", "ranking": []},
    ]
    rows, file = [{**ranked}, *({**one} for one in others)], tmp_path / "rows.json"
    given = {"inputs": 400, "refine": 20, "jobs": 1, "until": float("inf"), "report": True, "shuffle": False}
    replacing.add_controls(rows, argparse.Namespace(folders=[tmp_path], out=file, **given))
    assert rows[1:] == others
    assert rows[0]["counts"] is True
    assert rows[0]["closed"]["value"] > 0.9
    assert rows[0]["ranking"] == ranked["ranking"]
    assert json.loads(file.read_text()) == rows


@pytest.mark.slow
def test_a_part_of_a_program_of_ones_own_counts_in_a_plain_host_and_a_wrong_one_does_not() -> None:
    """Neither program is in the library; the wrong one is among the controls of the right one, and the other way."""
    from own_programs import GUESSES, head_of
    from plain_training import data_of, load_host

    from tracr import graft

    task, host = load_host(Path(__file__).parents[2] / "docs" / "replacing" / "hosts" / "depth-1")
    guess, data = GUESSES["depth"], data_of(task)
    data = data.rows(np.random.default_rng(0).permutation(len(data))[:300])
    right, wrong = (head_of(one, task.model.options, "mine") for one in (guess.right, guess.wrong))
    found = {}
    for part, other in ((right, wrong), (wrong, right)):
        report = graft.replace(host, guess.at, part, data, share=0.75).report(others=[other])
        assert [one.kind for one in report.controls].count("other part") == 1
        assert report.recovered is not None
        found[part] = report.counts, report.recovered.value
    assert found[right][0]
    assert not found[wrong][0]
    assert found[right][1] > 0.8 > 0.5 > found[wrong][1]
