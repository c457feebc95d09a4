"""`inject`: adds the circuit of a program to a trained language model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracr.arguments import number, whole
from tracr.errors import TracrError
from tracr.graft.injection.building import build
from tracr.graft.injection.freeing import free_places
from tracr.graft.injection.host import GPT2Host, read_host
from tracr.graft.injection.injected import Injected
from tracr.graft.injection.interface import Interface, check_program, checked_interface
from tracr.graft.injection.measuring import as_ids
from tracr.graft.injection.planning import plan
from tracr.graft.injection.precision import refuse_rounding
from tracr.graft.injection.sizes import scales_of, sizes_of
from tracr.graft.injection.support import refuse_unsupported
from tracr.ir.program import Program
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile as compile_rasp
from tracr.rasp.expressions import SOp
from tracr.values import Value, short_repr

__all__ = ["inject"]

SCALE = 1e-3
TOLERANCE = 1e-3
ROUTES = ("added", "unused")


def inject(
    host: Any,
    program: SOp | CompiledModel,
    route: str = "added",
    *,
    tokens: Mapping[int, Value],
    other: Value,
    trigger: int | Iterable[int],
    answers: Mapping[Any, int],
    bos: int | None = None,
    max_seq_len: int | None = None,
    scale: float = SCALE,
    boost: float | None = None,
    data: object = None,
    tolerance: float = TOLERANCE,
) -> Injected:
    """Add the circuit of a program to a GPT-2, in added or unused heads and neurons (docs/injecting.md).

    Args:
        host: a `transformers.GPT2LMHeadModel`, or the folder of one. It is not changed.
        program: an s-op, or a model that was compiled from one with `causal=True`.
        route: "added": in added heads, neurons and dimensions. "unused": heads and neurons that the host does not need
            on `data` are taken first; what is missing, and all dimensions, are added.
        tokens: the program's token for some of the host's tokens (ids).
        other: the program's token for all other tokens of the host.
        trigger: the id, or ids, of the tokens at which the circuit answers; elsewhere it adds nothing to the logits.
        answers: the host's token for values of the program. For other values the circuit adds nothing.
        bos: the token that every input begins with; without it, the `bos_token_id` of the host's configuration.
        max_seq_len: the longest input of the program, BOS not counted; the circuit is silent at later positions.
            Without it, the host's longest input, or that of the compiled model.
        scale: the size of the circuit's dimensions, as a part of the host's: the smallest median σ of its layer norms.
            Larger circuits change the host more.
        boost: what an answer adds to its logit, for a typical σ. Without it, answers add so much that they win against
            any logits the host can have.
        data: for the route "unused", ids [input, position] on which the host's use of its components is measured.
        tolerance: by how many nats a position the host's next-token distribution may change on them, on average.
    """
    _check_route(route, data)
    size, gain = number("scale", scale, above=0), None if boost is None else number("boost", boost, above=0)
    found = read_host(host)
    interface = checked_interface(found, tokens, other, trigger, answers, bos)
    compiled = _compiled(found, program, interface, max_seq_len)
    refuse_unsupported(compiled)
    check_program(compiled, interface)
    circuit, freed = plan(compiled, interface), None
    if route == "unused":
        limit = number("tolerance", tolerance, above=0)
        freed = free_places(found, circuit, as_ids(data, interface, found), limit)
    centred = (found if freed is None else freed.host).centred()
    sizes = sizes_of(centred, circuit, freed)
    scales = scales_of(centred, circuit, sizes, size, interface.bos)
    refuse_rounding(centred, circuit, scales)
    built = build(centred, circuit, sizes, scales, interface.bos, gain)
    return Injected(found, built, compiled, interface, circuit, sizes, scales, freed)


def _check_route(route: str, data: object) -> None:
    if route not in ROUTES:
        raise TracrError(f"there is no route {short_repr(route)}", hint='write route="added" or route="unused"')
    if (route == "unused") != (data is not None):
        raise TracrError(
            "which heads and neurons the host does not use is measured on data, for the route unused alone",
            hint='give route="unused" and data=, typical inputs of the host, or neither',
        )


def _compiled(host: GPT2Host, program: object, interface: Interface, max_seq_len: int | None) -> Program:
    """The tabulated program, compiled if it is an s-op."""
    most = host.positions - 1
    if isinstance(program, CompiledModel):
        found = program.compilation.program
        own = found.options.max_seq_len
        if max_seq_len not in (None, own):
            raise TracrError(f"the model was compiled for max_seq_len={own}, not {max_seq_len}", hint="leave it out")
        if own > most:
            raise TracrError(
                f"the model was compiled for inputs of {own} tokens, and the host takes {most} after BOS",
                hint=f"compile it with max_seq_len={most} or less",
            )
        return found
    if not isinstance(program, SOp):
        raise TracrError(f"{short_repr(program)} is no program", hint="pass an s-op, or a compiled model")
    longest = most if max_seq_len is None else whole("max_seq_len", max_seq_len, 1, most=most)
    return compile_rasp(program, interface.vocab, longest, causal=True).compilation.program
