"""The puzzles in their order, from easy to hard.

positions.py   which position to look at
counting.py    how many positions
order.py       places, ranks, frequencies
memory.py      brackets, induction, addition
"""

from __future__ import annotations

from tracr.errors import UnknownName
from tracr.learn.catalogue import counting, memory, order, positions
from tracr.learn.puzzle import Puzzle
from tracr.spelling import did_you_mean
from tracr.values import short_repr

__all__ = ["puzzle", "puzzles"]

_PUZZLES = (*positions.PUZZLES, *counting.PUZZLES, *order.PUZZLES, *memory.PUZZLES)


def puzzles() -> tuple[Puzzle, ...]:
    """All puzzles.

    >>> [one.id for one in puzzles()][:3]
    ['shift_right', 'first', 'reverse']
    """
    return _PUZZLES


def puzzle(which: int | str) -> Puzzle:
    """The puzzle of a number or a name.

    >>> puzzle(3), puzzle("reverse") is puzzle("3")
    (Puzzle(3, reverse: Mirror, ★☆☆☆☆, par 2), True)
    """
    wanted = str(which) if isinstance(which, int) and not isinstance(which, bool) else which
    for one in _PUZZLES:
        if wanted in (one.id, str(one.number)):
            return one
    names = [one.id for one in _PUZZLES]
    hint = did_you_mean(str(which), names, f"there are 1 to {len(names)}: {', '.join(names)}")
    raise UnknownName(f"there is no puzzle {short_repr(which)}", hint=hint)
