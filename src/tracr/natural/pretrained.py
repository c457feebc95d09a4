"""Twins as GPT-2 checkpoints, which stock `transformers` loads without this package.

The folder is that of a compiled model (`adapters/huggingface/checkpoint.py`), with the twin itself in `twin`. A twin
already has GPT-2's architecture: d_model is the heads' total width, and all layers have the same size. Queries
are multiplied by √d_head, by which GPT-2 divides scores.

**Head.** GPT-2's head has a row for every word. The rows of an output's values are the twin's columns, so that logits
are the twin's own. Other words must not have the largest logit. Their logit is a constant: after a layer norm without
weights the stream y has mean 0 and |y| <= √d_model, so the logit of a column u is at least -√d_model |u|, and the
constant is 32 below the least of these bounds. The head has no bias for it, but the last layer norm has one, of ones: a
row c/d_model gives c (1 + mean of y) = c. Rows of values have mean 0: subtracting it changes nothing, as y has mean 0,
and the bias of ones then adds nothing.

**Numbers** get a column: the logit of the word `<number>` is the twin's number.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.adapters.huggingface.card import block, front_matter, page, plain, shortened, usage
from tracr.adapters.huggingface.checkpoint import checkpoint_files, chosen_output, dump, is_ours, is_unchanged
from tracr.adapters.huggingface.gpt2 import GPT2Shape, config_json, gpt2_tensors
from tracr.adapters.huggingface.head import MARGIN, WordHead, head_of
from tracr.errors import FormatError, TracrError
from tracr.ir.domains import Finite
from tracr.natural.architecture import NORM_EPSILON
from tracr.natural.saving import files_of
from tracr.natural.saving import load as load_twin
from tracr.saving.folders import write_folder
from tracr.saving.models import PARAMETERS, check_target
from tracr.writing import written_to

if TYPE_CHECKING:
    from tracr.natural.twin_model import TwinModel
    from tracr.runtime.outputs import Output

__all__ = ["load", "save_pretrained", "twin_head"]

Array = NDArray[Any]
FORMAT, FOLDER = "tracr twin checkpoint", "twin"


def save_pretrained(twin: TwinModel, folder: str | Path, *, output: str | None = None, overwrite: bool = False) -> None:
    """Write the twin as a GPT-2 checkpoint; see `TwinModel.save_pretrained`."""
    if not twin.architecture.layer_norm:
        raise TracrError("GPT-2 has layer norms, and this twin has none", hint="train it with layer_norm=True")
    chosen = chosen_output(twin.outputs, output)
    path = Path(folder).resolve()
    with written_to(path):
        check_target(path, overwrite, is_ours(path, FORMAT, FOLDER))
    shape, head = _shape(twin), twin_head(twin, chosen)
    rows, bias = _rows(head)
    files = {
        **checkpoint_files(
            FORMAT,
            config_json(shape, head, twin.architecture.activation, NORM_EPSILON),
            gpt2_tensors(twin.parameters, shape, rows, bias),
            head,
            {"output": chosen.name, "numbers": "column"},
        ),
        "ground_truth.json": dump(twin.ground_truth.to_json()),
        "README.md": _card(twin, chosen, head).encode(),
    }
    write_folder(path, {**files, **{f"{FOLDER}/{name}": data for name, data in files_of(twin).items()}})


def load(folder: Path, *, max_parameters: int = PARAMETERS) -> TwinModel:
    """The twin of a checkpoint with unchanged weights."""
    try:
        unchanged = is_unchanged(folder)
    except TracrError as error:
        raise FormatError(
            f"{folder} is not a twin that can be loaded: {error.diagnostic.what}", hint="save the twin again"
        ) from None
    if not unchanged:
        raise FormatError(
            f"the weights in {folder} were changed, and a twin's measurements are of its own weights",
            hint=f"load {folder / FOLDER} for the twin, or use transformers for the changed model",
        )
    return load_twin(folder / FOLDER, max_parameters=max_parameters)


def _shape(twin: TwinModel) -> GPT2Shape:
    sizes = twin.architecture
    return GPT2Shape(sizes.layers, sizes.heads, sizes.d_head, sizes.d_mlp, len(twin.parameters.W_pos))


def twin_head(twin: TwinModel, output: Output) -> WordHead:
    """The logits of an output; words that are not its values have a constant."""
    head = head_of(twin, output, "column", margin=1.0)
    if head.kind == "column":
        return head
    least = -math.sqrt(twin.d_model) * float(np.linalg.norm(head.rows, axis=1).max()) - MARGIN
    constants = np.full(len(head.rows), least)
    constants[[number for _, number in head.decoded]] = 0.0
    return replace(head, constants=constants)


def _rows(head: WordHead) -> tuple[Array, Array]:
    """The rows of the head with their constants, and the bias of the last layer norm."""
    width = head.rows.shape[1]
    rows = head.rows - head.rows.mean(axis=1, keepdims=True)
    return rows + head.constants[:, None] / width, np.ones(width)


def _card(twin: TwinModel, output: Output, head: WordHead) -> str:
    sizes, longest = twin.architecture, twin.teacher.program.lengths[1]
    truth = twin.ground_truth
    known = "was admitted" if twin.admitted else "was **not admitted**: what is said here may not hold"
    return page(
        [
            front_matter(),
            f"# {plain(output.name)}",
            f"A GPT-2 that was trained to compute a RASP program, by the mechanism of the model that Tracr compiles "
            f"from it: {sizes.layers} layer{'s' if sizes.layers > 1 else ''}, {sizes.width} dimensions, inputs of at "
            f"most {longest} tokens. It {known}.",
            *usage(twin.teacher, head, f"Trained for {twin.steps:,} steps with seed {twin.seed}"),
            _rounding(output) if head.kind == "column" else "",
            "## What was measured",
            block(shortened(str(twin.admission))),
            "## Ground truth",
            "The nodes and edges of the compiled model, with their measurements in this one. `ground_truth.json` has "
            "them as data. The directions of variables are not known.",
            block(shortened(truth.show())),
            "The weights were measured in float32, the default of `from_pretrained`; nothing is known about them in "
            "shorter formats.",
            "The folder `twin` holds the twin with its compiled model: `tracr.load` of this folder gives it back. "
            "transformers does not read it.",
        ]
    )


def _rounding(output: Output) -> str:
    """How a number becomes an answer."""
    text = (
        "There is no number (`None`) where the logit of the word `None` is above 1/2. "
        if output.stop - output.start > 1
        else ""
    )
    if not isinstance(output.domain, Finite):
        return text
    values = [output.domain.values[code] for code in output.domain.ascending[0]]
    return f"{text}The answer is the nearest of these values:\n\n{block(shortened(chr(10).join(map(str, values))))}"
