"""Probes a backend for violations of the assumptions of an arithmetic (`tracr_check/arithmetic.py`).

A probe can find a violation. It cannot prove that there is none: other sizes may run other code. Each bound below is
what a conforming backend cannot exceed, with u = 2^-sum_bits:

- a dot product of t terms that are not zero: γ(t) Σ|terms|, and 2^-stored_bits of the result where storing rounds;
- a sum of integers whose absolute values add up to at most 2^sum_bits: 0;
- a value with all the weight of a head: `copy_error` u;
- a weight at distance x from the largest score: (`exp_error` + x + 6) u, relatively: exp, two additions, a quotient;
- a mean of n numbers: (n + 2 `exp_error` + 6) u of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.certificate.backends import BACKENDS, Backend
from tracr.errors import TracrError
from tracr.values import short_repr
from tracr_check import ARITHMETICS, Arithmetic

__all__ = ["Probe", "probe", "probe_backend"]

Array = NDArray[Any]
SHAPES = ((1, 1), (3, 5), (17, 8), (64, 64), (130, 96))
TERMS = (1, 2, 3, 7, 16, 33, 64, 129, 500, 2048)
CHECKED = 40  # entries of a product that are compared
FAR = 300.0  # a distance at which no arithmetic leaves any weight


@dataclass(frozen=True)
class Probe:
    """What was measured of a backend, in one format. Numbers are the worst that was found.

    dot          error of a dot product, as a fraction of the bound
    inexact      integer sums that fit and are not exact, of `sums` that were tried
    copy         relative error of a value with all the weight, in units u
    exp, mean    error of a weight and of a mean beyond the bound, in units u (negative: within it)
    zero_from    the distance from which a weight is exactly 0
    leak         the largest weight divided by exp(-distance), where it should have been at most 2
    small        products near the smallest normal number of the format that are normal and not exact
    finite       whether large scores give finite results
    """

    backend: str
    version: str
    dtype: str
    dot: float
    inexact: int
    sums: int
    copy: float
    exp: float
    mean: float
    zero_from: float
    leak: float
    small: int
    finite: bool

    def violations(self, arithmetic: str) -> list[str]:
        """The assumptions of an arithmetic that the backend violates, in sentences."""
        one = ARITHMETICS[arithmetic]
        if arithmetic.partition("-")[0] != self.dtype:
            return [f"it was probed in {self.dtype}, which is not the format of {arithmetic}"]
        far = self.leak > 2 if one.leaks else self.zero_from > one.apart
        found = {
            f"the error of a dot product is {self.dot:.3g} times its bound": self.dot > 1,
            f"{self.inexact} of {self.sums} sums of integers that fit are not exact": self.inexact > 0,
            f"a value with all the weight is copied with an error of {self.copy:.3g} u": self.copy > one.copy_error,
            f"the error of exp is {self.exp:.3g} u beyond its bound": self.exp > one.copy_error,
            f"the error of a mean is {self.mean:.3g} u beyond its bound": self.mean > one.copy_error,
            f"a key {one.apart:g} below the largest score has weight "
            f"(0 from {self.zero_from:g} on; up to {self.leak:.3g} times exp)": far,
            f"{self.small} small products that are normal numbers are not exact": self.small > 0,
            "large scores give no finite result": not self.finite,
        }
        return [sentence for sentence, violated in found.items() if violated]

    @property
    def conforms(self) -> list[str]:
        """The arithmetics of which no violation was found."""
        return [name for name in ARITHMETICS if not self.violations(name)]

    def __str__(self) -> str:
        names = ", ".join(self.conforms) or "none"
        return f"{self.backend} {self.version}, {self.dtype}: no violation found of {names}"

    def as_json(self) -> dict[str, Any]:
        """The measurements, and the arithmetics of which no violation was found."""
        found = {key: str(value) if value == math.inf else value for key, value in asdict(self).items()}
        return {**found, "conforms": self.conforms}


def probe(backend: str, seed: int = 0, dtype: str = "float32") -> Probe:
    """Probe a backend of `BACKENDS` in a format, on the CPU.

    >>> probe("numpy").conforms
    ['float32', 'float32-leak', 'float32-fused']
    >>> probe("numpy", dtype="bfloat16")
    Traceback (most recent call last):
    tracr.errors.TracrError: numpy cannot be probed in 'bfloat16'
      hint: numpy can be probed in float64, float32; in bfloat16: torch, torch-sdpa, jax
    """
    make, formats = BACKENDS[arguments.one_of("backend", backend, [*BACKENDS])]
    if dtype not in formats:
        others = ", ".join(name for name, (_, held) in BACKENDS.items() if dtype in held)
        raise TracrError(
            f"{backend} cannot be probed in {short_repr(dtype)}",
            hint=f"{backend} can be probed in {', '.join(formats)}" + (f"; in {dtype}: {others}" if others else ""),
        )
    return probe_backend(make(dtype), seed)


def probe_backend(backend: Backend, seed: int = 0) -> Probe:
    """Probe a backend."""
    rng = np.random.default_rng(seed)
    one = ARITHMETICS[backend.dtype]
    inexact, sums = _integer_sums(backend, one, rng)
    zero_from, leak = _far_keys(backend)
    return Probe(
        backend.name,
        backend.version,
        backend.dtype,
        dot=_dot_products(backend, one, rng),
        inexact=inexact,
        sums=sums,
        copy=_copies(backend, one, rng),
        exp=_weights(backend, one),
        mean=_means(backend, one, rng),
        zero_from=zero_from,
        leak=leak,
        small=_small_products(backend, one),
        finite=_finite(backend),
    )


def _finite(backend: Backend) -> bool:
    """Whether scores of some thousands give finite results: the largest is subtracted before exp."""
    found = backend.attend(_column([64.0]), _column([64.0, -64.0, 60.0]), _column([1.0, 2.0, 3.0]))
    return bool(np.isfinite(found).all())


def _column(numbers: Any) -> Array:
    return np.array(numbers, float)[:, None]


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], one: Arithmetic, spread: int) -> Array:
    """Numbers of the format with random exponents; short enough for products that are exact in float64."""
    bits = min(26, one.stored_bits)
    whole = rng.integers(2 ** (bits - 1), 2**bits, shape) * rng.choice([-1.0, 1.0], shape)
    return np.asarray(np.ldexp(whole, rng.integers(-spread, spread + 1, shape) - bits))


def _sizes() -> Iterator[tuple[int, int, int]]:
    for terms in TERMS:
        for n, m in SHAPES:
            yield n, terms, m


def _entries(rng: np.random.Generator, n: int, m: int) -> Iterator[tuple[int, int]]:
    for _ in range(min(CHECKED, n * m)):
        yield int(rng.integers(n)), int(rng.integers(m))


def _dot_products(backend: Backend, one: Arithmetic, rng: np.random.Generator) -> float:
    """The largest error of an entry of a product, as a fraction of its bound; rows of very different sizes too."""
    worst = 0.0
    for n, terms, m in _sizes():
        for spread in (0, 3, 12):
            if one.name == "float16" and spread * 2 + math.log2(terms) > 14:
                continue
            a, b = _numbers(rng, (n, terms), one, spread), _numbers(rng, (terms, m), one, spread)
            a[rng.random(a.shape) < 0.2] = 0.0
            found = backend.product(a, b)
            for i, j in _entries(rng, n, m):
                products = a[i] * b[:, j]
                exact, size = math.fsum(products), math.fsum(np.abs(products))
                allowed = one.gamma(int(np.count_nonzero(products))) * size
                allowed += one.stored_unit * (abs(exact) + allowed) if one.narrow else 0.0
                worst = max(worst, _ratio(float(abs(found[i, j] - exact)), float(allowed)))
    return worst


def _ratio(error: float, allowed: float) -> float:
    if not math.isfinite(error):
        return math.inf
    return error / allowed if allowed else (math.inf if error else 0.0)


def _worse(known: float, error: float) -> float:
    """The larger one; a result that is no number is infinitely wrong."""
    return math.inf if math.isnan(error) else max(known, error)


def _integer_sums(backend: Backend, one: Arithmetic, rng: np.random.Generator) -> tuple[int, int]:
    """How many sums of integers, small enough to be exact in any order, are not exact; and how many were tried."""
    wrong = tried = 0
    limit = 2 ** min(one.sum_bits, 52) if one.name != "float16" else 2**15
    for n, terms, m in _sizes():
        factor = 2 ** int(min(math.log2(limit / terms) / 2, one.stored_bits))
        if factor < 1:
            continue
        a, b = (rng.integers(-factor, factor + 1, shape).astype(float) for shape in ((n, terms), (terms, m)))
        found = backend.product(a, b)
        for i, j in _entries(rng, n, m):
            wrong += int(found[i, j] != _stored(one, math.fsum(a[i] * b[:, j])))
            tried += 1
    return wrong, tried


def _stored(one: Arithmetic, number: float) -> float:
    return float(one.cast(np.array([number]))[0])


def _copies(backend: Backend, one: Arithmetic, rng: np.random.Generator) -> float:
    """The largest relative error, in u, of the value of a key that is far above all others."""
    worst = 0.0
    for keys in (1, 2, 5, 16, 64, 200):
        values = _numbers(rng, (keys, 8), one, 3)
        for chosen in {0, keys // 2, keys - 1}:
            scores = np.full(keys, -FAR)
            scores[chosen] = 0.0
            found = backend.attend(np.ones((3, 1)), _column(scores), values)
            worst = _worse(worst, float(np.max(np.abs(found - values[chosen]) / np.abs(values[chosen]))) / one.unit)
    return worst


def _weights(backend: Backend, one: Arithmetic) -> float:
    """The largest relative error of a weight at some distance, in u, beyond the bound."""
    worst = -math.inf
    distances = [1.0, 2.0, 3.0, 5.0, 8.0, 11.0, 16.0, 20.0] + ([0.125, 0.6875, 6.5] if not one.narrow else [])
    if one.name == "float16":
        distances = distances[:5]
    stored = 5 * one.stored_unit if one.narrow else 0.0
    for distance in distances:
        with localcontext() as context:
            context.prec = 40
            power = (-Decimal(distance)).exp()
            exact = power / (1 + power)
            found = Decimal(float(backend.attend(_column([1.0]), _column([0.0, -distance]), _column([0.0, 1.0]))[0, 0]))
            error = float(abs(found - exact) / exact)
        worst = _worse(worst, (error - stored) / one.unit * 0.99 - (one.exp_error + distance + 6))
    return worst


def _means(backend: Backend, one: Arithmetic, rng: np.random.Generator) -> float:
    """The largest error of a mean of equal weights, in u of the largest value, beyond the bound."""
    worst = -math.inf
    stored = 4 * one.stored_unit if one.narrow else 0.0
    for keys in (1, 2, 3, 7, 32, 100, 255):
        values = _numbers(rng, (keys, 6), one, 1)
        found = backend.attend(np.ones((2, 1)), np.ones((keys, 1)), values)
        for column in range(6):
            exact, largest = math.fsum(values[:, column]) / keys, float(np.abs(values[:, column]).max())
            error = float(np.abs(found[:, column] - exact).max()) / largest
            worst = _worse(worst, (error - stored) / one.unit * 0.99 - (keys + 2 * one.exp_error + 6))
    return worst


def _far_keys(backend: Backend) -> tuple[float, float]:
    """The distance from which a weight is exactly 0; and the largest weight over exp(-distance), from 80 on."""
    zero_from, leak = 80.0, 0.0
    for distance in range(80, 301):
        found = float(backend.attend(_column([1.0]), _column([0.0, -float(distance)]), _column([0.0, 1.0]))[0, 0])
        zero_from = float(distance + 1) if found != 0 else zero_from
        if not found <= 2.0**-120:  # numbers that are not normal may be anything below the smallest normal one
            leak = _worse(leak, found / math.exp(-distance))
        if found == 0 and distance > zero_from + 20:
            break
    return (math.inf if zero_from > 300 else zero_from), leak


def _small_products(backend: Backend, one: Arithmetic) -> int:
    """How many products that are small and normal are not exact; smaller ones may be flushed to 0."""
    least = round(math.log2(max(one.tiny, one.stored_tiny)))
    wrong = 0
    for power in range(least, least + 6):
        left, right = 2.0 ** (power // 2), 2.0 ** (power - power // 2)
        wrong += int(backend.product(_column([left]), _column([right]))[0, 0] != 2.0**power)
    return wrong
