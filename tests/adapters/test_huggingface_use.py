"""Checkpoints in stock transformers as people use them: `pipeline`, fine-tuning and back, other number formats."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import load_compiled
from tracr.adapters.huggingface.head import MARGIN, head_of
from tracr.rasp import programs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """No progress bars; warnings of transformers reach `caplog`."""
    logging = transformers.utils.logging
    logging.disable_progress_bar()
    logging.enable_propagation()
    yield
    logging.disable_propagation()


def induction(folder: Path, vocab: Any) -> tracr.CompiledModel:
    model = tracr.compile(programs.make_induction(), vocab, 10, causal=True)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize(
    ("vocab", "prompt", "full"),
    [
        ("abc", "a b c a", "a b c a b c a b c a b"),
        (["a", " ", "b c"], "a ␣ b␣c a", "a ␣ b␣c a ␣ b␣c a ␣ b␣c a ␣"),
        ([".", "*", "bo"], ". * bo .", ". * bo . * bo . * bo . *"),
    ],
)
def test_pipelines_keep_spaces(tmp_path: Path, vocab: Any, prompt: str, full: str, caplog: Any) -> None:
    """Text in, text out, a space between any two words, and nothing to warn of."""
    induction(tmp_path / "model", vocab)
    pipe = transformers.pipeline("text-generation", model=str(tmp_path / "model"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((written,),) = ([found["generated_text"] for found in pipe(prompt)],)
    assert written == full
    assert pipe(prompt, max_length=6)[0]["generated_text"].split() == full.split()[:5]
    pipe.model.generation_config.max_length = None
    assert pipe(prompt, max_new_tokens=2)[0]["generated_text"].split() == full.split()[:6]
    assert not [record for record in caplog.records if "max_length" in record.getMessage()]
    ids = pipe.tokenizer(prompt).input_ids
    assert pipe.tokenizer.decode(ids) == f"bos {prompt}"
    assert pipe.tokenizer(pipe.tokenizer.decode(ids[1:])).input_ids == ids


def test_a_model_fine_tuned_in_transformers_comes_back(tmp_path: Path) -> None:
    """Saved unchanged it has its own weights; trained, it has transformers' logits and the labels."""
    folder = tmp_path / "model"
    model = induction(folder, "abc")
    tuned = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tuned.save_pretrained(folder)
    assert load_compiled(folder).own_weights
    inputs = tokenizer("a b c a", return_tensors="pt")
    optimiser = torch.optim.AdamW(tuned.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        tuned(**inputs, labels=inputs.input_ids).loss.backward()
        optimiser.step()
    tuned.save_pretrained(folder)
    trained = load_compiled(folder)
    assert not trained.own_weights
    assert trained.residual.labels == model.residual.labels
    with torch.no_grad():
        wanted = tuned.eval()(**inputs).logits.numpy()
    words = [number for _, number in head_of(model.with_layer_norm(), model.outputs[0], "auto").decoded]
    found = trained.logits(inputs.input_ids.numpy())
    np.testing.assert_allclose(found, wanted[..., words] / MARGIN, atol=1e-4)
    np.testing.assert_allclose(trained.to_torch()(inputs.input_ids).detach().numpy(), found, atol=1e-4)
    with pytest.raises(tracr.TracrError, match="layer norms may change what it computes"):
        trained.to_transformer_lens()  # its tools would leave them out


def test_float16_is_not_quietly_wrong(tmp_path: Path) -> None:
    """As the card says: every logit is NaN; float32 is the default."""
    folder = tmp_path / "model"
    induction(folder, "abc")
    inputs = transformers.AutoTokenizer.from_pretrained(folder)("a b c a", return_tensors="pt")
    default = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert default.dtype is torch.float32
    half = transformers.AutoModelForCausalLM.from_pretrained(folder).half()
    assert half(**inputs).logits.isnan().all()
    assert "Do not load them with `dtype=torch.float16`" in (folder / "README.md").read_text()
