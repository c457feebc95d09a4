"""Reading shards: models that run from their weights alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.datasets.shards import FORMAT, VERSIONS
from tracr.errors import FormatError
from tracr.ir.domains import Domain, Interval, finite
from tracr.ir.parameters import Parameters
from tracr.rasp.annotations import Encoding
from tracr.runtime.forward import forward
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary
from tracr.saving.values_json import decode_value
from tracr.values import Value

__all__ = ["COMPILED", "StoredModel", "read_models", "read_sidecar"]

WEIGHT = re.compile(r"\.(?=embed\.|pos_embed\.|blocks\.|unembed\.)")  # where the name of a weight begins
COMPILED = "compiled"  # the name of the model that the compiler made


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model of a shard: its weights by TransformerLens name, embedding first, and its entry in the JSON file.

    `realisation` is "compiled" or the name of a realisation, such as "rotated.0".
    """

    entry: Mapping[str, Any]
    weights: Mapping[str, NDArray[np.float32]]
    realisation: str = COMPILED

    @property
    def id(self) -> int:
        """The number of the program in its dataset."""
        number: int = self.entry["id"]
        return number

    @property
    def source(self) -> str:
        """The program as Python."""
        text: str = self.entry["source"]
        return text

    @property
    def facts(self) -> Mapping[str, Any]:
        """The entry of this realisation; empty for the compiled model."""
        every: Sequence[Mapping[str, Any]] = self.entry.get("realisations", ())
        return next((one for one in every if one["name"] == self.realisation), {})

    @property
    def labels(self) -> list[str]:
        """The label of each dimension of the compiled model; all labels of a dimension that is used more than once."""
        if "residual" not in self.entry:
            raise FormatError(
                "this dataset was made without labels and ground truth", hint="sample it again without --no-truth"
            )
        turns: dict[int, list[str]] = {}
        for dimension in sorted(self.entry["residual"], key=lambda one: one["since"]):
            turns.setdefault(dimension["index"], []).append(dimension["label"])
        return [" | ".join(turns[index]) for index in sorted(turns)]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Tokens and ids."""
        config = self.entry["config"]
        tokens = tuple(map(decode_value, self.entry["vocab"]))
        return Vocabulary(tokens, decode_value(config["bos"]), decode_value(config["pad"]), *config["lengths"])

    @cached_property
    def parameters(self) -> Parameters:
        """The weights, layer by layer."""
        return Parameters.of(self.weights)

    def __call__(self, tokens: Sequence[Value]) -> list[Value]:
        """The program's output on `tokens` (no BOS)."""
        ids, (given,), (real,) = self.vocabulary.encode([tokens])
        logits = np.asarray(forward(self.parameters, ids, np, causal=self.entry["causal"]))
        output = _output(*self.entry["outputs"])
        decoded = output.decode(output.codes(logits[0, 1 : real + 1])).tolist()
        return [*decoded, *[self.vocabulary.pad] * (given - real)]


def _output(data: Mapping[str, Any]) -> Output:
    domain: Domain
    if data["values"] is None:
        domain = Interval(-np.inf, np.inf, maybe_none=data["stop"] - data["start"] > 1, reason="")
    else:
        domain = finite(map(decode_value, data["values"]), ordered=True)
    return Output("output", Encoding(data["encoding"]), domain, data["start"], data["stop"])


def read_models(folder: str | Path, *, realisations: bool = False) -> Iterator[StoredModel]:
    """The models of all shards in a folder, in the order of their programs; changed files are refused.

    With `realisations`, each compiled model is followed by the realisations of its program.
    """
    paths = sorted(Path(folder).glob("shard-*.json"))
    if not paths:
        raise FormatError(f"{folder} holds no shards", hint="tracr sample --compile makes them")
    for path in paths:
        sidecar = read_sidecar(path)
        weights = path.with_suffix(".safetensors").read_bytes()
        if hashlib.sha256(weights).hexdigest() != sidecar["weights"]["sha256"]:
            raise FormatError(
                f"{path.with_suffix('.safetensors')} was changed after it was written", hint="make the shard again"
            )
        tensors: dict[tuple[int, str], dict[str, NDArray[np.float32]]] = {}
        for key, array in safetensors.numpy.load(weights).items():
            owner, name = _split(key)
            tensors.setdefault(owner, {})[name] = array
        for entry in sidecar["programs"]:
            if entry["status"] == "compiled":
                names = [COMPILED]
                if realisations:
                    names += [one["name"] for one in entry.get("realisations", ()) if one["status"] == "made"]
                for name in names:
                    yield StoredModel(entry, _in_order(path, tensors.get((entry["id"], name), {})), name)


def _split(key: str) -> tuple[tuple[int, str], str]:
    """The program, the realisation and the weight of a key: `17.embed.W_E` or `17/noisy:0.001.0.embed.W_E`."""
    owner, weight = WEIGHT.split(key, maxsplit=1)[0], WEIGHT.search(key)
    number, _, realisation = owner.partition("/")
    return (int(number), realisation or COMPILED), key[weight.start() + 1 :] if weight else ""


def _in_order(path: Path, weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """The weights from the embedding to the unembedding; safetensors sorts them differently."""
    try:
        return dict(Parameters.of(weights).named())
    except (KeyError, TypeError, ValueError):
        raise FormatError(
            f"{path.with_suffix('.safetensors')} lacks weights of a model that {path} lists",
            hint="make the shard again",
        ) from None


def read_sidecar(path: str | Path) -> dict[str, Any]:
    """The JSON file of a shard."""
    try:
        data: dict[str, Any] = json.loads(Path(path).read_bytes())
        given = (data["format"], data["version"])
        data["settings"], data["weights"]["sha256"], [entry["status"] for entry in data["programs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{path} does not describe a shard: {type(error).__name__}: {error}", hint="make the shard again"
        ) from None
    if given[0] != FORMAT or given[1] not in VERSIONS:
        known = " or ".join(map(str, VERSIONS))
        raise FormatError(
            f"{path} is {given[0]!r:.40} version {given[1]!r:.40}, not {FORMAT!r} version {known}",
            hint="make the shard again",
        )
    return data
