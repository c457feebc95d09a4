"""The embeddings of an injected circuit: the dimensions that each token and each position has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracr.graft.injection.circuit import BOS, CIRCLE, HERE, IN_RANGE, ONE, TRIGGER, Dim
from tracr.graft.injection.demands import Demands, resolved
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.scores import period_of
from tracr.graft.injection.steps import Dims
from tracr.ir.ops import IndicesOp, Positions, TokensOp
from tracr.ir.program import Tables

__all__ = ["CircuitEmbedding"]


@dataclass(frozen=True, eq=False)
class CircuitEmbedding:
    """A program with its stored variables; `codes` gives the dimension that is on for each code of one of them."""

    program: Tables
    interface: Interface
    demands: Demands
    codes: Callable[[int], Dims]

    def by_token(self) -> dict[int, Mapping[Dim, float]]:
        """The dimensions of every token of the host."""
        roots = {number: resolved(self.program, number) for number in self.demands.stored}
        own = [number for number, (root, _) in roots.items() if isinstance(self.program.sops[root].op, TokensOp)]
        index = {value: code for code, value in enumerate(self.program.options.vocab)}
        found: dict[int, Mapping[Dim, float]] = {self.interface.bos: {ONE: 1.0, BOS: 1.0}}
        for word in range(self.interface.words):
            if word != self.interface.bos:
                code = index[self.interface.tokens.get(word, self.interface.other)]
                dims: dict[Dim, float] = {}
                for number in own:
                    dims |= self.on(number, int(roots[number][1][code]))
                found[word] = dims | {ONE: 1.0, HERE: 1.0} | ({TRIGGER: 1.0} if word in self.interface.trigger else {})
        return found

    def on(self, number: int, code: int) -> dict[Dim, float]:
        """The dimension of a code; none if no input reaches it."""
        return {self.codes(number)(code): 1.0} if code >= 0 else {}

    def by_position(self) -> tuple[Mapping[Dim, float], ...]:
        """The dimensions of BOS and of every position of the program."""
        found: list[Mapping[Dim, float]] = [{}]
        for place in range(self.program.options.max_seq_len):
            dims: dict[Dim, float] = {IN_RANGE: 1.0}
            for number in self.demands.stored:
                root, table = resolved(self.program, number)
                op = self.program.sops[root].op
                if isinstance(op, IndicesOp | Positions):
                    code = int(op.table[place]) if isinstance(op, Positions) else place
                    dims |= self.on(number, int(table[code]))
            if self.demands.shifts:
                turn = 2 * math.pi * place / period_of(self.program, self.demands)
                dims |= {(CIRCLE, 0): math.cos(turn), (CIRCLE, 1): math.sin(turn)}
            found.append(dims)
        return tuple(found)
