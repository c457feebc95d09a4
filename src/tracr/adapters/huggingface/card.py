"""The model card of a checkpoint: what it computes, how to run it, the meaning of its words and dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracr.adapters.huggingface.gpt2 import ACTIVATIONS, GPT2Sizes, stops
from tracr.adapters.huggingface.head import WordHead
from tracr.craft.numerics import leak
from tracr.model.variants.layer_norm import largest_square
from tracr.model.verification import Verification
from tracr.values import value_text

if TYPE_CHECKING:
    from tracr.certificate.certificate import Certificate
    from tracr.model.designed import DesignedModel
    from tracr.runtime.outputs import Output
    from tracr_check import Verdict

__all__ = ["block", "card", "front_matter", "page", "plain", "shortened", "usage"]

FORMATS = (
    "- **Number formats.** The weights are for float32, the default of `from_pretrained`. "
    "Do not load them with `dtype=torch.float16`: the weights of the layer norms are beyond its largest number. "
    "All logits are then NaN, and the first word counts as the largest. In bfloat16, under autocast and with TF32 "
    "nothing is proved."
)
MOST = 200  # lines of a table or listing


def card(
    model: DesignedModel,
    output: Output,
    sizes: GPT2Sizes,
    head: WordHead,
    activation: str,
    checked: Verification,
    certificate: Certificate | None,
    verdict: Verdict | None,
) -> str:
    """`README.md`, for the model with layer norms that the checkpoint holds.

    `certificate` is its compiled model's, `verdict` that on the checkpoint itself.
    """
    options = model.options
    longest = model.program.lengths[1]
    parts = [
        front_matter(),
        f"# {plain(output.name)}",
        f"A GPT-2 whose weights were compiled from a RASP program by Tracr, not trained: {sizes.layers} "
        f"layer{'s' if sizes.layers > 1 else ''}, {sizes.d_model} dimensions. It computes the program for every input "
        f"of at most {longest} tokens.",
        *usage(model, head, f"Compiled at level {options.level}"),
        "## What the dimensions mean",
        _dimensions(model, sizes),
        "## Ground truth",
        "The computation of each part. `ground_truth.json` has this as data, with every edge (which variable flows "
        "from which part to which) and, for each label, its direction in `hidden_states`.",
        block(shortened("\n".join(f"{node.id}: {node.computes}" for node in model.ground_truth.nodes()))),
        "Heads and neurons beyond those of a layer are zeros.",
        "## Exactness",
        _exactness(model, activation, checked),
        _certificate(certificate, verdict),
        "The folder `tracr` holds the program as data and its weights in float64: `tracr.load` of this folder gives "
        "the labelled model back. transformers does not read it.",
    ]
    return page(parts)


def page(parts: Sequence[str]) -> str:
    """The parts that are not empty, one below the other."""
    return "\n\n".join(part for part in parts if part) + "\n"


def usage(model: DesignedModel, head: WordHead, made: str) -> list[str]:
    """How to run the checkpoint, its program and its words; `made` begins the sentence on how it was made."""
    causal = model.options.causal
    return [
        "## Use",
        _use(model, head),
        _reading(head),
        "## The program",
        *([block(model.source)] if model.source else []),
        block(shortened(model.program.show())),
        f"{made}, with {'causal' if causal else 'bidirectional'} attention.",
        "## Words",
        "One vocabulary serves inputs and outputs. A word is separated from the next by a space.",
        _words(head),
        _ends(head) if causal else "",
    ]


def front_matter() -> str:
    """The card's data for the Hub."""
    tags = "\n".join(f"- {tag}" for tag in ("tracr", "rasp", "interpretability", "gpt2"))
    return f"---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n{tags}\n---"


def _use(model: DesignedModel, head: WordHead) -> str:
    example = " ".join(head.words.words[number % head.words.inputs] for number in range(model.program.lengths[1]))
    lines = [
        "import torch",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'folder = "."  # where this file is',
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        "model = AutoModelForCausalLM.from_pretrained(folder)",
        f"inputs = tokenizer({example!r}, return_tensors='pt')  # puts BOS in front",
    ]
    if model.options.causal:
        lines.append("logits = model(**inputs).logits[0, 1:]  # the first position is BOS")
    else:
        lines += [
            "length = inputs.input_ids.shape[1]",
            "everything = torch.zeros(1, 1, length, length)  # 4-D and 0 everywhere: no position is masked",
            "logits = model(inputs.input_ids, attention_mask=everything, use_cache=False).logits[0, 1:]",
        ]
    if head.kind == "column":
        lines.append(f"print(logits[:, tokenizer.convert_tokens_to_ids({head.words.words[-1]!r})].tolist())")
    else:
        lines.append("print(tokenizer.convert_ids_to_tokens(logits.argmax(-1)))")
        if model.options.causal and any(head.words.is_input(number) for _, number in head.decoded):
            lines.append("print(tokenizer.decode(model.generate(**inputs)[0]))  # each output is the next token")
    text = block("\n".join(lines), "python")
    if model.options.causal:
        return text
    return f"{text}\n\nThe program looks in both directions, GPT-2 only backwards: the mask in this example is needed."


def _reading(head: WordHead) -> str:
    if head.kind == "column":
        return (
            f"The output is a number: the logit of the word `{head.words.words[-1]}`. Where there is none, the logit "
            "of the word `None`, if it is in the table below, is 1 and not 0."
        )
    if head.kind == "classes":
        return "The output is a number. Each value is a word, and the word of the nearest value has the largest logit."
    return "The output at each position is the word with the largest logit."


def _words(head: WordHead) -> str:
    out = {number for _, number in head.decoded} | set(range(len(head.words.values), len(head.words.words)))
    rows = ["| id | word | value | in | out |", "|---|---|---|---|---|"]
    special = {head.words.bos: "BOS", head.words.pad: "PAD"}
    for number, word in enumerate(head.words.words):
        known = number < len(head.words.values)
        meaning = special.get(number, f"`{_cell(repr(head.words.values[number]))}`" if known else "the number")
        flags = ["x" if head.words.is_input(number) else "", "x" if number in out else ""]
        rows.append(f"| {number} | `{_cell(word)}` | {meaning} | {flags[0]} | {flags[1]} |")
    return shortened("\n".join(rows))


def _ends(head: WordHead) -> str:
    """The words at which `generate` stops."""
    ends = [f"`{plain(head.words.words[number])}`" for number in stops(head)]
    shown = ", ".join(ends[:8]) + (f" and {len(ends) - 8} more" if len(ends) > 8 else "")
    return f"`generate` stops at words that are not tokens of the input: {shown}." if ends else ""


def _dimensions(model: DesignedModel, sizes: GPT2Sizes) -> str:
    labels = model.residual.labels
    if len(model.variant.steps) > 1:
        return (
            f"This is a variant of the compiled model ({', '.join(map(plain, model.variant.steps))}), in which labels "
            f"are directions, not dimensions: see `directions` in `ground_truth.json`."
        )
    rows = [f"{number:4d}  {label}" for number, label in enumerate(labels)]
    rows += [
        f"{len(labels):4d}  minus the sum of all the others, so that the mean is 0",
        f"{len(labels) + 1:4d}  always 0: shows the readers what a layer norm subtracted",
        f"{sizes.constant:4d}  1 after the last layer norm: the constant that the head has no bias for",
    ]
    return "Dimensions of `hidden_states`; those not listed are 0.\n\n" + block(shortened("\n".join(rows)))


def _exactness(model: DesignedModel, activation: str, checked: Verification) -> str:
    assert model.norm is not None
    square, epsilon = largest_square(model), model.norm.epsilon
    gap = model.options.gap
    astray = leak(gap, model.options.max_seq_len)
    share = f"at most {astray:.1g}" if astray else "exactly 0"
    attention = f"- **Attention** puts unselected keys {gap:g} below selected ones: their share is {share} in float32."
    if soft := model.options.soft:
        least = min([soft.gap, *dict(soft.gaps).values()])
        attention = f"- **Attention** is soft: unselected keys are {least:g} or more below selected ones."
    power = epsilon.hex().partition("p")[2].lstrip("+")
    lines = [
        f"- **Layer norms** change nothing. Their epsilon is 2^{power} and their weight its root, so they divide by "
        f"√(1 + v/2^{power}); the variance v is at most {square:,.0f}, so that is a relative "
        f"{square / (2 * epsilon):.1g}. "
        "Every reader subtracts the rest of the mean that rounding leaves. In float32 a reader sees each coordinate "
        "with a relative error of at most 2^-23 (1.2e-7).",
        attention,
    ]
    if ACTIVATIONS[activation] > 1:
        lines.append(
            f"- **{activation}** replaces ReLU: its inputs are multiplied by 2^24, so a neuron is off by at most "
            "0.1701 / 2^24 = 1.02e-8."
        )
    if model.variant.noise:
        lines.append(f"- **Noise** of standard deviation {model.variant.noise:.2g} was added to the weights.")
    lines.append(FORMATS)
    lines.append(f"- Checked by running the weights with their layer norms in float32: {checked}.")
    return "\n".join(lines)


def _certificate(certificate: Certificate | None, verdict: Verdict | None) -> str:
    """The verdicts on the tensors of the checkpoint, and on the compiled model before layer norms were added."""
    if certificate is None:
        return ""
    lines = ["## Certificate"]
    if verdict is not None and verdict.accepted:
        lines += [
            f"The verdict of `tracr-check` on the tensors of this GPT-2, layer norms included: **ACCEPTED in "
            f"{verdict.arithmetic}, lengths {verdict.lengths[0]} to {verdict.lengths[1]}, "
            f"{'padded' if verdict.padded else 'unpadded'}**.",
            verdict.theorem,
            "\n".join(f"- assuming: {plain(one)}" for one in verdict.assumptions),
            "`python -m tracr_check .` in this folder repeats the check; it needs numpy and the package `tracr_check` "
            "only.",
        ]
        return "\n\n".join(lines)
    if verdict is not None:
        lines.append(
            f"The verdict of `tracr-check` on the tensors of this GPT-2, layer norms included: "
            f"**{plain(str(verdict))}**. No proof was found. This does not mean that the model is wrong."
        )
    lines.append(
        f"The verdict of `tracr-check` on the compiled model, before layer norms were added: "
        f"**{plain(certificate.headline)}**."
    )
    if certificate.accepted:
        lines.append(certificate.theorem)
        lines.append("\n".join(f"- assuming: {plain(one)}" for one in certificate.assumptions))
    lines.append(
        "That certificate is about the weights of that model, not about the tensors of this GPT-2. If the folder "
        "`tracr` has a `certificate.json`, `python -m tracr_check tracr` repeats the check; it needs numpy and the "
        "package `tracr_check` only."
    )
    return "\n\n".join(lines)


def block(text: str, language: str = "") -> str:
    """A block of code, fenced with more backquotes than any row of them in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def shortened(text: str) -> str:
    """The first lines of a text, and how many more it has."""
    lines = text.split("\n")
    left = len(lines) - MOST
    return "\n".join([*lines[:MOST], f"... and {left:,} more"]) if left > 0 else text


def _cell(text: str) -> str:
    """The text with the characters escaped that would end a table cell or its code."""
    return value_text(text).replace("|", "\\|").replace("`", "'").replace("\n", " ")


def plain(text: str) -> str:
    """The text on one line, without backquotes."""
    return " ".join(text.replace("`", "'").split())
