"""The content of a figure: its one input, and the parts to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tracr.errors import InputError, TracrError
from tracr.model.run import Run

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["chosen", "one_run"]

T = TypeVar("T")


def one_run(model: DesignedModel, tokens: Sequence[Any] | Run) -> Run:
    """The run of one input; `tokens` may already be a run."""
    run = tokens if isinstance(tokens, Run) else model.run(tokens)
    if len(run.tokens) != 1:
        raise InputError(
            f"the figure shows one input, not a batch of {len(run.tokens)}", hint="call it for one input at a time"
        )
    return run


def chosen(parts: Mapping[str, T], only: Sequence[str] | None, what: str) -> dict[str, T]:
    """The parts named in `only`, or all parts; `what` names the kind of part in error messages."""
    wanted = [only] if isinstance(only, str) else only
    for name in wanted or ():
        if name not in parts:
            raise TracrError(f"no {what} {name!r}", hint=f"there are {', '.join(parts) or 'none'}")
    return {name: part for name, part in parts.items() if wanted is None or name in wanted}
