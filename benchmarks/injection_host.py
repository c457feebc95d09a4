"""Trains the host of docs/injecting.md: a GPT-2 of four layers that reads characters.

    python benchmarks/injection_host.py -o docs/injecting/host   # needs the extras `torch` and `hf`

The text is the Python source of some packages that are installed with tracr's extras, read in a fixed order. The
weights depend on their versions, which `training.json` beside the weights records, with the digest of the text.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tracr.writing import write_file

PACKAGES = ("numpy", "safetensors", "hypothesis", "pytest", "transformers")
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
BOS, UNKNOWN, MARKERS = 0, 1, tuple(range(2, 8))
"""The first token of every input, characters that are not ASCII, and tokens that no text has."""
FIRST = 8
CONTEXT = 128
SIZES = {"n_embd": 96, "n_head": 4, "n_layer": 4}
LARGEST = 100_000  # characters of one file
HELD_OUT = 20  # one file in so many is not trained on


def encode(text: str) -> list[int]:
    """The tokens of a text, without BOS."""
    return [FIRST + CHARACTERS.index(one) if one in CHARACTERS else UNKNOWN for one in text]


def files() -> Iterator[tuple[str, str]]:
    """The source files of the packages, in order, with their texts."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")[:LARGEST]
            if len(text) > CONTEXT:
                yield f"{package}/{path.relative_to(root)}", text


def corpus(characters: int, seed: int) -> tuple[list[str], list[str], str]:
    """Texts to train on, held-out texts, and the digest of both."""
    listed = list(files())
    random.Random(seed).shuffle(listed)
    chosen, total = [], 0
    for _, text in listed:
        if total < characters:
            chosen.append(text)
            total += len(text)
    digest = hashlib.sha256("\0".join(chosen).encode()).hexdigest()
    kept = [text for place, text in enumerate(chosen) if place % HELD_OUT]
    return kept, chosen[::HELD_OUT], digest


def windows(texts: list[str], size: int, count: int, seed: int) -> torch.Tensor:
    """Random windows of the texts, each after BOS."""
    ids, draw = torch.tensor(encode("\n".join(texts))), random.Random(seed)
    starts = [draw.randrange(len(ids) - size) for _ in range(count)]
    return torch.stack([torch.cat([torch.tensor([BOS]), ids[start : start + size - 1]]) for start in starts])


def train(steps: int, batch: int, seed: int, texts: list[str]) -> GPT2LMHeadModel:
    """The trained model."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=FIRST + len(CHARACTERS), n_positions=CONTEXT, bos_token_id=BOS, eos_token_id=BOS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **SIZES,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, total_steps=steps, pct_start=0.1)
    data, began = windows(texts, CONTEXT, steps * batch, seed), time.monotonic()
    for step in range(steps):
        ids = data[step * batch : (step + 1) * batch]
        loss = model(ids, labels=ids).loss
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"{step:5d}  {loss.item():.3f}  {time.monotonic() - began:.0f} s", flush=True)
    return model.eval()


def held_out_loss(model: Any, texts: list[str], count: int = 64) -> float:
    """The mean loss, in nats per character, on windows of held-out texts."""
    ids = windows(texts, CONTEXT, count, seed=1)
    with torch.no_grad():
        return float(model(ids, labels=ids).loss)


def main() -> None:
    """Train, save and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--characters", type=int, default=3_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts, held_out, digest = corpus(given.characters, given.seed)
    model = train(given.steps, given.batch, given.seed, texts)
    model.save_pretrained(given.output)
    about = {
        "steps": given.steps,
        "batch": given.batch,
        "characters": given.characters,
        "seed": given.seed,
        "sha256_of_text": digest,
        "versions": {name: importlib.metadata.version(name) for name in (*PACKAGES, "torch")},
        "held_out_loss": held_out_loss(model, held_out),
    }
    write_file(given.output / "training.json", json.dumps(about, indent=1).encode() + b"\n")
    print(about["held_out_loss"])


if __name__ == "__main__":
    main()
