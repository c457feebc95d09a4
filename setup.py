"""The part of the package that is compiled; where there is no C compiler the package does without."""

from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/tracr/runtime/kernel/c")

setup(
    ext_modules=[
        Extension(
            "tracr.runtime.kernel._kernel",
            [str(KERNEL / "kernel.c")],
            depends=[str(header) for header in sorted(KERNEL.glob("*.h"))],
            extra_compile_args=["-O3", "-ffp-contract=off", "-Wno-psabi", "-pthread"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
