"""Programs drawn by the sampler of a checkout of decompile-tracr, and its examples."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from examining import Given

NAME = "decompile-tracr"
VERSIONS = {"rasp_gen": ("sample.sample", "dataset.lib"), "decompile_tracr": ("sampling.sampling", "dataset.lib")}
"""The project's package in its versions, with the modules of the sampler and of the examples."""
VOCAB = tuple(range(5))  # the sampler tries its programs on inputs of these
LENGTH = 5
LENGTHS = range(4, 12)  # of programs, in operations


def recognised(folder: Path) -> bool:
    """Whether a folder is a checkout of decompile-tracr."""
    return any(_sampler(folder, package).is_file() for package in VERSIONS)


def _sampler(folder: Path, package: str) -> Path:
    return folder / package / (VERSIONS[package][0].replace(".", "/") + ".py")


def programs(folder: Path, samples: int) -> Iterator[Given]:
    """The examples, and `samples` programs of lengths in turn, from seeds 0, 1, 2 ..."""
    package = next(name for name in VERSIONS if _sampler(folder, name).is_file())
    sampler, library = (f"{package}.{module}" for module in VERSIONS[package])
    sys.path.insert(0, str(folder))
    try:
        count = len(importlib.import_module(library).examples)
    except Exception:  # an older version, or a library that it needs is missing
        count = 0
    for number in range(count):
        yield Given(f"example {number}", _example(library, number), VOCAB, LENGTH)
    for seed in range(samples):
        yield Given(f"sample {seed}", _sample(sampler, seed), VOCAB, LENGTH)


def _example(library: str, number: int) -> Callable[[], Any]:
    return lambda: importlib.import_module(library).examples[number]


def _sample(sampler: str, seed: int) -> Callable[[], Any]:
    def build() -> Any:
        length = LENGTHS[seed % len(LENGTHS)]
        return importlib.import_module(sampler).sample(np.random.default_rng(seed), program_length=length)

    return build
