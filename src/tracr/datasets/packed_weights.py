"""The weights of a model as one piece of bytes, and the safetensors file of many models.

One piece is faster to send between processes than an array for each weight. The file is the one that
`safetensors.numpy.save` writes for the same arrays (a test compares them): the length of the header in 8 bytes, the
header, which is JSON with spaces up to a multiple of 8, and the arrays in the order of their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tracr.ir.parameters import Parameters
from tracr.runtime.kernel.packed import flat

__all__ = ["PackedWeights", "safetensors_of"]

WIDTH = 4  # bytes of a number
NUMBERS, ALIGNED = "<f4", 8


@dataclass(frozen=True)
class PackedWeights:
    """The arrays of a model in float32: their names and shapes, and their numbers one after another."""

    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    data: bytes

    @staticmethod
    def of(parameters: Parameters) -> PackedWeights:
        """The weights under the names of `Parameters.named`."""
        arrays = tuple((name, tuple(array.shape)) for name, array in parameters.named())
        return PackedWeights(arrays, flat(parameters).astype(NUMBERS, copy=False).tobytes())

    def pieces(self, prefix: str) -> Iterable[tuple[str, tuple[int, ...], memoryview]]:
        """Each array: its name after the prefix, its shape, its bytes."""
        start, data = 0, memoryview(self.data)
        for name, shape in self.arrays:
            size = WIDTH
            for length in shape:
                size *= length
            yield prefix + name, shape, data[start : start + size]
            start += size


def safetensors_of(models: Iterable[tuple[str, PackedWeights]]) -> bytes:
    """The content of a safetensors file with the weights of models, each with a prefix for its names."""
    pieces = sorted((piece for prefix, model in models for piece in model.pieces(prefix)), key=lambda piece: piece[0])
    header: dict[str, object] = {}
    end = 0
    for name, shape, data in pieces:
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (end, end + len(data))}
        end += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNED)
    return b"".join([len(text).to_bytes(8, "little"), text, *(data for _, _, data in pieces)])
