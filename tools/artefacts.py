"""Builds the files of a release, and tests each wheel in an environment of its own without a C compiler.

    python tools/artefacts.py build dist     source distribution, wheel of this platform, wheel of all platforms
    python tools/artefacts.py test dist      install and run each wheel

`build` needs the extra `release`. `test` installs the dependencies, for which pip needs an index. The programs then run
without a network, where Linux's `unshare` can take it away.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROBE = Path(__file__).with_name("installed.py")

WHEEL_BYTES = 4_000_000
INSTALLED_BYTES = 16_000_000
SOURCE_BYTES = 30_000_000  # with tests, pages and the data of the pages
IMPORT_RATIO = 10.0  # `import tracr` beside `import numpy`, both with the start of Python; a guard, not a measurement
LOADED = {"numpy", "tracr"}
# Not compared: metadata, what Python and setuptools leave behind, and the kernel.
BUILT = re.compile(r"\.(dist|egg)-info/|__pycache__/|\.(c|h|so|pyd)$")


class ArtefactError(Exception):
    """An artefact is not as it should be."""


def build(dist: Path) -> list[Path]:
    """The source distribution, and both wheels, built from it."""
    shutil.rmtree(dist, ignore_errors=True)
    for kernel, what in (("required", []), ("none", ["--wheel"])):
        with tempfile.TemporaryDirectory() as copy:
            source = Path(copy) / "source"
            _copied(source)
            command = [sys.executable, "-m", "build", "--outdir", str(dist.resolve()), *what, str(source)]
            _run(command, {**os.environ, "TRACR_KERNEL": kernel})
    return sorted(dist.iterdir())


def _copied(folder: Path) -> None:
    """Copy the checkout without what .gitignore names: no build folders, no environments, no compiled kernel."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.strip("/") for line in lines if line and not line.startswith("#")]
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", *ignored))


def test(dist: Path) -> dict[str, Any]:
    """Install and run every wheel; an `ArtefactError` where one is wrong or two disagree."""
    wheels = sorted(dist.glob("tracr-*.whl"))
    if not wheels:
        raise ArtefactError(f"{dist} has no wheels: run `python tools/artefacts.py build {dist}` first")
    for source in dist.glob("tracr-*.tar.gz"):
        if source.stat().st_size > SOURCE_BYTES:
            raise ArtefactError(f"{source.name} has {source.stat().st_size:,} bytes, more than {SOURCE_BYTES:,}")
    found = {wheel.name: _tested(wheel) for wheel in wheels}
    answers = {json.dumps(told["answers"]) for told in found.values()}
    if len(answers) > 1:
        raise ArtefactError(f"the wheels give different answers: {', '.join(found)}")
    return found


def _tested(wheel: Path) -> dict[str, Any]:
    """What the wheel does in a new environment; its size, imports and command are checked."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        _run([sys.executable, "-m", "venv", str(environment)])
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        variables = without_compiler(scripts)
        python = str(scripts / "python")
        _run([python, "-m", "pip", "install", "-q", "--only-binary=:all:", str(wheel.resolve())], variables, folder)
        told: dict[str, Any] = json.loads(_run([*offline(), python, "-I", str(PROBE)], variables, folder))
        saved = str(Path(folder) / "saved")
        _run([*offline(), str(scripts / "tracr"), "certify", "hist", "-o", saved], variables, folder)
        _run([*offline(), str(scripts / "tracr-check"), saved], variables, folder)
    told["wheel_bytes"] = wheel.stat().st_size
    told["differing"] = differing(wheel, ROOT / "src")
    problems = wrong(wheel.name, told)
    if problems:
        raise ArtefactError(f"{wheel.name}: {'; '.join(problems)}")
    return told


def differing(wheel: Path, source: Path) -> list[str]:
    """The files of the source tree that a wheel does not have as they are, and those that only the wheel has.

    The kernel is built, so its sources and its library are left out.
    """
    there = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
    expected = {name: path for name, path in there.items() if not BUILT.search(name)}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not BUILT.search(name)}
        same = {
            name for name in packed & {*expected} if _text(archive.read(name)) == _text(expected[name].read_bytes())
        }
    return sorted(({*expected} | packed) - same)


def _text(content: bytes) -> bytes:
    """A file's content with the line ends of Unix: Git writes others on Windows."""
    return content.replace(b"\r\n", b"\n")


def wrong(name: str, told: Mapping[str, Any]) -> list[str]:
    """What is wrong with a wheel, given what it does."""
    pure = name.endswith("-py3-none-any.whl")
    checks = {
        "the C kernel is in the wheel of all platforms": pure and told["kernel"],
        "the C kernel is missing": not pure and not told["kernel"],
        f"`import tracr` loads {', '.join(told['loaded'])}": set(told["loaded"]) != LOADED,
        f"`import tracr` takes {told['import_ratio']} times as long as `import numpy`": told["import_ratio"]
        > IMPORT_RATIO,
        f"the wheel has {told['wheel_bytes']:,} bytes": told["wheel_bytes"] > WHEEL_BYTES,
        f"the installed files have {told['installed_bytes']:,} bytes": told["installed_bytes"] > INSTALLED_BYTES,
        f"the wheel does not have the source tree's {', '.join(told['differing'][:3])}": bool(told["differing"]),
        "a kernel's answer differs from numpy's": any(len(set(both)) > 1 for both in told["answers"].values()),
    }
    return [problem for problem, holds in checks.items() if holds]


def without_compiler(scripts: Path) -> dict[str, str]:
    """Environment variables under which no C compiler is found, and no package outside the environment."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "CC")}
    return {**kept, "PATH": str(scripts), "CC": "no-compiler", "PYTHONNOUSERSITE": "1"}


def offline() -> list[str]:
    """The words before a command that take the network away from it, if this system has them."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        return []
    return [unshare, "-rn"]


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None, folder: str | None = None) -> str:
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArtefactError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def main() -> None:
    """Run a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["build", "test"])
    parser.add_argument("dist", type=Path)
    given = parser.parse_args()
    try:
        if given.step == "build":
            for path in build(given.dist):
                print(f"{path.name}  {path.stat().st_size:,} bytes")
            return
        for name, told in test(given.dist).items():
            facts = {key: value for key, value in told.items() if key not in ("answers", "folder")}
            print(f"{name}  {json.dumps(facts)}")
        print(f"no compiler{', no network' if offline() else ''}: the wheels agree on all answers")
    except ArtefactError as error:
        sys.exit(f"artefacts: {error}")


if __name__ == "__main__":
    main()
