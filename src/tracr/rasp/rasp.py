"""The language in one namespace: `from tracr.rasp import rasp`.

The package has the same names: `tracr.rasp.tokens`. Its other modules are loaded on first use.

>>> import tracr
>>> tracr.rasp.programs.make_hist()("aab")
[2, 2, 1]
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from tracr.rasp import causal_eval as causal_eval, expressions
from tracr.rasp.annotations import (
    DEFAULT_ANNOTATORS as DEFAULT_ANNOTATORS,
    Annotations as Annotations,
    Encoding as Encoding,
    annotate as annotate,
    categorical as categorical,
    default_encoding as default_encoding,
    default_name as default_name,
    get_encoding as get_encoding,
    is_categorical as is_categorical,
    is_numerical as is_numerical,
    numerical as numerical,
)
from tracr.rasp.base import checked
from tracr.rasp.combine import selector_and as selector_and, selector_not as selector_not, selector_or as selector_or
from tracr.rasp.expressions import *  # noqa: F403
from tracr.rasp.expressions import Indices, Length, SOp, Tokens
from tracr.rasp.functions import Comparison as Comparison
from tracr.rasp.interpreter import DefaultRASPEvaluator as DefaultRASPEvaluator, evaluate as evaluate
from tracr.values import Value as Value

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


if not TYPE_CHECKING:  # type checkers follow the imports, not a list that is put together
    __all__ = [
        "DEFAULT_ANNOTATORS",
        "Annotations",
        "Comparison",
        "DefaultRASPEvaluator",
        "Encoding",
        "IndicesType",
        "LengthType",
        "RASPEvaluator",
        "TokensType",
        "Value",
        "annotate",
        "categorical",
        "causal_eval",
        "default_encoding",
        "default_name",
        "evaluate",
        "get_encoding",
        "is_categorical",
        "is_numerical",
        "numerical",
        "selector_and",
        "selector_not",
        "selector_or",
        "sop_not",
        *expressions.__all__,
    ]
