"""Every module, name and signature existing code uses is there."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

from tracr.compiler import compiling, lib, validating
from tracr.compiler.assemble import AssembledTransformerModel
from tracr.rasp import causal_eval, rasp

SIGNATURES: dict[Any, list[str]] = {
    rasp.Full: ["fill"],
    rasp.ConstantSOp: ["value", "check_length=True"],
    rasp.Map: ["f", "inner", "simplify=True"],
    rasp.SequenceMap: ["f", "fst", "snd"],
    rasp.LinearSequenceMap: ["fst", "snd", "fst_fac", "snd_fac"],
    rasp.Select: ["keys", "queries", "predicate"],
    rasp.ConstantSelector: ["value", "check_length=True"],
    rasp.SelectorAnd: ["fst", "snd"],
    rasp.SelectorOr: ["fst", "snd"],
    rasp.SelectorNot: ["inner"],
    rasp.selector_and: ["fst", "snd", "simplify=True"],
    rasp.selector_or: ["fst", "snd", "simplify=True"],
    rasp.selector_not: ["inner", "simplify=True"],
    rasp.Aggregate: ["selector", "sop", "default=None"],
    rasp.SelectorWidth: ["selector"],
    rasp.numerical: ["sop"],
    rasp.categorical: ["sop"],
    rasp.is_numerical: ["sop"],
    rasp.is_categorical: ["sop"],
    rasp.get_encoding: ["sop"],
    rasp.default_encoding: ["expr"],
    rasp.annotate: ["expr", "annotations"],
    rasp.DefaultRASPEvaluator.evaluate: ["self", "expr", "xs"],
    causal_eval.evaluate: ["expr", "xs"],
    lib.make_length: [],
    lib.make_reverse: ["sop"],
    lib.make_pair_balance: ["sop", "open_token", "close_token"],
    lib.make_shuffle_dyck: ["pairs"],
    lib.make_shuffle_dyck2: [],
    lib.make_hist: [],
    lib.make_sort_unique: ["vals", "keys"],
    lib.make_sort: ["vals", "keys", "max_seq_len", "min_key"],
    lib.make_sort_freq: ["max_seq_len"],
    lib.make_frac_prevs: ["bools"],
    lib.shift_by: ["offset", "sop"],
    lib.detect_pattern: ["sop", "pattern"],
    lib.make_count_less_freq: ["n"],
    lib.make_count: ["sop", "token"],
    lib.make_nary_sequencemap: ["f", "sops"],
    compiling.compile_rasp_to_model: [
        *("program", "vocab", "max_seq_len", "causal=False"),
        *("compiler_bos='compiler_bos'", "compiler_pad='compiler_pad'", "mlp_exactness=100"),
    ],
    validating.validate: ["program", "xs=None"],
    validating.static_validate: ["program"],
    validating.dynamic_validate: ["program", "xs=None"],
    AssembledTransformerModel.apply: ["self", "tokens"],
}


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_parameters_have_the_names_and_defaults_existing_code_uses(function: Any) -> None:
    """By position and by keyword, calls mean the same; parameters of our own come after."""
    found = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in inspect.signature(function).parameters.values()
    ]
    assert found == SIGNATURES[function]


def test_evaluate_takes_an_expression_and_an_input() -> None:
    """`rasp.evaluate(expr, xs)`, with `causal` as a keyword of our own."""
    assert list(inspect.signature(rasp.evaluate).parameters)[:2] == ["expr", "xs"]


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "indices", "length", "RASPExpr", "SOp", "Selector", "Encoding", "DEFAULT_ANNOTATORS", "Value"),
        *("default_name", "DefaultRASPEvaluator", "RASPEvaluator", "TokensType", "IndicesType", "LengthType"),
    ],
)
def test_other_names_of_the_language(name: str) -> None:
    """What is no function is there too."""
    assert hasattr(rasp, name)
    assert name in vars(rasp)["__all__"]


def test_comparisons() -> None:
    """All eight, by name."""
    names = ["EQ", "NEQ", "LT", "LEQ", "GT", "GEQ", "TRUE", "FALSE"]
    assert [comparison.name for comparison in rasp.Comparison] == names


def test_sort_takes_its_bounds_by_keyword_only() -> None:
    """`make_sort(vals, keys, *, max_seq_len, min_key)`."""
    kinds = [parameter.kind for parameter in inspect.signature(lib.make_sort).parameters.values()]
    assert kinds[2:] == [inspect.Parameter.KEYWORD_ONLY] * 2


@pytest.mark.parametrize(
    "module", ["tracr.rasp.rasp", "tracr.rasp.causal_eval", *(f"tracr.compiler.{m}" for m in ("compiling", "lib"))]
)
def test_every_public_name_exists(module: str) -> None:
    """`__all__` promises nothing that is not there."""
    loaded = importlib.import_module(module)
    assert all(hasattr(loaded, name) for name in loaded.__all__)


IMPORTS = [
    "from tracr.compiler import compile_rasp_to_model",
    "from tracr.compiler import compiling, lib, validating",
    "from tracr.compiler.compiling import compile_rasp_to_model",
    "from tracr.compiler import validating",
    "from tracr.compiler.assemble import AssembledTransformerModel",
    "from tracr.compiler.rasp_to_graph import extract_rasp_graph",
    "from tracr.transformer.encoder import CategoricalEncoder, Encoder, NumericalEncoder",
    "from tracr.transformer.model import CompiledTransformerModel",
    "from tracr.craft.bases import BasisDirection, VectorSpaceWithBasis",
    "from tracr.transformer import assembled",
    "from tracr.rasp import causal_eval, rasp",
]
EACH_FIRST = """
import os, sys, numpy
for statement in sys.argv[1:]:
    if not os.fork():
        assert "tracr" not in sys.modules
        exec(statement)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"fails as the first import: {statement}")
"""


def test_each_import_works_first() -> None:
    """No import depends on another one before it: each in a process that has not imported tracr."""
    subprocess.run([sys.executable, "-c", EACH_FIRST, *IMPORTS], check=True)


def test_unknown_names_of_the_compiler_are_attribute_errors() -> None:
    """The lazy import does not swallow typing errors."""
    for module in ("tracr.compiler", "tracr.compiler.assemble"):
        with pytest.raises(AttributeError, match="no attribute 'compile_rasp'"):
            _ = importlib.import_module(module).compile_rasp
