"""The table of the adapters: how each runs a compiled model on ids."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agreement import compile_quietly, some_inputs
from tracr import CompiledModel
from tracr.rasp import programs
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

Array = Any
Run = Callable[[Array], Array]

TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def _jax(model: CompiledModel, dtype: str) -> Run:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(dtype == "float64"):
        apply, params = model.to_jax(dtype=dtype)
        apply = jax.jit(apply)

    def run(ids: Array) -> Array:
        with jax.enable_x64(dtype == "float64"):
            return np.asarray(apply(params, ids))

    return run


def _torch(model: CompiledModel, dtype: str) -> Run:
    torch = pytest.importorskip("torch")
    module = model.to_torch(dtype=dtype)
    return lambda ids: module(torch.tensor(ids)).detach().numpy()


def _lens(model: CompiledModel, dtype: str, *, bridge: bool = False) -> Run:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformer_lens")
    module = model.to_transformer_lens(dtype=dtype, bridge=bridge)
    return lambda ids: module(torch.tensor(ids), return_type="logits").detach().numpy()


def _onnx(model: CompiledModel, dtype: str) -> Run:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.to_onnx(path, dtype=dtype)
        session = runtime.InferenceSession(path)
    return lambda ids: session.run(["logits"], {"ids": ids})[0]


ADAPTERS: dict[str, Callable[[CompiledModel, str], Run]] = {
    "jax": _jax,
    "torch": _torch,
    "transformer_lens": _lens,
    "bridge": functools.partial(_lens, bridge=True),
    "onnx": _onnx,
}


@functools.cache
def compiled(name: str, causal: bool) -> CompiledModel:
    """A program of the library."""
    example = programs.EXAMPLES[name]
    return compile_quietly(example.program, example.vocab, example.max_seq_len, causal=causal)


@functools.cache
def inputs(name: str, causal: bool) -> list[list[Value]]:
    """Inputs of all lengths on which the program does not raise."""
    model = compiled(name, causal)
    found = [
        xs
        for xs in some_inputs(model.options.vocab, model.vocabulary.longest, 40, seed=len(name))
        if len(xs) >= model.vocabulary.shortest
    ]
    errors = evaluate_batch(model.program, found).errors
    return [xs for xs, error in zip(found, errors, strict=True) if not error]
