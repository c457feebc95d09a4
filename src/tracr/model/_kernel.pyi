"""What the pass in C offers; `kernel.py` calls it."""

from typing import Any

from numpy.typing import NDArray

def load(words: NDArray[Any], numbers: NDArray[Any]) -> object:
    """A network from its integers and numbers."""

def run(network: object, readings: NDArray[Any], ids: NDArray[Any], length: int, out: NDArray[Any]) -> int:
    """Fill `out`; how often some logit was not a number."""

def answer(
    network: object,
    readings: NDArray[Any],
    known: dict[Any, int],
    bos: int,
    values: tuple[Any, ...] | None,
    middles: NDArray[Any] | None,
    tokens: list[Any],
) -> list[Any] | None:
    """The output for a list of tokens, or a list of such lists of one length, if all are `known`; else `None`."""
