"""One program for every class of expression: what a new primitive must have, and what all of them are tested with."""

from __future__ import annotations

import operator

from tracr.rasp import rasp

VOCAB, LONGEST = (1, 2, 3), 3
TWICE = rasp.Map(operator.neg, rasp.tokens)
EARLIER = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
SAME = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)

SAMPLES: dict[type[rasp.RASPExpr], rasp.SOp] = {
    rasp.Tokens: rasp.tokens,
    rasp.Indices: rasp.indices,
    rasp.Length: rasp.length,
    rasp.Full: rasp.Full(7) + rasp.tokens,
    rasp.ConstantSOp: rasp.ConstantSOp([4, 5, 4], check_length=False),
    rasp.Map: TWICE,
    rasp.SequenceMap: rasp.tokens * rasp.indices,
    rasp.LinearSequenceMap: rasp.LinearSequenceMap(rasp.tokens, rasp.length, 2, -1),
    rasp.Select: rasp.Aggregate(EARLIER, rasp.tokens, 0),
    rasp.ConstantSelector: rasp.SelectorWidth(
        rasp.ConstantSelector([[True, False, True], [False, True, True], [True] * 3], False)
    ),
    rasp.SelectorAnd: rasp.SelectorWidth(EARLIER & SAME),
    rasp.SelectorOr: rasp.SelectorWidth(EARLIER | SAME),
    rasp.SelectorNot: rasp.SelectorWidth(~SAME),
    rasp.Aggregate: rasp.Aggregate(SAME, rasp.indices, 0),
    rasp.SelectorWidth: rasp.SelectorWidth(SAME),
}
"""By class a program that has an expression of it; its inputs are up to LONGEST tokens of VOCAB."""
