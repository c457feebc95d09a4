"""Checks a folder: reads it, proves the theorem, and returns the verdict. Every exception is a rejection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import ARITHMETICS, Arithmetic
from tracr_check.files import (
    CERTIFICATE,
    CONTENT,
    MODEL,
    TABLES,
    WEIGHTS,
    alone,
    numbers_sha256,
    parse_json,
    parse_tensors,
    read_bytes,
    sha256,
)
from tracr_check.following import Follower
from tracr_check.gpt2 import BESIDE, CONFIG, FILES, GPT2, INNER, WORDS, prove_checkpoint
from tracr_check.normed import ASSUMED as NORMS
from tracr_check.program_file import read_program
from tracr_check.proving import Claim, prove
from tracr_check.variants import prove_variant
from tracr_check.verdict import Rejected, Verdict, need

__all__ = ["VERSION", "check_folder"]

VERSION = 2  # of the hints; 1 had other parts of heads

THEOREM = (
    "For every input of {low} to {high} tokens on which the program is defined{padding}{mask}, and for every execution "
    "of the weights that conforms to the arithmetic {arithmetic}, decoding the logits gives the program's "
    "outputs{near}. The program is the tables in the folder; it is undefined where a table has no value, where a sum, "
    "mean or width is not one of the listed values or in its interval, and where several values are selected that are "
    "not all numbers, or of which a table assumes that there is one only. Values are equal as in Python; numbers that "
    "differ by at most 1e-9 (relative above 1) count as one value."
)
NEAR = " (those that may be any number of an interval within 1e-4, relative above 1)"


def check_folder(
    folder: str | Path, arithmetic: str | None = None, padded: bool | None = None, exported: str | Path | None = None
) -> Verdict:
    """Check the model in a folder, in the arithmetic and with the padding that its certificate names or the caller.

    `exported`: a safetensors file that must hold the same weights, in the format of the arithmetic.
    """
    found: dict[str, Any] = {"arithmetic": arithmetic or "", "padded": bool(padded), "lengths": (0, 0), "sha256": {}}
    try:
        return _checked(Path(folder), arithmetic, padded, found, exported)
    except Rejected as rejected:
        reason, place = rejected.reason, rejected.place
    except RecursionError:
        reason, place = "malformed: nested too deep", ""
    except MemoryError:
        reason, place = "out of memory", ""
    except Exception as error:
        reason, place = f"malformed: {type(error).__name__}: {error}"[:500], ""
    return Verdict(False, _printable(reason), _printable(place), (), **found)


def _checked(
    folder: Path, arithmetic: str | None, padded: bool | None, found: dict[str, Any], exported: str | Path | None
) -> Verdict:
    files = FILES if (folder / CONFIG).exists() else {}
    checkpoint = {name: read_bytes(folder, name, kind) for name, kind in files.items()}
    inner = folder / INNER if checkpoint else folder
    content = {name: read_bytes(inner, name) for name in CONTENT}
    alone(inner, {*CONTENT, CERTIFICATE})
    if checkpoint:
        alone(folder, {*FILES, *BESIDE})
    digests = {name: sha256(data) for name, data in content.items()}
    found["sha256"] = digests
    certificate = parse_json(read_bytes(inner, CERTIFICATE), CERTIFICATE)
    _check_certificate(certificate, digests)
    name = certificate["arithmetic"] if arithmetic is None else arithmetic
    need(isinstance(name, str) and name in ARITHMETICS, f"there is no arithmetic {name!r:.40}")
    a, padding = ARITHMETICS[name], certificate["padded"] if padded is None else padded
    found.update(arithmetic=name, padded=padding)
    model = parse_json(content[MODEL], MODEL)
    tables = parse_tensors(content[TABLES], TABLES)
    program = read_program(model, tables)
    found["lengths"] = program.lengths
    weights = parse_tensors(content[WEIGHTS], WEIGHTS)
    digest = _digest(weights, a)
    claim = Claim(program, model["outputs"], certificate, a, padding)
    content.clear()  # takes as much memory as the proof
    more = _proved(claim, model, tables, weights)
    if checkpoint:
        found["sha256"] = {name: sha256(data) for name, data in checkpoint.items()}
        found["sha256"] |= {f"{INNER}/{name}": digest for name, digest in digests.items()}
        claim = replace(claim, program=read_program(model, tables))
        digest = _digest(prove_checkpoint(checkpoint, claim, model["options"]["vocab"]), a)
        more = (*more, *NORMS, GPT2)
    if exported is not None:
        other = parse_tensors(read_bytes(Path(exported).parent, Path(exported).name, WEIGHTS), "the export")
        need(_digest(other, a) == digest, f"the export holds other weights in {name} than the folder")
    stated = map(_printable, sorted(program.assumed | claim.program.assumed))
    assumed = tuple(dict.fromkeys((*stated, *a.assumptions(), *more)))
    theorem = _theorem(claim) + (WORDS.format(name=claim.program.outputs[0][0]) if checkpoint else "")
    return Verdict(True, "", "", assumed, theorem=theorem, weights_sha256=digest, **found)


def _proved(
    claim: Claim, model: Any, tables: Mapping[str, NDArray[Any]], weights: dict[str, NDArray[Any]]
) -> tuple[str, ...]:
    """Prove the claim of a saved model, a variant or not; the result is what is assumed of a variant."""
    if "variant" in model:
        return prove_variant(claim, model["variant"], tables, weights)
    given = claim.weights(weights)
    weights.clear()  # they take as much memory as the proof
    prove(claim, given, Follower())
    return ()


def _theorem(claim: Claim) -> str:
    """What is proved, in one paragraph."""
    program, arithmetic = claim.program, claim.arithmetic.name
    low, high = program.lengths
    padding = f", with any padding up to length {program.longest}" if claim.padded else ", without padding"
    mask = ", under a causal mask in the program and in the network" if program.causal else ""
    near = "" if all(program.sops[number].listed for _, number in program.outputs) else NEAR
    return THEOREM.format(low=low, high=high, padding=padding, mask=mask, arithmetic=arithmetic, near=near)


def _printable(text: str) -> str:
    """A text that may quote the folder, without line ends and other characters that make it look like a verdict."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def _digest(weights: Mapping[str, NDArray[Any]], arithmetic: Arithmetic) -> str:
    """The digest of weights, cast to the format of an arithmetic."""
    with np.errstate(over="ignore"):
        return numbers_sha256(weights, arithmetic.cast)


def _check_certificate(certificate: Any, digests: Mapping[str, str]) -> None:
    """The version must be ours, and the digests those of the files."""
    need(isinstance(certificate, dict), "the certificate is no object")
    version = certificate.get("version")
    other = f"the certificate has version {version!r:.20}, and this checker reads version {VERSION}"
    need(type(version) is int and version == VERSION, f"{other}: certify the model again")
    given = certificate.get("sha256")
    need(isinstance(given, dict) and set(given) == set(digests), "the certificate does not name the files")
    for name, digest in digests.items():
        need(given[name] == digest, f"{name} is not the file that the certificate was made for")
    need(isinstance(certificate.get("padded"), bool), "the certificate does not say whether inputs are padded")
