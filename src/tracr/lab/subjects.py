"""Subjects: a realisation of a case, with the truth about its edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracr.arguments import text, whole
from tracr.compress import CompressedModel
from tracr.errors import InputError, NotAdmitted, TracrError
from tracr.ground_truth.ablations import Ablation
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.edge_keys import as_text
from tracr.ground_truth.input_pairs import TokenPair
from tracr.ground_truth.pair_truth import PairTruth
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.acceptable import acceptable_circuits
from tracr.lab.methods import MethodData, exact_patching
from tracr.lab.methods.data import answers_differ
from tracr.lab.one_case import Case
from tracr.lab.output_truth import OutputTruth
from tracr.lab.realising import TWIN_SHAPE, Realisation, compiled_base, realisation_of
from tracr.lab.selecting import named_case
from tracr.lab.subject_cache import VARIABLE, SubjectCache, key_of, weights_digest
from tracr.lab.twin_folder import TwinFolder, require_teacher
from tracr.natural.twin_model import TwinModel

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.runtime.outputs import Output
    from tracr.values import Value

__all__ = ["PAIRS", "Subject", "keep_twin", "subject"]

PAIRS = 64  # pairs of `Subject.truth`
FORMAT = 2  # of the recipes in caches


@dataclass(frozen=True, eq=False)
class Subject:
    """A model in which a method looks for the circuit of a case.

    Args:
        case: the case.
        realisation: the name of the way in which the model was made (`tracr.lab.REALISATIONS`).
        seed: the seed that it was made with.
        dials: the settings of the realisation that differ from its defaults.
        model: the model.
    """

    case: Case
    realisation: str
    seed: int
    dials: Mapping[str, Any]
    model: Any = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """A digest of the model's weights."""
        return weights_digest(self.model.parameters)

    @property
    def admitted(self) -> bool:
        """Whether the mechanism is known: for a twin, whether it was admitted; true for all others."""
        return self.model.admitted if isinstance(self.model, TwinModel) else True

    @property
    def candidates(self) -> tuple[EdgeKey, ...]:
        """All edges (writer, reader input) that the model allows: those that a method gives numbers to."""
        found: tuple[EdgeKey, ...] = self._known.candidates()
        return found

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that the case asks for: all, or the first of two programs."""
        found: tuple[Output, ...] = self.model.outputs
        return found[:1] if self.realisation == "two_programs" else found

    def answer(self, tokens: Sequence[Value]) -> list[Value]:
        """The model's answer to an input of the case."""
        found = self.model(list(tokens))
        return list(found[self.outputs[0].name] if isinstance(found, dict) else found)

    @cached_property
    def _known(self) -> Any:
        """The ground truth that holds for the model: for a superposed model, the compiled one's."""
        if isinstance(self.model, CompressedModel):
            return self.model.compiled.ground_truth
        if self.realisation == "two_programs":
            return OutputTruth(self.model.ground_truth, self.outputs[0])
        return self.model.ground_truth

    @cached_property
    def truth(self) -> PairTruth:
        """The truth for 64 pairs of the case, drawn with the subject's seed."""
        return self.minimal(self.case.pairs(PAIRS, self.seed))

    def minimal(
        self, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = "qkv"
    ) -> PairTruth:
        """The edges needed alone, needed jointly and inert on given pairs, as `ground_truth.minimal` gives them.

        For a compiled model, a variant, a softened or a learned model, this is measured on the model itself; with two
        programs, on the answers of the case's output. For a twin it is its teacher's; a twin that was not admitted is
        refused (`NotAdmitted`). For a superposed model it is that of the compiled model. Superposition and noise may
        change answers, or which edges matter; both are measured on the pairs, and a `TracrError` refuses such a model.
        """
        pairs = list(pairs)
        if isinstance(self.model, CompressedModel) and ablation != "resample":
            raise TracrError(
                f"the truth of a superposed model is not known under the ablation {ablation!r}",
                hint='use "resample", or another realisation',
            )
        if not self.admitted:
            missed = self.model.admission.missed
            raise NotAdmitted(
                f"the twin of {self.case.name} with seed {self.seed} was not admitted: its truth is not known "
                f"({len(missed)} of {len(self.model.admission.sites)} nodes and edges missed)",
                hint="use another seed, or train it for longer",
            )
        changed = self.realisation in ("noise", "superposed")
        try:
            truth: PairTruth = self._known.minimal(pairs=pairs, ablation=ablation, granularity=granularity)
        except InputError:
            if changed:  # wrong answers may be the reason
                self._check_answers(MethodData.of(pairs))
            raise
        if changed:
            self._check_answers(MethodData.of(truth.pairs))
            self._check_edges(MethodData.of(truth.pairs))
        return truth

    def acceptable(
        self, pairs: Iterable[TokenPair], ablation: Ablation = "resample", granularity: Granularity = "qkv"
    ) -> tuple[frozenset[EdgeKey], ...]:
        """Sets of edges of which each is enough on the pairs: with all other edges ablated no answer changes.

        The edges of `minimal` that are needed, alone or jointly, are such a set. In a model with a backup there are two
        under the ablation "zero": without the backup, and without the first computation. A resampled code is valid, so
        that nothing acts in its place: then there is one.
        """
        if isinstance(self.model, CompressedModel | TwinModel):
            raise TracrError(
                f"which circuits of a {self.realisation} model are enough is not known: edges were patched one by one",
                hint="use the compiled model of the case",
            )
        truth = self.minimal(pairs, ablation, granularity)
        needed = frozenset({*truth.alone, *truth.jointly})
        if self.realisation != "backup" or ablation != "zero":
            return (needed,)
        return acceptable_circuits(self.model, needed, [list(clean) for clean, _ in truth.pairs], granularity)

    def _check_answers(self, data: MethodData) -> None:
        """Refuse a model with wrong answers on the pairs."""
        base = compiled_base(self.case, self.dials)
        clean, _, token = data.ids(base.vocabulary)
        if (answers_differ(base.outputs, base.logits(clean), self.model.logits(clean)) & token).any():
            raise TracrError(
                f"the {self.realisation} model of {self.case.name} does not compute its program",
                hint="use another seed or other dials, such as less noise",
            )

    def _check_edges(self, data: MethodData) -> None:
        """Refuse a model in which patching an edge has another effect than in the compiled model.

        With noise every reader reads every writer a little: edges that the program does not have must not matter. In a
        superposed model features share dimensions: the edges that matter must be those of the compiled model.
        """
        here = exact_patching(self.model, data)
        if self.realisation == "noise":
            wrong = [key for key in self.model.ground_truth.split("qkv")[1] if here[key] > 0]
        else:
            there = exact_patching(compiled_base(self.case, self.dials), data)
            wrong = [key for key, share in here.items() if (share > 0) != (there[key] > 0)]
        if wrong:
            raise TracrError(
                f"patching {as_text(wrong[0])} has another effect on the {self.realisation} model of {self.case.name} "
                f"than on the compiled one (one of {len(wrong)} such edges), so that its truth is not known",
                hint="use another seed or other dials",
            )


def subject(
    case: Case | str,
    realisation: str = "compiled",
    *,
    seed: int = 0,
    cache: str | Path | None = None,
    twins: str | Path | None = None,
    **dials: Any,
) -> Subject:
    """A realisation of a case.

    Args:
        case: a case, or the name of a program of the zoo.
        realisation: a name in `REALISATIONS`: "compiled", "rotated", "superposed", "twin", ...
        seed: the seed of the realisation.
        cache: a folder in which subjects are kept, so that they are made once. By default the folder in the environment
            variable TRACR_CACHE; without it nothing is kept.
        twins: a folder of trained twins (`twin_folder.py`): a twin is taken from there, and never trained. By default
            the folder in the environment variable TRACR_TWINS.
        dials: `level` and `gap`, options of the compiler for the model that the realisation is made from, and the
            realisation's own dials: docs/lab.md lists them.

    A realisation that the case does not allow raises a `TracrError`. Without a folder of twins, a twin is trained if it
    is not in the cache. One that was not admitted is returned too, but its truth is refused.

    >>> found = subject("hist", "rotated", seed=1)
    >>> found.realisation, found.truth
    ('rotated', PairTruth(4 edges needed alone, 0 jointly, 4 inert; resample ablation, 64 pairs, granularity qkv))
    """
    made = _Recipe.of(case, realisation, seed, dials)
    trained = TwinFolder.of(twins) if realisation == "twin" else None
    if trained is not None:
        return made.subject(made.shaped(trained.twin(made.case.name, made.seed, made.base)))
    kept = SubjectCache.of(cache)
    if kept is None or realisation == "compiled":
        return made.subject(made.model())
    model = kept.read(made.key)
    if model is None:
        model = made.model(kept.training(made.key))
        kept.write(made.key, model, made.about)
    return made.subject(model)


def keep_twin(case: Case | str, twin: TwinModel, *, cache: str | Path | None = None, **dials: Any) -> Subject:
    """Put a trained twin of a case into a cache; `subject(case, "twin", seed=twin.seed, ...)` then finds it.

    Args:
        case: the case; the twin's teacher is its compiled model.
        twin: the twin.
        cache: the folder; see `subject`.
        dials: `level`, `gap` and those of training (`steps`, `batch`, `start`, `hint`, `spare`), if they are not
            the defaults; the others are the twin's.
    """
    shape = {name: getattr(twin.architecture, name) for name in TWIN_SHAPE}
    differing = {name: value for name, value in shape.items() if value != TWIN_SHAPE[name]}
    made, kept = _Recipe.of(case, "twin", twin.seed, {**differing, **dials}), SubjectCache.of(cache)
    if kept is None:
        raise TracrError("there is no cache to keep the twin in", hint=f"pass cache=FOLDER, or set {VARIABLE}")
    require_teacher(twin, made.base, made.case.name, "the twin")
    kept.write(made.key, twin, made.about)
    return made.subject(twin)


@dataclass(frozen=True, eq=False)
class _Recipe:
    """How a subject is made."""

    case: Case
    realisation: Realisation
    seed: int
    dials: Mapping[str, Any]

    @staticmethod
    def of(case: Case | str, realisation: str, seed: int, dials: Mapping[str, Any]) -> _Recipe:
        way = realisation_of(text("realisation", realisation))
        way.check_dials(dials)
        return _Recipe(named_case(case) if isinstance(case, str) else case, way, whole("seed", seed), dials)

    @cached_property
    def base(self) -> CompiledModel:
        return compiled_base(self.case, self.dials)

    @cached_property
    def key(self) -> str:
        way = self.realisation
        seed = self.seed if way.seeded else 0
        return key_of(self.base, {"format": FORMAT, "by": way.name, "seed": seed, "dials": way.own(self.dials)})

    @property
    def about(self) -> dict[str, Any]:
        """The recipe, for readers of the cache."""
        return {
            "case": self.case.name,
            "realisation": self.realisation.name,
            "seed": self.seed,
            "dials": dict(self.dials),
        }

    def model(self, training: Path | None = None) -> Any:
        """The model; one that is trained continues from the folder `training`."""
        way = self.realisation
        state = {"checkpoint": training} if way.trained else {}
        return way.make(self.base, self.case, self.seed, {**way.own(self.dials), **state})

    def shaped(self, twin: TwinModel) -> TwinModel:
        """A trained twin, if it has the shape that the dials ask for; a dial that is not given may have any value."""
        for name in TWIN_SHAPE:
            has = getattr(twin.architecture, name)
            if self.dials.get(name, has) != has:
                raise TracrError(
                    f"the twin of {self.case.name} with seed {self.seed} has {name}={has}, not {self.dials[name]}",
                    hint=f"leave {name} out, or train another twin",
                )
        return twin

    def subject(self, model: Any) -> Subject:
        dials = MappingProxyType(dict(sorted(self.dials.items())))
        return Subject(self.case, self.realisation.name, self.seed, dials, model)
