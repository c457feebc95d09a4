"""Variables of runs in other frameworks, and streams of other frameworks that are read."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tracr
from tracr.rasp import programs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")

SORT = tracr.compile(programs.make_sort_freq(5), vocab="abc", max_seq_len=5)
MODELS = {"compiled": SORT, "rotated, layer_norm": SORT.rotated(1).with_layer_norm()}


def readings(model: Any, activations: Any) -> int:
    """Reads every variable wherever it is, and compares; returns how many were compared."""
    compared, values = 0, model.interpret("abca")
    for at in activations:
        if not ("resid" in at or at.endswith(("hook_normalized", "_input", "hook_mlp_in", "attn_in"))):
            continue
        for label in values:
            try:
                read = model.read(activations[at], label, at=at)
            except tracr.InputError:
                continue
            flat = read[0] if read.ndim == 2 else read[0, :, 0]
            assert flat[1:].tolist() == values[label], (label, at)
            compared += 1
    return compared


@pytest.mark.parametrize("name", MODELS)
def test_torch_runs(name: str) -> None:
    """A module's run has its activations, with gradients, and the program's variables."""
    module = MODELS[name].to_torch()
    run = module.run("abca")
    assert run.decoded == MODELS[name]("abca")
    assert run.variables["hist"] == [2, 1, 1, 2]
    assert run.logits.requires_grad
    assert list(run) == list(MODELS[name].run("abca"))
    assert readings(MODELS[name], run) > 30
    batch = module.run([list("ab"), list("abca")])
    assert batch.variables["hist"] == [[1, 1], [2, 1, 1, 2]]


def test_torch_runs_have_the_users_hooks() -> None:
    """A hook that the user put on an activation takes part, and stays."""
    module = SORT.to_torch()
    module.blocks[0].hook_mlp_out.register_forward_hook(lambda _, __, out: out * 0)
    assert not module.run("abca")["blocks.0.hook_mlp_out"].any()
    assert len(module.blocks[0].hook_mlp_out._forward_hooks) == 1


@pytest.mark.parametrize("name", MODELS)
def test_transformer_lens_caches(name: str) -> None:
    """A cache has the variables, for tokens and for ids; heads' inputs are read too."""
    pytest.importorskip("transformer_lens")
    lens = MODELS[name].to_transformer_lens()
    _, cache = lens.run_with_cache("abca")
    assert cache.variables["hist"] == [2, 1, 1, 2]
    assert readings(MODELS[name], cache) > 30
    _, cache = lens.run_with_cache(lens.to_tokens([list("aab"), list("bbb")]))
    assert cache.variables["hist"] == [[2, 2, 1], [3, 3, 3]]
    stream = cache["blocks.1.hook_resid_pre"]
    _, cache = lens.run_with_cache(stream, start_at_layer=1)
    with pytest.raises(tracr.InputError, match="has no tokens"):
        _ = cache.variables


def test_jax_streams() -> None:
    """Activations of JAX."""
    pytest.importorskip("jax")
    model = MODELS["rotated, layer_norm"]
    apply, params = model.to_jax()
    seen: dict[str, Any] = {}
    apply(params, model.encode("abca"), hook=lambda name, tensor: seen.update({name: tensor}))
    assert readings(model, seen) > 30


def test_twins_in_torch() -> None:
    """A twin's module runs, with the teacher's variables."""
    twin: Any = tracr.load("docs/natural/twins/hist")
    run = twin.to_torch().run("aab")
    assert run.decoded == run.variables["hist"] == [2, 2, 1]
