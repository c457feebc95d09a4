"""The part of the package that is compiled, the C kernel.

The variable TRACR_KERNEL says what to do about it:

    optional   build it; where that fails (no C compiler) install the package without it. The default.
    required   build it, or fail: for the wheels of a platform.
    none       leave it out: for the wheel of all platforms, `py3-none-any`.

All three give the same answers: without the kernel, numpy computes them.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/tracr/runtime/kernel/c")
CHOICES = ("optional", "required", "none")

choice = os.environ.get("TRACR_KERNEL", "optional")
if choice not in CHOICES:
    sys.exit(f"TRACR_KERNEL is {choice!r}; it must be one of {', '.join(CHOICES)}")

# The kernel needs GCC's or Clang's vectors and POSIX threads. On Windows, MinGW's GCC has both; the kernel contains its
# libraries, and uses Python's stable interface (python3.dll).
WINDOWS = ["-static", f"-L{sys.base_prefix}", "-l:python3.dll"] if sys.platform == "win32" else []
COMPILER = {"build_ext": {"compiler": "mingw32"}} if sys.platform == "win32" else {}

kernel = Extension(
    "tracr.runtime.kernel._kernel",
    [str(KERNEL / "kernel.c")],
    depends=[str(header) for header in sorted(KERNEL.glob("*.h"))],
    extra_compile_args=["-O3", "-ffp-contract=off", "-Wno-psabi", "-pthread"],
    extra_link_args=["-pthread", *WINDOWS],
    py_limited_api=True,
    optional=choice == "optional",
)

if choice == "none":
    setup()
else:
    setup(ext_modules=[kernel], options={"bdist_wheel": {"py_limited_api": "cp311"}, **COMPILER})
