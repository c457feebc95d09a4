"""What a machine with transformers and torch, and without tracr, makes of checkpoints: `python bare_machine.py JOBS`.

JOBS is a JSON file: a list of jobs, each a checkpoint's folder with inputs and what must come out. Prints a JSON list
with, for each, what was wrong.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging


def run(job: dict[str, Any]) -> dict[str, Any]:
    """The words or numbers that come out wrong, and what is generated."""
    tokenizer = AutoTokenizer.from_pretrained(job["folder"])
    model = AutoModelForCausalLM.from_pretrained(job["folder"], attn_implementation=job["attention"])
    found: dict[str, Any] = {"class": type(model).__name__, "wrong": 0, "positions": 0, "off": 0.0, "examples": []}
    for padded in (False, True):
        for texts, expected, logits in batches(job, padded):
            compare(job, found, texts, expected, logits, outputs(tokenizer, model, job, texts))
    found["generated"] = [
        tokenizer.batch_decode(
            model.generate(**tokenizer(texts, return_tensors="pt", padding=True, padding_side="left"), **options),
            skip_special_tokens=True,
        )
        for texts, options in job.get("generate", ())
    ]
    if job.get("card"):
        found["card"] = run_card(Path(job["folder"]))
    return found


def run_card(folder: Path) -> str:
    """What the example in the model card prints."""
    code = (folder / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("\n```")[0]
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(code, {})
    return printed.getvalue()


def batches(job: dict[str, Any], padded: bool) -> list[tuple[list[str], list[Any], list[Any]]]:
    """Inputs of one length each, so that none is padded, or all together."""
    rows = list(zip(job["inputs"], job["expected"], job["logits"], strict=True))
    lengths = [0] if padded else sorted({len(text.split()) for text in job["inputs"]})
    groups = [[row for row in rows if padded or len(row[0].split()) == length] for length in lengths]
    return [tuple(map(list, zip(*group, strict=True))) for group in groups]  # type: ignore[misc]


def outputs(tokenizer: Any, model: Any, job: dict[str, Any], texts: list[str]) -> torch.Tensor:
    """Logits without those at BOS, on a padded batch. Every other batch has no mask for PAD: the weights see to it."""
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    batch, length = inputs.input_ids.shape
    with torch.no_grad():
        if not job["causal"]:
            mask = torch.zeros(batch, 1, length, length)
            return model(inputs.input_ids, attention_mask=mask, use_cache=False).logits[:, 1:]
        if job["mask"]:
            return model(**inputs).logits[:, 1:]
        return model(inputs.input_ids, attention_mask=torch.ones_like(inputs.input_ids)).logits[:, 1:]


def compare(
    job: dict[str, Any],
    found: dict[str, Any],
    texts: list[str],
    expected: list[Any],
    logits: list[Any],
    got: torch.Tensor,
) -> None:
    """Count what differs."""
    for text, wanted, before, after in zip(texts, expected, logits, got, strict=True):
        length = len(wanted)
        found["positions"] += length
        if before is not None:
            found["off"] = max(found["off"], float((after[:length] - torch.tensor(before)).abs().max()))
        if job["column"] is None:
            words = after[:length].argmax(-1).tolist()
            wrong = sum(a != b for a, b in zip(words, wanted, strict=True))
        else:
            words = after[:length, job["column"]].tolist()
            nothing = after[:length, job["none"]].tolist() if job["none"] is not None else [0.0] * length
            wrong = sum(
                (none > 0.5) != (b is None) or (b is not None and abs(a - b) > 1e-4 * max(1.0, abs(b)))
                for a, b, none in zip(words, wanted, nothing, strict=True)
            )
        found["wrong"] += wrong
        if wrong and len(found["examples"]) < 3:
            found["examples"].append([text, words, wanted])


def main() -> None:
    """Run the jobs."""
    assert importlib.util.find_spec("tracr") is None, "this machine has tracr"
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([run(job) for job in jobs]))


if __name__ == "__main__":
    main()
