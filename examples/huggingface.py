"""Write programs as GPT-2 checkpoints that generate text; the transformers library loads them without tracr.

An induction program continues a repeated sequence, a counter counts, a closer closes brackets. Needs transformers and
torch (pip install 'tracr[hf,torch]'); the machine that loads a checkpoint needs nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import tracr
from tracr.rasp import programs

MODELS = {
    "induction": (programs.make_induction(), "abcd", 10, ["a b c a", "d c d"]),
    "counter": (programs.make_counter(9), range(10), 10, ["0 1", "9 6"]),
    "closer": (programs.make_closer(["()", "{}"]), "(){}", 6, ["( {", "{ } ("]),
}


def main() -> None:
    """Compile, save, load elsewhere, generate."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    for name, (program, vocab, longest, prompts) in MODELS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            tracr.compile(program, vocab, longest, causal=True).save_pretrained(folder)
            tokenizer = AutoTokenizer.from_pretrained(folder)
            model = AutoModelForCausalLM.from_pretrained(folder)
            print(f"{name}: {type(model).__name__}, {model.config.n_layer} layers of {model.config.n_embd} dimensions")
            for prompt in prompts:
                written = model.generate(**tokenizer(prompt, return_tensors="pt"))
                print(f"  {prompt:10} -> {tokenizer.decode(written[0], skip_special_tokens=True).strip()}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
