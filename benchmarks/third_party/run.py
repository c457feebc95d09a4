"""Runs the programs of other projects, from checkouts in a folder; README.md here says which.

python benchmarks/third_party/run.py FOLDER [--level 1] [--inputs 100] [--list]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import in_the_zoo
import interpbench
import rasp_language
import sampled_programs
import tracrbench
from examining import Given, Outcome, counted, examine

PROJECTS = (interpbench, sampled_programs, tracrbench, rasp_language)


def collections(folder: Path, samples: int, letters: str) -> Iterator[tuple[str, Iterator[Given]]]:
    """The projects found in the folder, or in folders in it, each with its programs."""
    for place in [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]:
        if interpbench.recognised(place):
            yield f"{interpbench.NAME} ({place})", interpbench.programs(place)
        if sampled_programs.recognised(place):
            yield f"{sampled_programs.NAME} ({place})", sampled_programs.programs(place, samples)
        if tracrbench.recognised(place):
            yield f"{tracrbench.NAME} ({place})", tracrbench.programs(place)
        if rasp_language.recognised(place):
            yield f"{rasp_language.NAME} ({place})", rasp_language.programs(place, letters)


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The options, read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", type=int, default=1, choices=[0, 1, 2])
    parser.add_argument("--inputs", type=int, default=100, help="random inputs for each program")
    parser.add_argument("--samples", type=int, default=100, help="programs to draw with decompile-tracr's sampler")
    parser.add_argument("--letters", default="abc", help="the vocabulary of RASP's programs")
    parser.add_argument("--most", type=int, help="at most so many programs of each project")
    parser.add_argument("--seconds", type=int, default=60, help="at most so long for each program")
    parser.add_argument("--list", action="store_true", help="also print the programs that are not right, with reasons")
    given = parser.parse_args(words)
    if not given.folder.is_dir():
        parser.error(f"there is no folder {given.folder}")
    return given


def main(words: list[str] | None = None) -> int:
    """Print the counts; 1 if a model is wrong or a case not what the zoo says of its number, 2 if none was found."""
    given = arguments(words)
    wrong = found = 0
    for name, programs in collections(given.folder, given.samples, given.letters):
        chosen = list(islice(programs, given.most))
        outcomes = [examine(one, given.level, given.inputs, given.seconds) for one in chosen]
        found += 1
        wrong += sum(outcome.kind == "wrong" for outcome in outcomes)
        _tell(name, outcomes, given.list)
        if name.startswith(interpbench.NAME):
            wrong += _tell_of_the_zoo(in_the_zoo.compared(chosen, given.inputs))
    if not found:
        names = ", ".join(project.NAME for project in PROJECTS)
        print(f"no checkout of {names} in {given.folder}; README.md says how they are recognised", file=sys.stderr)
        return 2
    return 1 if wrong else 0


def _tell_of_the_zoo(outcomes: list[Outcome]) -> int:
    """Print how many cases have the answers of the zoo's programs of their numbers; how many have not."""
    different = [outcome for outcome in outcomes if outcome.kind == "different"]
    right = sum(outcome.kind == "right" for outcome in outcomes)
    print(f"  {len(outcomes)} are in the zoo by their numbers: {right} with the same answers", flush=True)
    for outcome in outcomes:
        if outcome.kind != "right":
            print(f"  {outcome.name}: {outcome.kind}: {outcome.detail}")
    return len(different)


def _tell(name: str, outcomes: list[Outcome], listed: bool) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in counted(outcomes).items())
    print(f"{name}: {len(outcomes)} programs: {counts or 'none'}", flush=True)
    for outcome in outcomes:
        if outcome.kind == "wrong" or (listed and outcome.kind != "right"):
            print(f"  {outcome.name}: {outcome.kind}: {outcome.detail}")


if __name__ == "__main__":
    sys.exit(main())
