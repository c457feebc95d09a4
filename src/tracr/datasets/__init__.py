"""Datasets of random programs and of the models they compile to. `docs/datasets.md` is the guide.

controls.py      the options of random programs; `random_program`
structure.py     whether two programs are written alike
printing.py      a program as runnable Python (python_text.py: its values and functions)
meaning.py       a key for the meaning of a program
records.py       programs as records; `sample` draws distinct ones
program_file.py  records in a file of JSON lines, resumable
shards.py        many compiled models in one file (building.py writes them, stored.py reads them)
workers.py       work over processes, or over Ray
"""

from tracr.datasets.controls import Controls, random_program
from tracr.datasets.meaning import meaning
from tracr.datasets.printing import run_python, to_python
from tracr.datasets.program_file import read_programs, write_programs
from tracr.datasets.python_text import UnprintableError
from tracr.datasets.records import Record, sample
from tracr.datasets.structure import same_structure

__all__ = [
    "Controls",
    "Record",
    "UnprintableError",
    "meaning",
    "random_program",
    "read_programs",
    "run_python",
    "same_structure",
    "sample",
    "to_python",
    "write_programs",
]
