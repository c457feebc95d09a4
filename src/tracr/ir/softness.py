"""How soft the attention and the steps of a compiled model are (`tracr.natural.soften`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracr.craft.numerics import GAP
from tracr.errors import CompileError

__all__ = ["BOUND", "ENUMERATED", "Softness", "default_logit", "leaked"]

BOUND = "bound"
ENUMERATED = "all inputs"
SHOWN = (BOUND, ENUMERATED)
STEEPEST = 0.25  # a step that is off by more than this at a value is nearer to the middle than to its end

HALF = 0.5  # a code that is off by more is that of another value

Named = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Softness:
    """Gaps of heads, and slopes of groups of neurons, by label.

    A head is named by the first variable it writes; heads with the same pattern have the gap of the first of them. A
    group of neurons is named by the variable it writes. `slopes` is the share of a step that lies beyond the values on
    each side of it: 0 is a step with plateaus. `shown` says how the answers were shown to be right: by a "bound" on the
    errors, which every construction then keeps, or on "all inputs". In both cases no code is off by more than `error`,
    and no number with listed values by more than `error` times the distance between its two nearest values. Heads that
    are not named have the gap `gap`, and other neurons have plateaus.
    """

    gap: float = GAP
    gaps: Named = ()
    slopes: Named = ()
    shown: str = ENUMERATED
    error: float = 0.0

    def __post_init__(self) -> None:
        wrong = [gap for gap in (self.gap, *dict(self.gaps).values()) if not 0 < gap <= GAP]
        wrong += [slope for slope in dict(self.slopes).values() if not 0 <= slope <= STEEPEST]
        wrong += [] if 0 <= self.error <= HALF else [self.error]
        if wrong or self.shown not in SHOWN or (self.shown == BOUND and (self.gaps or self.slopes)):
            raise CompileError(
                f"there is no such softness: {self}",
                hint=f"gaps are above 0 and at most {GAP:g}, slopes 0 to {STEEPEST:g}; use tracr.natural.soften(model)",
            )

    @property
    def bounded(self) -> bool:
        """Whether the error bounds of the compiler include the softness."""
        return self.shown == BOUND

    def gap_of(self, head: str) -> float:
        """The gap of a head."""
        return dict(self.gaps).get(head, self.gap)

    def slope_of(self, neurons: str) -> float:
        """The slope of a group of neurons."""
        return dict(self.slopes).get(neurons, 0.0)


def default_logit(gap: float, keys: int) -> float:
    """The logit of BOS for a head that attends to BOS only if it selects nothing.

    Let e = exp(-gap), and let BOS have weight b. If a key is selected, BOS takes a share of at most b. If none is, the
    keys take at most keys * e / b. Both are equal for b = sqrt(keys * e), and -gap/2 is the logit of b for one key.
    """
    return (math.log(max(1, keys)) - gap) / 2


def leaked(gap: float, keys: int, *, surely: bool) -> float:
    """The largest share of attention on keys that are not selected and on BOS, among up to `keys` keys.

    `surely`: every query selects a key, and BOS gets no attention. A percent is added for the errors of codes that need
    no clean-up (`CLEAN`), which shift logits.
    """
    rest = (keys - 1) * math.exp(-gap)
    return 1.01 * (rest if surely else rest + math.exp(default_logit(gap, keys)))
