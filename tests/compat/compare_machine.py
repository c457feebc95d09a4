"""Run by `test_auto_circuit.py` in an environment with auto-circuit, where tracr was installed over the original Tracr.

Prints, as JSON, where `tracr` is and what auto-circuit's models answer to every input, numbers and decoded values.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")  # the libraries' own

with contextlib.redirect_stdout(sys.stderr):
    import torch
    from auto_circuit.model_utils.tracr_model_utils import MAX_SEQ_LEN, get_tracr_model

    import tracr


def answers(task: str, vocab: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """Every input with what the converted model says to it."""
    lens, model = get_tracr_model(task, "cpu")
    found = []
    for length in range(1, MAX_SEQ_LEN + 1):
        inputs = [list(xs) for xs in itertools.product(vocab, repeat=length)]
        ids = torch.tensor([model.input_encoder.encode(["BOS", *xs]) for xs in inputs])
        with torch.no_grad():
            logits = lens(ids)[:, 1:]
        for xs, own in zip(inputs, logits, strict=True):
            numbers = own[:, 0].tolist()
            found.append((xs, model.output_encoder.decode(own.argmax(-1).tolist()) if task == "reverse" else numbers))
    return found


print(
    json.dumps(
        {
            "tracr": tracr.__file__,
            "version": tracr.__version__,
            "reverse": answers("reverse", [1, 2, 3]),
            "xproportion": answers("xproportion", list("wxyz")),
        }
    )
)
