"""The realisations of a case: models that compute its program by its mechanism, each made from the compiled model."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr import zoo
from tracr.arguments import text, whole
from tracr.errors import InternalError, TracrError, UnknownName
from tracr.spelling import did_you_mean

if TYPE_CHECKING:
    from tracr.lab.one_case import Case
    from tracr.model.compiled import CompiledModel

__all__ = ["COMPILING", "REALISATIONS", "TWIN_SHAPE", "Realisation", "compiled_base", "realisation_of"]

COMPILING = ("level", "gap")
"""Dials of every realisation: options of the compiler for the model that it is made from."""
TWIN_SHAPE = {"width": 64, "d_head": 16, "d_mlp": 128, "layer_norm": True, "activation": "gelu"}
MANY = 4_096  # inputs on which a second program must be defined
Make = Callable[["CompiledModel", "Case", int, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Realisation:
    """A way to make a model with a case's mechanism.

    Args:
        name: its name.
        says: what it is, in one line.
        make: makes it from the compiled model, the case, a seed and its own dials.
        dials: its own dials, with their defaults.
        seeded: whether it depends on the seed.
        trained: whether it is trained; then `make` also takes `checkpoint`, a folder to continue from, among the dials.
    """

    name: str
    says: str
    make: Make
    dials: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    trained: bool = False

    def own(self, dials: Mapping[str, Any]) -> dict[str, Any]:
        """Its own dials: those given, and the defaults of the others."""
        return {name: dials.get(name, default) for name, default in sorted(self.dials.items())}

    def check_dials(self, dials: Mapping[str, Any]) -> None:
        """Refuse a dial that it does not have."""
        known = (*COMPILING, *self.dials)
        for name in dials:
            if name not in known:
                hint = did_you_mean(name, known, f"there are {', '.join(known)}")
                raise UnknownName(f'the realisation "{self.name}" has no dial {name}', hint=hint)


def realisation_of(name: str) -> Realisation:
    """The realisation of a name."""
    if name not in REALISATIONS:
        hint = did_you_mean(str(name), REALISATIONS, f"there are {', '.join(REALISATIONS)}")
        raise UnknownName(f"there is no realisation {name!r}", hint=hint)
    return REALISATIONS[name]


def compiled_base(case: Case, dials: Mapping[str, Any]) -> CompiledModel:
    """The compiled model of a case at the dials `level` and `gap`."""
    given = {name: dials[name] for name in COMPILING if name in dials}
    if given.get("level", case.level) == case.level and "gap" not in given:
        return case.model
    return case.entry.load(**given)


def _superposed(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    return case.superposed(model, dials["ratio"], seed)


def _softened(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    from tracr.natural import soften

    return soften(model, **dials)


def _others(case: Case, seed: int) -> list[zoo.Entry]:
    """Other programs of the zoo with the case's mask, in a random order."""
    others = [entry for entry in zoo.entries() if entry.name != case.name and entry.causal == case.entry.causal]
    return [others[place] for place in _draws(case, seed).permutation(len(others)).tolist()]


def _draws(case: Case, seed: int) -> np.random.Generator:
    """Random numbers of a case and a seed."""
    return np.random.default_rng([seed, zlib.crc32(case.name.encode())])


def _first_made(tries: Iterable[Callable[[], Any]]) -> Any | None:
    """The first model that is not refused, or `None`."""
    for make in tries:
        try:
            return make()
        except InternalError:
            raise
        except TracrError:  # another vocabulary, a part of the program, not defined on all inputs, ...
            continue
    return None


def _with_decoys(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    """Programs of the zoo, in a random order, that can be made for the case's inputs and are no part of the program."""
    from tracr.natural import decoys

    count, others = whole("count", dials["count"], 1), _others(case, seed)
    added: list[Any] = []
    made: Any = None

    def with_one_more(entry: zoo.Entry) -> Any:
        tried = [*added, entry.made_for(case.vocab, case.length).program]
        found = decoys(model, tried)
        added.append(tried[-1])
        return found

    for entry in others if count <= len(others) else ():
        made = _first_made([partial(with_one_more, entry)]) or made
        if len(added) == count:
            return made
    raise TracrError(
        f"the zoo does not have {count} programs that can be decoys in {case.name}",
        hint="use a smaller count or another case",
    )


def _two_programs(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    """The case's program and another of the zoo in one model; the case's output is the first."""
    others = _others(case, seed) if dials["other"] is None else [zoo.get(text("other", dials["other"]))]
    made = _first_made(partial(_compiled_with, model, case, entry) for entry in others)
    if made is None:
        raise TracrError(
            f"{dials['other'] or 'no other program of the zoo'} can be compiled together with {case.name}",
            hint="use another case; the programs must be defined on the same inputs",
        )
    return made


def _compiled_with(model: CompiledModel, case: Case, entry: zoo.Entry) -> CompiledModel:
    from tracr.compiler.pipeline import compile_program
    from tracr.model.compiled import CompiledModel
    from tracr.runtime.table_interpreter import evaluate_batch

    other = entry.made_for(case.vocab, case.length)
    outputs = {case.name: case.entry.program, other.name: other.program}
    made = CompiledModel(compile_program(outputs, model.options), model.source)
    (_, first), (_, second) = made.program.outputs
    fits = first != second and made.program.lengths == model.program.lengths
    if not fits or evaluate_batch(made.program, case.inputs(MANY)).errors.any():
        raise TracrError(
            f"{other.name} has other inputs than {case.name}, or is the same program",
            hint="name another program: other=",
        )
    return made


def _with_backup(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    """A variable of the program, in a random order the first that can have one, is computed twice."""
    from tracr.natural import backup

    if dials["variable"] is not None:
        return backup(model, text("variable", dials["variable"]))
    labels = [node.label for node in model.program.sops.values()]
    order = _draws(case, seed).permutation(len(labels)).tolist()
    made = _first_made(partial(backup, model, labels[place]) for place in order)
    if made is None:
        raise TracrError(
            f"no variable of {case.name} can have a backup: none is one-hot and computed by a head or an MLP",
            hint="use another case",
        )
    return made


def _learned(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    from tracr.natural import learned_parts

    return learned_parts(model, seed=seed, **dials)


def _twin(model: CompiledModel, case: Case, seed: int, dials: Mapping[str, Any]) -> Any:
    from tracr.natural import twin

    return twin(model, seed=seed, **dials)


REALISATIONS: Mapping[str, Realisation] = MappingProxyType(
    {
        one.name: one
        for one in (
            Realisation("compiled", "the compiled model", lambda model, *_: model, seeded=False),
            Realisation("rotated", "its residual stream rotated", lambda model, case, seed, _: model.rotated(seed)),
            Realisation("layer_norm", "with layer norms", lambda model, *_: model.with_layer_norm(), seeded=False),
            Realisation(
                "noise",
                "noise on all weights; scale: its standard deviation, by default the largest that changes no answer",
                lambda model, case, seed, dials: model.with_noise(dials["scale"], seed),
                {"scale": None},
            ),
            Realisation(
                "superposed",
                "features in fewer dimensions; ratio: compiled per superposed dimension, by default the largest",
                _superposed,
                {"ratio": None},
            ),
            Realisation(
                "softened",
                "soft attention, slopes in place of steps",
                _softened,
                {"error": 0.25, "budget": 20_000},
                seeded=False,
            ),
            Realisation(
                "decoys",
                "also computes variables that no output reads; count: their number",
                _with_decoys,
                {"count": 1},
            ),
            Realisation(
                "two_programs",
                "also computes another program, as a second output; other: its name, by default a random one",
                _two_programs,
                {"other": None},
            ),
            Realisation(
                "backup",
                "computes a variable twice, and reads the second if the first is 0; variable: by default a random one",
                _with_backup,
                {"variable": None},
            ),
            Realisation(
                "learned",
                "every head and MLP trained alone, then assembled (seconds to a minute; needs JAX)",
                _learned,
                {"noise": 0.02, "steps": 2_000, "rotated": False, "superposed": False},
            ),
            Realisation(
                "twin",
                "a standard transformer, trained to have the mechanism (minutes; needs JAX)",
                _twin,
                {**TWIN_SHAPE, "steps": 20_000, "batch": 512, "start": "random", "hint": 1.0, "spare": 0.0},
                trained=True,
            ),
        )
    }
)
"""All realisations by name."""
