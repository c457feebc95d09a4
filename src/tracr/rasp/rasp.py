"""The language in one namespace: `from tracr.rasp import rasp`.

The package has the same names: `tracr.rasp.tokens`. Its other modules are loaded on first use.

>>> import tracr
>>> tracr.rasp.programs.make_hist()("aab")
[2, 2, 1]
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from tracr.rasp import causal_eval
from tracr.rasp.annotations import (
    DEFAULT_ANNOTATORS,
    Annotations,
    Encoding,
    annotate,
    categorical,
    default_encoding,
    default_name,
    get_encoding,
    is_categorical,
    is_numerical,
    numerical,
)
from tracr.rasp.base import checked
from tracr.rasp.combine import selector_and, selector_not, selector_or
from tracr.rasp.expressions import (
    Aggregate,
    ConstantSelector,
    ConstantSOp,
    Full,
    Indices,
    Length,
    LinearSequenceMap,
    Map,
    RASPExpr,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    SOp,
    Tokens,
    indices,
    length,
    tokens,
)
from tracr.rasp.functions import Comparison
from tracr.rasp.interpreter import DefaultRASPEvaluator, evaluate
from tracr.values import Value

# Names that existing programs use.
TokensType, IndicesType, LengthType = Tokens, Indices, Length
RASPEvaluator = DefaultRASPEvaluator

if TYPE_CHECKING:
    from tracr.rasp import programs as programs
else:

    def __getattr__(name: str) -> object:
        """Another module of the package, such as `programs`."""
        if not name.startswith("_") and importlib.util.find_spec(f"{__package__}.{name}"):
            return importlib.import_module(f"{__package__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def sop_not(sop: SOp) -> SOp:
    """The s-op that is true where `sop` is not: `~sop`."""
    checked(sop, SOp, "the operand", "sop_not")
    return ~sop


__all__ = [
    "DEFAULT_ANNOTATORS",
    "Aggregate",
    "Annotations",
    "Comparison",
    "ConstantSOp",
    "ConstantSelector",
    "DefaultRASPEvaluator",
    "Encoding",
    "Full",
    "Indices",
    "IndicesType",
    "Length",
    "LengthType",
    "LinearSequenceMap",
    "Map",
    "RASPEvaluator",
    "RASPExpr",
    "SOp",
    "Select",
    "Selector",
    "SelectorAnd",
    "SelectorNot",
    "SelectorOr",
    "SelectorWidth",
    "SequenceMap",
    "Tokens",
    "TokensType",
    "Value",
    "annotate",
    "categorical",
    "causal_eval",
    "default_encoding",
    "default_name",
    "evaluate",
    "get_encoding",
    "indices",
    "is_categorical",
    "is_numerical",
    "length",
    "numerical",
    "selector_and",
    "selector_not",
    "selector_or",
    "sop_not",
    "tokens",
]
