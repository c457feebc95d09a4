"""Compares the built-in scheduling with the solver's and with earliest placement (needs the extra `opt`).

    python benchmarks/scheduling.py [--programs 300] [--seconds 10]

First the library at level 2: layers, and the peak of live directions with earliest placement, with the heuristic, with
the solver, and a lower bound for every schedule. Then random programs, and random circuits with many possible
schedules: how often the solver found a narrower stream, or an equally narrow one with fewer or smaller heads; how often
it proved its schedule optimal; and how much longer it took, as a ratio of processor times.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tqdm import tqdm

import tracr
from tracr.compiler.layers.narrow import narrowest
from tracr.compiler.layers.placing import Cost, Placing, placing_of
from tracr.compiler.optimal.random_circuit import random_circuit
from tracr.compiler.optimal.solve import best_times
from tracr.ir.circuit import Circuit
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program

T = TypeVar("T")
SUITE = {
    **{name: (example.program, example.vocab, example.max_seq_len) for name, example in programs.EXAMPLES.items()},
    "shuffle_dyck2 (4,5)": (programs.make_shuffle_dyck(["()", "{}"]), "(){}", 5),
    "shuffle_dyck3 (6,6)": (programs.make_shuffle_dyck(["()", "{}", "[]"]), "(){}[]", 6),
}


@dataclass(frozen=True)
class Result:
    """One circuit, scheduled in three ways."""

    placing: Placing
    earliest: Cost
    heuristic: Cost
    solved: Cost
    optimal: bool
    fewest: int
    slower: float


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """The result of a function and its processor time."""
    start = time.process_time()
    value = function()
    return value, time.process_time() - start


def compare(circuit: Circuit, seconds: float) -> Result:
    """Schedule a circuit."""
    placing = placing_of(circuit)
    times, quick = timed(lambda: narrowest(placing))
    solution, slow = timed(lambda: best_times(placing, seconds))
    costs = placing.cost(placing.first), placing.cost(times), placing.cost(solution.times)
    return Result(placing, *costs, solution.optimal, solution.fewest, slow / quick)


def random_circuits(count: int) -> Iterator[Circuit]:
    """The circuits of random programs that compile and have several schedules."""
    seed = 0
    while count:
        seed += 1
        program = random_program(
            seed, max_ops=10 + seed % 50, vocab=("a", "b", "c"), max_seq_len=4, composite=seed % 2 == 0
        )
        try:
            circuit = tracr.compile(program, "abc", 4, level=2).circuit
        except tracr.CompileError:
            continue
        placing = placing_of(circuit)
        if placing.first != placing.last:
            count -= 1
            yield circuit


def summary(name: str, results: Iterable[Result]) -> None:
    """Print the comparison of the three over many circuits."""
    found = list(results)
    wider = [one.heuristic[0] / one.solved[0] for one in found if one.solved[0] < one.heuristic[0]]
    heads = sum(one.solved[0] == one.heuristic[0] and one.solved[1:3] < one.heuristic[1:3] for one in found)
    print(f"\n{name}: {len(found)}, of {min(len(one.placing.first) for one in found)} to "
          f"{max(len(one.placing.first) for one in found)} components")  # fmt: skip
    saved = statistics.mean(1 - one.heuristic[0] / one.earliest[0] for one in found)
    print(f"  the heuristic's stream is on average {saved:.1%} narrower than that of earliest placement")
    print(f"  the solver's is narrower still in {len(wider)}, by up to {1 - 1 / max(wider, default=1):.1%}")
    print(f"  as narrow with fewer or smaller heads in {heads}")
    print(f"  proven optimal in {sum(one.optimal for one in found)}")
    print(f"  the solver takes {statistics.median(one.slower for one in found):.0f}x the time (median)")


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore", tracr.TracrWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=300, help="how many random programs, and random circuits")
    parser.add_argument("--seconds", type=float, default=10.0, help="the solver's limit for each")
    asked = parser.parse_args()
    print("| program | layers | earliest | heuristic | solver | no schedule below | heads × d_head | solver |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (program, vocab, length) in SUITE.items():
        one = compare(tracr.compile(program, vocab, length, level=2).circuit, asked.seconds)
        status = "optimal" if one.optimal else "limit reached"
        cells = (one.placing.depth, one.earliest[0], one.heuristic[0], one.solved[0], one.fewest)
        print(f"| {name} | {' | '.join(map(str, cells))} | {one.heuristic[2]}, {one.solved[2]} | {status} |")
    progress = {"total": asked.programs, "leave": False}
    summary(
        "random programs with something to choose",
        (compare(one, asked.seconds) for one in tqdm(random_circuits(asked.programs), **progress)),
    )
    typed = tracr.compile(programs.make_reverse(rasp.tokens), "ab", 2).program
    circuits = (random_circuit(n, 10 + n % 50, typed) for n in tqdm(range(asked.programs), **progress))
    summary("random circuits", (compare(circuit, asked.seconds) for circuit in circuits))


if __name__ == "__main__":
    main()
