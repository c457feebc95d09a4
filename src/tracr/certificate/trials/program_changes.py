"""Changes a saved program, but for its tables: selectors, factors, values, lengths, outputs, what is undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["change_model", "change_program", "pick"]

Program = dict[str, Any]


def pick(rng: np.random.Generator, items: Any) -> Any:
    """One of some items."""
    items = list(items)
    return items[int(rng.integers(len(items)))]


def change_model(model: dict[str, Any], rng: np.random.Generator) -> str:
    """Change one thing of a `model.json` in place: its program, or what is beside it; what was changed, in words."""
    if rng.random() < 0.3:
        order = rng.permutation(len(BESIDE)).tolist()
        return next((found for way in order if (found := BESIDE[way](model, rng))), "nothing")
    return change_program(model["program"], rng)


def change_program(program: Program, rng: np.random.Generator) -> str:
    """Change one thing in place; what was changed, in words."""
    order = rng.permutation(len(WAYS)).tolist()
    return next((found for way in order if (found := WAYS[way](program, rng))), "nothing")


def _exchange_sides(program: Program, rng: np.random.Generator) -> str:
    if not (plain := [selector for selector in program["selectors"] if "keys" in selector]):
        return ""
    one = pick(rng, plain)
    one["keys"], one["queries"] = one["queries"], one["keys"]
    return f"the sides of {one['label']} exchanged"


def _change_factor(program: Program, rng: np.random.Generator) -> str:
    if not (linear := [sop for sop in program["sops"] if sop["op"]["kind"] == "linear" and sop["op"]["terms"]]):
        return ""
    one = pick(rng, linear)
    pick(rng, one["op"]["terms"])[1] *= float(pick(rng, (-1.0, 2.0, 1.001)))
    return f"a factor of {one['label']}"


def _change_default(program: Program, rng: np.random.Generator) -> str:
    if not (means := [sop for sop in program["sops"] if sop["op"]["kind"] == "aggregation"]):
        return ""
    one = pick(rng, means)
    one["op"]["default"] = pick(rng, [0, 1, None, 2])
    return f"the default of {one['label']} is {one['op']['default']}"


def _exchange_values(program: Program, rng: np.random.Generator) -> str:
    listed = [sop for sop in program["sops"] if len(sop["domain"].get("values", ())) > 1]
    if not listed:
        return ""
    one = pick(rng, listed)
    values = one["domain"]["values"]
    i, j = rng.choice(len(values), 2, replace=False).tolist()
    values[i], values[j] = values[j], values[i]
    return f"values {i} and {j} of {one['label']} exchanged"


def _move_value(program: Program, rng: np.random.Generator) -> str:
    """A number that is nearly or only in looks the same; where it is not, the program is often undefined."""
    one = pick(rng, program["sops"])
    values = one["domain"].get("values", ())
    if not (places := [place for place, value in enumerate(values) if isinstance(value, int | float)]):
        return ""
    place = pick(rng, places)
    old = values[place]
    values[place] = pick(rng, (float(old), old + 5e-10, old + 1.5e-9, old + 1e-6, old + 7, str(old), None))
    return f"{old} of {one['label']} is {values[place]!r}"


def _leave_out(program: Program, rng: np.random.Generator) -> str:
    """One s-op more, which has no value where another one has some number: such inputs do not count."""
    found = [
        sop for sop in program["sops"] if all(isinstance(x, int | float) for x in sop["domain"].get("values", "?"))
    ]
    if not found:
        return ""
    one, number = pick(rng, found), 1 + max(entry["id"] for entry in (*program["sops"], *program["selectors"]))
    values = one["domain"]["values"]
    kept = [values[at] for at in sorted(rng.permutation(len(values))[: int(rng.integers(1, len(values) + 1))].tolist())]
    op = {"kind": "linear", "terms": [[one["id"], 1.0]], "constant": 0.0}
    program["sops"].append(
        {**one, "id": number, "label": "more", "op": op, "domain": {"kind": "finite", "values": kept}}
    )
    return f"{one['label']} is one of {kept}"


def _assume(program: Program, rng: np.random.Generator) -> str:
    if not (means := [sop for sop in program["sops"] if sop["op"]["kind"] == "aggregation"]):
        return ""
    one = pick(rng, means)
    one["op"]["assumed"] = not one["op"]["assumed"]
    return f"{one['label']} assumes one key: {one['op']['assumed']}"


def _change_lengths(program: Program, rng: np.random.Generator) -> str:
    most = program["lengths"][1]
    low, high = program["lengths"] = sorted(rng.integers(1, most + 1, 2).tolist())
    for one in (sop for sop in program["sops"] if sop["op"]["kind"] == "length"):
        one["domain"]["values"] = list(range(low, high + 1))
    return f"lengths {low} to {high}"


def _change_output(program: Program, rng: np.random.Generator) -> str:
    one = pick(rng, program["outputs"])
    size = {sop["id"]: len(sop["domain"].get("values", ())) for sop in program["sops"]}
    if not (others := [number for number in size if number != one[1] and size[number] == size[one[1]]]):
        return ""
    one[1] = pick(rng, others)
    return f"output {one[0]} is s-op {one[1]}"


def _change_encoding(program: Program, rng: np.random.Generator) -> str:
    """Of an output, mostly: the word with the largest logit, or the number that is nearest to the first logit."""
    numbers = {number for _, number in program["outputs"]}
    one = pick(rng, [sop for sop in program["sops"] if sop["id"] in numbers or rng.random() < 0.1])
    one["encoding"] = "categorical" if one["encoding"] == "numerical" else "numerical"
    return f"{one['label']} is {one['encoding']}"


def _move_interval(program: Program, rng: np.random.Generator) -> str:
    """An interval is a little wider or narrower, or may be `None`; or values are any numbers between them."""
    sop = pick(rng, program["sops"])
    one, kinds = sop["domain"], ("linear", "aggregation")
    looked_up = {other["op"].get(name) for other in program["sops"] for name in ("inner", "fst", "snd")}
    looked_up |= {selector.get(name) for selector in program["selectors"] for name in ("keys", "queries")}
    if sop["id"] in looked_up:
        return ""
    if one["kind"] != "interval":
        numbers = [value for value in one["values"] if isinstance(value, int | float)]
        if sop["op"]["kind"] not in kinds or sop["encoding"] != "numerical" or not numbers:
            return ""
        sop["domain"] = {
            "kind": "interval",
            "low": min(numbers),
            "high": max(numbers),
            "maybe_none": None in one["values"],
        }
        return f"{sop['label']} is any number from {min(numbers)} to {max(numbers)}"
    name = pick(rng, ("low", "high", "maybe_none"))
    one[name] = not one[name] if name == "maybe_none" else one[name] + float(pick(rng, (-1, -1e-3, 1e-3, 1)))
    return f"{name} of {sop['label']} is {one[name]}"


def _compose_otherwise(program: Program, rng: np.random.Generator) -> str:
    """Another selector as a part, or "and" for "or"; or the selector of an s-op is another one."""
    made = [one for one in program["selectors"] if "kind" in one]
    numbers = [one["id"] for one in program["selectors"]]
    users = [sop["op"] for sop in program["sops"] if "selector" in sop["op"]]
    if not users:
        return ""
    if not made or rng.random() < 0.3:
        one = pick(rng, users)
        one["selector"] = pick(rng, numbers)
        return f"an s-op by selector {one['selector']}"
    one = pick(rng, made)
    if one["kind"] != "not" and rng.random() < 0.5:
        one["kind"] = "or" if one["kind"] == "and" else "and"
        return f"{one['label']} is made by {one['kind']}"
    place = int(rng.integers(len(one["parts"])))
    one["parts"][place] = pick(rng, numbers[: numbers.index(one["id"])])
    return f"{one['label']} is made of {one['parts']}"


def _exchange_outputs(model: dict[str, Any], rng: np.random.Generator) -> str:
    """The logits of an output are others: one to the left or to the right, or one more or fewer."""
    one = pick(rng, model["outputs"])
    moved, more = pick(rng, ((-1, -1), (1, 1), (0, -1), (0, 1)))
    if not 0 <= one[1] + moved < one[2] + more:
        return ""
    one[1:] = one[1] + moved, one[2] + more
    return f"{one[0]} has the logits from {one[1]} to {one[2]}"


def _flip_mask(model: dict[str, Any], rng: np.random.Generator) -> str:
    model["options"]["causal"] = not model["options"]["causal"]
    return f"causal: {model['options']['causal']}"


def _order_vocabulary(model: dict[str, Any], rng: np.random.Generator) -> str:
    """The vocabulary in another order, with that of the s-op of the tokens or without."""
    vocab = model["options"]["vocab"]
    vocab[:] = [vocab[at] for at in rng.permutation(len(vocab)).tolist()]
    for one in model["program"]["sops"]:
        if one["op"]["kind"] == "tokens":
            one["domain"]["values"] = list(vocab)
    return f"the vocabulary is {vocab}"


BESIDE: tuple[Callable[[dict[str, Any], np.random.Generator], str], ...] = (
    _exchange_outputs,
    _flip_mask,
    _order_vocabulary,
)
WAYS: tuple[Callable[[Program, np.random.Generator], str], ...] = (
    _exchange_sides,
    _change_factor,
    _change_default,
    _exchange_values,
    _move_value,
    _leave_out,
    _assume,
    _change_lengths,
    _change_output,
    _change_encoding,
    _move_interval,
    _compose_otherwise,
)
