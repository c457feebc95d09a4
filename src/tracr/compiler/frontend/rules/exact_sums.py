"""Weighted sums of many pairs of numbers, computed exactly and rounded once, as in the interpreter (`rational.py`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracr.ir.domains import Codes, Finite
from tracr.rational import fraction_of

__all__ = ["exact_sums"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Products = tuple[list[int], list[int]]
FITS = 2**62  # products of two such numbers of 31 bits stay within int64, sums of two of them as well
LARGEST_EXACT = 2**53  # float64 holds integers up to here, and divides two of them with one rounding


def exact_sums(fst: Finite, snd: Finite, pairs: tuple[Codes, Codes], factors: tuple[float, ...]) -> Floats:
    """For each pair of codes, the first factor times the first number plus the second factor times the second."""
    rows, columns = pairs
    plain: Floats = factors[0] * fst.numbers[rows] + factors[1] * snd.numbers[columns]
    if all(_whole(domain, factor) for domain, factor in zip((fst, snd), factors, strict=True)):
        return plain
    terms = [_products(domain, factor) for domain, factor in zip((fst, snd), factors, strict=True)]
    found = _in_integers(terms, pairs)
    if found is None:
        return _one_by_one(terms, pairs, np.ones(len(rows), dtype=bool), plain)
    numerators, denominators = found
    inexact = (np.abs(numerators) >= LARGEST_EXACT) | (denominators >= LARGEST_EXACT)
    sums: Floats = numerators.astype(np.float64) / denominators.astype(np.float64)
    return _one_by_one(terms, pairs, inexact, sums) if inexact.any() else sums


def _products(domain: Finite, factor: float) -> Products:
    """The factor times each number: numerators and denominators, which may have common divisors."""
    times, numbers = fraction_of(factor), [fraction_of(number) for number in domain.numbers.tolist()]
    top, bottom = times.numerator, times.denominator
    return [top * number.numerator for number in numbers], [bottom * number.denominator for number in numbers]


def _whole(domain: Finite, factor: float) -> bool:
    """Whether all products are integers, which float64 adds exactly (the caller has checked their size)."""
    return float(factor).is_integer() and bool((domain.numbers == np.round(domain.numbers)).all())


def _in_integers(terms: list[Products], pairs: tuple[Codes, Codes]) -> tuple[Whole, Whole] | None:
    """Numerators and denominators of all sums, in lowest terms; `None` if they may be too large for 64 bits."""
    (p, q), (r, s) = terms
    tops, bottoms = [max(map(abs, p)), max(map(abs, r))], [max(q), max(s)]
    if max(tops[0] * bottoms[1], tops[1] * bottoms[0], bottoms[0] * bottoms[1]) >= FITS:
        return None
    (p_at, q_at), (r_at, s_at) = (
        (np.array(top, dtype=np.int64)[codes], np.array(bottom, dtype=np.int64)[codes])
        for (top, bottom), codes in zip(terms, pairs, strict=True)
    )
    numerators, denominators = p_at * s_at + r_at * q_at, q_at * s_at
    common = np.gcd(numerators, denominators)
    return numerators // common, denominators // common


def _one_by_one(terms: list[Products], pairs: tuple[Codes, Codes], chosen: NDArray[np.bool_], sums: Floats) -> Floats:
    """The sums, with the chosen ones computed again with integers of any size, whose quotient Python rounds once."""
    (p, q), (r, s) = terms
    places = chosen.nonzero()[0].tolist()
    rows, columns = (codes[chosen].tolist() for codes in pairs)
    sums = sums.copy()
    sums[places] = [(p[i] * s[j] + r[j] * q[i]) / (q[i] * s[j]) for i, j in zip(rows, columns, strict=True)]
    return sums
