"""Compiled models as GPT-2 checkpoints, which stock `transformers` loads without this package. docs/huggingface.md.

checkpoint.py   the folder: written all or nothing, recognised and read back
gpt2.py         configuration and weights
head.py         outputs as logits over one vocabulary
tokens.py       that vocabulary, and its tokenizer
card.py         the model card

Nothing of this needs `transformers` or `torch`: a checkpoint is JSON and safetensors.
"""
