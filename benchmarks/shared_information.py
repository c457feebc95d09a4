"""How do two variables that share information share directions? The smallest case, trained and predicted.

    python benchmarks/shared_information.py OUT            overlap × decay × 64 seeds; resumable, a JSON file per decay
    python benchmarks/shared_information.py OUT --table    the table, from the data

x and y are 0 or 1. x is written along w_x and read along w_x. Then y is written along w_y, and read along w_y from the
sum x w_x + y w_y. The loss is E(x |w_x|² − x)² + E(x w_x·w_y + y |w_y|² − y)². Both are 1 half of the time; y = x with
probability p, the overlap.

Prediction. If p = 1, y is read as w_x·w_y + |w_y|², and every solution without loss has |w_x| = 1 and this sum 1. Of
these, weight decay prefers the one of smallest norm: w_y = s w_x with s + s² = 1, so w_x·w_y = 0.618 and |w_y|² =
0.382. Weight decay has moved the solution if learning rate × decay, summed over the steps, is well above 1. If p < 1,
reads without loss need w_x·w_y = 0 and |w_y| = 1. The column "penalised" is the minimum of the loss plus
λ (|w_x|² + |w_y|²), with λ the decay, found by descent; it has no parameter to fit.

Steps use batches of 256 pairs, as the recipe does; --batch 0 uses the expected loss. Needs numpy, jax and optax.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

OVERLAPS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
DECAYS = (0.0, 0.001, 0.01, 0.1, 0.3)
DIM = 8


def loss(W: Any, same: Any, only_x: Any, only_y: Any) -> Any:
    """The loss of directions W [2, d], with the shares of the pairs (1, 1), (1, 0) and (0, 1)."""
    xx, xy, yy = W[0] @ W[0], W[0] @ W[1], W[1] @ W[1]
    first = (same + only_x) * (xx - 1) ** 2
    return first + same * (xy + yy - 1) ** 2 + only_x * xy**2 + only_y * (yy - 1) ** 2


def shares(key: Any, overlaps: Any, batch: int) -> tuple[Any, Any, Any]:
    """The shares of the three pairs for every overlap [overlap]: in a random batch, or expected if `batch` is 0."""
    if not batch:
        return overlaps / 2, (1 - overlaps) / 2, (1 - overlaps) / 2
    first, second = jax.random.split(key)
    x = jax.random.bernoulli(first, 0.5, (batch,))
    agree = jax.random.uniform(second, (batch,)) < overlaps[:, None]
    return (x & agree).mean(axis=1), (x & ~agree).mean(axis=1), (~x & ~agree).mean(axis=1)


def trained(
    overlaps: Any,
    decay: float,
    seeds: int,
    steps: int,
    *,
    dim: int = DIM,
    rate: float = 1e-3,
    batch: int = 256,
    penalty: bool = False,
) -> Any:
    """The products xx, xy, yy and the number of coordinates with other signs in w_x than in w_y [overlap, seed, 4],
    after AdamW; with `penalty` after Adam on the penalised loss."""
    start = np.random.default_rng(0).normal(scale=dim**-0.5, size=(len(overlaps), seeds, 2, dim))
    fall = optax.linear_schedule(rate, rate / 1000, max(1, steps // 2))
    update = optax.adam(fall, b2=0.99) if penalty else optax.adamw(fall, b2=0.99, weight_decay=decay)
    of_seeds = jax.vmap(loss, (0, None, None, None))

    def whole(W: Any, given: Any) -> Any:
        return jax.vmap(of_seeds)(W, *given).sum() + (decay * (W**2).sum() if penalty else 0.0)

    def step(carry: Any, number: Any) -> Any:
        W, state = carry
        key = jax.random.fold_in(jax.random.key(0), number)
        given = shares(key, jnp.asarray(overlaps), 0 if penalty else batch)
        change, state = update.update(jax.grad(whole)(W, given), state, W)
        return (optax.apply_updates(W, change), state), None

    W = jnp.asarray(start, dtype=jnp.float32)
    with jax.default_matmul_precision("highest"):
        (W, _), _ = jax.jit(lambda W: jax.lax.scan(step, (W, update.init(W)), jnp.arange(steps)))(W)
    products = jnp.einsum("psad,psbd->psab", W, W, precision="highest")
    differ = (W[..., 0, :] * W[..., 1, :] < 0).sum(axis=-1)
    return np.concatenate([np.asarray(products)[..., [0, 0, 1], [0, 1, 1]], np.asarray(differ)[..., None]], axis=-1)


def table(folder: Path) -> None:
    """Print medians and quartiles over seeds."""
    print("| p | decay | w_x·w_y | \\|w_y\\|² | penalised |\n|---|---|---|---|---|")
    for path in sorted(folder.glob("shared-*.json")):
        data = json.loads(path.read_text())
        for place, overlap in enumerate(data["overlaps"]):
            mine = np.array(data["trained"][place])
            low, middle, high = np.quantile(mine, (0.25, 0.5, 0.75), axis=0)
            cells = [f"{middle[k]:.3f} [{low[k]:.3f}, {high[k]:.3f}]" for k in (1, 2)]
            penalised = np.median(np.array(data["penalised"][place]), axis=0)
            print(
                "|",
                " | ".join([f"{overlap:g}", f"{data['decay']:g}", *cells, "{:.3f}, {:.3f}".format(*penalised[1:3])]),
                "|",
            )
    root = (5**0.5 - 1) / 2
    print(f"predicted at p = 1: {root:.3f}, {root**2:.3f}; at p < 1 without decay: 0, 1")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--overlaps", nargs="*", type=float, default=OVERLAPS)
    parser.add_argument("--decays", nargs="*", type=float, default=DECAYS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.table:
        return table(given.out)
    for decay in given.decays:
        path = given.out / f"shared-{decay:g}.json"
        if path.exists():
            continue
        found = {
            "decay": decay,
            "overlaps": given.overlaps,
            "steps": given.steps,
            "rate": given.rate,
            "batch": given.batch,
            "device": str(jax.devices()[0]),
            "dim": given.dim,
            "trained": trained(
                given.overlaps, decay, given.seeds, given.steps, dim=given.dim, rate=given.rate, batch=given.batch
            )
            .round(5)
            .tolist(),
            "penalised": trained(given.overlaps, decay, 8, min(given.steps, 20_000), dim=given.dim, penalty=True)
            .round(5)
            .tolist(),
        }
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(found) + "\n")
        aside.rename(path)
        print(path, flush=True)
    return table(given.out)


if __name__ == "__main__":
    main()
