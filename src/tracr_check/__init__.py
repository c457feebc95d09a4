"""tracr-check: proves that the weights in a folder compute the program in the folder, on every input.

It needs numpy and nothing else, and shares no code with the compiler. Nothing in the folder is trusted but the tables
of the program, which are the specification; their digest is part of the verdict.

The files in the order in which they read as a proof, from the assumptions to the theorem; each uses those above it:

    arithmetic.py     what a backend may do to a number: the assumptions of the theorem
    verdict.py        the verdict, and the exception that ends a check
    files.py          JSON and safetensors, with every size checked; digests
    variables.py      variables, their values and codes, ways to compute them, selectors
    boxes.py          the stream as boxes, what a matrix reads of it, the error of a computed sum
    cells.py          numbers of an interval as finitely many values
    program.py        the program: the tables that are the specification
    program_file.py   reads the program of `model.json` and its tables
    aggregated.py     the program's definition of an aggregate
    joint.py          joint values of variables at one position: the rule that every enumeration uses
    facts.py          lemmas about the program alone: distinct values, ranks, selectors of one key or at least one
    definitions.py    variables that a certificate adds: pairs, widths, sums
    piecewise.py      the range of a sum of relus that read one number
    mlp.py            the stream after an MLP
    groups.py         variables that nothing links are enumerated apart
    scores.py         bounds of the scores of a head
    selection.py      the proof that softmax gives weight to the selected keys only
    patterns.py       what a selector and the masks of heads can select together
    parts.py          heads that share a selector: the sums that make a whole of their parts
    aggregate.py      what a head writes: counts, sums, copies and means
    padding.py        the variables of PAD
    additions.py      the stream after what heads and biases add
    head.py           one head: what it reads, and its proved pattern
    elsewhere.py      what a head adds at BOS and at PAD
    attention.py      the stream after the heads of a layer
    outputs.py        the logits against the program
    following.py      the hooks by which variants follow a proof
    proving.py        the proof: the embedding, layer after layer, the logits
    rotation.py       orthogonal matrices and exact products with them
    turned.py         rotated models
    normed.py         models with layer norms
    variants.py       which rules prove a variant
    gpt2.py           GPT-2 checkpoints: tensors, words and tokenizer
    checking.py       checks a folder; every exception is a rejection
    command.py        the command `tracr-check`
"""

from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.checking import check_folder
from tracr_check.command import main
from tracr_check.verdict import Verdict

__all__ = ["ARITHMETICS", "Arithmetic", "Verdict", "check_folder", "main"]
