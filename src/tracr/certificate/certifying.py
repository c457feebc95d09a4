"""Certifies a model: writes hints for the checker, runs it on the saved files, and keeps the verdict."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracr import arguments
from tracr.certificate.certificate import Certificate
from tracr.certificate.exports import exported_sha256
from tracr.certificate.hints import hints
from tracr.errors import TracrError, WriteError
from tracr.model.designed import DesignedModel
from tracr.saving.models import CONTENT, files_of
from tracr.spelling import did_you_mean
from tracr.values import short_repr
from tracr.writing import written_to
from tracr_check import ARITHMETICS, Verdict, check_folder

__all__ = ["CERTIFICATE", "HINTS_VERSION", "certificate_of", "certify", "files_verdict", "keep", "shown_certificate"]

CERTIFICATE = "certificate.json"
HINTS_VERSION = 2
SHOWN_PARAMETERS = 300_000  # larger models are not checked only to show the verdict
KEPT = "_certificate"  # in the model's __dict__, as `cached_property` does: copies with other weights do not have it


def certify(model: DesignedModel, arithmetic: str = "float32", padded: bool = True) -> Certificate:
    """Run the checker on the model's files; see `CompiledModel.certify`."""
    _check_arithmetic(arithmetic)
    padded = arguments.flag("padded", padded)
    files = files_of(model)
    try:
        found = hints(model)
    except (TracrError, KeyError, ValueError) as error:  # no rules for this model: hints without content are rejected
        found, problem = {}, f"there are no hints for this model: {' '.join(str(error).split())}"
    else:
        problem = ""
    content = hints_file(found, files, arithmetic, padded)
    certificate = Certificate(_with_problem(files_verdict({**files, CERTIFICATE: content}), problem), content, model)
    keep(model, certificate)
    return certificate


def _check_arithmetic(name: object) -> None:
    """It must be the name of one."""
    if not isinstance(name, str) or name not in ARITHMETICS:
        listed = f"arithmetics are {', '.join(ARITHMETICS)}"
        meant = did_you_mean(str(name).lower(), ARITHMETICS)
        raise TracrError(f"there is no arithmetic {short_repr(name)}", hint=f"{meant} {listed}".strip())


def hints_file(found: Mapping[str, Any], files: Mapping[str, bytes], arithmetic: str, padded: bool) -> bytes:
    """The content of `certificate.json`."""
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in CONTENT}
    given = {"version": HINTS_VERSION, "sha256": digests, "arithmetic": arithmetic, "padded": padded, **found}
    return json.dumps(given).encode("ascii") + b"\n"


def files_verdict(files: Mapping[str, bytes]) -> Verdict:
    """The verdict on the files of a folder, which are written into a temporary one."""
    with written_to(Path("a temporary folder")), tempfile.TemporaryDirectory(prefix="tracr-") as folder:
        for name, data in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return check_folder(folder)


def _with_problem(verdict: Verdict, problem: str) -> Verdict:
    """The verdict, with a problem before the checker's own reason."""
    if problem and not verdict.accepted:
        return Verdict(**{**vars(verdict), "reason": f"{problem}; {verdict.reason}"})
    return verdict


def keep(model: DesignedModel, certificate: Certificate) -> None:
    """Keep a certificate with its model, which from now on runs the arrays as they are."""
    model.__dict__[KEPT] = certificate
    model.forget_casts()


def certificate_of(model: DesignedModel) -> Certificate | None:
    """The last certificate of a model, or None; also None if it is of weights that were changed in their arrays.

    Arrays that were changed and changed back may have been cast between; the model runs them as they are from now on.
    """
    kept: Certificate | None = model.__dict__.get(KEPT)
    if kept is None or not kept.accepted:
        return kept
    digest = exported_sha256(dict(model.parameters.named()), kept.verdict.arithmetic)
    model.forget_casts()
    return kept if digest == kept.verdict.weights_sha256 else None


def shown_certificate(model: DesignedModel, dtype: str = "") -> Certificate | None:
    """The certificate that descriptions of a model show: the last one, else a new one; a record is checked again.

    `dtype`: a certificate in another format is not shown; a new one in this format is, and the model keeps its own.
    None for a very large model, and where the disk refuses the temporary files of the check.
    """
    known = certificate_of(model)
    other = bool(dtype) and known is not None and known.verdict.arithmetic.partition("-")[0] != dtype
    if known is not None and not other and not known.recorded:
        return known
    if model.n_parameters > SHOWN_PARAMETERS:
        return None
    try:
        if known is None:
            return certify(model, dtype or (model.options.dtype if model.plain is model else "float32"))
        if other:
            found = certify(model, dtype, known.verdict.padded)
            keep(model, known)
            return found
        return certify(model, known.verdict.arithmetic, known.verdict.padded)
    except WriteError:
        return None
