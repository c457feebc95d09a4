"""Short texts of values and names, for figures and notebooks."""

from __future__ import annotations

import re

from tracr.ir.domains import Domain, Finite
from tracr.values import Value, value_text

__all__ = ["domain_label", "number_label", "shortened", "value_label", "visible"]


def number_label(number: float) -> str:
    """A number in about four characters; empty for zero.

    >>> number_label(1 / 3), number_label(-0.5), number_label(123.4), number_label(1e-9)
    ('0.33', '-0.5', '123', '')
    """
    text = f"{number:.0f}" if abs(number) >= 100 else f"{number:.2f}".rstrip("0").rstrip(".")
    return "" if text in ("0", "-0") else text


def value_label(value: Value) -> str:
    """A value of an s-op; invisible characters as Python writes them.

    >>> value_label("a"), value_label(2 / 3), value_label(" "), value_label((0.5, 1))
    ('a', '0.667', "' '", '(0.5, 1)')
    """
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(value_label, value)) + ("," if len(value) == 1 else "") + ")"
    return visible(value_text(value))


def visible(text: str) -> str:
    """A text with escapes for invisible characters and with decimals rounded.

    >>> visible("-2.0..0.8333333333333334"), visible("a\\n")
    ('-2.0..0.833', "'a\\\\n'")
    """
    text = re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.3g}", text)
    return text if text.isprintable() and text.strip() == text and text else repr(text)


def shortened(text: str, limit: int) -> str:
    """A text cut to `limit` characters in the middle, because names differ at their ends.

    >>> shortened("same_level_so_far_keys", 14)
    'same_le…r_keys'
    """
    if len(text) <= limit:
        return text
    return text[: limit // 2] + "…" + text[len(text) - (limit - limit // 2 - 1) :]


def domain_label(domain: Domain, limit: int = 24) -> str:
    """The values of a domain, as many as fit.

    >>> from tracr.ir.domains import finite
    >>> domain_label(finite(["a", "b"])), domain_label(finite(range(40)), limit=12)
    ('{a, b}', '{0, 1, 2, …} 40 values')
    """
    if not isinstance(domain, Finite):
        return str(domain)
    texts = [value_label(value) for value in domain.values]
    whole = "{" + ", ".join(texts) + "}"
    if len(whole) <= limit:
        return whole
    shown = 1
    while len(", ".join(texts[: shown + 1])) + 4 <= limit:
        shown += 1
    return "{" + ", ".join([*(shortened(text, limit) for text in texts[:shown]), "…"]) + f"}} {len(texts)} values"
