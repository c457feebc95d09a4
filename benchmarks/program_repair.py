"""Repairs programs by gradient: trains a compiled mistake on the right answers, and reads the weights back.

    python benchmarks/program_repair.py -o docs/natural/program_repair.json    # needs the extra `jax`

What the file already has is skipped; without anything to do it prints the table.

Every mistake is a pair of programs, wrong and right, that differ in one place. The wrong one is compiled at level 0 and
trained on half of the inputs with the answers of the right one. Then each part of the model is asked whether its new
weights alone repair the program, and which cells of its table changed (`tracr.natural.read_back`). The true cells are
those in which the two compiled programs differ. docs/natural.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from fine_tuning import duplicate

import tracr
from tracr import natural
from tracr.ir.domains import Finite
from tracr.natural.admission import Rate
from tracr.natural.owned_weights import Mask, owned_weights
from tracr.rasp import rasp
from tracr.writing import write_file

T, INDEX, EQ, LT, LEQ = rasp.tokens, rasp.indices, rasp.Comparison.EQ, rasp.Comparison.LT, rasp.Comparison.LEQ
VOCAB, LENGTH, BATCH, SCALE = "abcd", 4, 32, 10.0  # the logits are 0 and 1: SCALE multiplies them in the loss


class Mistake(NamedTuple):
    """A program with and without a mistake, and the component that has it."""

    what: str
    write: Callable[[bool], rasp.SOp]
    part: str


def counted(selector: rasp.Selector) -> rasp.SOp:
    """How many keys are selected."""
    return rasp.SelectorWidth(selector).named("count")


def token_table(right: bool) -> rasp.SOp:
    """A class of each token; the mistake is one cell."""
    return rasp.Map(lambda token: {"a": "x", "b": "y", "c": "y" if right else "x", "d": "x"}[token], T).named("kind")


def count_table(right: bool) -> rasp.SOp:
    """A word for the number of equal tokens; the mistake is one cell."""
    words = {1: "one", 2: "few", 3: "few" if right else "many", 4: "many", 5: "many"}
    return rasp.Map(lambda count: words[count], counted(rasp.Select(T, T, EQ))).named("word")


def pair_table(right: bool) -> rasp.SOp:
    """Whether a token occurs once; the mistake is one cell of a function of token and count."""
    count = counted(rasp.Select(T, T, EQ))
    return rasp.SequenceMap(lambda token, n: (n == 1) != (not right and (token, n) == ("b", 2)), T, count).named("once")


def copied_table(right: bool) -> rasp.SOp:
    """The class of the previous token; the mistake is a cell of the table before the head that copies it."""
    before = rasp.Select(INDEX, INDEX, lambda key, query: key == query - 1)
    return rasp.Aggregate(before, token_table(right), default="x").named("previous")


def selecting_table(right: bool) -> rasp.SOp:
    """How many tokens are of class y, as a word; the mistake is a cell of the table before the head that counts."""
    count = counted(rasp.Select(token_table(right), rasp.Full("y"), EQ))
    return rasp.Map(lambda n: "many" if n > 2 else "few" if n else "none", count).named("word")


def shift(right: bool) -> rasp.SOp:
    """The previous token; the mistake shifts by two."""
    by = 1 if right else 2
    return rasp.Aggregate(rasp.Select(INDEX, INDEX, lambda key, query: key == query - by), T, default="a").named(
        "shifted"
    )


def partner(right: bool) -> rasp.SOp:
    """Whether the partner of a token occurs (of a, b; of c, d); the mistake gives d the partner b."""
    pairs = {("a", "b"), ("b", "a"), ("c", "d")} | ({("d", "c")} if right else {("d", "b")})
    count = counted(rasp.Select(T, T, lambda key, query: (query, key) in pairs))
    return rasp.Map(lambda n: n > 0, count).named("occurs")


def earlier(right: bool) -> rasp.SOp:
    """Whether an even number of equal tokens comes before; the mistake counts the token itself: `<=` for `<`."""
    both = rasp.SelectorAnd(rasp.Select(T, T, EQ), rasp.Select(INDEX, INDEX, LT if right else LEQ))
    return rasp.Map(lambda n: n % 2 == 0, counted(both)).named("even")


MISTAKES = {
    "token table": Mistake("one cell of a table; the table writes the answer", token_table, "blocks.0.mlp.0"),
    "count table": Mistake(
        "one cell of a table of a count; the table writes the answer", count_table, "blocks.1.mlp.0"
    ),
    "pair table": Mistake("one cell of a table of two variables; it writes the answer", pair_table, "blocks.1.mlp.0"),
    "copied table": Mistake("one cell of a table; a head copies its value", copied_table, "blocks.0.mlp.0"),
    "selecting table": Mistake(
        "one cell of a table; a head selects by it, and counts", selecting_table, "blocks.0.mlp.0"
    ),
    "shift": Mistake("a head copies the token two before, not one", shift, "blocks.0.attn.0"),
    "partner": Mistake("two cells of a selector that is counted", partner, "blocks.0.attn.0"),
    "earlier": Mistake("`<=` for `<` in a selector that is counted", earlier, "blocks.0.attn.0"),
    "duplicate": Mistake(
        "the first duplicate, not the last: `<` for `>` in a selector that is counted",
        lambda right: duplicate(rasp.Comparison.GT if right else LT),
        "blocks.2.attn.0",
    ),
}


class Case:
    """A mistake at one gap: the two compiled models, all inputs and the right answers."""

    def __init__(self, mistake: Mistake, gap: float) -> None:
        self.mistake = mistake
        programs = (mistake.write(False), mistake.write(True))
        self.wrong, self.right = (tracr.compile(one, VOCAB, LENGTH, level=0, gap=gap) for one in programs)
        domains = [cast(Finite, model.outputs[0].domain).values for model in (self.wrong, self.right)]
        assert domains[0] == domains[1]  # a code means the same in both
        self.inputs = list(itertools.product(VOCAB, repeat=LENGTH))
        self.ids = self.wrong.encode(self.inputs)
        self.answers = np.asarray(self.right.codes(self.ids)[0])[:, 1:]

    def true_cells(self) -> set[Any]:
        """The cells in which the two compiled programs differ, as (part, table, key, new value)."""
        found = set()
        other = natural.read_back(self.right, dict(self.right.parameters.named()))
        for part in natural.read_back(self.wrong, dict(self.wrong.parameters.named())).parts:
            before = {(cell.table, cell.key): cell.before for cell in part.cells}
            after = {(cell.table, cell.key): cell.before for cell in other[part.name].cells}
            same = before.keys() & after.keys()
            found |= {(part.name, *where, after[where]) for where in same if before[where] != after[where]}
        return found

    def share(self, model: tracr.DesignedModel, rows: Any) -> float:
        """The share of inputs on which every answer is right."""
        return float((np.asarray(model.codes(self.ids[rows])[0])[:, 1:] == self.answers[rows]).all(axis=1).mean())


def halves(case: Case, seed: int) -> tuple[Any, Any]:
    """The numbers of the inputs for training, and of those held out."""
    order = np.random.default_rng(seed).permutation(len(case.inputs))
    return order[: len(order) // 2], order[len(order) // 2 :]


def trained(case: Case, masks: list[Mask], seeds: range, steps: int, rate: float) -> dict[str, Any]:
    """The weights [mask, seed, ...] after training only the entries of each mask; all runs together."""
    apply, start = case.wrong.to_jax(check=False)
    ids, answers, adam = jnp.asarray(case.ids), jnp.asarray(case.answers), optax.adam(rate)

    def loss(weights: Any, rows: Any) -> Any:
        logits = SCALE * apply(weights, ids[rows])[:, 1:]
        return optax.softmax_cross_entropy_with_integer_labels(logits, answers[rows]).mean()

    def run(mask: Any, draws: Any) -> Any:
        def step(state: Any, rows: Any) -> Any:
            weights, moments = state
            updates, moments = adam.update(jax.grad(loss)(weights, rows), moments)
            return (optax.apply_updates(weights, jax.tree.map(jnp.multiply, updates, mask)), moments), None

        return jax.lax.scan(step, (start, adam.init(start)), draws)[0][0]

    draws = [np.random.default_rng(seed).choice(halves(case, seed)[0], (steps, BATCH)) for seed in seeds]
    whole = [{key: one.get(key, np.zeros(array.shape, dtype=bool)) for key, array in start.items()} for one in masks]
    stacked = {key: jnp.asarray(np.stack([one[key] for one in whole]), dtype=jnp.float32) for key in start}
    every = jax.vmap(jax.vmap(run, in_axes=(None, 0)), in_axes=(0, None))
    return {key: np.asarray(array) for key, array in jax.jit(every)(stacked, jnp.asarray(np.stack(draws))).items()}


def judged(case: Case, weights: dict[str, Any], seed: int, true: set[Any]) -> dict[str, Any]:
    """What one trained model shows, on the inputs that were held out."""
    held, mistaken = halves(case, seed)[1], case.mistake.part
    read = natural.read_back(case.wrong, weights, case.inputs)
    found = {(part.name, cell.table, cell.key, cell.after) for part in read.parts for cell in part.changed}
    mine = {cell for cell in found if cell[0] == mistaken}
    return {
        "before": case.share(case.wrong, held),
        "after": case.share(case.wrong.with_weights(weights), held),
        "after_with_the_mistaken_part_only": case.share(read.only(mistaken), held),
        "true_cells": len(true),
        "found_cells": len(found & true),
        "other_cells_of_the_mistaken_part": len(mine - true),
        "cells_of_other_parts": len(found - mine),
        "undecided_cells": sum(len(cell[3]) > 1 for cell in found),
    }


class Training(NamedTuple):
    """What is trained (all weights together, or each head and group of neurons alone), and how."""

    alone: bool
    rate: float
    steps: int


TRAININGS = (Training(False, 1e-3, 600), Training(False, 1e-2, 300), Training(True, 1e-2, 300))


def rows_of(name: str, gap: float, how: Training, seeds: range) -> Iterator[dict[str, Any]]:
    """The rows of one mistake at one gap, trained in one way."""
    case, began = Case(MISTAKES[name], gap), time.time()
    true, zero = case.true_cells(), natural.gradients(case.wrong, case.inputs).zero
    masks: dict[str, Mask] = {"all": {key: np.ones(mask.shape, dtype=bool) for key, mask in zero.items()}}
    if how.alone:
        masks = {part: mask for part, mask in owned_weights(case.wrong).items() if part[-1].isdigit()}
    weights = trained(case, list(masks.values()), seeds, how.steps, how.rate)
    for (number, part), seed in itertools.product(enumerate(masks), seeds):
        entries = sum(int(mask.sum()) for mask in masks[part].values())
        without = sum(int((zero[key] & mask).sum()) for key, mask in masks[part].items())
        row = {"mistake": name, "gap": gap, "trained": part, "rate": how.rate, "steps": how.steps, "seed": seed}
        row |= {"mistaken_part": case.mistake.part, "without_gradient": round(without / entries, 4)}
        yield row | judged(case, {key: array[number, seed] for key, array in weights.items()}, seed, true)
    print(f"{name}, gap {gap:g}: {time.time() - began:.0f} s", flush=True)


def exact(row: dict[str, Any]) -> bool:
    """Whether the changed cells are the mistake's, and no others."""
    others = row["other_cells_of_the_mistaken_part"] + row["cells_of_other_parts"]
    return bool(row["found_cells"] == row["true_cells"] and not others)


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each mistake, gap and trained part: the numbers of seeds, with exact 95 % intervals."""
    lines = ["mistake | gap | trained | rate | no gradient | repaired | by the mistaken part only | cells exact"]
    groups = itertools.groupby(rows, lambda row: tuple(row[key] for key in ("mistake", "gap", "trained", "rate")))
    for (name, gap, trained_part, rate), group in groups:
        some = list(group)
        mark = " (mistaken)" if trained_part == some[0]["mistaken_part"] else ""
        only = [row["after_with_the_mistaken_part_only"] == 1 for row in some]
        counts = ([row["after"] == 1 for row in some], only, list(map(exact, some)))
        shown = " | ".join(seeds_with(one) for one in counts)
        dead = f"{some[0]['without_gradient']:.0%}"
        lines.append(f"{name} | {gap:g} | {trained_part}{mark} | {rate:g} | {dead} | {shown}")
    return "\n".join(lines)


def seeds_with(hits: list[bool]) -> str:
    """The number of hits with its interval."""
    low, high = Rate(sum(hits), len(hits)).interval
    return f"{sum(hits)} of {len(hits)} [{low:.0%}, {high:.0%}]"


def main() -> None:
    """Train, judge and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--mistakes", nargs="+", choices=MISTAKES, default=list(MISTAKES))
    parser.add_argument("--gaps", type=float, nargs="+", default=[20.0, 256.0])
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # at most one token is a duplicate's first or last: the compiler assumes it
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["mistake"], row["gap"], Training(row["trained"] != "all", row["rate"], row["steps"])) for row in rows}
    for name, gap, how in itertools.product(given.mistakes, given.gaps, TRAININGS):
        if (name, gap, how) not in done:
            rows.extend(rows_of(name, gap, how, range(given.seeds)))
            rows.sort(key=lambda row: (list(MISTAKES).index(row["mistake"]), row["gap"], row["trained"], row["rate"]))
            lines = ",\n".join(map(json.dumps, rows))
            write_file(given.out, f"[\n{lines}\n]\n".encode())
    print(table(rows))


if __name__ == "__main__":
    main()
