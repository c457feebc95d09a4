"""Models and brute force for the tests of the checker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tracr
from tracr.certificate.hints import hints
from tracr.model.compiled import CompiledModel
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.saving.models import files_of
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.checking import VERSION
from tracr_check.files import CERTIFICATE, CONTENT, MODEL, TABLES, WEIGHTS, parse_json, parse_tensors, sha256
from tracr_check.following import Follower
from tracr_check.program import Program
from tracr_check.program_file import read_program
from tracr_check.proving import Claim, prove
from tracr_check.verdict import Rejected


@cache
def example(name: str, level: int = 2, length: int = 4) -> CompiledModel:
    """A program of the library for a short length."""
    made = EXAMPLES[name].made_for(EXAMPLES[name].vocab, length)
    return tracr.compile(made.program, made.vocab, length, level=level)


@cache
def drawn(seed: int, level: int = 2, *, composite: bool = True, causal: bool = False) -> CompiledModel:
    """A random program of length 4 over three letters."""
    program = random_program([20, seed], max_seq_len=4, composite=composite, causal=causal)
    return tracr.compile(program, "abc", 4, level=level, causal=causal)


def certificate(content: dict[str, bytes], model: CompiledModel) -> dict[str, Any]:
    """The certificate of a model with these files."""
    digests = {name: sha256(content[name]) for name in CONTENT}
    return {"version": VERSION, "sha256": digests, "arithmetic": "float32", "padded": True, **hints(model)}


def write(model: CompiledModel, folder: Path) -> dict[str, bytes]:
    """A folder with the model and its certificate; the files."""
    content = files_of(model)
    content[CERTIFICATE] = json.dumps(certificate(content, model)).encode()
    folder.mkdir(exist_ok=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return content


def write_saved(files: dict[str, bytes], folder: Path) -> None:
    """Write the files of a saved model, altered or not, with a manifest that has their digests."""
    manifest = json.loads(files["manifest.json"])
    for name in manifest["files"]:
        manifest["files"][name] = {"bytes": len(files[name]), "sha256": sha256(files[name])}
    for name, data in {**files, "manifest.json": json.dumps(manifest).encode()}.items():
        (folder / name).write_bytes(data)


class Parsed:
    """A model as the checker reads it, to be checked with other weights."""

    def __init__(self, model: CompiledModel) -> None:
        content = files_of(model)
        self.model = parse_json(content[MODEL], MODEL)
        self.tables = parse_tensors(content[TABLES], TABLES)
        self.weights = parse_tensors(content[WEIGHTS], WEIGHTS)
        self.hints = json.loads(json.dumps(hints(model)))

    def program(self) -> Program:
        """The program, read anew."""
        return read_program(self.model, self.tables)

    def reason(self, weights: Any = None, arithmetic: str = "float32", padded: bool = True) -> str:
        """Why weights are rejected; empty if they are accepted."""
        try:
            claim = Claim(self.program(), self.model["outputs"], self.hints, ARITHMETICS[arithmetic], padded)
            prove(claim, claim.weights(self.weights if weights is None else weights), Follower())
        except Rejected as rejected:
            return f"{rejected.reason} ({rejected.place})"
        return ""


def evaluations(model: CompiledModel) -> list[Evaluation]:
    """The program on every input, by length; inputs on which it is undefined are left out."""
    found = []
    low, high = model.program.lengths
    for length in range(low, high + 1):
        codes = np.array(list(itertools.product(range(len(model.options.vocab)), repeat=length)), dtype=np.int32)
        run = evaluate_batch(model.program, Batch(codes, np.full(len(codes), length, dtype=np.int32)))
        kept = codes[~run.errors]
        if len(kept):
            found.append(evaluate_batch(model.program, Batch(kept, np.full(len(kept), length, dtype=np.int32))))
    return found


def codes_of(run: Evaluation, number: int) -> NDArray[Any]:
    """The codes of an s-op, [input, position]."""
    return np.broadcast_to(run.codes[number], run.batch.codes.shape)


def network(weights: Any, ids: NDArray[Any], causal: bool = False) -> NDArray[np.float32]:
    """The logits in float32, by numpy."""
    w = {name: array.astype(np.float32) for name, array in weights.items()}
    x = w["embed.W_E"][ids] + w["pos_embed.W_pos"][: ids.shape[1]]
    hidden = ~np.tril(np.ones((ids.shape[1], ids.shape[1]), dtype=bool)) if causal else None
    for layer in range(len({name.split(".")[1] for name in w if name.startswith("blocks.")})):
        attn, mlp = ({k: w[f"blocks.{layer}.{part}.{k}"] for k in keys} for part, keys in PARTS)
        out = np.zeros_like(x)
        for h in range(len(attn["W_Q"])):
            q, k, v = (x @ attn[f"W_{one}"][h] + attn[f"b_{one}"][h] for one in "QKV")
            scores = q @ k.transpose(0, 2, 1)
            if hidden is not None:
                scores = np.where(hidden, -np.inf, scores)
            e = np.exp(scores - scores.max(-1, keepdims=True))
            out += (e / e.sum(-1, keepdims=True)) @ v @ attn["W_O"][h]
        x = x + (out + attn["b_O"])
        x = x + (np.maximum(x @ mlp["W_in"] + mlp["b_in"], 0) @ mlp["W_out"] + mlp["b_out"])
    return np.asarray(x @ w["unembed.W_U"], dtype=np.float32)


def stored_network(
    weights: Any,
    ids: NDArray[Any],
    stored: Callable[[NDArray[Any]], NDArray[np.float32]],
    neurons: list[NDArray[Any]] | None = None,
) -> NDArray[np.float64]:
    """Logits with every stored number rounded to a format, and sums in float32; a bias is added to a stored sum.

    What the neurons of each layer hold is added to `neurons`.
    """
    w = {name: stored(array) for name, array in weights.items()}
    x = stored(w["embed.W_E"][ids] + w["pos_embed.W_pos"][: ids.shape[1]])
    for layer in range(len({name.split(".")[1] for name in w if name.startswith("blocks.")})):
        a, m = (f"blocks.{layer}.{part}." for part in ("attn", "mlp"))
        out = np.zeros_like(x)
        for h in range(len(w[a + "W_Q"])):
            q, k, v = (stored(stored(x @ w[f"{a}W_{one}"][h]) + w[f"{a}b_{one}"][h]) for one in "QKV")
            scores = stored(q @ k.transpose(0, 2, 1))
            e = np.exp(scores - scores.max(-1, keepdims=True))
            out += stored(stored(e / e.sum(-1, keepdims=True)) @ v) @ w[a + "W_O"][h]
        x = stored(x + stored(stored(out) + w[a + "b_O"]))
        hidden = np.maximum(stored(stored(x @ w[m + "W_in"]) + w[m + "b_in"]), 0)
        if neurons is not None:
            neurons.append(hidden)
        x = stored(x + stored(stored(hidden @ w[m + "W_out"]) + w[m + "b_out"]))
    return np.asarray(x @ w["unembed.W_U"], np.float64)


PARTS = (
    ("attn", ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O", "b_O")),
    ("mlp", ("W_in", "b_in", "W_out", "b_out")),
)


class Exhaustive:
    """Runs weights on every input, without padding and with all of it."""

    def __init__(self, model: CompiledModel) -> None:
        self.model, self.cases = model, []
        for run in evaluations(model):
            length = run.batch.codes.shape[1]
            wanted = [codes_of(run, number) for _, number in model.program.outputs]
            for width in {length, model.options.max_seq_len}:
                ids = np.full((len(run.batch.codes), width + 1), model.vocabulary.pad_id)
                ids[:, 0], ids[:, 1 : length + 1] = model.vocabulary.bos_id, run.batch.codes
                self.cases.append((ids, length, wanted))

    def wrong(self, weights: Any) -> bool:
        """Whether any answer is wrong."""
        with np.errstate(all="ignore"):
            for ids, length, wanted in self.cases:
                logits = network(weights, ids, self.model.options.causal)[:, 1 : length + 1]
                if not np.isfinite(logits).all():
                    return True
                for output, codes in zip(self.model.outputs, wanted, strict=True):
                    if (output.codes(logits) != codes).any():
                        return True
        return False


def mutant(weights: Any, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Weights with one number changed."""
    names = [name for name in weights if weights[name].size]
    while True:
        name = names[rng.integers(len(names))]
        array = weights[name].copy()
        flat = array.reshape(-1)
        used = np.flatnonzero(flat)
        if len(used) and rng.random() < 0.7:
            flat[rng.choice(used)] *= rng.choice([1 + 2e-7, 1 + 1e-5, 1.001, 1.03, 0.8, 1.5, -1.0, 0.0])
        else:
            place = rng.integers(flat.size)
            if flat[place] != 0:
                continue
            flat[place] = rng.choice([1e-6, 1e-3, 0.05, 0.5, -0.5, 1.0, -3.0, 300.0])
        return {**weights, name: array}
