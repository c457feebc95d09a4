"""The TransformerLens model is used as published notebooks use one: one object for all of it."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import tracr
from tests.adapters.table import compiled, inputs
from tests.library import masks
from tracr.rasp import programs, rasp

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    lens = pytest.importorskip("transformer_lens")
    analysis = pytest.importorskip("transformer_lens.tools.analysis")
    utils = pytest.importorskip("transformer_lens.utilities")
    patching = pytest.importorskip("transformer_lens.patching")

NAMES = ["hist", "sort", "induction", "frac_prevs", "reverse"]


def module_of(name: str, *, causal: bool = False, **options: Any) -> Any:
    model = compiled(name, causal)
    return model.to_transformer_lens(**options)


@pytest.mark.parametrize("name", NAMES)
def test_circuits(name: str) -> None:
    """`QK` and `OV` are factored matrices [layer, head, d_model, d_model] that give the scores and what is moved."""
    module = module_of(name, dtype="float64")
    cfg = module.cfg
    shape = (cfg.n_layers, cfg.n_heads, cfg.d_model, cfg.d_model)
    assert isinstance(module.QK, lens.FactoredMatrix)
    assert module.QK.shape == module.OV.shape == shape
    assert torch.allclose(module.OV.AB, module.W_V @ module.W_O)
    full = module.W_E @ module.QK[0, 0] @ module.W_E.T
    assert torch.allclose(full.AB, module.W_E @ module.W_Q[0, 0] @ module.W_K[0, 0].T @ module.W_E.T)
    ids = module.to_tokens(inputs(name, False)[-1])
    _, cache = module.run_with_cache(ids)
    x = cache["resid_pre", 0][0]
    head, block = module.QK[0, 0], module.blocks[0].attn
    scores = (x @ head.A + block.b_Q[0]) @ (x @ head.B.T + block.b_K[0]).T
    assert torch.allclose(scores, cache["attn_scores", 0][0, 0])
    assert module.W_E_pos.shape == (cfg.d_vocab + cfg.n_ctx, cfg.d_model)
    assert module.b_U.shape == (cfg.d_vocab_out,)
    assert not module.b_U.any()


@pytest.mark.parametrize("name", ["sort", "induction", "shuffle_dyck"])
def test_composition_scores(name: str) -> None:
    """Where `ground_truth` has an edge between heads, the score is positive; earlier layers have none."""
    module = module_of(name, dtype="float64")
    cfg = module.cfg
    edges = 0
    for mode in "QKV":
        scores = module.all_composition_scores(mode)
        assert scores.shape == (cfg.n_layers, cfg.n_heads, cfg.n_layers, cfg.n_heads)
        assert torch.isfinite(scores).all()
        for edge in module.compiled.ground_truth.edges("qkv"):
            if ".attn." in edge.source and ".attn." in edge.target and edge.input == mode.lower():
                (_, one, _, first), (_, other, _, second) = edge.source.split("."), edge.target.split(".")
                assert scores[int(one), int(first), int(other), int(second)] > 0
                edges += 1
        for layer in range(cfg.n_layers):
            assert not scores[layer, :, : layer + 1].any()
    assert edges or name != "induction"  # in the others, heads read what MLPs write
    assert len(module.all_head_labels) == cfg.n_layers * cfg.n_heads
    with pytest.raises(tracr.InputError, match="no composition"):
        module.all_composition_scores("X")


@pytest.mark.parametrize(("name", "causal"), [(name, causal) for name in NAMES for causal in masks(name)])
def test_parts_of_a_pass_are_the_pass(name: str, causal: bool) -> None:
    """Stop before any layer, start there again: the same logits, with hooks and cache in between."""
    module = module_of(name, causal=causal)
    ids = module.to_tokens(inputs(name, causal))
    logits, cache = module.run_with_cache(ids)
    layers = module.cfg.n_layers
    for layer in range(layers):
        stream = module(ids, stop_at_layer=layer)
        assert torch.equal(stream, cache["resid_pre", layer])
        assert torch.equal(module(stream, start_at_layer=layer), logits)
        assert torch.equal(module(stream, start_at_layer=layer, stop_at_layer=layer + 1), cache["resid_post", layer])
    assert torch.equal(module(ids, stop_at_layer=-1), cache["resid_pre", layers - 1])
    _, part = module.run_with_cache(ids, stop_at_layer=1)
    assert not any(key.startswith("blocks.1") for key in part)
    with pytest.raises(tracr.InputError, match="a residual stream has the shape"):
        module(ids, start_at_layer=1)
    with pytest.raises(tracr.InputError, match="what the outputs should be"):
        module(module(ids, stop_at_layer=1), start_at_layer=1, return_type="loss")


@pytest.mark.parametrize("name", [*NAMES, "has_prev"])
def test_losses(name: str) -> None:
    """The loss is that of the program's outputs: smallest for the compiled model, with gradients, 0 at PAD."""
    module = module_of(name, dtype="float64")
    rows = inputs(name, False)
    ids = module.to_tokens(rows)
    logits = module(ids)
    loss = module(ids, return_type="loss")
    assert loss.ndim == 0
    both = module(ids, return_type="both")
    assert torch.equal(both.logits, logits)
    assert torch.equal(both.loss, loss)
    again, each = module(ids, return_type="both", loss_per_token=True)
    assert torch.equal(again, logits)
    assert each.shape == (ids.shape[0], ids.shape[1] - 1)
    lengths = torch.tensor([len(row) for row in rows])
    there = torch.arange(each.shape[1])[None] < lengths[:, None]
    assert not each[~there].any()
    assert torch.allclose(each.sum() / there.sum(), loss)
    assert module(ids, return_type=None) is None

    def wrong(tensor: Any, hook: Any) -> Any:
        return -tensor

    last = f"blocks.{module.cfg.n_layers - 1}.hook_resid_post"
    assert module.run_with_hooks(ids, return_type="loss", fwd_hooks=[(last, wrong)]) > loss
    loss.backward()
    assert torch.isfinite(module.unembed.W_U.grad).all()
    module.zero_grad()
    _, cache = module.run_with_cache(ids, return_type="loss", incl_bwd=True)
    assert "hook_embed_grad" in cache


def test_tokens_and_text() -> None:
    """`to_tokens`, `to_string`, `to_str_tokens`, `prepend_bos`, positions."""
    module = module_of("hist")
    ids = module.to_tokens("aba")
    assert ids.tolist() == [[3, 0, 1, 0]]
    assert module.to_tokens("aba", prepend_bos=True).tolist() == ids.tolist()
    assert module.to_tokens("aba", prepend_bos=False).tolist() == [[0, 1, 0]]
    assert module.to_tokens(ids.numpy()).tolist() == ids.tolist()
    assert module.to_string(ids) == ["bos a b a"]
    assert module.to_string(ids[0, 1:]) == "aba"
    assert module.to_string([0, 2]) == "ac"
    assert module.to_string(torch.tensor(1)) == "b"
    assert module.to_str_tokens("aba") == ["bos", "a", "b", "a"]
    assert module.to_str_tokens("aba", prepend_bos=False) == ["a", "b", "a"]
    assert module.to_str_tokens(ids[0]) == ["bos", "a", "b", "a"]
    several = module.to_tokens([list("aba"), list("bab")])
    assert module.to_str_tokens(several) == [["bos", *row] for row in ("aba", "bab")]
    assert module.to_single_str_token(2) == "c"
    assert module.get_token_position("b", "aba") == 2
    assert module.get_token_position("a", "aba", mode="last") == 3
    assert module.get_token_position("a", "aba", prepend_bos=False) == 0
    assert module.get_token_position(0, ids) == 1
    with pytest.raises(tracr.InputError, match="is not in"):
        module.get_token_position("c", "aba")
    with pytest.raises(tracr.InputError, match="PAD after the tokens"):
        module.to_tokens([list("ab"), list("c")], padding_side="left")
    with pytest.raises(tracr.InputError, match="needs BOS"):
        module("aba", prepend_bos=False)
    with pytest.raises(tracr.InputError, match="shape"):
        module.to_string(torch.zeros(1, 1, 1, dtype=torch.long))
    assert torch.equal(module("aba", prepend_bos=True), module(ids))
    numbers = tracr.compile(rasp.tokens + 1, [1, 22], 3).to_transformer_lens()
    assert numbers.to_string(numbers.to_tokens([1, 22])) == ["bos 1 22"]


@pytest.mark.parametrize("name", ["hist", "sort", "induction"])
def test_logit_lens(name: str) -> None:
    """At the last layer the lens sees the model's own logits; targets are labels of the output."""
    module = module_of(name, dtype="float64")
    ids = module.to_tokens(inputs(name, False)[-1])
    logits, cache = module.run_with_cache(ids)
    label = module.compiled.outputs[0].labels[0]
    found = analysis.logit_lens(module, ids, vocab=list(range(logits.shape[-1])), incl_mid=True)
    assert torch.allclose(found.readout.values[-1].to(logits), logits[:, -1], atol=1e-5)
    assert len(found.labels) == len(found.readout.values)
    read = analysis.logit_readout(module, cache.accumulated_resid()[-1], targets=label)
    assert torch.allclose(read.values[..., 0].to(logits), logits[..., module.to_single_token(label)], atol=1e-5)
    assert cache.logit_lens(targets=label).labels[-1] == found.labels[-1]


@pytest.mark.parametrize("name", ["hist", "sort", "induction"])
def test_direct_logit_attribution_with_everything_on(name: str) -> None:
    """By component and by head, from labels, with per-head results and split inputs filled: it adds up to the logit."""
    module = module_of(name, dtype="float64")
    assert module.fine == {"attn_in", "qkv_input", "result", "mlp_in"}
    ids = module.to_tokens(inputs(name, False)[-1])
    logits = module(ids)
    label = module.compiled.outputs[0].labels[0]
    for unit in ("component", "layer", "head"):
        parts = analysis.direct_logit_attribution(module, ids, answer_tokens=label, unit=unit, pos=-1)
        if unit != "layer":
            assert torch.allclose(parts.attribution.sum(), logits[0, -1, module.to_single_token(label)])


def test_the_cache_tools() -> None:
    """`logit_attrs`, `stack_head_results`, `apply_ln_to_stack`, neurons, `remove_batch_dim`, `names_filter`."""
    module = module_of("sort", dtype="float64")
    ids = module.to_tokens([3, 1, 2])
    logits, cache = module.run_with_cache(ids)
    last = cache["resid_post", -1]
    stack, labels = cache.decompose_resid(return_labels=True)
    assert len(labels) == len(stack)
    attributed = cache.logit_attrs(stack, tokens=torch.full((1, ids.shape[1]), 1))
    assert torch.allclose(attributed.sum(dim=0), logits[..., 1])
    difference = cache.logit_attrs(stack, tokens=1, incorrect_tokens=0)
    assert torch.allclose(difference.sum(dim=0), logits[..., 1] - logits[..., 0])
    assert torch.equal(cache.apply_ln_to_stack(stack, layer=-1), stack)
    heads = cache.stack_head_results(incl_remainder=True)
    assert torch.allclose(heads.sum(dim=0), last)
    neurons = cache.stack_neuron_results(layer=-1, incl_remainder=True)
    assert torch.allclose(neurons.sum(dim=0), last)
    assert cache.stack_activation("pattern").shape[0] == module.cfg.n_layers
    found, small = module.run_with_cache(ids, names_filter=lambda name: name.endswith("pattern"), return_type="loss")
    assert found.ndim == 0
    assert all(name.endswith("pattern") for name in small)
    _, single = module.run_with_cache(ids, remove_batch_dim=True)
    assert single["resid_post", -1].shape == last.shape[1:]
    directions = module.tokens_to_residual_directions(torch.tensor([0, 1]))
    assert torch.equal(directions, module.W_U[:, :2].T)
    first, second = module.compiled.outputs[0].labels[:2]
    assert torch.equal(module.tokens_to_residual_directions([first, second]), directions)


def test_hooks_as_a_context() -> None:
    """`with model.hooks(...)`, `add_hook`, `reset_hooks`, and per-head results patched with split inputs on."""
    module = module_of("hist")
    ids = module.to_tokens("aba")
    clean = module(ids)

    def zero(tensor: Any, hook: Any) -> Any:
        return 0 * tensor

    with module.hooks(fwd_hooks=[(utils.get_act_name("result", 0), zero)]):
        assert not torch.equal(module(ids), clean)
    assert torch.equal(module(ids), clean)
    module.add_hook(utils.get_act_name("pattern", 0), zero)
    assert not torch.equal(module(ids), clean)
    module.reset_hooks()
    assert torch.equal(module(ids), clean)


def test_state_and_device() -> None:
    """`state_dict` goes there and back; casts and moves are written into `cfg`."""
    module = module_of("sort")
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.embed.W_E += 1
    other.load_state_dict(module.state_dict())
    ids = module.to_tokens([1, 2])
    assert torch.equal(other(ids), module(ids))
    assert module.double().cfg.dtype is torch.float64
    assert module.to("cpu").cfg.device == "cpu"
    assert module.to(torch.float32).cfg.dtype is torch.float32
    module.enable_compatibility_mode()
    cfg = module.cfg
    assert (cfg.d_vocab, cfg.d_vocab_out) == (module.W_E.shape[0], module.W_U.shape[1])
    assert (cfg.n_ctx, cfg.d_model) == tuple(module.W_pos.shape)


def test_generation() -> None:
    """A causal program whose outputs are tokens continues its input, as transformers does."""
    model = tracr.compile(programs.make_induction(), "abc", 10, causal=True)
    module = model.to_transformer_lens()
    assert module.generate("abca", max_new_tokens=3) == "abcabca"
    assert module.generate("abca", 100, verbose=False) == "abcabcabca"
    ids = module.generate(module.to_tokens("abca"), max_new_tokens=2)
    assert module.to_string(ids[0, 1:]) == "abcabc"
    assert module.generate("abc") == "abc"  # None is no token
    assert module.generate(["a", "b", "a"], 1) == ["a", "b", "a", "b"]
    with pytest.raises(tracr.InputError, match="one answer"):
        module.generate("abc", do_sample=True)
    with pytest.raises(tracr.InputError, match="causal"):
        module_of("hist").generate("ab")


def test_head_detection() -> None:
    """TransformerLens's detector finds the head that looks at the token before."""
    from transformer_lens.head_detector import detect_head

    module = tracr.compile(programs.shift_by(1, rasp.tokens), "abc", 6).to_transformer_lens()
    scores = detect_head(module, "abcab", "previous_token_head")
    assert scores.shape == (1, 1)
    assert scores[0, 0] > 0.5
