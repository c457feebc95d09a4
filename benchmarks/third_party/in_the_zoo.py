"""Whether InterpBench's cases have the answers of the zoo's programs of the same numbers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

from examining import Given, Outcome

from tracr import zoo
from tracr.nearness import ANSWER, same_value
from tracr.rasp.interpreter import evaluate
from tracr.zoo.aliases import SAME_CASES


def compared(cases: Iterable[Given], inputs: int) -> list[Outcome]:
    """Each case that the zoo knows by its number: "right" if it answers as the zoo's program, on the zoo's inputs."""
    numbered = [(int(re.sub(r"\D", "", one.name) or 0), one) for one in cases]
    return [_compared(one, zoo.get(SAME_CASES[number]), inputs) for number, one in numbered if number in SAME_CASES]


def _compared(case: Given, entry: zoo.Entry, inputs: int) -> Outcome:
    rng = random.Random(case.name)
    drawn = [rng.choices(entry.vocab, k=rng.randint(1, entry.max_seq_len)) for _ in range(inputs)]
    name = f"{case.name} as zoo:{entry.name}"
    try:
        program = case.build()
        for tokens in filter(entry.inputs.holds, [[*entry.shown], *drawn]):
            answer, right = evaluate(program, tokens, causal=entry.causal), entry.reference(tokens)
            if not all(same_value(x, y, ANSWER) for x, y in zip(answer, right, strict=True)):
                return Outcome(name, "different", f"{tokens}: {answer}, in the zoo {right}")
    except (Exception, SystemExit) as error:  # the project's own code may raise anything
        return Outcome(name, "not built", f"{type(error).__name__}: {error}")
    return Outcome(name, "right")
