"""Compile a program with the signature and the result that existing code expects. New code uses `tracr.compile`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tracr.craft.transformers import SeriesWithResiduals
from tracr.ir.options import Options, as_vocabulary
from tracr.model.compiling import compile_model
from tracr.rasp.expressions import SOp
from tracr.transformer.assembled import AssembledTransformerModel
from tracr.values import Value

__all__ = ["COMPILER_BOS", "COMPILER_PAD", "TracrOutput", "compile_rasp_to_model"]

COMPILER_BOS = "compiler_bos"
COMPILER_PAD = "compiler_pad"


@dataclass(frozen=True, eq=False)
class TracrOutput:
    """A model, the networkx graph of its program and its sub-layers.

    `compile_rasp_to_model` returns it, because existing code expects these three names.
    """

    model: AssembledTransformerModel
    graph: Any = None
    craft_model: SeriesWithResiduals | None = None


def compile_rasp_to_model(
    program: SOp,
    vocab: Iterable[Value],
    max_seq_len: int,
    causal: bool = False,
    compiler_bos: Value = COMPILER_BOS,
    compiler_pad: Value = COMPILER_PAD,
    mlp_exactness: float = 100,
) -> AssembledTransformerModel:
    """Compile a RASP program at level 0, the paper's structure.

    Args:
        program: the s-op to compute.
        vocab: the tokens inputs are made of.
        max_seq_len: the longest input, BOS not counted.
        causal: mask attention to earlier positions.
        compiler_bos: the token every input starts with.
        compiler_pad: the token that fills inputs up on the right.
        mlp_exactness: accepted and ignored: MLPs are exact here.

    >>> from tracr.compiler import lib
    >>> from tracr.rasp import rasp
    >>> model = compile_rasp_to_model(lib.make_reverse(rasp.tokens), vocab={"a", "b", "c"}, max_seq_len=4)
    >>> model.apply(["compiler_bos", "a", "b", "c"]).decoded
    ['compiler_bos', 'c', 'b', 'a']
    """
    tokens = as_vocabulary(vocab)
    options = Options(tokens, max_seq_len, causal, 0, compiler_bos, compiler_pad, output_first=True)
    return AssembledTransformerModel(compile_model({getattr(program, "name", "output"): program}, options))
