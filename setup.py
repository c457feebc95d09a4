"""The part of the package that is compiled; where there is no C compiler the package does without."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "tracr.runtime.kernel._kernel",
            ["src/tracr/runtime/kernel/c/kernel.c"],
            depends=[f"src/tracr/runtime/kernel/c/{name}.h" for name in ("network", "vectors", "forward")],
            extra_compile_args=["-O3", "-ffp-contract=off", "-Wno-psabi", "-pthread"],
            extra_link_args=["-pthread"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
