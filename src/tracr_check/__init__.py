"""tracr-check: proves that the weights in a folder compute the program in the folder, on every input.

It needs numpy and nothing else, and shares no code with the compiler. Nothing in the folder is trusted but the tables
of the program, which are the specification; their digest is part of the verdict.
"""

from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.checking import check_folder
from tracr_check.command import main
from tracr_check.verdict import Verdict

__all__ = ["ARITHMETICS", "Arithmetic", "Verdict", "check_folder", "main"]
