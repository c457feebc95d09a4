"""One forward pass with all its activations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tracr.errors import UnknownName
from tracr.model.methods import call
from tracr.values import Value, short_repr

if TYPE_CHECKING:
    from tracr.model.running import RunnableModel
    from tracr.model.variable_values import VariableValues

__all__ = ["Decoded", "Run"]

Decoded = Any  # a list of values; for several outputs a dict of such lists; for a batch a list of either


@dataclass(frozen=True, eq=False)
class Run(Mapping[str, NDArray[Any]]):
    """A forward pass: every activation under its TransformerLens name, batch axis first; `decoded` is the output.

    `variables` has the program's value of every variable, one per token: `run.variables["nth"]`. With `set=` these are
    the values of the program with the given variables replaced. The weights have no part in them; `model.read` reads
    what an activation holds.
    """

    tokens: list[list[Value]]
    activations: dict[str, NDArray[Any]]
    decoded: Decoded
    variables: VariableValues = field(repr=False)
    model: RunnableModel | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self.activations[name]
        except Exception:  # an unknown name, or an object that is not a name
            raise UnknownName(
                f"no activation {short_repr(name)}", hint=f"there are {', '.join(self.activations)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.activations)

    def __len__(self) -> int:
        return len(self.activations)

    def __repr__(self) -> str:
        inputs = "1 input" if len(self.tokens) == 1 else f"{len(self.tokens)} inputs"
        return f"Run({inputs}, {len(self.activations)} activations)"

    def _repr_html_(self) -> str:
        html: str = call("Run._repr_html_", self)
        return html

    @property
    def logits(self) -> NDArray[Any]:
        """The logits [batch, position, d_vocab_out], BOS position first."""
        return self.activations["logits"]
