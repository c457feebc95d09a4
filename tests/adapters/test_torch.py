"""The PyTorch module: names, devices and types, training, export, nnsight, and the way back."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import load_compiled
from tracr.rasp import programs, rasp

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")

MODEL = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=5)
IS_X = (rasp.tokens == "x").named("is_x")
FRACTION = tracr.compile(programs.make_frac_prevs(IS_X), vocab="abx", max_seq_len=4)


def test_weights_and_activations_have_their_names() -> None:
    """State dict and submodules are named and shaped as in TransformerLens."""
    module = MODEL.to_torch()
    assert {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()} == {
        name: array.shape for name, array in MODEL.parameters.named()
    }
    run = MODEL.run("abac")
    seen: dict[str, Any] = {}
    for name in run:
        module.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: seen.update({name: out}))
    module(module.encode("abac"))
    assert list(seen) == list(run)
    for name, tensor in seen.items():
        np.testing.assert_allclose(tensor.detach().numpy(), run[name], atol=1e-6, err_msg=name)


def test_types_and_training() -> None:
    """The type asked for; parameters that can be trained, or not."""
    assert MODEL.to_torch().dtype is torch.float32
    assert MODEL.to_torch(dtype=torch.float64)(MODEL.to_torch().encode("ab")).dtype is torch.float64
    assert MODEL.to_torch(dtype=np.float64, device="cpu").device.type == "cpu"
    assert all(weight.requires_grad for weight in MODEL.to_torch().parameters())
    assert MODEL.to_torch(dtype="bfloat16", check=False).dtype is torch.bfloat16
    frozen = MODEL.to_torch(trainable=False)
    assert not frozen(frozen.encode("ab")).requires_grad
    with pytest.raises(tracr.InputError, match="not a type weights could have"):
        MODEL.to_torch(dtype="int32")


@pytest.mark.parametrize("causal", [False, True])
def test_everything_is_on_the_models_device(causal: bool) -> None:
    """On another device nothing is left behind on the CPU."""
    model = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=5, causal=causal)
    module = model.to_torch(device="meta")
    assert module(torch.zeros((2, 4), dtype=torch.long, device="meta")).shape == (2, 4, 5)


def test_ids_that_do_not_fit_are_refused() -> None:
    """One input must still be a batch, and none may be longer than the model."""
    module = MODEL.to_torch()
    with pytest.raises(tracr.InputError, match=r"shape \(3,\)"):
        module(torch.tensor([3, 0, 1]))
    with pytest.raises(tracr.InputError, match="up to 6"):
        module(torch.zeros((1, 7), dtype=torch.long))


def test_a_copy_is_independent() -> None:
    """`copy.deepcopy` copies the weights and the hook points; functional calls work on them."""
    module = MODEL.to_torch()
    twin = copy.deepcopy(module)
    ids = module.encode("abac")
    with torch.no_grad():
        twin.unembed.W_U.zero_()
    assert module.decode(module(ids), ids) == [[2, 1, 2, 1]]
    assert not twin(ids).any()
    swapped = torch.func.functional_call(module, dict(twin.state_dict()), (ids,))
    assert not swapped.any()


@pytest.mark.parametrize("model", [MODEL, FRACTION], ids=["hist", "frac_prevs"])
def test_it_can_be_exported(model: Any) -> None:
    """`torch.export` with dynamic batch and length."""
    module = model.to_torch(trainable=False)
    ids = module.encode([["a", "b", "a"], ["b"]])
    dim = torch.export.Dim
    shapes = {"ids": {0: dim("batch"), 1: dim("position", max=model.vocabulary.longest + 1)}}
    exported = torch.export.export(module, (ids,), dynamic_shapes=shapes).module()
    for xs in ([["b", "b", "a", "a"]], [["a", "a"], ["b", "a"], ["a", "b"]]):
        ids = module.encode(xs)
        assert torch.equal(exported(ids), module(ids))
        assert model.values(exported(ids), ids) == model(xs)


def test_training_moves_the_model_and_it_comes_back(tmp_path: Path) -> None:
    """Trained to another function, saved and loaded: same labels, changed weights, the other function."""
    module = FRACTION.to_torch(dtype="float64")
    inputs = [list(xs) for xs in ("x", "xa", "ab", "axbx", "xxab", "bbxa")]
    ids = module.encode(inputs)
    real = ids[:, 1:] != FRACTION.vocabulary.pad_id
    target = FRACTION.to_torch(dtype="float64", trainable=False)(ids)[:, 1:, 0] / 2
    assert module.to_compiled().own_weights
    optimiser = torch.optim.Adam([module.unembed.W_U], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss = (((module(ids)[:, 1:, 0] - target) ** 2) * real).mean()
        loss.backward()
        optimiser.step()
    module.save(tmp_path / "trained")
    loaded = load_compiled(tmp_path / "trained")
    assert not loaded.own_weights
    assert loaded.residual.labels == FRACTION.residual.labels
    logits = loaded.logits(loaded.encode(inputs), np.float64)[:, 1:, 0]
    np.testing.assert_allclose(logits[real.numpy()], target[real].numpy(), atol=1e-2)
    assert not loaded.verify()


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", ["hist", "sort_unique", "frac_prevs", "count_less_freq"])
def test_setting_variables_is_that_of_the_compiled_model(name: str, level: int) -> None:
    """Outputs, variables and activations, for every variable that can be set; both refuse the same values."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    module, vocab = model.to_torch(dtype="float64"), list(example.vocab)
    base, other = [vocab[0], vocab[1], vocab[0]], [vocab[1], vocab[-1], vocab[-1]]
    ran = 0
    for variable in model.variables.settable:
        given = {variable: model.interpret(other)[variable]}
        try:
            wanted = model.run(base, set=given, dtype="float64")
        except tracr.TracrError as refused:
            with pytest.raises(type(refused)):
                module.run(base, set=given)
            continue
        found = module.run(base, set=given)
        ran += 1
        assert found.decoded == pytest.approx(wanted.decoded)
        assert dict(found.variables) == dict(wanted.variables)
        for place in wanted:
            np.testing.assert_allclose(found[place].detach().numpy(), wanted[place], atol=1e-9, err_msg=place)
    assert ran


@pytest.mark.parametrize("change", ["rotated", "with_layer_norm"])
def test_variables_set_in_variants_are_read_from_tensors(change: str) -> None:
    """`variables` and `read` have the values that were set, in a rotated model and with layer norm."""
    model = MODEL.rotated(1) if change == "rotated" else MODEL.with_layer_norm()
    run = model.to_torch().run("abac", set={"hist": [3, 1, 2, 1]})
    assert run.variables["hist"] == run.decoded == [3, 1, 2, 1]
    place = "blocks.0.hook_resid_post"
    assert model.read(run[place], "hist", at=place)[0, 1:].tolist() == [3, 1, 2, 1]


def test_gradients_are_those_of_finite_differences() -> None:
    """In float64, through attention and neurons."""
    module = FRACTION.to_torch(dtype="float64", trainable=False)
    ids = module.encode("xabx")
    start = module.blocks[1].attn.W_V.detach().clone()

    def loss(weight: Any) -> Any:
        weights = {**module.state_dict(), "blocks.1.attn.W_V": weight}
        return torch.func.functional_call(module, weights, (ids,))[0, :, 0].sum()

    assert torch.autograd.gradcheck(loss, (start.requires_grad_(),))


def test_nnsight_reads_and_edits_patterns() -> None:
    """An attention pattern is a submodule: nnsight saves it, and a change reaches the output."""
    nnsight = pytest.importorskip("nnsight")
    module = MODEL.to_torch(trainable=False)
    ids = module.encode("abac")
    model = nnsight.NNsight(module)
    with model.trace(ids):
        pattern = model.blocks[0].attn.hook_pattern.output.save()
        clean = model.output.save()
    np.testing.assert_allclose(pattern.numpy(), MODEL.run("abac")["blocks.0.attn.hook_pattern"], atol=1e-6)
    assert module.decode(clean, ids) == [[2, 1, 2, 1]]
    with model.trace(ids):
        model.blocks[0].attn.hook_pattern.output[:, :, 4] = model.blocks[0].attn.hook_pattern.output[:, :, 1]
        edited = model.output.save()
    assert module.decode(edited, ids) == [[2, 1, 2, 2]]
