"""The original's side of the benchmark, run by the Python of an environment where `tracr` is the original."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from worker import MANY, Runner, serve

from tracr.compiler import compiling, lib
from tracr.rasp import rasp

BOS, PAD = "compiler_bos", "compiler_pad"
INTERPRETED = 10  # the greatest length at which the original's own interpreter is also run


class Original:
    """`compile_rasp_to_model` and `apply`; and the forward pass jitted, with the encoders `apply` uses."""

    def __init__(self, case: Any, level: int) -> None:
        self.case = case
        self.forward: Any = None

    def compile(self) -> Any:
        """A model of the program."""
        program = self.case.build(lib, rasp)
        return compiling.compile_rasp_to_model(
            program, set(self.case.vocab), self.case.length, compiler_bos=BOS, compiler_pad=PAD
        )

    def answer(self, model: Any, tokens: list[Any]) -> list[Any]:
        """The model applied to one input."""
        return list(model.apply([BOS, *tokens]).decoded[1:])

    def size(self, model: Any) -> dict[str, int]:
        """Of the weights in `params`, which have no unembedding."""
        arrays = {name: list(module.values()) for name, module in model.params.items()}
        blocks = [array for name, module in arrays.items() if name.startswith("transformer") for array in module]
        return {
            "layers": model.model_config.num_layers,
            "dimensions": len(model.residual_labels),
            "heads": model.model_config.num_layers * model.model_config.num_heads,
            "parameters": sum(int(array.size) for module in arrays.values() for array in module),
            "block_parameters": sum(int(array.size) for array in blocks),
            "non_zeros": sum(int((array != 0).sum()) for module in arrays.values() for array in module),
        }

    def runners(self, model: Any) -> dict[str, tuple[int, Runner]]:
        """As users call it, one input at a time; and jitted, one batch per call."""
        jitted = self._jitted(model)
        return {
            "called_1": (1, lambda batch: self.answer(model, batch[0])),
            "jitted_1": (1, jitted),
            f"jitted_{MANY}": (MANY, jitted),
        }

    def _jitted(self, model: Any) -> Runner:
        if self.forward is None:  # for each shape it is compiled once
            self.forward = jax.jit(lambda params, ids: model.forward(params, ids).unembedded_output)

        def run(batch: list[list[Any]]) -> list[list[Any]]:
            ids = jnp.array([model.input_encoder.encode([BOS, *tokens]) for tokens in batch])
            return [model.output_encoder.decode(row)[1:] for row in self.forward(model.params, ids).tolist()]

        return run

    def compared(self, model: Any, inputs: list[list[Any]], padded: bool) -> list[list[Any]]:
        """The answers of the jitted model."""
        longest = self.case.length if padded else 0
        given = [[*tokens, *[PAD] * (longest - len(tokens))] for tokens in inputs]
        answers = self._jitted(model)(given) if inputs else []
        return [row[: len(tokens)] for row, tokens in zip(answers, inputs, strict=True)]

    def more(self, model: Any, inputs: list[list[Any]], emit: Callable[..., None]) -> None:
        """The answers of the original's own interpreter."""
        if self.case.length <= INTERPRETED:
            program = self.case.build(lib, rasp)
            emit("interpreter", [_interpreted(program, tokens) for tokens in inputs])


def _interpreted(program: Any, tokens: list[Any]) -> list[Any] | None:
    try:
        return [value.item() if hasattr(value, "item") else value for value in program(tokens)]
    except Exception:  # this input has no answer
        return None


if __name__ == "__main__":
    serve(Original)
