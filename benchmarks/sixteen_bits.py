"""Runs the library's programs in real sixteen-bit arithmetic in torch, and counts wrong answers.

    PYTHONPATH=src python benchmarks/sixteen_bits.py --inputs 20000                     # on the CPU
    PYTHONPATH=src python benchmarks/sixteen_bits.py --inputs 1000000 --device cuda --out results.json
    PYTHONPATH=src python benchmarks/sixteen_bits.py --compiled-for float32             # what the usual models do

Needs numpy and torch. Every program is made for 8 tokens (2 for `nary_sequencemap`, which takes bits) and inputs of up
to 16 tokens, and compiled for the format (`tracr.compile(..., dtype=...)`). Weights and activations are stored in the
format, products of matrices are added up in float32; on CUDA that needs two settings, which this script makes. The
inputs are all inputs if there are few, else chosen ones (one token only, all different, alternating, one token changed)
and random ones, half of them with few tokens; each is run unpadded and padded. The reference is the table interpreter.
Models are shared out over `--workers` processes; the file is written after every model. `--known FILE` keeps the rows
of an earlier run that are not measured again: models that it lacks come first. After `--seconds` no model is begun.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import platform
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tracr
from tracr.model.verification import chosen_inputs, differs, ids_of
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import Batch, evaluate_batch
from tracr.writing import write_file

LONGEST = 16
ROWS = 8192
BRACKETS = ("pair_balance", "shuffle_dyck", "shuffle_dyck2", "dyck1", "dyck2", "closer")
VOCABULARIES: dict[str, Any] = {
    "frac_prevs": "abcdefgx",
    "hist_bos": "^abcdefg",
    "sort": range(1, 9),
    "sort_unique": range(1, 9),
    "counter": range(8),
    "nary_sequencemap": (0, 1),
    **dict.fromkeys(BRACKETS, "(){}abcd"),
}
Row = dict[str, Any]


def compiled(name: str, level: int, dtype: str) -> tracr.CompiledModel:
    """A program of the library, for 8 tokens and inputs of up to 16."""
    example = EXAMPLES[name].made_for(tuple(VOCABULARIES.get(name, "abcdefgh")), LONGEST)
    return tracr.compile(example.program, example.vocab, LONGEST, level=level, dtype=dtype)


def chosen(size: int, length: int) -> np.ndarray:
    """Inputs unlikely by chance: one token, with one place or a start of another; all different; alternating."""
    places, rows = np.arange(length), []
    for token in range(size):
        other = (token + 1) % size
        rows += [np.full(length, token), (token + places) % size, np.where(places % 2, token, other)]
        rows += [np.where(places == place, other, token) for place in range(length)]
        rows += [np.where(places < place, other, token) for place in range(1, length)]
    return np.array(rows, dtype=np.int32)


def inputs(model: tracr.CompiledModel, count: int) -> Iterator[np.ndarray]:
    """All inputs, or the chosen ones and random ones."""
    batches, total = chosen_inputs(model, count, seed=0)
    shortest, longest = model.program.lengths
    for length in range(shortest, longest + 1) if total > count else ():
        yield chosen(len(model.options.vocab), length)
    yield from batches


def wrong_answers(model: tracr.CompiledModel, dtype: str, device: str, count: int) -> tuple[int, int, list[Any] | None]:
    """How many answers differ from the program's, how many there are, and the first wrong input."""
    module = model.to_torch(dtype=dtype, device=device, check=False)
    wrong = total = 0
    first = None
    longest = model.program.lengths[1]
    for codes in inputs(model, count):
        length = codes.shape[1]
        evaluation = evaluate_batch(model.program, Batch(codes, np.full(len(codes), length, dtype=np.int32)))
        for padded in (False, True) if length < longest else (False,):
            ids = torch.tensor(ids_of(model, codes, padded), device=device)
            with torch.no_grad():
                logits = torch.cat([module(part) for part in ids.split(ROWS)]).float().cpu().numpy()
            off = np.zeros(len(codes), dtype=bool)
            for output, (_, number) in zip(model.outputs, model.program.outputs, strict=True):
                expected = np.broadcast_to(evaluation.codes[number], codes.shape)
                off |= differs(output.domain, expected, output.codes(logits)[:, 1 : length + 1]).any(axis=1)
            off &= ~evaluation.errors
            wrong, total = wrong + int(off.sum()), total + int((~evaluation.errors).sum())
            if first is None and off.any():
                first = [model.options.vocab[code] for code in codes[int(off.argmax())].tolist()]
    return wrong, total, first


def measure(name: str, level: int, dtype: str, compiled_for: str, device: str, count: int, checked: int) -> Row:
    """One row of the result."""
    row: Row = {"program": name, "level": level, "dtype": dtype, "compiled_for": compiled_for}
    start = time.perf_counter()
    try:
        model = compiled(name, level, compiled_for)
    except tracr.TracrError as error:
        return {**row, "refused": str(error).splitlines()[0]}
    row |= {"compile_seconds": round(time.perf_counter() - start, 2), "layers": model.n_layers}
    row |= {"dimensions": model.d_model, "parameters": model.n_parameters}
    if checked:
        found = model.check_format(dtype, checked)
        row |= {"proved": found.proved, "checked": found.inputs}
    row["wrong"], row["answers"], first = wrong_answers(model, dtype, device, count)
    return {**row, "first_wrong": first} if first is not None else row


def main() -> None:
    """Measure, print, and write the result if asked to."""
    parser = argparse.ArgumentParser(description="wrong answers in sixteen-bit arithmetic")
    parser.add_argument("programs", nargs="*", help="programs of the library; all if none is named")
    parser.add_argument("--inputs", type=int, default=4000)
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 2, 0])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float16"])
    parser.add_argument("--compiled-for", help="compile for this format instead of the one that is run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--checked", type=int, default=32, help="inputs of `check_format`; 0: none")
    parser.add_argument("--known", type=Path, help="the file of an earlier run")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = torch.cuda.get_device_name() if given.device == "cuda" else platform.processor() or platform.machine()
    about = {"torch": torch.__version__, "device": device, "inputs": given.inputs, "length": LONGEST}
    cases = itertools.product(given.programs or EXAMPLES, given.levels, given.dtypes)
    settings = given.device, given.inputs, given.checked
    tasks = [(name, level, dtype, given.compiled_for or dtype, *settings) for name, level, dtype in cases]
    known = {key(row): row for row in json.loads(given.known.read_text())["rows"]} if given.known else {}
    tasks.sort(key=lambda task: task[:4] in known)
    end = time.time() + given.seconds
    rows: list[Row] = []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for row in pool.imap_unordered(measure_safely, [(end, *task) for task in tasks], chunksize=1):
            if row is None:
                continue
            print(json.dumps(row), flush=True)
            rows.append(row)
            if given.out is not None:
                every = {**known, **{key(row): row for row in rows}}
                content = {**about, "rows": sorted(every.values(), key=order)}
                write_file(given.out, (json.dumps(content, indent=1) + "\n").encode(), make_folder=True)
    run = [row for row in rows if "wrong" in row]
    wrong, answers = (sum(row[key] for row in run) for key in ("wrong", "answers"))
    print(f"{len(run)} of {len(tasks)} compiled; {wrong:,} wrong of {answers:,} answers")


def order(row: Row) -> tuple[str, int, int]:
    """Rows are sorted by format, level and program."""
    return row["dtype"], row["level"], list(EXAMPLES).index(row["program"])


def key(row: Row) -> tuple[str, int, str, str]:
    """What a row is about."""
    return row["program"], row["level"], row["dtype"], row["compiled_for"]


def measure_safely(given: tuple[Any, ...]) -> Row | None:
    """The row of a task; an exception, such as too little memory, becomes a row too. Runs in a worker.

    Nothing, if it is too late to begin.
    """
    end, *task = given
    if time.time() > end:
        return None
    started = time.perf_counter()
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        row = measure(*task)
        return {**row, "seconds": round(time.perf_counter() - started, 1)}
    except Exception as error:
        row = dict(zip(("program", "level", "dtype", "compiled_for"), task, strict=False))
        return {**row, "failed": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    main()
