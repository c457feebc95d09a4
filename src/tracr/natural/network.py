"""A transformer in JAX with interventions: a reader sees the output of a writer from a run on another input.

Teacher and twin run the same pass with the same interventions; they differ only in weights, layer norms and
activation function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from tracr.adapters.jax import NAMESPACE
from tracr.ir.parameters import Parameters
from tracr.natural.sites import EMBED, Sites
from tracr.runtime.forward import forward

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.natural.architecture import Architecture

__all__ = ["Patch", "Tree", "TwinNetwork", "network_of"]

Array = Any  # of JAX
Tree = dict[str, Array]
READ, WRITTEN = frozenset({"qkv_input", "mlp_in"}), frozenset({"result"})  # what the hooks of the two passes see


class Patch(NamedTuple):
    """An intervention on each input of a batch: a writer, the reader that sees it (-1: all readers), and positions.

    `where` [batch, position] says which positions are patched. `bare` inputs run without padding: no head sees their
    PAD.
    """

    writer: Array
    reader: Array
    where: Array
    bare: Array


@dataclass(frozen=True, eq=False)
class TwinNetwork:
    """The forward pass of one architecture; `sites` has at least as many heads as its layers."""

    sites: Sites
    causal: bool
    pad: int
    norm: Callable[[Any, Any], Any] | None = None
    activation: Callable[[Array], Array] | None = None

    def __call__(
        self,
        weights: Tree,
        ids: Array,
        bare: Array,
        hook: Callable[[str, Array], Array | None] | None = None,
        fine: Collection[str] = (),
    ) -> Array:
        """Logits for ids; `bare` marks the inputs whose PAD no head sees. `fine` adds activations for the hook."""
        hidden = jnp.where(bare[:, None] & (ids == self.pad), -jnp.inf, 0.0)[:, None, None, :]

        def see(name: str, tensor: Array) -> Array | None:
            if name.endswith("hook_attn_scores"):
                return tensor + hidden
            return None if hook is None else hook(name, tensor)

        with jax.default_matmul_precision("highest"):  # some devices round products to fewer bits by default
            return forward(
                Parameters.of(weights),
                ids,
                NAMESPACE,
                causal=self.causal,
                hook=see,
                fine=fine,
                norm=self.norm,
                activation=self.activation,
            )

    def tokens(self, ids: Array) -> Array:
        """Which positions hold a token, neither BOS nor PAD, [batch, position]."""
        return (ids != self.pad).at[:, 0].set(False)

    def writes(self, weights: Tree, ids: Array, bare: Array, writer: Array) -> tuple[Array, Array, Array]:
        """Logits, the output of each input's writer [batch, position, d_model], and the last residual stream."""
        number_of = {name: number for number, name in enumerate(self.sites.writers)}
        written: list[Array] = []
        end: list[Array] = []

        def add(number: int, tensor: Array) -> None:
            written.append(jnp.where((writer == number)[:, None, None], tensor, 0.0))

        def hook(name: str, tensor: Array) -> None:
            if name in ("hook_embed", "hook_pos_embed"):
                add(number_of[EMBED], tensor)
            elif name.endswith("attn.hook_result"):
                block = name.removesuffix(".hook_result")
                for head in range(tensor.shape[2]):
                    add(number_of[f"{block}.{head}"], tensor[:, :, head])
            elif name.endswith("hook_mlp_out"):
                add(number_of[name.replace("hook_mlp_out", "mlp")], tensor)
            elif name.endswith("hook_resid_post"):
                end[:] = [tensor]

        logits = self(weights, ids, bare, hook, WRITTEN)
        return logits, sum(written[1:], written[0]), end[0]

    def seen(self, patch: Patch) -> tuple[Array, Array]:
        """Which readers see the change [batch, reader], and at which positions [batch, position]; 1 or 0."""
        chosen = (patch.reader[:, None] == jnp.arange(len(self.sites.readers))) | (patch.reader[:, None] < 0)
        after = jnp.asarray(self.sites.after)[patch.writer]
        return (chosen & after).astype(jnp.float32), patch.where.astype(jnp.float32)

    def patched(
        self, weights: Tree, ids: Array, patch: Patch, change: Array, kept: dict[str, Array] | None = None
    ) -> tuple[Array, Array]:
        """Logits and the last residual stream when readers see `change` [batch, position, d_model] in addition.

        The output of every writer is put into `kept`, if that is given.
        """
        sites, last = self.sites, f"blocks.{self.sites.layers - 1}.hook_resid_post"
        seen, where = self.seen(patch)
        change = change * where[..., None]
        end: list[Array] = []

        def hook(name: str, tensor: Array) -> Array | None:
            if name == last:
                end[:] = [tensor]
                return tensor + seen[:, -1, None, None] * change
            if kept is not None and name.endswith("attn.hook_result"):
                block = name.removesuffix(".hook_result")
                kept.update({f"{block}.{head}": tensor[:, :, head] for head in range(tensor.shape[2])})
            if kept is not None and name.endswith("hook_mlp_out"):
                kept[name.replace("hook_mlp_out", "mlp")] = tensor
            if not name.endswith(("_input", "hook_mlp_in")):
                return None
            start = int(name.split(".")[1]) * (3 * sites.heads + 1)
            if name.endswith("hook_mlp_in"):
                return tensor + seen[:, start + 3 * sites.heads, None, None] * change
            start += "qkv".index(name.removesuffix("_input")[-1]) * sites.heads
            return tensor + seen[:, None, start : start + tensor.shape[2], None] * change[:, :, None]

        return self(weights, ids, patch.bare, hook, READ if kept is None else READ | WRITTEN), end[0]

    def difference(self, weights: Tree, base: Array, source: Array, patch: Patch) -> tuple[Array, Array]:
        """Logits on the base inputs, and what each writer writes on the source input minus what it writes on the base.

        Both inputs run in one batch.
        """
        both = (
            jnp.concatenate([one, other]) for one, other in ((base, source), (patch.bare,) * 2, (patch.writer,) * 2)
        )
        logits, written, _ = self.writes(weights, *both)
        return logits[: len(base)], written[len(base) :] - written[: len(base)]

    def intervened(
        self, weights: Tree, base: Array, source: Array, patch: Patch, kept: dict[str, Array] | None = None
    ) -> tuple[Array, Array]:
        """Logits on the base inputs without and with the interventions; `kept` as in `patched`."""
        logits, change = self.difference(weights, base, source, patch)
        return logits, self.patched(weights, base, patch, change, kept)[0]


def network_of(model: CompiledModel, architecture: Architecture) -> TwinNetwork:
    """The forward pass of a model's twins with this architecture."""
    causal, pad = model.options.causal, model.vocabulary.pad_id
    return TwinNetwork(architecture.sites, causal, pad, architecture.norm, architecture.act(jax.nn))
