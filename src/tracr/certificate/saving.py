"""Saves a model with its certificate, and reads the certificate back.

    certificate.json   hints, digests of the model's files, arithmetic, padding: what the checker reads
    verdict.json       the verdict as recorded, and the digest of certificate.json: what the checker does not read

A folder whose certificate belongs to other files is refused.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tracr import arguments
from tracr.certificate.certificate import Certificate
from tracr.certificate.certifying import CERTIFICATE, certificate_of, certify, keep
from tracr.certificate.exports import exported_sha256
from tracr.errors import CertificateError, FormatError
from tracr.saving.folders import read_file
from tracr.saving.json_reader import Reader, parse
from tracr.saving.models import CONTENT, files_of, save_files
from tracr_check import ARITHMETICS, Verdict

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["VERDICT", "certificate_files", "read_certificate", "save", "save_with"]

VERDICT = "verdict.json"
LARGEST = 2**24  # bytes of either file
KEYS = ("accepted", "reason", "place", "assumptions", "arithmetic", "padded", "lengths", "sha256", "theorem")


def save(model: DesignedModel, folder: str | Path, *, overwrite: bool = False, certificate: bool = False) -> None:
    """Write the model into a folder, with its certificate if asked for; see `CompiledModel.save`."""
    if not arguments.flag("certificate", certificate, error=FormatError):
        save_files(model, folder, overwrite, {})
        return
    known = certificate_of(model)
    found = known if known is not None and known.accepted else certify(model)
    if found.recorded:  # by somebody else: not repeated as ours before it is checked
        found = certify(model, found.verdict.arithmetic, found.verdict.padded)
    if not found.accepted:
        raise CertificateError(
            f"the model has no certificate to save: {found.headline}",
            hint="save it without certificate=True, or model.certify().save(folder) to save the rejection too",
        )
    save_with(found, folder, overwrite)


def save_with(certificate: Certificate, folder: str | Path, overwrite: bool) -> None:
    """Write a model with its certificate, accepted or not; refuse one that was changed since, in arrays or tables."""
    model = certificate.model
    found = {name: _digest(data) for name, data in files_of(model).items() if name in CONTENT}
    if found != parse(certificate.hints, CERTIFICATE).data["sha256"]:
        raise CertificateError("the model is not as it was when it was checked", hint="call model.certify() again")
    save_files(model, folder, overwrite, certificate_files(certificate))


def certificate_files(certificate: Certificate) -> dict[str, bytes]:
    """The two files of a certificate."""
    verdict = certificate.as_json()
    del verdict["recorded"], verdict["weights_sha256"]  # the second follows from the weights
    digests = {**certificate.verdict.sha256, CERTIFICATE: _digest(certificate.hints)}
    verdict["sha256"] = dict(sorted(digests.items()))  # the same bytes for a certificate that was read
    return {CERTIFICATE: certificate.hints, VERDICT: json.dumps(verdict, indent=2).encode("ascii") + b"\n"}


def read_certificate(model: DesignedModel, folder: Path) -> None:
    """Give a loaded model the certificate of its folder, if it has one; refuse one that belongs to other files."""
    if not (folder / CERTIFICATE).exists() and not (folder / VERDICT).exists():
        return
    hints = read_file(folder / CERTIFICATE, LARGEST)
    given = parse(read_file(folder / VERDICT, LARGEST), VERDICT).object(KEYS)
    digests = {name: place.text() for name, place in given["sha256"].object((*CONTENT, CERTIFICATE)).items()}
    _check_digests(folder, digests, hints)
    verdict = Verdict(
        accepted=given["accepted"].boolean(),
        reason=_line(given["reason"]),
        place=_line(given["place"]),
        assumptions=tuple(map(_line, given["assumptions"].items())),
        arithmetic=_arithmetic(given["arithmetic"]),
        padded=given["padded"].boolean(),
        lengths=_lengths(given["lengths"]),
        sha256={name: digests[name] for name in CONTENT},
        theorem=_line(given["theorem"]),
        weights_sha256=exported_sha256(dict(model.parameters.named()), _arithmetic(given["arithmetic"])),
    )
    keep(model, Certificate(verdict, hints, model, recorded=True))


def _line(place: Reader) -> str:
    """A text without line ends and other characters that could hide that it is a record."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in place.text())


def _arithmetic(place: Reader) -> str:
    if place.text() not in ARITHMETICS:
        place.fail("is the name of no arithmetic")
    return place.text()


def _lengths(place: Reader) -> tuple[int, int]:
    low, high = (item.integer() for item in place.items(count=2))
    return low, high


def _check_digests(folder: Path, digests: dict[str, str], hints: bytes) -> None:
    """Both files must name the digests of the files as they are."""
    named = parse(hints, CERTIFICATE).data
    claimed = named.get("sha256") if isinstance(named, dict) else None
    for name in CONTENT:
        found = _digest((folder / name).read_bytes())
        if digests[name] != found or not isinstance(claimed, dict) or claimed.get(name) != found:
            raise FormatError(f"its certificate is for another {name}", hint=OTHER_FILES)
    if digests[CERTIFICATE] != _digest(hints):
        raise FormatError(f"{CERTIFICATE} was changed after it was checked", hint=OTHER_FILES)


OTHER_FILES = f"delete {CERTIFICATE} and {VERDICT} to load the model without a certificate"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
