"""Write a compiled model as an ONNX file, run it in onnxruntime without tracr, and load it.

The file holds the transformer and the program: any ONNX tool can run or draw it, and `tracr.load` returns the labelled
model. Needs onnx and onnxruntime: pip install 'tracr[onnx]'.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import tracr
from tracr.rasp import programs


def main() -> None:
    """Write, run, read."""
    import onnxruntime

    example = programs.EXAMPLES["dyck1"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dyck1.onnx"
        model.to_onnx(path)
        session = onnxruntime.InferenceSession(path)
        loaded = tracr.load(path)

    about = session.get_modelmeta()
    print(f"tokens: {about.custom_metadata_map['tokens']}")
    print(f"logits: {about.custom_metadata_map['logits']}\n")
    for batch in (["(())", "())("], ["()a", "a)("], ["()()a"]):
        ids = model.encode([list(text) for text in batch])
        (logits,) = session.run(["logits"], {"ids": ids})
        for text, values in zip(batch, model.values(logits, ids), strict=True):
            print(f"{text:6} {''.join(values)}")

    print(f"\n{loaded!r}\n{loaded.verify()}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
