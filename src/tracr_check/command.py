"""The command `tracr-check FOLDER [--arithmetic NAME] [--unpadded] [--export FILE] [--json]`.

The exit status is 0 if the model is accepted, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tracr_check.arithmetic import ARITHMETICS
from tracr_check.checking import check_folder

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Check a folder and print the verdict."""
    status = "The exit status is 0 if the model is accepted, 1 if not, and 2 for wrong usage."
    parser = argparse.ArgumentParser(
        "tracr-check", description="Prove that a saved model computes its program.", epilog=status
    )
    parser.add_argument("folder", help="a saved model with a certificate, or a GPT-2 checkpoint of one")
    parser.add_argument(
        "--arithmetic",
        choices=sorted(ARITHMETICS),
        metavar="NAME",
        help=f"{', '.join(ARITHMETICS)}; instead of the certificate's",
    )
    parser.add_argument("--unpadded", action="store_true", help="only inputs without padding")
    parser.add_argument("--export", metavar="FILE", help="a safetensors file that must hold the same weights")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    given = parser.parse_args(argv)
    verdict = check_folder(given.folder, given.arithmetic, False if given.unpadded else None, given.export)
    text = json.dumps(asdict(verdict), indent=2) if given.json else str(verdict)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # names may have characters that it lacks
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:  # the reader has seen enough; what is left to write goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if verdict.accepted else 1
