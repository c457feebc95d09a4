"""Cases with independent features, drawn from dials: how many, how dense, how important, how correlated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.arguments import number, one_of, whole
from tracr.errors import TracrError, UnknownName
from tracr.lab.choices import Configured, read_configured
from tracr.lab.features.flag_program import FlagProgram, drawn_program
from tracr.lab.features.packing import Packing
from tracr.lab.features.relations import RELATIONS
from tracr.lab.features.superposed_flags import orthogonal_flags, superposed_flags
from tracr.lab.one_case import Case
from tracr.spelling import did_you_mean
from tracr.zoo import Entry

if TYPE_CHECKING:
    from tracr.compress import CompressedModel
    from tracr.model.compiled import CompiledModel
    from tracr.values import Value

__all__ = ["FEATURES", "PLACES", "FeatureCase", "FeatureDials", "feature_case", "named_feature_case"]

FEATURES = "features"
"""The name of these cases, before their dials: `features:features=128:density=0.005`."""
PLACES: Mapping[str, str] = {
    "pre": "blocks.0.hook_resid_pre",
    "mid": "blocks.0.hook_resid_mid",
    "post": "blocks.0.hook_resid_post",
    "mlp": "blocks.0.hook_mlp_out",
}
LENGTH = 4  # of the inputs
RATIO = 8.0  # D/d of the realisation "superposed", if none is given
PASSES = {"reuse": False, "sums": False, "fuse": False, "simplify": False}  # no dimension has two features
MEASURED = 256  # inputs on which the losses of a superposed model are measured


@dataclass(frozen=True)
class FeatureDials:
    """What a case is drawn from.

    Args:
        features: the number of features of a token; the stream also has those of the token before.
        density: the probability of each feature.
        importance: the importance of a feature is a whole number from 1 to this: its weight in the answer, and in the
            errors of superposition.
        correlation: of features in blocks of four; other features are independent.
        tokens: the size of the vocabulary.
        relation: of the own token and the one before, that neurons compute: gone, new or both; by default a random one.
        place: where methods look: pre (own features), mid (also those of the token before; all independent), post (also
            what neurons compute from them), mlp (what neurons write: only that).
        seed: the seed of all draws.
    """

    features: int = 64
    density: float = 0.01
    importance: int = 4
    correlation: float = 0.0
    tokens: int = 512
    relation: str | None = None
    place: str = "mid"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("features", 2), ("importance", 1), ("tokens", 8), ("seed", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        for name in ("density", "correlation"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0))
        if not 0 < self.density <= 0.5:
            raise TracrError(f"density is {self.density}", hint="use a number above 0 and at most 0.5")
        if self.correlation > 1:
            raise TracrError(f"correlation is {self.correlation}", hint="use a number from 0 to 1")
        if self.tokens <= self.features:
            raise TracrError(
                f"{self.tokens} tokens are too few for {self.features} features", hint="use twice as many tokens"
            )
        if self.relation is not None:
            one_of("relation", self.relation, RELATIONS)
        one_of("place", self.place, PLACES)

    @property
    def name(self) -> str:
        """The name of the case: `features`, with dials that differ from the defaults."""
        usual = {one.name: one.default for one in fields(self)}
        given = {name: value for name, value in vars(self).items() if value != usual[name]}
        return str(Configured(FEATURES, given))


@dataclass(frozen=True, eq=False)
class FeatureCase(Case):
    """A case whose program has many independent features."""

    dials: FeatureDials = field(default_factory=FeatureDials)
    program: FlagProgram = field(default=None, repr=False)  # type: ignore[assignment]

    @property
    def place(self) -> str:
        """The place at which methods look for features, as a name of a hook."""
        return PLACES[self.dials.place]

    @property
    def level(self) -> int:
        """The level of `model`."""
        return 2

    @cached_property
    def model(self) -> CompiledModel:
        """The compiled model, at level 2, with a dimension of its own for each feature."""
        return self.entry.load(level=self.level, passes=PASSES)

    def inputs(self, count: int, seed: int = 0) -> list[list[Value]]:
        """Random inputs: every token is drawn from the whole vocabulary."""
        count, seed = whole("count", count, 1), whole("seed", seed)
        rng = np.random.default_rng([seed, 2])
        drawn: list[list[Value]] = rng.integers(self.dials.tokens, size=(count, self.length)).tolist()
        return drawn

    def superposed(self, model: Any, ratio: float | None, seed: int) -> CompressedModel:
        """The model with `ratio` times as many labels as dimensions; 8 by default."""
        return self.packed(model, ratio, seed)[0]

    def orthogonal(self, seed: int) -> CompressedModel:
        """The model in its own dimensions, with neurons as in superposed ones: the control."""
        return orthogonal_flags(self.model, self.inputs(MEASURED), whole("seed", seed))

    def packed(self, model: Any, ratio: float | None, seed: int) -> tuple[CompressedModel, Packing]:
        """The superposed model, and how its features are packed."""
        dim = max(1, round(model.d_model / number("ratio", RATIO if ratio is None else ratio, above=0)))
        return superposed_flags(model, self.program, dim, whole("seed", seed), self.inputs(MEASURED))


def feature_case(**dials: Any) -> FeatureCase:
    """The case of these dials (`FeatureDials`); the same dials give the same object.

    >>> feature_case(features=32, density=0.02).name
    'features:density=0.02:features=32'
    """
    known = [one.name for one in fields(FeatureDials)]
    for name in dials:
        if name not in known:
            hint = did_you_mean(name, known, f"there are {', '.join(known)}")
            raise UnknownName(f"a feature case has no dial {name}", hint=hint)
    return _made(FeatureDials(**dials))


def named_feature_case(words: str) -> FeatureCase | None:
    """The case of a name such as `features:density=0.02`; `None` if it is no name of a feature case."""
    if words.partition(":")[0] != FEATURES:
        return None
    return feature_case(**read_configured(words).settings)


@lru_cache(maxsize=256)
def _made(dials: FeatureDials) -> FeatureCase:
    given = dials.features, dials.tokens, dials.density, dials.correlation, dials.importance, dials.relation, dials.seed
    program = drawn_program(*given)
    entry = Entry(
        dials.name,
        lambda vocab, length: program.build(),
        tuple(range(dials.tokens)),
        LENGTH,
        tuple(range(LENGTH)),
        f"The importance of features that are {program.relation.name}, of the own token and the one before.",
        lambda tokens, vocab: program.answers(tokens),
        (FEATURES,),
    )
    return FeatureCase(entry, dials, program)
