"""Write a RASP program, compile it, run it, and check it against the interpreter on every short input.

The program marks the tokens that occur more often than the average token of the input.
"""

from __future__ import annotations

import argparse
from itertools import product

import tracr
from tracr.rasp import rasp

VOCAB, LONGEST = "abc", 5


def frequent() -> tracr.rasp.SOp:
    """Whether the token of each position occurs more often than the mean over all positions."""
    same_token = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ).named("same_token")
    count = rasp.SelectorWidth(same_token).named("count")
    everywhere = rasp.Select(1, 1, rasp.Comparison.EQ).named("everywhere")
    mean_count = rasp.Aggregate(everywhere, count, default=0).named("mean_count")
    return rasp.SequenceMap(lambda own, mean: own > mean, count, mean_count).named("frequent")


def main() -> None:
    """Compile, run, compare."""
    program = frequent()
    model = tracr.compile(program, VOCAB, LONGEST)
    print(model)
    print(model.show("schedule"))

    for xs in ("aab", "abc", "cabac"):
        print(f"{xs:6} ->", " ".join(token.upper() if yes else token for token, yes in zip(xs, model(xs), strict=True)))

    inputs = [list(xs) for n in range(LONGEST + 1) for xs in product(VOCAB, repeat=n)]
    wrong = [xs for xs, got in zip(inputs, model(inputs), strict=True) if got != program(xs)]
    print(f"model and interpreter disagree on {len(wrong)} of {len(inputs)} inputs")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
