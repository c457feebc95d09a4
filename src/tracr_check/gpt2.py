"""A GPT-2 checkpoint: its tensors as the weights of a network with layer norms, and its words.

The folder has `config.json`, `model.safetensors`, `tokenizer.json` and `tokenizer_config.json`, which may only say that
the tokenizer is that of `tokenizer.json`; `tracr.json` names the output; the folder `tracr` has the program
(`model.json`, `tables.safetensors`) and the hints (`certificate.json`). There is no other file that transformers might
read instead; `generation_config.json` is about sampling only.

What is proved here is proved of the tensors of the GPT-2, without the weights in the folder `tracr`. But `tracr.load`
reads these if the GPT-2 is as it was saved, so `checking.py` proves the model in that folder, too. (If the GPT-2 was
changed since, `tracr.load` makes a third network of its tensors, which has no certificate.)

GPT-2 differs from the network of `normed.py` in what follows, and all of it is checked. Scores are divided by the root
of d_head, a power of 4: this is exact, so queries are divided by it here. (Queries and keys may not be divided by the
root of this root each, which need not be a power of 2.) Heads without any weight give 0, and are left
out. The inputs of the last layer norm have a bias: a 1 in a dimension that is never written (`Normed.logits`). Each
value of the output has a word, the one that is written as the value is; the program's tokens come first, in order, then
BOS and PAD.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.files import CERTIFICATE, MODEL, WEIGHTS, parse_json, parse_tensors
from tracr_check.normed import Normed
from tracr_check.program import Program
from tracr_check.program_file import read_value
from tracr_check.proving import Claim, prove
from tracr_check.variables import SOp
from tracr_check.verdict import need

__all__ = ["BESIDE", "CONFIG", "FILES", "GPT2", "INNER", "WORDS", "prove_checkpoint", "word_ids"]

Tensors = dict[str, NDArray[Any]]
CONFIG, TENSORS, TOKENIZER, MARK, INNER = "config.json", "model.safetensors", "tokenizer.json", "tracr.json", "tracr"
LOADER = "tokenizer_config.json"
FILES = {CONFIG: CERTIFICATE, TENSORS: WEIGHTS, TOKENIZER: MODEL, LOADER: CERTIFICATE, MARK: CERTIFICATE}
LOADERS = ("PreTrainedTokenizerFast", "TokenizersBackend")  # two names of what transformers makes of `tokenizer.json`
LOADED = {"model_max_length", "is_local", "local_files_only"}
BESIDE = {INNER, "generation_config.json", "ground_truth.json"}
OFF = ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention")
DEFAULT = {"architectures": ["GPT2LMHeadModel"], "scale_attn_weights": True, **dict.fromkeys(OFF, False)}
DEFAULT |= {"torch_dtype": "float32", "dtype": "float32"}
FIXED = {"model_type": "gpt2", "activation_function": "relu", "tie_word_embeddings": False, **DEFAULT}
USED = {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner", "layer_norm_epsilon"}
HARMLESS = {
    *("bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "transformers_version"),
    *("resid_pdrop", "embd_pdrop", "attn_pdrop", "use_cache", "summary_activation", "summary_first_dropout"),
    *("summary_proj_to_labels", "summary_type", "summary_use_proj"),
}
GPT2 = (
    "the network is GPT-2 as transformers has it, in evaluation mode; its ids are BOS, the tokens, and PAD after them; "
    "positions are counted from 0, and unless the program is causal the attention mask hides nothing; queries or "
    "scores are divided by the root of d_head at once, not queries and keys by its root each (torch's kernel MATH)"
)

WORDS = " The only output here is {name!r:.100}; decoding it takes the word with the largest logit."


def prove_checkpoint(content: Mapping[str, bytes], claim: Claim, vocabulary: Any) -> Tensors:
    """Prove the claim of the checkpoint in some files; the result are its tensors."""
    program, a = claim.program, claim.arithmetic
    config = parse_json(content[CONFIG], CONFIG)
    for key, value in FIXED.items():
        need({**DEFAULT, **config}.get(key) == value, f"there are no rules for {key} other than {value}")
    unknown = set(config) - {*FIXED, *USED, *HARMLESS}
    need(not unknown, f"there are no rules for settings such as {min(unknown, default='')!r:.40}")
    need(a.name.startswith("float32"), f"a checkpoint runs in float32, not in {a.name}")
    chosen = parse_json(content[MARK], MARK)["output"]
    program.outputs = tuple(one for one in program.outputs if one[0] == chosen)
    need(len(program.outputs) == 1, "the program has no output of the name in tracr.json")
    tokens = [read_value(token) for token in vocabulary]
    tokenizer = parse_json(content[TOKENIZER], TOKENIZER)
    vocab = tokenizer["model"]["vocab"]
    need(config["vocab_size"] == len(vocab), "another number of words than in the configuration")
    words = word_ids(vocab, tokens, program.sops[program.outputs[0][1]])
    _check_tokenizer(tokenizer, parse_json(content[LOADER], LOADER), len(tokens))
    tensors = parse_tensors(content[TENSORS], TENSORS)
    named, bias = _network(tensors, config, program)
    epsilon = float(config["layer_norm_epsilon"])
    _check_norms(tensors, config["n_layer"], epsilon)
    claim = replace(claim, slices=[(chosen, 0, len(vocab))])
    given = claim.weights(named)
    follower = Normed(given, epsilon, bias, a)
    follower.words = words
    none: list[Any] = [{"heads": [], "mlp": {}}] * (given.layers - len(claim.hints["layers"]))
    hints = {**claim.hints, "layers": [*claim.hints["layers"], *none]}
    prove(replace(claim, hints=hints), given.without(follower.balance), follower)
    return tensors


def _network(tensors: Mapping[str, NDArray[Any]], config: Any, program: Program) -> tuple[Tensors, NDArray[Any]]:
    """The tensors under the names of `Weights`, and the bias of the last layer norm."""
    sizes = [config[key] for key in ("n_embd", "n_head", "n_layer", "n_inner", "n_positions")]
    need(all(type(one) is int and 1 <= one <= 2**20 for one in sizes), "malformed sizes")
    width, heads, layers, hidden, positions = sizes
    need(positions == program.longest + 1, "another number of positions than the program's")
    rank = width // heads
    root = math.isqrt(rank)
    need(rank * heads == width and root * root == rank and root & (root - 1) == 0, "d_head is not a power of 4")
    left = {name: array for name, array in tensors.items() if ".ln_" not in name}

    def take(name: str, *shape: int) -> NDArray[Any]:
        array = left.pop(name, np.zeros(0))
        need(array.dtype == np.float32 and array.shape == shape, f"{name} has another shape or is not in float32")
        return array.astype(np.float64)

    words = len(tensors["lm_head.weight"])
    found = {
        "embed.W_E": take("transformer.wte.weight", words, width)[: program.vocabulary + 2],
        "pos_embed.W_pos": take("transformer.wpe.weight", positions, width),
        "unembed.W_U": take("lm_head.weight", words, width).T,
    }
    for number in range(layers):
        old, new = f"transformer.h.{number}.", f"blocks.{number}."
        weight = take(f"{old}attn.c_attn.weight", width, 3 * width).reshape(width, 3, heads, rank)
        bias = take(f"{old}attn.c_attn.bias", 3 * width).reshape(3, heads, rank)
        out = take(f"{old}attn.c_proj.weight", width, width).reshape(heads, rank, width)
        used = weight.any((0, 1, 3)) | bias.any((0, 2)) | out.any((1, 2))
        for place, (letter, factor) in enumerate((("Q", 1 / root), ("K", 1.0), ("V", 1.0))):
            found[f"{new}attn.W_{letter}"] = np.moveaxis(weight[:, place], 1, 0)[used] * factor
            found[f"{new}attn.b_{letter}"] = bias[place][used] * factor
        found[f"{new}attn.W_O"], found[f"{new}attn.b_O"] = out[used], take(f"{old}attn.c_proj.bias", width)
        found[f"{new}mlp.W_in"] = take(f"{old}mlp.c_fc.weight", width, hidden)
        found[f"{new}mlp.b_in"] = take(f"{old}mlp.c_fc.bias", hidden)
        found[f"{new}mlp.W_out"] = take(f"{old}mlp.c_proj.weight", hidden, width)
        found[f"{new}mlp.b_out"] = take(f"{old}mlp.c_proj.bias", width)
    need(not left, f"there are tensors that no rule covers: {', '.join(sorted(left)[:3])}")
    return found, tensors["transformer.ln_f.bias"].astype(np.float64)


def _check_norms(tensors: Mapping[str, NDArray[Any]], layers: int, epsilon: float) -> None:
    """Every gain is the root of epsilon; there is no bias but that of the last norm."""
    norms = [f"transformer.h.{number}.ln_{place}" for number in range(layers) for place in (1, 2)]
    width = tensors["transformer.wpe.weight"].shape[1]
    for name in (*norms, "transformer.ln_f"):
        gain, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        need(gain.shape == bias.shape == (width,) and gain.dtype == bias.dtype == np.float32, f"{name} is malformed")
        need((gain.astype(np.float64) == math.sqrt(epsilon)).all(), f"the gain of {name} is not the root of epsilon")
        need(name == "transformer.ln_f" or not bias.any(), f"{name} has a bias")
    named = {name for name in tensors if ".ln_" in name}
    need(len(named) == 2 * len(norms) + 2, "there are layer norms that no rule covers")


def _check_tokenizer(tokenizer: Any, loader: Any, bos: int) -> None:
    """Beside its words, the tokenizer splits at spaces and adds BOS; each id is decoded to its word, after a space.

    It finds the words of BOS and PAD before it splits, so that they may not be part of a token's word.
    """
    names = {number: word for word, number in tokenizer["model"]["vocab"].items()}
    for special in (names[bos], names[bos + 1]):
        plain = special and not any(one.isspace() for one in special)
        inside = any(special in names[token] for token in range(bos))
        need(plain and not inside, f"the word {special!r:.40} is split off")
    kind = loader.get("tokenizer_class")
    always = {"tokenizer_class": kind if kind in LOADERS else LOADERS[0], "clean_up_tokenization_spaces": False}
    always |= {"model_input_names": ["input_ids", "attention_mask"]}  # GPT-2 would add the rows of token types
    settings = {"bos_token": names[bos], "pad_token": names[bos + 1], "padding_side": "right", "backend": "tokenizers"}
    settings |= {**always, **{key: loader.get(key) for key in LOADED}}
    unknown = [key for key in {**loader, **always} if loader.get(key) != settings.get(key)]
    need(not unknown, f"there are no rules for {unknown[:1]} of {LOADER}")
    flags = {"single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    first, whole = {"SpecialToken": {"id": names[bos], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    processor = {
        "type": "TemplateProcessing",
        "single": [first, whole],
        "pair": [first, whole, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {names[bos]: {"id": names[bos], "ids": [bos], "tokens": [names[bos]]}},
    }
    space = {"type": "Replace", "pattern": {"Regex": f"^(?!{re.escape(names[bos])}$)"}, "content": " "}
    expected = {
        "version": "1.0",
        **dict.fromkeys(("truncation", "padding", "normalizer"), None),
        "added_tokens": [{"id": number, "content": names[number], **flags} for number in (bos, bos + 1)],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": processor,
        "decoder": {"type": "Sequence", "decoders": [space, {"type": "Fuse"}]},
        "model": {"type": "WordLevel", "vocab": tokenizer["model"]["vocab"], "unk_token": ""},
    }
    other = [key for key in {**tokenizer, **expected} if tokenizer.get(key) != expected.get(key)]
    need(not other, f"there are no rules for {other[:1]} of tokenizer.json")


def word_ids(vocab: Any, tokens: Sequence[Any], output: SOp) -> NDArray[np.int64]:
    """The word of each value of an output; tokens must have their words in order. Nearly equal numbers share a word."""
    need(isinstance(vocab, dict) and all(type(one) is int for one in vocab.values()), "malformed words")
    need(sorted(vocab.values()) == list(range(len(vocab))), "words are not numbered from 0")
    values: dict[str, Any] = {}
    for place, value in enumerate((*tokens, *output.values)):
        word = _text(value)
        same = values.setdefault(word, value)
        need(same is value or (type(same) is type(value) and same == value), f"two values have the word {word!r:.40}")
        need(place >= len(tokens) or vocab.get(word) == place, f"the word of token {word!r:.40} has another number")
    numbers = output.numbers
    found = np.array([vocab.get(_text(value), -1) for value in output.values], dtype=np.int64)
    known = np.flatnonzero((found >= 0) & np.isfinite(numbers))
    known, others = known[np.argsort(numbers[known])], np.flatnonzero((found < 0) & np.isfinite(numbers))
    if len(known):
        nearest = known[np.searchsorted((numbers[known][1:] + numbers[known][:-1]) / 2, numbers[others])]
        near = np.abs(numbers[nearest] - numbers[others]) <= 1e-9 * np.maximum(1.0, np.abs(numbers[others]))
        found[others[near]] = found[nearest[near]]
    lost = np.flatnonzero((found < 0) | (found == len(tokens)) | (found == len(tokens) + 1)).tolist()
    need(not lost, f"there is no word for {[output.values[place] for place in lost[:1]]!r:.40}")
    return found


def _text(value: Any) -> str:
    """A value as a word."""
    text = value if isinstance(value, str) else repr(value)
    return "".join("␣" if one.isspace() else one for one in text) or "''"
