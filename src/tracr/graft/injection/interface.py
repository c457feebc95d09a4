"""How the host's tokens ask the program, and how its answers become tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import whole
from tracr.errors import TracrError
from tracr.graft.injection.host import GPT2Host
from tracr.ir.domains import Finite
from tracr.ir.program import Tables
from tracr.values import Value, as_value, short_repr

__all__ = ["Interface", "checked_interface"]


@dataclass(frozen=True, eq=False)
class Interface:
    """The program's token for each of the host's tokens, where it answers, and the token of each answer."""

    tokens: Mapping[int, Value]
    other: Value
    trigger: tuple[int, ...]
    answers: Mapping[Any, int]
    bos: int
    words: int

    def values(self, ids: Iterable[int]) -> list[Value]:
        """The program's input for tokens of the host (without BOS)."""
        return [self.tokens.get(int(one), self.other) for one in ids]

    @property
    def vocab(self) -> list[Value]:
        """The program's tokens."""
        return list(dict.fromkeys([*self.tokens.values(), self.other]))

    def asked(self, ids: NDArray[Any], longest: int) -> NDArray[np.bool_]:
        """The positions where the circuit may answer: triggers, up to the longest input of the program."""
        places = np.arange(ids.shape[-1])
        return np.isin(ids, self.trigger) & (places > 0) & (places <= longest)


def checked_interface(
    host: GPT2Host,
    tokens: Mapping[int, Value],
    other: Value,
    trigger: int | Iterable[int],
    answers: Mapping[Any, int],
    bos: int | None,
) -> Interface:
    """The interface, or an error that says what is wrong with it."""
    for name, given in (("tokens", tokens), ("answers", answers)):
        if not isinstance(given, Mapping) or not given:
            raise TracrError(f"{name} must be a mapping with entries, not {short_repr(given)}", hint=HINTS[name])
    most = host.words - 1
    first = bos if bos is not None else host.config.get("bos_token_id")
    start = whole("bos", first, most=most)
    triggers = tuple(trigger) if isinstance(trigger, Iterable) else (trigger,)
    found = Interface(
        {whole("a token", one, most=most): as_value(value, where="a token") for one, value in tokens.items()},
        as_value(other, where="other"),
        tuple(whole("trigger", one, most=most) for one in triggers),
        {value: whole("the token of an answer", one, most=most) for value, one in answers.items()},
        start,
        host.words,
    )
    if not found.trigger:
        raise TracrError("trigger is empty: the circuit would never answer", hint=HINTS["trigger"])
    if start in found.tokens or start in found.trigger:
        raise TracrError(
            f"token {start} is BOS, the first token of every input, which is no token of the program",
            hint="leave it out of tokens and trigger, or name another one with bos=",
        )
    return found


HINTS = {
    "tokens": 'map ids of the host to tokens of the program: tokens={40: "(", 41: ")"}',
    "answers": "map values of the program to ids of the host: answers={True: 121, False: 110}",
    "trigger": "name the token after which the circuit answers: trigger=2",
}


def check_program(program: Tables, interface: Interface) -> None:
    """Refuse a program whose vocabulary or answers do not fit."""
    vocab = program.options.vocab
    strange = [value for value in interface.vocab if value not in vocab]
    if strange:
        raise TracrError(
            f"the program has no token {short_repr(strange[0])}: its vocabulary is {short_repr(list(vocab))}",
            hint="map the host's tokens to tokens of the program, and name one of them with other=",
        )
    domain = program.sops[program.outputs[0][1]].domain
    if isinstance(domain, Finite) and not any(value in domain.index for value in interface.answers):
        raise TracrError(
            f"no answer is a value of the program, which are {domain}", hint="give each value of the program its token"
        )
