"""Puzzles: small tasks to solve in RASP, checked on all inputs of their vocabulary and length.

>>> from tracr import learn
>>> learn.puzzle("reverse").check("answer = aggregate(select(indices, length - 1 - indices, ==), tokens);").solved
True
>>> print(learn.puzzle("shift_right").check("answer = tokens;").message)
Not yet: on ["a"] it should give ["-"], but gives ["a"].

puzzle.py      a puzzle: statement, examples, hints, par, solution
catalogue/     the puzzles, a file for each subject
reading.py     the student's program: a text, a file, an s-op, or a function that makes one
checking.py    the program on all inputs, and its transformer; bounded in time (time_limit.py) and size
drawn.py       the drawing of a counterexample
verdict.py     the result: solved, or the smallest counterexample with a drawing
progress.py    the puzzles solved on the command line so far, in a file of the user
grading.py     `assert_solves` for tests of a class, and a table of a folder of files
"""

from tracr.learn.catalogue import puzzle, puzzles
from tracr.learn.grading import GradedFile, GradedFolder, assert_solves, grade
from tracr.learn.puzzle import Puzzle
from tracr.learn.verdict import Verdict, WrongAnswer

__all__ = [
    "GradedFile",
    "GradedFolder",
    "Puzzle",
    "Verdict",
    "WrongAnswer",
    "assert_solves",
    "grade",
    "puzzle",
    "puzzles",
]
