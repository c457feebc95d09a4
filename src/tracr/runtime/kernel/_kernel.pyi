"""The functions of the forward pass in C; `kernel.py` calls them."""

from typing import Any

from numpy.typing import NDArray

def pack(weights: NDArray[Any], sizes: NDArray[Any], causal: bool) -> tuple[bytes, bytes]:
    """The integers and the numbers of a network, from all weights of a model (`packed.py`).

    Weights that are not of these sizes are refused with a `ValueError`.
    """

def load(words: NDArray[Any] | bytes, numbers: NDArray[Any] | bytes, ids: dict[Any, int], threads: int) -> object:
    """A network from its integers and numbers, and the ids of its tokens; it runs at most `threads` threads.

    Integers and numbers that are not a valid network are refused with a `ValueError`.
    """

def run(network: object, readings: NDArray[Any], ids: NDArray[Any], length: int, out: NDArray[Any]) -> int:
    """Fill `out`; returns the number of inputs with a NaN logit."""

def answer(
    network: object,
    readings: NDArray[Any],
    bos: int,
    values: tuple[Any, ...] | None,
    middles: NDArray[Any] | None,
    tokens: Any,
) -> list[Any] | None:
    """The output for a string or a list of tokens, or for lists of one length, if all have ids; else `None`."""
