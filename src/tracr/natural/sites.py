"""The sites of a transformer: the components that write to the residual stream, the inputs that read it, edges.

Writers are the embedding, every head and every MLP; readers are the query, key and value input of every head, the
input of every MLP, and the unembedding. An edge is a writer and a reader that comes later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["EMBED", "UNEMBED", "Site", "Sites"]

EMBED, UNEMBED = "embed", "unembed"
EVERY = -1


@dataclass(frozen=True)
class Site:
    """The target of an intervention: the whole output of a writer (a node), or what one reader sees of it (an edge)."""

    writer: str
    reader: str | None = None

    @property
    def kind(self) -> Literal["node", "edge"]:
        """Whether it is a node or an edge."""
        return "node" if self.reader is None else "edge"

    def __str__(self) -> str:
        return self.writer if self.reader is None else f"{self.writer}->{self.reader}"


@dataclass(frozen=True)
class Sites:
    """All sites of a transformer with this number of layers, and of heads in each."""

    layers: int
    heads: int

    @cached_property
    def writers(self) -> tuple[str, ...]:
        """The embedding, then layer by layer the heads and the MLP."""
        blocks = [
            [*(f"blocks.{layer}.attn.{head}" for head in range(self.heads)), f"blocks.{layer}.mlp"]
            for layer in range(self.layers)
        ]
        return (EMBED, *(name for block in blocks for name in block))

    @cached_property
    def readers(self) -> tuple[str, ...]:
        """Layer by layer the queries of all heads, their keys, their values and the MLP; then the unembedding."""
        blocks = [
            [
                *(f"blocks.{layer}.attn.{head}.{part}" for part in "qkv" for head in range(self.heads)),
                f"blocks.{layer}.mlp",
            ]
            for layer in range(self.layers)
        ]
        return (*(name for block in blocks for name in block), UNEMBED)

    @cached_property
    def after(self) -> NDArray[np.bool_]:
        """Whether a reader comes after a writer, [writer, reader]."""
        per_block = [0] * self.heads + [1]
        written = [-1, *(2 * layer + part for layer in range(self.layers) for part in per_block)]
        per_block = [0] * (3 * self.heads) + [1]
        read = [*(2 * layer + part for layer in range(self.layers) for part in per_block), 2 * self.layers]
        return np.asarray(np.array(read)[None, :] > np.array(written)[:, None])

    @cached_property
    def nodes(self) -> tuple[Site, ...]:
        """A site for every head and MLP."""
        return tuple(Site(writer) for writer in self.writers[1:])

    @cached_property
    def edges(self) -> tuple[Site, ...]:
        """A site for every edge."""
        return tuple(
            Site(self.writers[writer], self.readers[reader]) for writer, reader in np.argwhere(self.after).tolist()
        )

    @cached_property
    def all(self) -> tuple[Site, ...]:
        """Nodes, then edges."""
        return (*self.nodes, *self.edges)

    @cached_property
    def coded(self) -> NDArray[np.int32]:
        """For each site of `all` the numbers of its writer and its reader (-1 for a node: all readers)."""
        reader_of = {reader: number for number, reader in enumerate(self.readers)}
        writer_of = {writer: number for number, writer in enumerate(self.writers)}
        return np.array(
            [(writer_of[site.writer], EVERY if site.reader is None else reader_of[site.reader]) for site in self.all],
            dtype=np.int32,
        )
