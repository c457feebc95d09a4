"""The verdict of the checker on a model, with the hints that it needs to be checked again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracr.errors import CertificateError
from tracr_check import Verdict

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["Certificate"]


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What the checker `tracr_check` says of a model: accepted, for every input, or rejected with the reason.

    `hints` is the content of `certificate.json`. The checker trusts nothing in it. `recorded` is true for a verdict
    that was read from a folder: the digests of the files were compared, the proof was not repeated.
    `model.certify()` or `tracr-check FOLDER` repeats it.
    """

    verdict: Verdict
    hints: bytes
    model: DesignedModel
    recorded: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the checker proved that the model computes its program."""
        return self.verdict.accepted

    @property
    def reason(self) -> str:
        """Why the model was rejected; empty if it was accepted."""
        return self.verdict.reason

    @property
    def place(self) -> str:
        """The layer, dimension, value or class of inputs where the proof fails, if the checker names one."""
        return self.verdict.place

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof assumes of the program, and of the arithmetic that runs the weights."""
        return self.verdict.assumptions

    @property
    def theorem(self) -> str:
        """What is proved, in one paragraph; empty if the model was rejected."""
        return self.verdict.theorem

    def covers(self, exported: Any) -> bool:
        """Whether an export holds the weights that were accepted: the same names, shapes and numbers, in the format.

        `exported` is what `to_torch` or `to_jax` gave (the module, or the dict of parameters), a dict of arrays, or the
        path of an `.onnx` or `.safetensors` file. The theorem then holds for every execution of the network with these
        weights that conforms to the arithmetic. That the export's code or graph is this network is not proved. A
        Hugging Face checkpoint is another network, with layer norms: it is refused with a `CertificateError`.
        `tracr-check FOLDER` checks its tensors. An `.onnx` file has no norms: that of a model with norms is refused. A
        certificate that was read from a folder covers nothing before it is checked again, and is refused too.

        >>> import tracr
        >>> from tracr.rasp import rasp
        >>> model = tracr.compile(rasp.tokens, "ab", 3)
        >>> weights = dict(model.cast("float32").named())
        >>> certificate = model.certify()
        >>> certificate.covers(weights), certificate.covers({**weights, "embed.W_E": weights["embed.W_E"] * 2})
        (True, False)
        """
        from tracr.certificate.exports import exported_sha256, require_norms

        if self.recorded:
            raise CertificateError("this is a record, not checked again", hint="call model.certify().covers(...)")
        require_norms(self.model, exported)
        digest = exported_sha256(exported, self.verdict.arithmetic)
        return self.accepted and digest == self.verdict.weights_sha256

    def __bool__(self) -> bool:
        return self.accepted

    def __repr__(self) -> str:
        return f"Certificate({self.headline})"

    @property
    def headline(self) -> str:
        """The verdict in one line.

        >>> import tracr
        >>> from tracr.rasp import rasp
        >>> tracr.compile(rasp.tokens, "ab", 3).certify().headline
        'ACCEPTED in float32, lengths 1 to 3, padded'
        """
        verdict, text = self.verdict, self.verdict.headline
        if not self.accepted:
            where = f" ({verdict.place})" if verdict.place else ""
            padded = "padded" if verdict.padded else "unpadded"
            text = f"REJECTED in {verdict.arithmetic}, {padded}: {verdict.reason}{where}"
        return f"{text}; as recorded, not checked again" if self.recorded else text

    def __str__(self) -> str:
        if not self.accepted:
            return f"{self.headline}\nNo proof was found. This does not mean that the model is wrong."
        return "\n".join([self.headline, *str(self.verdict).split("\n")[1:]])

    def _repr_html_(self) -> str:
        title, *lines = str(self).split("\n")
        colour = "#868e96" if self.recorded else "#2b8a3e" if self.accepted else "#e03131"
        return (
            f'<div class="tracr"><b style="color: {colour}">{escape(title)}</b>'
            f"{''.join(f'<br>{escape(line)}' for line in lines)}</div>"
        )

    def as_json(self) -> dict[str, Any]:
        """The verdict as data."""
        found = asdict(self.verdict)
        return {**found, "lengths": list(self.verdict.lengths), "recorded": self.recorded}

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model with this certificate, accepted or not; `tracr-check FOLDER` checks it again."""
        from tracr.certificate.saving import save_with

        save_with(self, folder, overwrite)
