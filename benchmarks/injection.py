"""Injects three circuits into the host of docs/injecting.md, and measures the result in stock transformers.

    python benchmarks/injection.py -o docs/injecting/results.json   # needs the extras `torch` and `hf`

Injected models are saved, and loaded with transformers alone. Contexts are held-out text (`injection_host.py`) into
which the questions are written. Measurements that the file already has are skipped. docs/injecting.md has the
results.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from injection_host import BOS, CHARACTERS, CONTEXT, FIRST, MARKERS, corpus, windows
from transformers import GPT2LMHeadModel

from tracr.errors import TracrError
from tracr.graft import Injected, inject
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.writing import write_file

HOST = Path(__file__).parents[1] / "docs" / "injecting" / "host"
LONGEST = CONTEXT - 1
SYMBOLS = "^~$`?!;&"
QUESTIONS, WINDOWS = 200, 60
COUNT, BALANCED = MARKERS[:2]
SCALES = (1e-3, 1e-1, 1.0)
TOLERANCES, MEASURED = (1e-3, 1e-2, 1e-1), 24  # of the route "unused", and windows of text to measure use on
STEPS = (0, 10, 30, 100)
BATCH, ASKED, SHORT = 4, 60, 64  # fine-tuning: shorter windows of text


def token(character: str) -> int:
    """The token of a character."""
    return FIRST + CHARACTERS.index(character)


def number_of(bracket: str) -> SOp:
    """How often a bracket occurred so far."""
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, bracket, Comparison.EQ))


def balanced() -> SOp:
    """Whether the parentheses so far are balanced: "y" or "n"."""
    depth = (number_of("(").named("opened") - number_of(")").named("closed")).named("depth")
    below = rasp.SelectorWidth(rasp.Select((depth < 0).named("negative"), True, Comparison.EQ)).named("below")
    return rasp.SequenceMap(lambda d, n: "y" if d == 0 and n == 0 else "n", depth, below).named("balanced")


def induction() -> SOp:
    """The token after the earlier occurrence of this symbol; there must be at most one."""
    before = programs.shift_by(1, rasp.tokens).named("before")
    follows = rasp.Select(before, rasp.tokens, lambda key, query: key == query and query != ".").named("follows")
    return rasp.Aggregate(follows, rasp.tokens).named("induction")


def added_count(host: Any, **size: Any) -> Injected:
    """The host with a circuit that counts "(" and answers with a digit at the marker."""
    digits = {number: token(str(number)) for number in range(10)}
    program, tokens = number_of("(").named("count"), {token("("): "("}
    return inject(host, program, tokens=tokens, other=".", trigger=COUNT, answers=digits, **size)


def added_balanced(host: Any, **size: Any) -> Injected:
    """The host with a circuit that says at its marker whether parentheses are balanced."""
    answers, tokens = {one: token(one) for one in "yn"}, {token(one): one for one in "()"}
    return inject(host, balanced(), tokens=tokens, other=".", trigger=BALANCED, answers=answers, **size)


def added_induction(host: Any, **size: Any) -> Injected:
    """The host with a circuit that copies by induction, at some characters that text rarely has."""
    symbols = {token(one): one for one in SYMBOLS}
    answers = {one: number for number, one in symbols.items()}
    return inject(host, induction(), tokens=symbols, other=".", trigger=list(symbols), answers=answers, **size)


def ask_count(text: list[int], draw: random.Random) -> list[int]:
    """The text with a marker, at a place with at most nine parentheses before it."""
    while True:
        place = draw.randrange(len(text))
        if text[:place].count(token("(")) <= 9:
            return [*text[:place], COUNT, *text[place + 1 :]]


def ask_balanced(text: list[int], draw: random.Random) -> list[int]:
    """The text with its parentheses replaced by random ones, balanced in about half of the cases, and a marker."""
    plain = [token(" ") if one in (token("("), token(")")) else one for one in text]
    brackets = _balanced_brackets(draw.randrange(1, 13), draw)
    if draw.random() < 0.5:
        place = draw.randrange(len(brackets))
        brackets[place] = "(" if brackets[place] == ")" else ")"
    if draw.random() < 0.3:
        draw.shuffle(brackets)
    places = sorted(draw.sample(range(len(plain)), len(brackets) + 1))
    for place, one in zip(places[:-1], brackets, strict=True):
        plain[place] = token(one)
    plain[places[-1]] = BALANCED
    return plain


def _balanced_brackets(pairs: int, draw: random.Random) -> list[str]:
    found: list[str] = []
    depth = left = 0
    while len(found) < 2 * pairs:
        opens = left < pairs and (depth == 0 or draw.random() < 0.5)
        found.append("(" if opens else ")")
        depth, left = depth + (1 if opens else -1), left + opens
    return found


def ask_induction(text: list[int], draw: random.Random) -> list[int]:
    """The text with four pairs of symbols, and then the first symbol of one of them."""
    symbols = list(map(token, SYMBOLS))
    plain = [token(" ") if one in symbols else one for one in text]
    draw.shuffle(symbols)
    places = sorted(draw.sample(range(0, len(plain) - 2, 2), 5))
    for place, pair in zip(places[:4], range(0, 8, 2), strict=True):
        plain[place : place + 2] = symbols[pair : pair + 2]
    plain[places[4]] = symbols[2 * draw.randrange(4)]
    return plain


TASKS: dict[str, tuple[Callable[..., Injected], Callable[[list[int], random.Random], list[int]]]] = {
    "count": (added_count, ask_count),
    "balanced": (added_balanced, ask_balanced),
    "induction": (added_induction, ask_induction),
}


def questions(name: str, texts: list[str], count: int, seed: int, size: int = CONTEXT) -> np.ndarray[Any, Any]:
    """Contexts of held-out text with a question in each."""
    draw, found = random.Random(seed), windows(texts, size, count, seed)
    return np.array([[BOS, *TASKS[name][1](row[1:].tolist(), draw)] for row in found])


def wilson(right: int, tried: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's formula."""
    z, share = 1.96, right / tried
    middle, spread = share + z * z / (2 * tried), z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried**2))
    return (middle - spread) / (1 + z * z / tried), (middle + spread) / (1 + z * z / tried)


def among_answers(injected: Injected, ids: np.ndarray[Any, Any], model: Any) -> float:
    """The share of right answers if only the tokens of answers may be chosen."""
    wanted, tokens = injected.answers(ids), np.array(sorted(set(injected.interface.answers.values())))
    with torch.no_grad():
        logits = np.concatenate(
            [model(torch.as_tensor(ids[i : i + 16])).logits.numpy() for i in range(0, len(ids), 16)]
        )
    chosen = tokens[logits[:, :, tokens].argmax(axis=-1)]
    return float((chosen == wanted)[wanted >= 0].mean())


def stock(injected: Injected) -> GPT2LMHeadModel:
    """The model as transformers loads it from its folder."""
    with tempfile.TemporaryDirectory() as folder:
        injected.save(Path(folder) / "model")
        return GPT2LMHeadModel.from_pretrained(Path(folder) / "model", dtype=torch.float32).eval()


def injection(name: str, scale: float, held_out: list[str], text: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The measurements of one injection."""
    host = GPT2LMHeadModel.from_pretrained(HOST).eval()
    began = time.monotonic()
    injected = TASKS[name][0](host, scale=scale)
    seconds = time.monotonic() - began
    asked, model = questions(name, held_out, QUESTIONS, seed=7), stock(injected)
    before, after = injected.check(asked, host), injected.check(asked, model)
    sizes = {"width": injected.sizes.width, "heads": injected.sizes.heads, "layers": injected.sizes.layers}
    return {
        "task": name,
        "scale": scale,
        "seconds": round(seconds, 2),
        "sizes": {**sizes, "neurons": injected.sizes.inner, "parameters": sum(p.numel() for p in model.parameters())},
        "before": dataclasses.asdict(before),
        "before_among_answers": among_answers(injected, asked, host),
        "after": dataclasses.asdict(after),
        "after_interval": wilson(after.right, after.asked),
        "elsewhere": dataclasses.asdict(injected.elsewhere(text, model)),
        "between_questions": dataclasses.asdict(injected.elsewhere(asked, model)),
    }


def in_unused(name: str, tolerance: float, held_out: list[str], text: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The measurements of one injection into heads and neurons that the host does not need on some text."""
    data, about = np.asarray(windows(held_out, CONTEXT, MEASURED, seed=11)), {"task": name, "tolerance": tolerance}
    try:
        injected = TASKS[name][0](HOST, route="unused", data=data, tolerance=tolerance)
    except TracrError as refusal:
        return {**about, "refused": refusal.diagnostic.what}
    assert injected.freed is not None
    asked, model = questions(name, held_out, QUESTIONS, seed=7), stock(injected)
    after = injected.check(asked, model)
    return {
        **about,
        "freed_heads": [[layer, *own] for layer, own in injected.freed.heads.items()],
        "freed_neurons": {str(layer): len(own) for layer, own in injected.freed.neurons.items()},
        "divergence": injected.freed.divergence,
        "sizes": {one: getattr(injected.sizes, one) for one in ("width", "heads", "layers", "inner")},
        "after": dataclasses.asdict(after),
        "after_interval": wilson(after.right, after.asked),
        "elsewhere": dataclasses.asdict(injected.elsewhere(text, model)),
    }


@dataclasses.dataclass(frozen=True)
class Training:
    """How a model is trained on text. `frozen`: the added weights do not change."""

    scale: float
    boost: float | None
    rate: float
    frozen: bool
    tasks: tuple[str, ...]


TRAININGS = (
    Training(1e-3, None, 1e-4, True, ("count", "induction", "balanced")),
    Training(1e-3, None, 1e-4, False, ("count", "induction")),
    Training(1.0, 20.0, 1e-4, False, ("count", "induction")),
    Training(1.0, 20.0, 1e-5, False, ("count", "induction")),
)


def fine_tuned(name: str, how: Training, seed: int, texts: list[str], held_out: list[str]) -> list[dict[str, Any]]:
    """The accuracy and the loss after some steps of training on text, in which nothing is asked."""
    host = GPT2LMHeadModel.from_pretrained(HOST).eval()
    injected = TASKS[name][0](host, scale=how.scale, boost=how.boost)
    model, asked = injected.to_transformers(), questions(name, held_out, ASKED, 7, SHORT)
    unseen = windows(held_out, SHORT, 32, seed=5)
    kept = {key: torch.from_numpy(~added) for key, added in injected.added.items()} if how.frozen else {}
    adam = torch.optim.AdamW(model.parameters(), lr=how.rate, weight_decay=0.0)
    data, rows = windows(texts, SHORT, STEPS[-1] * BATCH, 100 + seed), []
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            model.eval()
            with torch.no_grad():
                score, loss = injected.check(asked, model), float(model(unseen, labels=unseen).loss)
            shown = loss if math.isfinite(loss) else None
            rows.append({"step": step, "right": score.right, "asked": score.asked, "loss": shown})
        if step < STEPS[-1]:
            _step(model, adam, data[step * BATCH : (step + 1) * BATCH], kept)
    return rows


def _step(model: Any, adam: Any, ids: torch.Tensor, kept: dict[str, torch.Tensor]) -> None:
    """One step of training; only the weights in `kept` change, if there are any."""
    model.train()
    loss = model(ids, labels=ids).loss
    adam.zero_grad()
    loss.backward()
    for name, weights in model.named_parameters():
        if name in kept:
            weights.grad *= kept[name]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adam.step()


def main() -> None:
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("injections", "fine-tuning", "unused"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    about = json.loads((HOST / "training.json").read_text())
    texts, held_out, digest = corpus(about["characters"], about["seed"])
    found: dict[str, Any] = {"injections": [], "fine_tuning": [], "unused": []}
    if given.output.exists():
        found |= json.loads(given.output.read_text())
    found["same_text_as_host"] = digest == about["sha256_of_text"]
    text = np.asarray(windows(held_out, CONTEXT, WINDOWS, seed=3))

    def save() -> None:
        write_file(given.output, json.dumps(found, indent=1).encode() + b"\n")

    if given.only in (None, "unused"):
        known = {(one["tolerance"], one["task"]) for one in found["unused"]}
        for tolerance, name in itertools.product(TOLERANCES, TASKS):
            if (tolerance, name) not in known:
                found["unused"].append(in_unused(name, tolerance, held_out, text))
                save()
    if given.only in (None, "injections"):
        measured = {(one["scale"], one["task"]) for one in found["injections"]}
        for scale, name in itertools.product(SCALES, TASKS):
            if (scale, name) not in measured:
                found["injections"].append(injection(name, scale, held_out, text))
                save()
    done = [(run["training"], run["task"], run["seed"]) for run in found["fine_tuning"]]
    for seed, how in itertools.product(range(given.seeds), TRAININGS) if given.only in (None, "fine-tuning") else ():
        about_it = {key: value for key, value in dataclasses.asdict(how).items() if key != "tasks"}
        for name in how.tasks:
            if (about_it, name, seed) not in done:
                rows = fine_tuned(name, how, seed, texts, held_out)
                found["fine_tuning"].append({"training": about_it, "task": name, "seed": seed, "rows": rows})
                save()


if __name__ == "__main__":
    main()
