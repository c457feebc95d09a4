"""The injected model: a GPT-2 whose circuit is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.errors import FormatError
from tracr.extras import need
from tracr.graft.injection.building import added_weights
from tracr.graft.injection.circuit import InjectedCircuit
from tracr.graft.injection.freeing import FreedHost
from tracr.graft.injection.host import CONFIG, PREFIX, WEIGHTS, GPT2Host
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.measuring import Elsewhere, TaskScore, as_ids, expected, measure_elsewhere, score_task
from tracr.graft.injection.sizes import InjectedSizes, Scales
from tracr.graft.injection.truth import truth_of
from tracr.ir.program import Tables
from tracr.saving.folders import write_folder

__all__ = ["TRUTH", "Injected"]

Array = NDArray[Any]
TRUTH = "injected_circuit.json"


@dataclass(frozen=True, eq=False, repr=False)
class Injected:
    """A GPT-2 to which a circuit was added.

    `host` is the model before, `gpt2` the model after. `circuit` says what was added, `sizes` and `scales` where and
    how large. `program` is the compiled program, `interface` how tokens ask it. With the route "unused", `freed` says
    which heads and neurons of the host the circuit could take, and what that changed on the data.
    """

    host: GPT2Host
    gpt2: GPT2Host
    program: Tables
    interface: Interface
    circuit: InjectedCircuit
    sizes: InjectedSizes
    scales: Scales
    freed: FreedHost | None = None

    @property
    def longest(self) -> int:
        """The longest input, without BOS, on which the circuit answers."""
        return int(self.program.options.max_seq_len)

    @cached_property
    def heads(self) -> dict[str, tuple[int, int]]:
        """The layer and the number of the head of each attention."""
        return self.circuit.head_numbers(self.sizes.first_head)

    @cached_property
    def neurons(self) -> list[tuple[int, int]]:
        """The first and the last neuron of each group of steps, in its layer."""
        return self.circuit.neuron_numbers(self.sizes.first_neuron)

    @cached_property
    def truth(self) -> dict[str, Any]:
        """The ground truth: labels of the added dimensions, heads and neurons, and edges. `save` writes it as JSON."""
        return truth_of(self)

    @cached_property
    def added(self) -> dict[str, NDArray[np.bool_]]:
        """For each weight, by its name in transformers, whether it was added: to freeze the circuit in training.

        Weights of freed heads and neurons count as added.
        """
        return _in_transformers(added_weights(self.host, self.sizes, self.scales, self.freed))

    def answers(self, ids: object) -> Array:
        """The token that the program answers, at each position: -1 where it is silent, -2 where it raises an error."""
        return expected(self.program, self.interface, as_ids(ids, self.interface, self.host))

    def check(self, ids: object, model: Any = None) -> TaskScore:
        """How often the answers are right on these inputs; those of another `model`, if one is given."""
        return score_task(self, as_ids(ids, self.interface, self.host), self.gpt2 if model is None else model)

    def elsewhere(self, ids: object, model: Any = None) -> Elsewhere:
        """How much the host changed where the circuit is not asked; with another `model`, how much that one differs."""
        return measure_elsewhere(self, as_ids(ids, self.interface, self.host), self.gpt2 if model is None else model)

    def to_transformers(self) -> Any:
        """The model as a `transformers.GPT2LMHeadModel`."""
        torch, transformers = need("torch", "torch"), need("transformers", "hf")
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config.from_dict(dict(self.gpt2.config)))
        state = {name: torch.from_numpy(array) for name, array in self._weights().items()}
        model.load_state_dict(state, strict=True)
        return model.eval()

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a folder that stock transformers loads, with the host's tokenizer and the ground truth beside it."""
        path = Path(folder).resolve()
        if path.exists() and not (overwrite and (path / TRUTH).is_file()):
            raise FormatError(
                f"{path} exists already",
                hint="choose another folder; overwrite=True replaces a folder that an injected model was saved to",
            )
        config = json.dumps(dict(self.gpt2.config), indent=2, sort_keys=True, default=str)
        weights = safetensors.numpy.save(self._weights(), metadata={"format": "pt"})
        truth = json.dumps(self.truth, indent=1)
        own = {CONFIG: config.encode(), WEIGHTS: weights, TRUTH: truth.encode()}
        write_folder(path, {**self.gpt2.files, **own})

    def _weights(self) -> dict[str, Array]:
        """The weights in float32, by their names in transformers."""
        named = _in_transformers(self.gpt2.tensors)
        return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in named.items()}

    def __repr__(self) -> str:
        host, sizes, freed = self.host, self.sizes, self.freed
        taken = ""
        if freed is not None:
            heads, neurons = (sum(map(len, one.values())) for one in (freed.heads, freed.neurons))
            taken = f"; freed heads: {heads}, neurons: {neurons}"
        return (
            f"Injected({self.program.outputs[0][0]}; added dimensions: {sizes.width - host.width}, heads a layer: "
            f"{sizes.heads - host.heads}, neurons a layer: {sizes.inner - host.inner}, "
            f"layers: {sizes.layers - host.layers}{taken})"
        )


def _in_transformers(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Weights by their names in transformers."""
    return {name if name == "lm_head.weight" else PREFIX + name: one for name, one in tensors.items()}
