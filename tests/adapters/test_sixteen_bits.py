"""Models compiled for bfloat16 and float16, in torch's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.model.verification import chosen_inputs, differs, ids_of
from tracr.rasp import programs
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import Batch, evaluate_batch

torch = pytest.importorskip("torch")

QUICK = ("hist", "frac_prevs", "sort_composite")
CASES = [
    pytest.param(name, dtype, marks=[] if name in QUICK else pytest.mark.slow)
    for name in EXAMPLES
    for dtype in ("bfloat16", "float16")
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_library_programs_are_right_in_torch(name: str, dtype: str) -> None:
    """Stored in the format, with torch's products: the outputs are the program's, padded and unpadded."""
    example = EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, dtype=dtype)
    module = model.to_torch(dtype=dtype)
    for codes in chosen_inputs(model, 300, seed=2)[0]:
        length = codes.shape[1]
        evaluation = evaluate_batch(model.program, Batch(codes, np.full(len(codes), length, dtype=np.int32)))
        for padded in (False, True):
            with torch.no_grad():
                logits = module(torch.tensor(ids_of(model, codes, padded))).float().numpy()
            (output,), ((_, number),) = model.outputs, model.program.outputs
            expected = np.broadcast_to(evaluation.codes[number], codes.shape)
            wrong = differs(output.domain, expected, output.codes(logits)[:, 1 : length + 1]).any(axis=1)
            assert not (wrong & ~evaluation.errors).any()


def test_other_formats_are_still_checked() -> None:
    """A model for bfloat16 needs a proof for autocast, where activations are float32."""
    model = tracr.compile(programs.make_hist(), "ab", 4, dtype="bfloat16")
    module = model.to_torch(dtype="float32")
    ids = module.encode("abba")
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(tracr.PrecisionError):
        module(ids)
    assert module.decode(module(ids), ids) == [[2, 2, 2, 2]]
