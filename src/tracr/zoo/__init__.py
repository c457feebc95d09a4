"""The zoo: named programs with their tasks in plain Python (docs/zoo.md).

entry.py      `Entry`: a program, the inputs it is for, its task; `task` makes one of a function
pieces.py     expressions that many programs are built from
library.py    the programs of `tracr.rasp.programs`
registry.py   all entries by name

The families, a file each: positions, lookup, ngrams, counting, repeats, arithmetic, ordering, runs, brackets,
transforms.
"""

from tracr.zoo.entry import Entry
from tracr.zoo.registry import ENTRIES, entries, get, load, names, tags

__all__ = ["ENTRIES", "Entry", "entries", "get", "load", "names", "tags"]
