"""Twins in torch, TransformerLens and stock transformers compute what the numpy twin does."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.natural.twins import KINDS, batches, exact, inputs_of, students, untrained
from tracr.errors import InputError, PrecisionError, TracrError
from tracr.natural.pretrained import twin_head
from tracr.natural.twin_model import TwinModel

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")

STUDENTS = students()


@pytest.fixture(params=[(name, *kind) for name in STUDENTS for kind in KINDS], ids=str)
def twin(request: pytest.FixtureRequest) -> TwinModel:
    """Both masks, numbers, several outputs; each activation function, with and without layer norms."""
    name, activation, layer_norm, d_head = request.param
    return untrained(STUDENTS[name], activation, layer_norm=layer_norm, d_head=d_head)


def agree(found: Any, twin: TwinModel, ids: Any) -> None:
    expected, allowed = exact(twin, ids)
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=allowed, rtol=0)


def test_torch(twin: TwinModel) -> None:
    """Logits, decoded answers, weights and every activation, under their names."""
    module = twin.to_torch()
    for ids in batches(twin):
        agree(module(torch.tensor(ids)), twin, ids)
    inputs = inputs_of(twin)
    ids = module.encode(inputs)
    assert module.decode(module(ids).detach(), ids) == twin(inputs)
    assert {name: tuple(weight.shape) for name, weight in module.state_dict().items()} == {
        name: array.shape for name, array in twin.parameters.named()
    }
    run, seen = twin.run(inputs), {}
    for name in run:
        module.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: seen.update({name: out}))
    copy.deepcopy(module)(ids)
    module(ids)
    assert list(seen) == list(run)
    for name, tensor in seen.items():
        np.testing.assert_allclose(tensor.detach().numpy(), run[name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_torch_formats_and_training() -> None:
    """Shorter formats are refused at once and after a cast; every weight gets a gradient; no way to a saved model."""
    twin = untrained(STUDENTS["hist"])
    ids = torch.tensor(twin.encode("abca"))
    with pytest.raises(PrecisionError, match="nothing is known about it in bfloat16"):
        twin.to_torch(dtype="bfloat16")
    with pytest.raises(PrecisionError, match="float16"):
        twin.to_torch().half()(ids)
    assert twin.to_torch(dtype="bfloat16", check=False)(ids).dtype is torch.bfloat16
    assert twin.to_torch(dtype=np.float64)(ids).dtype is torch.float64
    assert not twin.to_torch(trainable=False)(ids).requires_grad
    module = twin.to_torch()
    module(ids)[0].square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad is not None
        assert name.endswith("b_K") or weight.grad.abs().max() > 0, name
    assert module.twin is twin
    for refused in (module.to_compiled, lambda: module.save("x")):
        with pytest.raises(TracrError):
            refused()
    for options in ({"dtype": "int32"}, {"trainable": 1}, {"check": "no"}):
        with pytest.raises(TracrError):
            twin.to_torch(**options)
    with pytest.raises(InputError, match="the shape"):
        module(ids[0])


class TestTransformerLens:
    """TransformerLens, with its own arithmetic in the bridge."""

    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        """Skip where it is missing."""
        pytest.importorskip("transformer_lens")

    def test_hooked(self, twin: TwinModel) -> None:
        """Logits and every activation of `run`."""
        model = twin.to_transformer_lens()
        for ids in batches(twin):
            agree(model(torch.tensor(ids)), twin, ids)
        inputs = inputs_of(twin)
        logits, cache = model.run_with_cache(inputs)
        assert model.decode(logits.detach(), model.to_tokens(inputs)) == twin(inputs)
        for name, array in twin.run(inputs).items():
            tensor = cache[name].detach().numpy() if name != "logits" else logits.detach().numpy()
            expected = array[:, :, None] if tensor.ndim > array.ndim else array  # `ln1` of each head's own input
            np.testing.assert_allclose(
                tensor, np.broadcast_to(expected, tensor.shape), rtol=1e-4, atol=1e-4, err_msg=name
            )

    def test_bridge(self, twin: TwinModel) -> None:
        """Its own arithmetic gives the same logits."""
        bridge = twin.to_transformer_lens(bridge=True)
        for ids in batches(twin):
            agree(bridge(torch.tensor(ids)), twin, ids)

    def test_tools_apply_the_layer_norms(self, twin: TwinModel) -> None:
        """Parts of the stream, normalised as the last layer norm does, add up to the logits."""
        model = twin.to_transformer_lens()
        ids = torch.tensor(twin.encode(inputs_of(twin)))
        _, cache = model.run_with_cache(ids)
        agree(cache.decompose_resid(apply_ln=True).sum(dim=0) @ model.W_U, twin, ids.numpy())
        agree(cache.accumulated_resid(apply_ln=True)[-1] @ model.W_U, twin, ids.numpy())
        if twin.architecture.layer_norm:
            with pytest.raises(KeyError, match="hook_scale"):  # each head has a scale of its own
                cache.apply_ln_to_stack(cache.decompose_resid(layer=0), layer=0)
            last = cache["blocks.0.hook_resid_mid"][None]
            normed = cache.apply_ln_to_stack(last, layer=0, mlp_input=True)[0]
            torch.testing.assert_close(normed, cache["blocks.0.ln2.hook_normalized"])
        else:
            assert not any("hook_scale" in name for name in cache)

    def test_hooks_change_the_pass(self) -> None:
        """A replaced scale and a replaced normalised stream reach the logits."""
        twin = untrained(STUDENTS["hist"])
        model, ids = twin.to_transformer_lens(), torch.tensor(twin.encode("abca"))
        plain = model(ids)
        for name in ("ln_final.hook_scale", "ln_final.hook_normalized"):
            factor = 0.5 if name.endswith("scale") else 2.0
            found = model.run_with_hooks(ids, fwd_hooks=[(name, lambda out, hook, factor=factor: out * factor)])
            torch.testing.assert_close(found, 2 * plain)

    def test_formats(self) -> None:
        """Shorter formats are refused, in the bridge too."""
        twin = untrained(STUDENTS["hist"])
        for bridge in (False, True):
            with pytest.raises(PrecisionError):
                twin.to_transformer_lens(bridge=bridge, dtype="float16")


@pytest.mark.parametrize("name", STUDENTS)
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_stock_transformers(name: str, activation: str, tmp_path: Path) -> None:
    """`GPT2LMHeadModel` loads the checkpoint with no code of ours; the card's mask makes it bidirectional."""
    transformers = pytest.importorskip("transformers")
    twin = untrained(STUDENTS[name], activation, d_head=4)
    causal = twin.teacher.options.causal
    for output in twin.outputs:
        twin.save_pretrained(tmp_path / output.name, output=output.name)
        model, info = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / output.name, output_loading_info=True)
        assert not info["missing_keys"]
        assert not info["unexpected_keys"]
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / output.name)
        head = twin_head(twin, output)
        values = [len(head.words.words) - 1] if head.kind == "column" else []
        values += [number for _, number in head.decoded]
        for ids in batches(twin):
            texts = [
                " ".join(head.words.words[n] for n in row if n not in (head.words.bos, head.words.pad)) for row in ids
            ]
            given = tokenizer(texts, return_tensors="pt", padding=True).input_ids
            np.testing.assert_array_equal(given.numpy(), ids)
            length = ids.shape[1]
            mask = torch.ones_like(given) if causal else torch.zeros(len(ids), 1, length, length)
            with torch.no_grad():
                found = model(given, attention_mask=mask, use_cache=False).logits.numpy()
            expected, allowed = exact(twin, ids)
            expected = expected[..., output.start : output.stop]
            np.testing.assert_allclose(found[..., values], expected, atol=allowed, rtol=0)
            if head.kind == "one-hot":
                assert np.isin(found.argmax(-1), values).all()
