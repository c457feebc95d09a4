"""Every public function and method, every parameter, hostile values: it works, or a TracrError says what to write.

Parameters are read off the signatures, so that new ones are tried as soon as they are there. What a function needs to
be called at all is listed here; a function that is not listed, or needs something new, fails.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import causal_eval, programs, rasp


class EqRaises:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("cannot be compared")

    def __hash__(self) -> int:
        return 1


class HashRaises:
    def __hash__(self) -> int:
        raise RuntimeError("cannot be hashed")


class Undecided:
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class Uncertain:
    """Its comparisons are neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return Undecided()

    def __hash__(self) -> int:
        return 2


HOSTILE: dict[str, Any] = {
    "None": None,
    "-1": -1,
    "0": 0,
    "True": True,
    "huge": 10**30,
    "3.5": 3.5,
    "nan": math.nan,
    "infinite": math.inf,
    "text": "x",
    "zero byte": "\0",
    "long text": "a" * 300,
    "bytes": b"x",
    "empty list": [],
    "list": [1],
    "list of lists": [[1], "a"],
    "empty tuple": (),
    "dict": {},
    "dict of numbers": {3: rasp.tokens},
    "set": set(),
    "object": object(),
    "array": np.array([1, 2]),
    "matrix": np.array([[1.5]]),
    "scalar": np.float32(1),
    "a program": rasp.tokens,
    "a selector": rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ),
    "eq raises": EqRaises(),
    "hash raises": HashRaises(),
    "bool raises": Undecided(),
    "eq is undecided": Uncertain(),
}
MODEL = tracr.compile(programs.make_hist(), "ab", 3)
IDS = MODEL.encode("ab")
SOP, SELECTOR = rasp.tokens, HOSTILE["a selector"]

# What is no function with arguments of its own, or is checked elsewhere.
NAMES_ONLY = {"causal_eval", "Value", "DEFAULT_ANNOTATORS", "RASPEvaluator", "DefaultRASPEvaluator", "Annotations"}
INNER = {"forward", "decode", "decode_unrounded"}  # steps of others: they take what has been checked
ELSEWHERE = {"to_torch", "to_jax", "to_onnx", "to_transformer_lens", "save_pretrained", "explore", "figure"}

NEEDED: dict[str, dict[str, Any]] = {
    "compile": {"program": SOP, "vocab": "ab", "max_seq_len": 3},
    "load": {"folder": "saved"},
    "compress": {"model": MODEL, "dim": 3, "method": "pca"},
    "superpose": {"model": MODEL, "dim": MODEL.d_model},
    "draw": {"expr": SOP, "xs": "ab"},
    "parse": {"source": "y = indices;"},
    "parse_file": {"path": "program.rasp"},
    "random_program": {"seed": 1},
    "to_rasp": {"expr": SOP},
    "rasp.Aggregate": {"selector": SELECTOR, "sop": SOP},
    "rasp.ConstantSOp": {"value": [1]},
    "rasp.ConstantSelector": {"value": [[True]]},
    "rasp.Full": {"fill": 1},
    "rasp.LinearSequenceMap": {"fst": SOP, "snd": SOP, "fst_fac": 1, "snd_fac": 1},
    "rasp.Map": {"f": str, "inner": SOP},
    "rasp.Select": {"keys": SOP, "queries": SOP, "predicate": rasp.Comparison.EQ},
    "rasp.SelectorWidth": {"selector": SELECTOR},
    "rasp.SequenceMap": {"f": max, "fst": SOP, "snd": rasp.indices},
    "rasp.annotate": {"expr": SOP},
    "rasp.evaluate": {"expr": SOP, "xs": "ab"},
    "causal_eval.evaluate": {"expr": SOP, "xs": "ab"},
    "model.__call__": {"tokens": "ab"},
    "model.run": {"tokens": "ab"},
    "model.encode": {"tokens": "ab"},
    "model.interpret": {"tokens": "ab"},
    "model.setting": {"tokens": "ab", "set": {"tokens": "ba"}},
    "model.read": {"stream": np.zeros(MODEL.d_model), "variable": "tokens", "at": "hook_embed"},
    "model.logits": {"ids": IDS},
    "model.codes": {"ids": IDS},
    "model.values": {"logits": MODEL.logits(IDS), "ids": IDS},
    "model.cast": {"dtype": "float32"},
    "model.check_format": {"dtype": "float16"},
    "model.save": {"folder": "out"},
    "model.with_weights": {"weights": dict(MODEL.parameters.named())},
    "model.coordinates": {"stream": np.zeros((1, MODEL.d_model))},
    "model.normalised": {"stream": np.zeros((1, MODEL.d_model))},
    "run.__getitem__": {"name": "logits"},
    "residual.__getitem__": {"key": 0},
    "residual.at": {"hook": "hook_embed"},
    "residual.of": {"variable": "tokens"},
    "residual.indices": {"variable": "tokens"},
    "sop.__call__": {"xs": "ab"},
    "sop.annotation": {"key": "name"},
    "sop.named": {"name": "x"},
}
NEEDED |= {f"rasp.{name}": {"inner": SELECTOR} for name in ("SelectorNot", "selector_not")}
for pair in ("SelectorAnd", "SelectorOr", "selector_and", "selector_or"):
    NEEDED[f"rasp.{pair}"] = {"fst": SELECTOR, "snd": SELECTOR}
USUAL = {  # of the library's makers, and of the rest of `rasp`
    **{"sop": SOP, "vals": SOP, "keys": SOP, "bools": SOP, "expr": SOP, "token": "a", "n": 1, "offset": 1},
    **{"max_seq_len": 3, "min_key": 1, "pattern": "ab", "pairs": ["()"], "pair": "()", "highest": 3},
    **{"open_token": "(", "close_token": ")", "f": max},
}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public functions and methods, by name."""
    kinds = (type, tracr.rasp.__class__)
    for name in tracr.__all__:
        thing = getattr(tracr, name)
        if callable(thing) and not isinstance(thing, type):
            yield name, thing.compress if name == "compress" else thing
    for name in vars(rasp)["__all__"]:
        thing = getattr(rasp, name)
        if callable(thing) and name not in NAMES_ONLY and not isinstance(thing, rasp.RASPExpr) and _takes(thing):
            yield f"rasp.{name}", thing
    yield "causal_eval.evaluate", causal_eval.evaluate
    for name in programs.__all__:
        thing = getattr(programs, name)
        if callable(thing) and not isinstance(thing, kinds) and name != "make_nary_sequencemap":
            yield f"programs.{name}", thing
    objects = {"model": MODEL, "run": MODEL.run("ab"), "residual": MODEL.residual, "sop": rasp.tokens == "a"}
    for owner, thing in objects.items():
        for name, _ in inspect.getmembers(type(thing), inspect.isfunction):
            public = not name.startswith("_") or name in ("__call__", "__getitem__")
            inherited = owner == "run" and name in ("get", "items", "keys", "values")  # a mapping's
            if public and not inherited and name not in INNER | ELSEWHERE | {"reading", "written_at", "annotated"}:
                yield f"{owner}.{name}", getattr(thing, name)


def _takes(thing: Any) -> bool:
    """Whether a class or a function of `rasp` can be called: not an enum, not an abstract class."""
    return not inspect.isabstract(thing) and thing not in (rasp.Encoding, rasp.Comparison, rasp.SOp, rasp.Selector)


FUNCTIONS = dict(functions())


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one for one in inspect.signature(function).parameters.values() if one.kind not in several]


def needed(name: str) -> dict[str, Any]:
    """Arguments with which the function works."""
    given = dict(NEEDED.get(name, {}))
    for one in parameters(FUNCTIONS[name]):
        if one.default is inspect.Parameter.empty and one.name not in given:
            assert one.name in USUAL, f"{name} needs {one.name}: say in NEEDED what to call it with"
            given[one.name] = USUAL[one.name]
    return given


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a saved model and a program in it."""
    monkeypatch.chdir(tmp_path)
    MODEL.save("saved")
    Path("program.rasp").write_text("y = indices;")


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_arguments_work_or_are_refused_with_a_hint(name: str) -> None:
    """One parameter at a time; no other exception, and no hint that is empty."""
    function, given = FUNCTIONS[name], needed(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(**given)
        for one in parameters(function):
            for kind, value in HOSTILE.items():
                if f"{name.partition('.')[2]}({one.name})" in ELSEWHERE:
                    continue
                if one.name == "hook" and callable(value):
                    continue  # what a hook raises is the caller's
                raised = outcome(lambda value=value, one=one: function(**{**given, one.name: value}))
                call = f"{name}({one.name}={kind})"
                assert raised is None or isinstance(raised, tracr.TracrError), f"{call} raises {raised!r}"
                assert raised is None or raised.diagnostic.hint, f"{call} gives no hint: {raised}"
                assert "numpy" not in str(raised), f"{call} speaks of numpy: {raised}"


def outcome(action: Callable[[], Any]) -> Exception | None:
    """The exception, if there is one."""
    try:
        action()
    except Exception as error:
        return error
    return None
