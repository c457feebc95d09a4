"""The TransformerLens model: its hooks, cache and tools, and the ground truth in its hook names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracr
from tests.adapters.table import compiled
from tests.agreement import compile_quietly, same, some_inputs
from tests.tiers import in_turn
from tracr.adapters.lens_weights import lens_config, lens_weights
from tracr.ground_truth.data import GRANULARITIES
from tracr.ir.options import LEVELS
from tracr.rasp import programs
from tracr.rasp.annotations import Encoding

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    lens = pytest.importorskip("transformer_lens")
    patching = pytest.importorskip("transformer_lens.patching")
    analysis = pytest.importorskip("transformer_lens.tools.analysis")
    attribution = pytest.importorskip("transformer_lens.tools.analysis.attribution_patching")

INDUCTION = programs.EXAMPLES["induction"]
AT_BLOCK = "resid_pre resid_mid resid_post attn_in q_input k_input v_input mlp_in attn_out mlp_out"
USUAL = [
    *("hook_embed", "hook_pos_embed", "blocks.0.mlp.hook_pre", "blocks.0.mlp.hook_post"),
    *(f"blocks.0.hook_{name}" for name in AT_BLOCK.split()),
    *(f"blocks.0.attn.hook_{name}" for name in ("q", "k", "v", "z", "pattern", "attn_scores", "result")),
]


@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort", "induction"])
def test_the_cache_has_every_activation(name: str) -> None:
    """`run_with_cache` gives what `model.run` gives, under the same names, and the finer activations too."""
    model = compiled(name, False)
    module = model.to_transformer_lens(dtype="float64")
    tokens = list(model.options.vocab[:3])
    _, cache = module.run_with_cache(tokens)
    assert set(USUAL) <= set(cache.keys())
    run = model.run(tokens, dtype=np.float64)
    for activation, array in run.items():
        found = cache[activation].detach().numpy()
        shared = tuple(map(slice, array.shape))  # layers are filled up with heads and neurons of zeros
        np.testing.assert_allclose(found[shared], array, atol=1e-9, err_msg=activation)


def places(model: Any) -> list[Any]:
    """Every place the ground truth names."""
    found = []
    for granularity in GRANULARITIES:
        for node in model.ground_truth.nodes(granularity):
            found += [node.output, *(place for _, place in node.inputs)]
    return found


@pytest.mark.parametrize(("name", "level"), in_turn(programs.EXAMPLES, LEVELS))
def test_every_place_of_the_ground_truth_is_a_hook(name: str, level: int) -> None:
    """The hook fires, and has the head and the neurons that are named."""
    example = programs.EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
    module = model.to_transformer_lens()
    tokens = [*example.vocab, *example.vocab][: max(2, model.vocabulary.shortest)]
    fired: dict[str, Any] = {}

    def see(tensor: Any, hook: Any) -> None:
        fired[hook.name] = tensor

    wanted = {place for place in places(model) if place.hook}
    module.run_with_hooks(tokens, fwd_hooks=[(hook, see) for hook in {place.hook for place in wanted}])
    for place in wanted:
        tensor = fired[place.hook]
        if place.head is not None:
            assert tensor.ndim == 4
            assert place.head < tensor.shape[2]
        if place.neurons is not None:
            assert place.neurons[1] <= tensor.shape[-1]


@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort", "reverse", "induction", "shuffle_dyck"])
def test_an_edge_starts_where_its_source_says(name: str) -> None:
    """In the slots of an edge, the activation of the source's hook equals the final residual stream."""
    model = compiled(name, False)
    module = model.to_transformer_lens(dtype="float64")
    _, cache = module.run_with_cache([list(model.options.vocab[:3])])
    last = cache[f"blocks.{model.n_layers - 1}.hook_resid_post"]
    for granularity in ("component", "head", "qkv", "neuron_group"):
        for edge in model.ground_truth.edges(granularity):
            place = edge.source_place
            written = cache[place.hook]
            if place.head is not None:
                written = written[:, :, place.head]
            if place.neurons is not None:
                block = module.blocks[int(place.hook.split(".")[1])]
                neurons = slice(*place.neurons)
                written = written[..., neurons] @ block.mlp.W_out[neurons]
            assert torch.allclose(written[..., edge.slots], last[..., edge.slots], atol=1e-9), edge


@pytest.mark.parametrize("granularity", ["component", "head", "qkv"])
@pytest.mark.parametrize("name", ["hist", "frac_prevs", "sort", "reverse", "induction", "shuffle_dyck"])
def test_ablating_an_edge_at_its_hook_is_ablating_it(name: str, granularity: Any) -> None:
    """Zero in the slots of an edge, at the reader's hook, gives the outputs that `ground_truth.ablate` gives."""
    model = compiled(name, False)
    module = model.to_transformer_lens()
    data = [xs for xs in some_inputs(model.options.vocab, model.vocabulary.longest, 25) if len(xs) > 1]
    ids = module.encode(data)
    changed = 0
    for edge in model.ground_truth.edges(granularity):
        place = edge.target_place

        def blind(tensor: Any, hook: Any, edge: Any = edge, place: Any = place) -> Any:
            tensor = tensor.clone()
            if place.head is not None:
                tensor[:, :, place.head, edge.slots] = 0
            else:
                tensor[..., edge.slots] = 0
            return tensor

        logits = module.run_with_hooks(ids, fwd_hooks=[(place.hook, blind)]).detach()
        if all(output.encoding is Encoding.CATEGORICAL for output in model.outputs):
            logits = logits.round(decimals=4)  # as `ablate` does: a tie goes to the first value
        expected = model.ground_truth.ablate([edge], data=data, ablation="zero")
        for got, wanted in zip(model.values(logits, ids), expected, strict=True):
            assert wanted is None or all(map(lambda a, b: same(a, b, 1e-4), got, wanted)), edge
        changed += model.values(logits, ids) != model(data)
    assert changed


def test_finer_hooks_can_be_switched_off() -> None:
    """As in TransformerLens, with `set_use_...`; the answer stays the same."""
    model = compiled("hist", False)
    module = model.to_transformer_lens()
    module.set_use_attn_in(False)
    module.set_use_split_qkv_input(False)
    module.set_use_attn_result(False)
    module.set_use_hook_mlp_in(False)
    logits, cache = module.run_with_cache("abac")
    assert not any(name.endswith(("_in", "_input", "hook_result")) for name in cache)
    assert module.decode(logits, module.to_tokens("abac")) == [[2, 1, 2, 1]]


def test_tokens_and_labels() -> None:
    """Tokens get one BOS, ids none; logits can be named by value."""
    model = compiled("hist", False)
    module = model.to_transformer_lens()
    ids = module.to_tokens("aba")
    assert ids.tolist() == [[3, 0, 1, 0]]
    assert module.to_tokens(ids) is ids
    assert module.to_str_tokens("aba") == ["bos", "a", "b", "a"]
    assert module.to_single_token("2") == module.to_single_token("hist:2") == 1
    assert module(ids, return_type=None) is None
    with pytest.raises(tracr.InputError, match="names 0 logits"):
        module.to_single_token("x")
    with pytest.raises(tracr.InputError, match="return_type"):
        module(ids, return_type="predictions")


def test_stacked_weights() -> None:
    """`W_Q` and the like are stacked over layers, as tools for weights expect."""
    model = compiled("sort", False)
    module = model.to_transformer_lens()
    cfg = module.cfg
    assert module.W_Q.shape == (cfg.n_layers, cfg.n_heads, cfg.d_model, cfg.d_head)
    assert module.W_in.shape == (cfg.n_layers, cfg.d_model, cfg.d_mlp)
    assert module.W_E.shape == (cfg.d_vocab, cfg.d_model)
    assert module.W_U.shape == (cfg.d_model, cfg.d_vocab_out)
    assert module.to(torch.float64).cfg.dtype is torch.float64
    with pytest.raises(AttributeError):
        _ = module.W_nothing


def test_patching_finds_the_head_that_moves_the_token() -> None:
    """TransformerLens's activation patching restores the clean answer only at the heads of the ground truth."""
    model = compile_quietly(programs.shift_by(1, tracr.rasp.tokens), "abc", 5)
    module = model.to_transformer_lens()
    clean, corrupted = module.to_tokens("abc"), module.to_tokens("acc")
    _, cache = module.run_with_cache(clean)
    right, wrong = module.to_single_token("b"), module.to_single_token("c")

    def metric(logits: Any) -> Any:
        return logits[0, 3, right] - logits[0, 3, wrong]

    heads = patching.get_act_patch_attn_head_out_all_pos(module, corrupted, cache, metric)
    assert heads.tolist() == [[1.0]]
    positions = patching.get_act_patch_resid_pre(module, corrupted, cache, metric)
    assert positions.tolist() == [[-1.0, -1.0, 1.0, -1.0]]
    values = patching.get_act_patch_attn_head_v_all_pos(module, corrupted, cache, metric)
    assert values.tolist() == [[1.0]]


def test_direct_paths_are_the_edges_between_heads() -> None:
    """Path patching from head to head changes the output only along an edge of the ground truth."""
    model = compile_quietly(INDUCTION.program, INDUCTION.vocab, INDUCTION.max_seq_len)
    module = model.to_transformer_lens()
    clean, corrupted = module.to_tokens("abcab"), module.to_tokens("cbacb")
    _, clean_cache = module.run_with_cache(clean)
    clean_logits, corrupted_cache = module.run_with_cache(corrupted)
    edges = {
        (edge.source, edge.target, edge.input)
        for edge in model.ground_truth.edges("qkv")
        if "attn" in edge.source and "attn" in edge.target
    }

    def metric(logits: Any) -> Any:
        return (logits - clean_logits).abs().max()

    for layer, block in enumerate(model.parameters.layers):
        for head in range(len(block.W_Q)):
            for part in "qkv":
                found = patching.get_act_patch_direct_path(
                    module, corrupted, clean_cache, corrupted_cache, metric, layer, head, part, verbose=False
                )
                for later, other in (found > 1e-4).nonzero().tolist():
                    assert (f"blocks.{layer}.attn.{head}", f"blocks.{later}.attn.{other}", part) in edges


def test_attribution_follows_the_edges() -> None:
    """Edge attribution patching gives a score only to edges of the ground truth, and logit attribution adds up."""
    model = compile_quietly(programs.make_frac_prevs((tracr.rasp.tokens == "x").named("is_x")), "abx", 4)
    module = model.to_transformer_lens(dtype="float64")
    clean, corrupted = module.to_tokens("xbx"), module.to_tokens("abx")
    config = attribution.EdgeAttributionConfig("edge")
    result = attribution.attribution_patch(module, clean, corrupted, lambda logits: logits[0, 3, 0], config=config)
    scored = {(writer, reader) for (writer, reader), score in result.edge_scores.items() if abs(score) > 1e-9}
    names = {"attn_head_out": "blocks.{}.attn.{}", "mlp_out": "blocks.{}.mlp", "mlp_in": "blocks.{}.mlp"}
    names |= {
        "embed": "embed",
        "logits": "unembed",
        **dict.fromkeys(("q_input", "k_input", "v_input"), "blocks.{}.attn.{}"),
    }
    edges = {(edge.source, edge.target) for edge in model.ground_truth.edges("qkv")}
    assert scored
    for writer, reader in scored:
        assert tuple(names[node.kind].format(node.layer, node.head) for node in (writer, reader)) in edges
    logits, _ = module.run_with_cache(clean)
    for unit in ("component", "head"):
        parts = analysis.direct_logit_attribution(module, clean, answer_tokens=0, unit=unit, pos=3)
        assert torch.allclose(parts.attribution.sum(), logits[0, 3, 0])


def test_the_cache_can_be_decomposed() -> None:
    """TransformerLens's own decompositions of the residual stream add up to it."""
    model = compiled("sort", False)
    module = model.to_transformer_lens(dtype="float64")
    _, cache = module.run_with_cache([3, 1, 2])
    last = cache[f"blocks.{model.n_layers - 1}.hook_resid_post"]
    assert torch.allclose(cache.decompose_resid().sum(dim=0), last)
    assert torch.allclose(cache.get_full_resid_decomposition().sum(dim=0), last)
    assert torch.allclose(cache.stack_head_results(incl_remainder=True).sum(dim=0), last)
    assert torch.allclose(cache.accumulated_resid()[-1], last)


def test_weights_come_back_from_both() -> None:
    """Unchanged weights are its own, changed ones are not."""
    model = compiled("sort", False)
    module = model.to_transformer_lens()
    assert module.to_compiled().own_weights
    with torch.no_grad():
        module.blocks[0].mlp.b_out += 1e-3
    assert not module.to_compiled().own_weights
    bridge = model.to_transformer_lens(bridge=True)
    scale = bridge.cfg.d_head**0.5
    assert model.with_weights(bridge.tl_parameters(), attn_scale=scale).own_weights


def test_numerical_outputs_and_no_layers() -> None:
    """A model without layers runs too; numbers come out as numbers."""
    model = tracr.compile(tracr.rasp.tokens, vocab=[1, 2], max_seq_len=3)
    module = model.to_transformer_lens()
    ids = module.to_tokens([1, 2])
    assert model.n_layers == 0
    assert module.decode(module(ids), ids) == [[1, 2]]


def test_the_format_of_older_versions() -> None:
    """Configuration and weights are those that HookedTransformer (2 and 3) takes; run where one is installed."""
    model = compiled("reverse", False)
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        pytest.skip("this TransformerLens has no HookedTransformer")
    old = HookedTransformer(HookedTransformerConfig(**lens_config(model)))
    weights = {name: torch.tensor(array, dtype=torch.float32) for name, array in lens_weights(model).items()}
    assert not old.load_state_dict(weights, strict=False).unexpected_keys
    ids = torch.tensor(model.encode("abc"))
    assert model.values(old(ids), ids) == [["c", "b", "a"]]
    assert model.with_weights(old.state_dict(), attn_scale=old.cfg.d_head**0.5).own_weights
