"""Other number formats in torch, TransformerLens and JAX: the answers of float32, or refused."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracr
from tests.adapters.table import compiled, inputs
from tests.agreement import same
from tests.library import LIBRARY
from tests.strategies import Case
from tests.tally import Tally, compile_case
from tests.tiers import usual
from tracr.rasp import programs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")

SHIFT = tracr.compile(programs.shift_by(1, tracr.rasp.tokens), "abc", 5)


@functools.cache
def hist() -> tracr.CompiledModel:
    """Wrong in bfloat16."""
    return tracr.compile(programs.make_hist(), "abcd", 60)


def assert_right(model: tracr.CompiledModel, rows: list[Any], logits: Any, ids: Any) -> None:
    for got, wanted in zip(model.values(logits, ids), model(rows), strict=True):
        assert all(same(a, b, 1e-4) for a, b in zip(got, wanted, strict=True)), (got, wanted)


def in_jax(model: tracr.CompiledModel, dtype: str) -> Callable[[Any], Any]:
    pytest.importorskip("jax")
    apply, params = model.to_jax(dtype=dtype)
    return lambda ids: np.asarray(apply(params, ids), dtype=np.float32)


def in_torch(model: tracr.CompiledModel, dtype: str) -> Callable[[Any], Any]:
    module = model.to_torch(dtype=dtype)
    return lambda ids: module(torch.tensor(ids)).detach()


def in_lens(model: tracr.CompiledModel, dtype: str) -> Callable[[Any], Any]:
    pytest.importorskip("transformer_lens")
    module = model.to_transformer_lens(dtype=dtype)
    return lambda ids: module(torch.tensor(ids)).detach()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("export", [in_torch, in_lens, in_jax])
def test_what_is_not_refused_is_right(export: Any, dtype: str) -> None:
    """The library and random programs: exported in a format, they give the answers of float32, padded and not."""
    some = LIBRARY[:: usual(3, long=1)]
    models = [(compiled(name, causal), inputs(name, causal)) for name, causal in some]
    with Tally(least=0.9) as tally:
        for seed in range(usual(6, long=20)):
            with tally.draw():
                model = compile_case(Case(seed, tuple("abc"), max_ops=4, max_seq_len=4))
                models.append((model, [list(xs) for xs in ("a", "ab", "cab", "bacb", "aaaa")]))
    taken = 0
    for model, rows in models:
        try:
            run = export(model, dtype)
        except tracr.PrecisionError:
            continue
        taken += 1
        length = max(map(len, rows))
        longest = [xs for xs in rows if len(xs) == length]
        for batch in (rows, (longest * len(rows))[: len(rows)]):  # of one shape: JAX compiles once
            ids = model.encode(batch)
            assert_right(model, batch, run(ids), ids)
    assert taken >= usual(4, long=6)


def test_exports_of_wrong_formats_are_refused() -> None:
    """`to_torch("bfloat16")` of hist with 4 tokens at length 60, and the other ways to it."""
    model = hist()
    for export in (model.to_torch, model.to_transformer_lens, model.to_jax):
        with pytest.raises(tracr.PrecisionError, match="bfloat16: proved for 0"):
            export(dtype="bfloat16")
    with pytest.raises(tracr.PrecisionError):
        model.to_transformer_lens(dtype="bfloat16", bridge=True)
    with pytest.raises(tracr.InputError):
        model.to_onnx("x.onnx", dtype="float16")
    module = model.to_torch(dtype="bfloat16", check=False)
    assert module(module.encode("ab")).dtype is torch.bfloat16


@pytest.mark.parametrize("export", ["to_torch", "to_transformer_lens"])
def test_casts_of_modules_are_refused_when_they_run(export: str) -> None:
    """`bfloat16`, `to`, autocast and reduced precision of float32 are noticed; a cast back is right again."""
    module = getattr(hist(), export)()
    ids = module.encode("abca")
    for cast in (
        lambda m: m.bfloat16(),
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half().bfloat16(),
        lambda m: m.to("cpu").bfloat16(),
    ):
        with pytest.raises(tracr.PrecisionError):
            cast(copy.deepcopy(module))(ids)
    with pytest.raises(tracr.PrecisionError), torch.autocast("cpu", dtype=torch.bfloat16):
        module(ids)
    before = torch.get_float32_matmul_precision()
    for precision, name in (("high", "tf32"), ("medium", "bfloat16")):
        torch.set_float32_matmul_precision(precision)
        try:
            with pytest.raises(tracr.PrecisionError, match=name):
                module(ids)
        finally:
            torch.set_float32_matmul_precision(before)
    newer: Any = getattr(torch.backends.mkldnn, "matmul", None)
    if hasattr(newer, "fp32_precision"):
        newer.fp32_precision = "bf16"
        try:
            with pytest.raises(tracr.PrecisionError, match="bfloat16"):
                module(ids)
        finally:
            newer.fp32_precision = "none"
    assert module.decode(module(ids), ids) == [[2, 1, 1, 2]]
    assert module.double().decode(module(ids), ids) == [[2, 1, 1, 2]]


def test_casts_that_are_right_run() -> None:
    """A shift is exact in every format, under autocast too."""
    module = SHIFT.to_torch()
    ids = module.encode("abca")
    wanted = [SHIFT("abca")]
    for cast in (lambda m: m.half(), lambda m: m.bfloat16()):
        half = cast(copy.deepcopy(module))
        assert half.decode(half(ids), ids) == wanted
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module.decode(module(ids), ids) == wanted


def test_parameters_cast_in_jax_are_refused() -> None:
    """`apply` looks at the type of the weights it is given."""
    jax = pytest.importorskip("jax")
    apply, params = hist().to_jax()
    half = jax.tree.map(lambda array: array.astype("bfloat16"), params)
    with pytest.raises(tracr.PrecisionError):
        apply(half, hist().encode("ab"))
    apply, _ = hist().to_jax(check=False)
    apply(half, hist().encode("ab"))
