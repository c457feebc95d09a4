"""Tracr: compile RASP programs into the weights of transformers.

>>> import tracr
>>> from tracr.rasp import rasp
>>> is_x = (rasp.tokens == "x").named("is_x")
>>> prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
>>> frac_prevs = rasp.Aggregate(prevs, is_x).named("frac_prevs")
>>> model = tracr.compile(frac_prevs, vocab="abcx", max_seq_len=5)
>>> model("xacx")
[1.0, 0.5, 0.3333333333333333, 0.5]
"""

from __future__ import annotations

__distribution__ = "tracr"  # `tracr.installation` looks for it

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tracr.errors import (
    CertificateError,
    CompileError,
    EvaluationError,
    ExpressionError,
    FormatError,
    FunctionError,
    InputError,
    LimitError,
    MissingExtra,
    PrecisionError,
    SourceError,
    TracrError,
    TracrWarning,
    VocabularyError,
)
from tracr.installation import SHARED, shared_folder
from tracr.ir.switches import OPTIONS, PASSES
from tracr.loading import load
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile
from tracr.model.designed import DesignedModel
from tracr.model.run import Run
from tracr.model.variants.variant_model import VariantModel
from tracr.rasp import rasp
from tracr.version import __version__ as __version__

__all__ = [
    "OPTIONS",
    "PASSES",
    "CertificateError",
    "CompileError",
    "CompiledModel",
    "CompressedModel",
    "DesignedModel",
    "EvaluationError",
    "ExpressionError",
    "FormatError",
    "FunctionError",
    "InputError",
    "LimitError",
    "MissingExtra",
    "PrecisionError",
    "Run",
    "SourceError",
    "TracrError",
    "TracrWarning",
    "VariantModel",
    "VocabularyError",
    "compile",
    "compress",
    "draw",
    "lab",
    "load",
    "natural",
    "parse",
    "parse_file",
    "random_program",
    "rasp",
    "superpose",
    "to_rasp",
    "zoo",
]

if shared_folder():
    warnings.warn(SHARED, TracrWarning, stacklevel=2)

if TYPE_CHECKING:
    from tracr import lab, natural, zoo
    from tracr.compress import CompressedModel, compress, superpose
    from tracr.datasets.controls import random_program
    from tracr.text.drawing import draw
    from tracr.text.module import parse, parse_file
    from tracr.text.printer import to_rasp
else:
    LAZY = {
        "CompressedModel": "tracr.compress",
        "draw": "tracr.text.drawing",
        "parse": "tracr.text.module",
        "parse_file": "tracr.text.module",
        "random_program": "tracr.datasets.controls",
        "superpose": "tracr.compress",
        "to_rasp": "tracr.text.printer",
    }

    def __getattr__(name: str) -> Any:
        """Names imported on first use."""
        if name in ("compress", "lab", "natural", "zoo"):
            return importlib.import_module(f"tracr.{name}")  # packages; `compress` can be called
        if name in LAZY:
            return getattr(importlib.import_module(LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
