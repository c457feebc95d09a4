"""The zoo: named programs with their tasks in plain Python (docs/zoo.md).

entry.py      `Entry`: a program, the inputs it is for, its task; `task` makes one of a function
pieces.py     expressions that many programs are built from
library.py    the programs of `tracr.rasp.programs`
registry.py   all entries by name
aliases.py    other names of the same tasks, and suggestions
facts.py      what was measured of each program (facts.json)
spec.py       `zoo:NAME@levelN`, as `tracr.load` and the command line take it

The families, a file each: positions, lookup, ngrams, counting, repeats, arithmetic, ordering, runs, brackets,
transforms, words, numbers, places.
"""

from tracr.zoo.entry import Entry
from tracr.zoo.facts import ZooFacts
from tracr.zoo.registry import ENTRIES, entries, facts, get, load, names, tags

__all__ = ["ENTRIES", "Entry", "ZooFacts", "entries", "facts", "get", "load", "names", "tags"]
