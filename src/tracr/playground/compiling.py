"""The work of a worker process: pure functions from a request to an answer.

The source is read by `tracr.parse` with no folder, so that it cannot load files. Everything else is the ordinary
compiler with lower limits.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracr import learn
from tracr.errors import InputError, InternalError, TracrError
from tracr.ir.passes import Pass
from tracr.model.compiled import CompiledModel
from tracr.nearness import ANSWER, same_value
from tracr.playground.downloads import download
from tracr.playground.gallery import gallery
from tracr.playground.limits import ServerLimits
from tracr.playground.program import ReadProgram, compiled, read_program
from tracr.playground.replies import RefusedRequest, Reply, error_json, json_reply
from tracr.playground.requests import LEVELS, ProgramRequest
from tracr.rasp.interpreter import evaluate
from tracr.saving.values_json import encode_value
from tracr.text.drawing import draw
from tracr.text.layout import format_text
from tracr.values import Value
from tracr.viz.explorer.page import explore

__all__ = ["answer"]

CHECKING = 0.8  # the part of the time limit for checking a puzzle: it ends with a verdict, not with the worker
LONGEST_PASS = 20_000  # characters of the text of a pass's result


def answer(task: bytes, limits: ServerLimits) -> Reply:
    """The answer to a request; every error becomes one."""
    try:
        given: dict[str, Any] = json.loads(task)
        reply = TASKS[given.pop("task")](given, limits)
        if len(reply.body) > limits.reply:
            raise RefusedRequest(f"the answer is larger than {limits.reply:,} bytes", hint="use a smaller vocabulary")
        return reply
    except RefusedRequest as error:
        return error.reply
    except InternalError as error:
        traceback.print_exc(file=sys.stderr)
        return json_reply({"error": error_json(error.diagnostic)}, 500)
    except TracrError as error:
        return json_reply({"error": error_json(error.diagnostic)}, 422)
    except (MemoryError, SystemError) as error:
        if isinstance(error, SystemError):  # CPython's own C code may fail so without memory; or it has a bug
            traceback.print_exc(file=sys.stderr)
        hint = "use a smaller vocabulary or a shorter length"
        return RefusedRequest("the program needs more memory than this server allows", hint=hint).reply
    except RecursionError:
        return RefusedRequest("the program is nested too deeply", hint="give names to its parts").reply
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return RefusedRequest(
            "internal error", status=500, hint="this is a bug in tracr: please report it with the program"
        ).reply


def _compile(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    """What the page shows of a program."""
    request = ProgramRequest.of(given)
    found = read_program(request)
    passes: list[dict[str, str]] = []
    model = compiled(found, request.level, request.causal, limits, _recorder(passes))
    explorer = explore(model, found.shown, name=found.name, certified=False).data
    tokens = [model.options.vocab[number] for number in explorer["input"]]
    return json_reply(
        {
            "name": found.name,
            "names": list(found.names),
            "input": _json(tokens),
            "outputs": _outputs(found, model, tokens),
            **_drawing(found, model, tokens),
            "explorer": explorer,
            "summary": _summary(model),
            "passes": passes,
            "warnings": [error_json(one) for one in found.warnings],
        }
    )


def _levels(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    """The program at every level."""
    request = ProgramRequest.of(given)
    found = read_program(request)
    levels = []
    for level in LEVELS:
        model = compiled(found, level, request.causal, limits)
        explorer = explore(model, found.shown, name=found.name, certified=False).data
        levels.append({"level": level, "summary": _summary(model), "explorer": explorer})
    return json_reply({"name": found.name, "levels": levels})


def _format(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    return json_reply({"source": format_text(given["source"])})


def _download(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    request = ProgramRequest.of(given)
    found = read_program(request)
    return download(request, found, compiled(found, request.level, request.causal, limits))


def _examples(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    return json_reply(gallery())


def _puzzles(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    return json_reply([puzzle.as_json() for puzzle in learn.puzzles()])


def _check(given: Mapping[str, Any], limits: ServerLimits) -> Reply:
    """The verdict on a solution of a puzzle; it is a text, so nothing of it is executed as Python."""
    puzzle, seconds = learn.puzzle(given["puzzle"]), CHECKING * limits.seconds
    return json_reply(puzzle.check(given["source"], given.get("name", ""), seconds=seconds).as_json())


def _outputs(found: ReadProgram, model: CompiledModel, tokens: Sequence[Value]) -> dict[str, list[Any]]:
    """The outputs of the program and of the model, which must agree."""
    expected = evaluate(found.program, tokens, causal=model.options.causal)
    got = model(tokens)
    if not all(same_value(a, b, ANSWER) for a, b in zip(got, expected, strict=True)):
        raise InternalError(f"the model and the interpreter disagree: {got} and {expected}")
    return {"program": _json(expected), "model": _json(got)}


def _json(values: Sequence[Value]) -> list[Any]:
    return [encode_value(value) for value in values]


def _drawing(found: ReadProgram, model: CompiledModel, tokens: Sequence[Value]) -> dict[str, str | None]:
    """The drawing of the program on the input, or why there is none."""
    try:
        return {"drawing": draw(found.program, tokens, causal=model.options.causal).svg, "not_drawn": None}
    except InputError as error:  # too many parts
        return {"drawing": None, "not_drawn": str(error)}


def _summary(model: CompiledModel) -> dict[str, int]:
    return {
        "layers": model.n_layers,
        "heads": sum(layer.b_Q.shape[0] for layer in model.parameters.layers),
        "dimensions": model.d_model,
        "parameters": model.n_parameters,
        "nonzero": sum(int(np.count_nonzero(array)) for _, array in model.parameters.named()),
    }


def _recorder(passes: list[dict[str, str]]) -> Callable[[Pass, Any], None]:
    """A watch that records the text of every pass's result."""

    def record(one: Pass, value: Any) -> None:
        if not hasattr(value, "show"):  # still the program's own expressions
            return
        text = str(value.show())
        if len(text) > LONGEST_PASS:
            text = f"{text[:LONGEST_PASS]}\n... {len(text) - LONGEST_PASS:,} more characters"
        passes.append({"name": one.name, "does": one.does, "gives": type(value).__name__, "text": text})

    return record


Work = Callable[[Mapping[str, Any], ServerLimits], Reply]
TASKS: Mapping[str, Work] = {
    "compile": _compile,
    "levels": _levels,
    "format": _format,
    "download": _download,
    "examples": _examples,
    "puzzles": _puzzles,
    "check": _check,
}
