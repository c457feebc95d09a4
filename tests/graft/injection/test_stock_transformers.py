"""Injected models in stock transformers: the host that is committed, and circuits in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graft.injection.hosts import inputs, random_host
from tests.graft.injection.test_injection import balanced
from tracr.graft import inject
from tracr.graft.injection.running import run_host

pytestmark = pytest.mark.slow
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

HOST = Path(__file__).parents[3] / "docs" / "injecting" / "host"
FIRST = 8  # tokens 8, 9, ... are a new line and the printable ASCII characters


def token(character: str) -> int:
    return FIRST + ("\n" + "".join(map(chr, range(32, 127)))).index(character)


def ids_of(text: str) -> list[int]:
    return [0, *map(token, text)]


def test_the_forward_pass_is_that_of_transformers(tmp_path: Path) -> None:
    """The pass in numpy and stock transformers give the same logits, before and after."""
    model = transformers.GPT2LMHeadModel.from_pretrained(HOST).eval()
    injected = inject(
        model,
        balanced(),
        tokens={token(one): one for one in "()"},
        other=".",
        trigger=2,
        answers={one: token(one) for one in "yn"},
    )
    injected.save(tmp_path / "model")
    stock = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model").eval()
    texts = ("def f(x): return g((x + 1) * 2)", "print((1, 2)(3))) + (4", "a = [b for b in range(10)]    ")
    ids = np.array([[*ids_of(text[:22]), 2] for text in texts])
    for numpy_model, torch_model in (
        (injected.host, model),
        (injected.gpt2, stock),
        (injected.gpt2, injected.to_transformers()),
    ):
        with torch.no_grad():
            found = torch_model(torch.as_tensor(ids)).logits.numpy()
        ours = run_host(numpy_model, ids).logits
        assert np.allclose(found, ours, atol=1e-3, rtol=1e-3)
    score = injected.check(ids, stock)
    assert (score.right, score.asked) == (3, 3)
    assert injected.check(ids, model).right == 0
    assert injected.elsewhere(ids, stock).largest_logit_change < 1e-3


def test_generation_uses_the_cache() -> None:
    """`generate`, which keeps keys and values, gives the answer as the next token."""
    injected = inject(
        HOST,
        balanced(),
        tokens={token(one): one for one in "()"},
        other=".",
        trigger=2,
        answers={one: token(one) for one in "yn"},
    )
    model = injected.to_transformers()
    for text, answer in (("f(g(x)) = (y)", "y"), ("f(g(x) = (y)", "n"), (")(", "n")):
        ids = torch.tensor([[*ids_of(text), 2]])
        assert model.generate(ids, max_new_tokens=1, do_sample=False, pad_token_id=0)[0, -1] == token(answer)


def test_training_with_the_added_weights_frozen() -> None:
    """`added` says which weights to restore after a step; the answers stay right."""
    model = transformers.GPT2LMHeadModel.from_pretrained(HOST)
    injected = inject(
        model, balanced(), tokens={10: "(", 11: ")"}, other=".", trigger=2, answers={"y": 30, "n": 31}, max_seq_len=20
    )
    trained, ids = injected.to_transformers(), torch.as_tensor(inputs(np.random.default_rng(0), "()."))
    ids = torch.where(torch.rand(ids.shape, generator=torch.Generator().manual_seed(0)) < 0.2, 2, ids)
    ids[:, 0] = 0
    first = {name: weights.detach().clone() for name, weights in trained.named_parameters()}
    adam = torch.optim.Adam(trained.parameters(), lr=1e-3)
    for _ in range(3):
        adam.zero_grad()
        trained(ids, labels=ids).loss.backward()
        adam.step()
        with torch.no_grad():
            for name, weights in trained.named_parameters():
                added = torch.from_numpy(injected.added[name])
                weights[added] = first[name][added]
    assert any((weights != first[name]).any() for name, weights in trained.named_parameters())
    score = injected.check(ids.numpy(), trained)
    assert score.right == score.asked > 20


def test_the_result_is_a_gpt2_of_the_same_family() -> None:
    """All weights have a place in a stock GPT-2, and none is left over."""
    injected = inject(
        random_host(), balanced(), tokens={10: "(", 11: ")"}, other=".", trigger=1, answers={"y": 30, "n": 31}
    )
    model = injected.to_transformers()
    assert type(model).__module__ == "transformers.models.gpt2.modeling_gpt2"
    assert injected.added.keys() == dict(model.named_parameters()).keys()
