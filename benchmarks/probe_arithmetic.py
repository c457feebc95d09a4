"""Probes every backend that is installed, on the CPU and on a GPU if there is one, and writes the table as JSON.

    python benchmarks/probe_arithmetic.py -o docs/certificate/arithmetic_cpu.json

It needs numpy, and torch, JAX and onnxruntime for their rows. The file is written after every row.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracr.certificate.arithmetic_probe import probe_backend
from tracr.certificate.backends import (
    Backend,
    jax_backend,
    kernel_backend,
    numpy_backend,
    onnxruntime_backend,
    torch_backend,
    torch_sdpa,
)
from tracr.certificate.norm_probe import numpy_norm, probe_norm, torch_norm
from tracr.errors import MissingExtra
from tracr.writing import write_file

FUSED = ("MATH", "EFFICIENT_ATTENTION", "FLASH_ATTENTION", "CUDNN_ATTENTION")
SHORT = ("float16", "bfloat16")
Made = tuple[str, Callable[[], Backend]]


def main() -> None:
    """Probe, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--norms", action="store_true", help="only layer norms, into a file that has the other rows")
    given = parser.parse_args()
    known = json.loads(given.output.read_text()) if given.norms else {"rows": []}
    content: dict[str, Any] = {**known, "machine": machine(), "norms": list(norms())}
    for setting, make in () if given.norms else backends():
        content["rows"].append(row(setting, make))
        write(given.output, content)
    write(given.output, content)


def write(path: Path, content: dict[str, Any]) -> None:
    """Write what is known so far."""
    write_file(path, (json.dumps(content, indent=1) + "\n").encode(), make_folder=True)


def norms() -> Iterator[dict[str, Any]]:
    """The probes of layer norms."""
    for dtype in ("float32", "float64"):
        made = [numpy_norm(dtype)]
        try:
            made += [torch_norm(dtype, device) for device in ("cpu", *(["cuda"] if has_cuda() else []))]
        except MissingExtra as error:
            print(f"layer norms of torch: not probed: {error}")
        for one in made:
            found = probe_norm(one)
            print(f"layer norm, {one.name} {dtype}: {found.violations or 'no violation found'}", flush=True)
            yield found.as_json()


def row(setting: str, make: Callable[[], Backend]) -> dict[str, Any]:
    """The probe of one backend, or the reason why there is none."""
    try:
        with settings(setting):
            probe = probe_backend(make())
    except Exception as error:  # a library that is missing, a format or kernel that the device lacks
        print(f"{setting}: not probed: {error}")
        return {"setting": setting, "skipped": f"{type(error).__name__}: {error}"[:300]}
    own = "float32-fused" if probe.dtype == "float32" and not probe.conforms else probe.dtype
    print(f"{setting}: {probe}", *(f"  {line}" for line in probe.violations(own)), sep="\n", flush=True)
    return {"setting": setting, **probe.as_json(), "violations": probe.violations(own)}


def backends() -> Iterator[Made]:
    """Every backend with its setting."""
    for dtype in ("float32", "float64"):
        yield f"numpy {dtype}", lambda d=dtype: numpy_backend(d)  # type: ignore[misc]
    yield "C kernel float32", kernel_backend
    for dtype in ("float32", "float64"):
        yield f"onnxruntime {dtype}", lambda d=dtype: onnxruntime_backend(d)  # type: ignore[misc]
    for precision in (None, "highest"):
        for dtype in ("float32", "float64", *SHORT):
            name = f"jax {dtype}" + (f", precision {precision}" if precision else "")
            yield name, lambda d=dtype, p=precision: jax_backend(d, p)  # type: ignore[misc]
    yield from torch_backends("cpu")
    if has_cuda():
        yield from torch_backends("cuda")


def torch_backends(device: str) -> Iterator[Made]:
    """torch with one kernel for each operation and with each fused attention; on a GPU also with its switches."""
    for dtype in ("float32", "float64", *SHORT):
        for switch in ("", *(switches(dtype) if device == "cuda" else ())):
            yield f"torch {device} {dtype}{switch}", lambda d=dtype: torch_backend(d, device)  # type: ignore[misc]
        for kernel in FUSED:
            name = f"torch-sdpa {device} {dtype} {kernel}"
            yield name, lambda d=dtype, k=kernel: torch_sdpa(d, device, k)  # type: ignore[misc]


def switches(dtype: str) -> tuple[str, ...]:
    """The settings of torch that change products on a GPU."""
    return (" TF32",) if dtype == "float32" else (" reduced-precision reductions",) if dtype in SHORT else ()


@contextmanager
def settings(setting: str) -> Iterator[None]:
    """torch's switches for one row: all off unless the row names them."""
    if not setting.startswith("torch"):
        yield
        return
    import torch

    matmul = torch.backends.cuda.matmul
    before = (
        matmul.allow_tf32,
        matmul.allow_fp16_reduced_precision_reduction,
        matmul.allow_bf16_reduced_precision_reduction,
    )
    reduced = "reduced" in setting
    matmul.allow_tf32 = "TF32" in setting
    matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = reduced
    try:
        yield
    finally:
        matmul.allow_tf32 = before[0]
        matmul.allow_fp16_reduced_precision_reduction = before[1]
        matmul.allow_bf16_reduced_precision_reduction = before[2]


def has_cuda() -> bool:
    """Whether torch sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def machine() -> dict[str, str]:
    """The processor and the GPU."""
    found = {"processor": platform.machine(), "python": platform.python_version()}
    if has_cuda():
        import torch

        found["gpu"] = torch.cuda.get_device_name(0)
    return found


if __name__ == "__main__":
    main()
