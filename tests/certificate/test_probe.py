"""Probes: backends that violate an assumption are found, those that conform are not accused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tracr.certificate.arithmetic_probe import Probe, probe, probe_backend
from tracr.certificate.backends import BACKENDS, Backend, numpy_backend
from tracr.certificate.norm_probe import Norm, numpy_norm, probe_norm, torch_norm
from tracr.certificate.trials.execution import ORDERS
from tracr.runtime.kernel.kernel import BUILT

Array = NDArray[Any]


def backend(
    product: Callable[[Array, Array], Array] | None = None,
    power: Callable[[Array], Array] = np.exp,
    weights: Callable[[Array], Array] = lambda w: w,
    shift: bool = True,
) -> Backend:
    """A backend of float32 with parts replaced: the product, exp, and what is done to weights."""
    own = numpy_backend()
    multiply = own.product if product is None else product

    def attend(q: Array, k: Array, v: Array) -> Array:
        scores = multiply(q, k.T).astype(np.float32)
        powers = power(scores - scores.max(-1, keepdims=True) if shift else scores)
        shares = weights(powers / powers.sum(-1, keepdims=True))
        return multiply(shares.astype(np.float64), v)

    return Backend("changed", "1", "float32", multiply, attend)


def tf32(a: Array, b: Array) -> Array:
    """Products of numbers with 11 bits, as TF32 has them."""
    return np.asarray((_short(a) @ _short(b)).astype(np.float32), np.float64)


def _short(array: Array) -> Array:
    m, e = np.frexp(array)
    return np.asarray(np.ldexp(np.round(m * 2**11) / 2**11, e).astype(np.float32))


def strassen(a: Array, b: Array) -> Array:
    """Strassen's seven products, once: small entries are lost beside large ones."""
    a, b = (np.pad(x, [(0, s % 2) for s in x.shape]).astype(np.float32) for x in (a, b))
    n, k, m = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    (a11, a12), (a21, a22) = ((rows[:, :k], rows[:, k:]) for rows in (a[:n], a[n:]))
    (b11, b12), (b21, b22) = ((rows[:, :m], rows[:, m:]) for rows in (b[:k], b[k:]))
    p1, p2 = (a11 + a22) @ (b11 + b22), (a21 + a22) @ b11
    p3, p4 = a11 @ (b12 - b22), a22 @ (b21 - b11)
    p5, p6, p7 = (a11 + a12) @ b22, (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22)
    top = np.hstack([p1 + p4 - p5 + p7, p3 + p5])
    return np.vstack([top, np.hstack([p2 + p4, p1 - p2 + p3 + p6])]).astype(np.float64)


def short_sums(a: Array, b: Array) -> Array:
    """Partial sums of at most 64 terms in float32, which are rounded to 16 bits and then added."""
    parts = [
        (a[:, at : at + 64].astype(np.float32) @ b[at : at + 64].astype(np.float32)).astype(np.float16).astype(float)
        for at in range(0, a.shape[1], 64)
    ]
    return np.asarray(sum(parts))


def far(x: Array) -> Array:
    """An exp that never reaches 0."""
    return np.asarray(np.maximum(np.exp(x), np.float32(1e-37)))


CHANGED: dict[str, tuple[Backend, str]] = {
    "TF32": (backend(tf32), "dot product"),
    "Strassen": (backend(strassen), "dot product"),
    "sums in 16 bits": (backend(short_sums), "dot product"),
    "a copy that is not exact": (backend(weights=lambda w: w * np.float32(1 - 2.0**-22)), "copied with an error"),
    "a coarse exp": (backend(power=lambda x: np.exp(x) * (1 + 1e-4 * (x < 0))), "error of exp"),
    "an exp that stays above 0": (backend(power=far), "104 below the largest score has weight"),
    "no largest score subtracted": (backend(shift=False), "finite"),
    "a coarse mean": (backend(weights=lambda w: np.round(w * 2**12) / 2**12), "error of a mean"),
    "no numbers for many keys": (
        backend(weights=lambda w: np.where(w.shape[1] < 30, w, np.nan)),
        "copied with an error of inf",
    ),
}


QUICK = ("TF32", "a copy that is not exact", "an exp that stays above 0", "no numbers for many keys")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CHANGED]
)
def test_a_violation_is_found(name: str) -> None:
    """Each changed backend violates float32, and the sentence names what it does."""
    changed, sentence = CHANGED[name]
    with np.errstate(all="ignore"):
        found = probe_backend(changed)
    assert any(sentence in line for line in found.violations("float32")), found
    assert "float32" not in found.conforms


def test_a_fused_copy_conforms_to_the_arithmetic_that_allows_it() -> None:
    """float32-fused allows 16 units."""
    found = probe_backend(backend(weights=lambda w: w * np.float32(1 - 2.0**-24)))
    assert found.violations("float32")
    assert found.violations("float32-fused") == []


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_summation_conforms(order: str) -> None:
    """The orders in which trials run are float32, and none is accused."""

    def product(a: Array, b: Array) -> Array:
        return np.asarray(ORDERS[order](a.astype(np.float32), b.astype(np.float32)), np.float64)

    assert probe_backend(backend(product)).violations("float32") == []


def check(found: Probe) -> None:
    """No violation of float32, and what is measured is in the text."""
    assert found.violations("float32") == []
    assert "float32" in str(found)
    assert found.violations("bfloat16")
    assert found.as_json()["conforms"] == found.conforms


def test_numpy_and_the_kernel_conform() -> None:
    """What runs models here."""
    check(probe("kernel" if BUILT else "numpy"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "library"), [("torch", "torch"), ("torch-sdpa", "torch"), ("jax", "jax"), ("onnxruntime", "onnxruntime")]
)
def test_frameworks_conform_on_the_cpu(name: str, library: str) -> None:
    """If they are installed."""
    pytest.importorskip(library)
    check(probe(name))


def test_every_backend_is_tested() -> None:
    """The lists above are complete."""
    assert set(BACKENDS) == {"numpy", "kernel", "torch", "torch-sdpa", "jax", "onnxruntime"}


# Layer norms


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norms_do_what_is_assumed(dtype: str) -> None:
    """That of numpy, and torch's on a CPU."""
    assert not probe_norm(numpy_norm(dtype)).violations
    pytest.importorskip("torch")
    assert not probe_norm(torch_norm(dtype)).violations


def wrong_norm(rows: Array, epsilon: float, factor: float = 1.0, bits: int = 24) -> Array:
    """A norm in float32 that rounds the mean to some bits, and multiplies by a factor and divides by it again."""
    mean = rows.mean(-1, keepdims=True)
    unit = 2.0 ** (np.frexp(mean)[1] - bits)
    centred = (rows - np.round(mean / unit) * unit).astype(np.float32)
    return np.asarray(centred * np.float32(factor) / np.float32(factor))


@pytest.mark.parametrize(
    ("factor", "bits", "violation"),
    [(1.0, 24, ""), (3.0, 24, "not x - mean rounded once"), (1.0, 8, "the mean is off"), (np.nan, 24, "nan times")],
)
def test_wrong_layer_norms_are_found(factor: float, bits: int, violation: str) -> None:
    """Results that are rounded more often, a mean with few bits, and no numbers at all."""
    found = probe_norm(Norm("wrong", "1", "float32", lambda rows, epsilon: wrong_norm(rows, epsilon, factor, bits)))
    assert violation in "; ".join(found.violations)
    assert bool(violation) == bool(found.violations)
