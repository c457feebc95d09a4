"""Datasets of random programs and of the models they compile to. `docs/datasets.md` is the guide.

controls.py      the options of random programs; `random_program` (bounds.py: the largest models)
structure.py     whether two programs are written alike
printing.py      a program as runnable Python (python_text.py: its values and functions)
meaning.py       a key for how a program computes; behaviour.py: a key for what it computes
records.py       programs as records; candidates.py draws them, sampling.py keeps those of different meanings
program_file.py  records in a file of JSON lines, resumable
outcomes.py      the model of a program, checked and described; realisations.py: other models of the same program
shards.py        many models in one file (settings.py: of what kind; building.py writes them, stored.py reads them;
                 packed_weights.py: their weights)
splits.py        programs that compute the same stay together
canonical.py     weights in an order that does not depend on names
exporting.py     models as padded arrays and as Parquet (table_rows.py: their rows)
"""

from tracr.datasets.behaviour import Behaviour, behaviour
from tracr.datasets.bounds import ModelBounds
from tracr.datasets.canonical import canonical
from tracr.datasets.controls import Controls, random_program
from tracr.datasets.meaning import meaning
from tracr.datasets.printing import run_python, to_python
from tracr.datasets.program_file import read_programs, write_programs
from tracr.datasets.python_text import UnprintableError
from tracr.datasets.records import Record
from tracr.datasets.sampling import sample
from tracr.datasets.splits import split
from tracr.datasets.structure import same_structure

__all__ = [
    "Behaviour",
    "Controls",
    "ModelBounds",
    "Record",
    "UnprintableError",
    "behaviour",
    "canonical",
    "meaning",
    "random_program",
    "read_programs",
    "run_python",
    "same_structure",
    "sample",
    "split",
    "to_python",
    "write_programs",
]
