"""docs/teaching.md says what the puzzles are."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from tests.learn.attempts import WRONG
from tracr import learn
from tracr.learn import checking

PAGE = (Path(__file__).parents[2] / "docs" / "teaching.md").read_text(encoding="utf-8")


def test_the_table_of_puzzles_is_right() -> None:
    """Number, name, stars and par of each."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (\d) \| (\d+) \|", PAGE, re.M)
    assert rows == [(str(one.number), one.id, str(one.stars), str(one.par)) for one in learn.puzzles()]


def test_lengths_conditions_and_limits_are_right() -> None:
    assert {one.max_len for one in learn.puzzles()} == {5, 6, 8, 9}
    assert [one.number for one in learn.puzzles() if one.accepts is not None] == [19]
    assert checking.MOST_PARTS == 300
    assert checking.LONGEST_STRING == 1_000
    assert checking.SECONDS == 20
    assert checking.LEVELS == (1, 2)


def test_the_timetable_fills_two_hours() -> None:
    """Each part begins where the one before ends, and has a section unless it is the break."""
    rows = [(int(a), int(b)) for a, b in re.findall(r"^\| (\d+)–(\d+) \|", PAGE, re.M)]
    assert rows[0][0] == 0
    assert rows[-1][1] == 120
    assert all(first[1] == second[0] for first, second in itertools.pairwise(rows))
    sections = [(int(a), int(b)) for a, b in re.findall(r"^### (\d+)–(\d+) ", PAGE, re.M)]
    assert [row for row in rows if row not in sections] == [(55, 65)]


def test_common_mistakes_are_refused_as_the_page_says() -> None:
    """The mistakes of the table are among the attempts that the tests check."""
    assert "gives [0]" in learn.puzzle(1).check(WRONG["shift_right"]["no default"]).message
    off_by_one = learn.puzzle(3).check("answer = aggregate(select(indices, length - indices, ==), tokens);")
    assert "gives [0]" in off_by_one.message
    assert "have no mean" in learn.puzzle(1).check(WRONG["shift_right"]["all before"]).message
    assert "booleans: they have no mean" in learn.puzzle(6).check(WRONG["share"]["booleans"]).message
    assert 'not the string "1"' in learn.puzzle(13).check("answer = sort(tokens_int, tokens_int);").message
    for which, mistake, wrong in [
        ("share", "without the position itself", ("a",)),
        ("count", "so far", ("a", "a")),
        ("sort", "no ties", ("0", "0")),
        ("winner", "no ties", ("a", "a")),
        ("dyck1", "forgets", (")", "(")),
    ]:
        verdict = learn.puzzle(which).check(WRONG[which][mistake])
        assert verdict.counterexample is not None
        assert verdict.counterexample.input == wrong
