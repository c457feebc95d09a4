"""Compiled models as GPT-2 checkpoints, which stock `transformers` loads without this package. docs/huggingface.md.

checkpoint.py   the folder: writing it completely or not at all, recognising it, reading it back
gpt2.py         configuration and weights
head.py         outputs as logits over one vocabulary
tokens.py       that vocabulary, and its tokenizer
card.py         the model card

None of these files needs `transformers` or `torch`: a checkpoint is JSON and safetensors.
"""
