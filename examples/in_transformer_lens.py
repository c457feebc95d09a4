"""Compare activation patching in TransformerLens with the ground truth it should find.

An induction program finds the token that followed the same token the last time. On "abcab" the answer at the end is
"c"; on "acbab" it is "a". TransformerLens runs the second input and patches in head outputs of the first, one by one.
Needs TransformerLens: pip install 'tracr[lens]'.
"""

from __future__ import annotations

import argparse

import tracr
from tracr.rasp import programs


def main() -> None:
    """Print the heads that restore the answer, and what the ground truth says about them."""
    import torch
    from transformer_lens import patching
    from transformer_lens.hook_points import HookPoint

    model = tracr.compile(programs.make_induction(), vocab="abc", max_seq_len=5)
    lens = model.to_transformer_lens()
    clean, corrupted = lens.to_tokens("abcab"), lens.to_tokens("acbab")
    logits, cache = lens.run_with_cache(clean)
    print("clean    ", lens.decode(logits, clean)[0])
    print("corrupted", lens.decode(lens(corrupted), corrupted)[0])

    right, wrong = lens.to_single_token("c"), lens.to_single_token("a")

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return (logits[0, -1, right] - logits[0, -1, wrong] + 1) / 2

    found = patching.get_act_patch_attn_head_out_all_pos(lens, corrupted, cache, metric)
    print("\nhow much of the answer each head restores")
    for node in model.ground_truth.nodes("qkv"):
        if node.head is not None:
            print(f"  {node.id:16} {found[node.layer, node.head]:5.2f}   writes {', '.join(node.variables)}")

    last = [node for node in model.ground_truth.nodes("qkv") if node.head is not None][-1]
    print(f"\nthe same for each input of {last.id}, through the hooks that the ground truth names")
    for part, place in last.inputs:

        def patch(tensor: torch.Tensor, hook: HookPoint, head: int | None = place.head) -> torch.Tensor:
            tensor = tensor.clone()
            tensor[:, :, head] = cache[hook.name][:, :, head]
            return tensor

        patched = metric(lens.run_with_hooks(corrupted, fwd_hooks=[(place.hook, patch)]))
        edges = [edge for edge in model.ground_truth.edges("qkv") if (edge.target, edge.input) == (last.id, part)]
        print(f"  {place.hook:22} {patched:5.2f}   reads {', '.join(edge.variable for edge in edges)}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
