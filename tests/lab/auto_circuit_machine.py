"""Run by `test_against_auto_circuit.py` in an environment with auto-circuit: its scores for a model in a folder.

The folder has `config.json` (of TransformerLens), `tensors.npz` (weights under `weight:`, ids, the metric, answers) and
`thresholds.json`. Prints, as JSON, auto-circuit's scores by edge, under our names, and its order of edges.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

warnings.simplefilter("ignore")  # the libraries' own

with contextlib.redirect_stdout(sys.stderr):
    import numpy as np
    import torch
    import transformer_lens

    # Imported by auto-circuit for other tasks.
    for unused in ("blobfile", "plotly", "plotly.express", "plotly.graph_objects", "plotly.io"):
        sys.modules[unused] = MagicMock()
    # TransformerLens 3 renamed this class and its module; auto-circuit imports them by their old names.
    transformer_lens.HookedTransformerKeyValueCache = transformer_lens.TransformerLensKeyValueCache
    sys.modules["transformer_lens.past_key_value_caching"] = transformer_lens

    from auto_circuit.prune_algos.ACDC import acdc_prune_scores
    from auto_circuit.prune_algos.mask_gradient import mask_gradient_prune_scores
    from auto_circuit.utils.graph_utils import patchable_model
    from transformer_lens import HookedTransformer, HookedTransformerConfig


def ours(name: str) -> str:
    """Our name of a node: `A0.1.Q`, `MLP 0`, `Resid Start`, `Resid End`."""
    if name in ("Resid Start", "Resid End"):
        return "embed" if name == "Resid Start" else "unembed"
    if name.startswith("MLP"):
        return f"blocks.{name.split()[1]}.mlp"
    layer, head, *side = name[1:].split(".")
    return ".".join([f"blocks.{layer}.attn.{head}", *(part.lower() for part in side)])


def named(model: Any, scores: Any) -> dict[str, float]:
    return {f"{ours(edge.src.name)}->{ours(edge.dest.name)}": float(edge.prune_score(scores)) for edge in model.edges}


def main(folder: Path) -> dict[str, Any]:
    """The scores."""
    tensors = np.load(folder / "tensors.npz")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    thresholds = json.loads((folder / "thresholds.json").read_text(encoding="utf-8"))
    options = {"use_attn_result": True, "use_split_qkv_input": True, "use_hook_mlp_in": True}
    lens = HookedTransformer(HookedTransformerConfig(**config, **options))
    weights = {name[7:]: torch.tensor(tensors[name], dtype=torch.float32) for name in tensors if name[:7] == "weight:"}
    lens.load_state_dict(weights, strict=False)
    model = patchable_model(lens, factorized=True, separate_qkv=True)
    clean, corrupt = (torch.tensor(tensors[name]) for name in ("clean", "corrupted"))
    metric = torch.tensor(tensors["metric"], dtype=torch.float32)
    with torch.no_grad():
        logits = model(clean)
    # The gradient of the mean squared distance from these answers is the metric, as a mean over inputs.
    target = logits - metric * metric.numel() / (2 * len(metric))
    found: dict[str, Any] = {"logits": logits.tolist()}
    for name, share, answers in (("eap", 0.0, target), ("masks", 0.5, torch.tensor(tensors["answers"]).float())):
        batch = SimpleNamespace(key=0, clean=clean, corrupt=corrupt, answers=answers)
        found[name] = named(model, mask_gradient_prune_scores(model, [batch], None, "logit", "mse", share))
        model.zero_grad()
    found["order"] = [
        f"{ours(edge.src.name)}->{ours(edge.dest.name)}"
        for edge in sorted(model.edges, key=lambda edge: edge.dest.layer, reverse=True)
    ]
    batch = SimpleNamespace(key=0, clean=clean, corrupt=corrupt)
    scores = acdc_prune_scores(model, [batch], None, thresholds["exponents"], thresholds["bases"], "mse")
    found["acdc"] = {name: score for name, score in named(model, scores).items() if np.isfinite(score)}
    return found


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        answer = main(Path(sys.argv[1]))
    print(json.dumps(answer))
