"""TransformerLens's own loader of Tracr models takes ours: `pip install transformer-lens` (4 or newer)."""

from __future__ import annotations

import random
import warnings

import pytest

import tracr
from tests.agreement import some_inputs
from tracr.compiler.compiling import compile_rasp_to_model
from tracr.rasp import programs
from tracr.rasp.interpreter import evaluate

# In the same process torch and TransformerLens warn of things that are not ours.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    loader = pytest.importorskip("transformer_lens.utilities.tracr")
    bridge = pytest.importorskip("transformer_lens.model_bridge")
    sources = pytest.importorskip("transformer_lens.model_bridge.sources")

LABEL_IS_INFERRED = [
    *("length", "reverse", "hist", "sort_unique", "sort", "sort_freq", "count", "shift_by", "count_less_freq")
]
LABEL_IS_GIVEN = ["shuffle_dyck", "shuffle_dyck2", "detect_pattern"]
CAUSAL = ["length", "hist", "shift_by"]


@pytest.mark.parametrize(
    ("name", "causal"),
    [(name, False) for name in LABEL_IS_INFERRED + LABEL_IS_GIVEN] + [(name, True) for name in CAUSAL],
)
def test_transformer_lens_computes_the_program(name: str, causal: bool) -> None:
    """Its answers are the interpreter's, on inputs of every length, padded too."""
    example = programs.EXAMPLES[name]
    model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len, causal=causal)
    label = None if name in LABEL_IS_INFERRED else model.output_label
    loaded = bridge.TransformerBridge.boot_native(loader.make_tracr_transformer_bridge_config(model))
    weights = loader.make_tracr_transformer_bridge_state_dict(model, label)
    # Not strict: the loader gives no bias for the unembedding, and the bridge lists its MLPs under two names.
    assert not loaded.load_state_dict(weights, strict=False).unexpected_keys
    compared = 0
    for xs in some_inputs(example.vocab, example.max_seq_len, 20, seed=random.Random(name).randrange(1000)):
        try:
            expected = evaluate(example.program, xs, causal=causal)
        except tracr.EvaluationError:
            continue
        padding = ["compiler_pad"] * (example.max_seq_len - len(xs))
        for tokens in (["compiler_bos", *xs], ["compiler_bos", *xs, *padding]):
            with torch.no_grad():
                logits = loaded(torch.tensor([model.input_encoder.encode(tokens)]), return_type="logits")
            decoded = model.output_encoder.decode(logits[0].argmax(-1).tolist())
            assert decoded[1 : len(xs) + 1] == expected
        compared += 1
    assert compared


def test_the_inferred_label_is_the_outputs() -> None:
    """Where only one variable has the output's values, the loader finds it."""
    for name in LABEL_IS_INFERRED:
        example = programs.EXAMPLES[name]
        model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len)
        assert loader.infer_tracr_output_label(model) == model.output_label
