"""Where a part is put: an MLP of the host, or one or several heads of a layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tracr.errors import TracrError

__all__ = ["GraftPlace", "place_of"]

NAME = re.compile(r"blocks\.([0-9]{1,6})\.(?:(mlp)|attn(?:\.([0-9]{1,6}))?)")


@dataclass(frozen=True)
class GraftPlace:
    """A component of a host: `heads` are some heads of the layer; for all heads and for an MLP it is empty."""

    layer: int
    kind: Literal["attn", "mlp"]
    heads: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The component's name, as it is written in `at`."""
        block = f"blocks.{self.layer}.{self.kind}"
        return ", ".join(f"{block}.{head}" for head in self.heads) or block

    @property
    def stream(self) -> str:
        """The hook of the residual stream that the component reads."""
        return f"blocks.{self.layer}.hook_resid_{'pre' if self.kind == 'attn' else 'mid'}"

    @property
    def out(self) -> str:
        """The hook of what the sub-layer writes."""
        return f"blocks.{self.layer}.hook_{self.kind}_out"

    @property
    def z(self) -> str:
        """The hook of the outputs of the heads, before they are projected."""
        return f"blocks.{self.layer}.attn.hook_z"


def place_of(at: str | Sequence[str]) -> GraftPlace:
    """The place of a name or of several names of heads.

    >>> place_of("blocks.0.mlp").out
    'blocks.0.hook_mlp_out'
    >>> place_of(["blocks.1.attn.0", "blocks.1.attn.2"]).heads
    (0, 2)
    """
    names = [at] if isinstance(at, str) or not isinstance(at, Iterable) else list(at)
    found = [_matched(name) for name in names]
    if not found:
        raise _unknown(at)
    if len(found) == 1 and not found[0][3]:
        return GraftPlace(int(found[0][1]), "mlp" if found[0][2] else "attn")
    if len({match[1] for match in found}) > 1 or not all(match[3] for match in found):
        raise TracrError("only several heads of one layer are replaced together", hint="replace the others one by one")
    return GraftPlace(int(found[0][1]), "attn", tuple(sorted({int(match[3]) for match in found})))


def _matched(name: object) -> re.Match[str]:
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise _unknown(name)
    return match


def _unknown(at: object) -> TracrError:
    return TracrError(
        f"there is no place {at!r}",
        hint='write "blocks.0.attn.1" for a head, "blocks.0.attn" for all heads, "blocks.0.mlp" for an MLP, '
        "or a list of heads of one layer",
    )
