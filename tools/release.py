"""The checklist of a release as a script: runs every check in turn, and stops before the upload.

    python tools/release.py              everything; an hour
    python tools/release.py --quick      what takes seconds
    python tools/release.py --only version changelog
    python tools/release.py --list       the checks

A check that fails says what to do. The upload is left to a person: the script prints its command and does not run it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
UPLOAD = "python -m twine upload dist/*"


class NotReadyError(Exception):
    """A check failed; the message says what to do."""


@dataclass(frozen=True)
class Check:
    """A step of the checklist; `slow` ones are left out with --quick."""

    name: str
    what: str
    run: Callable[[], None]
    slow: bool = False


def read(name: str) -> str:
    """A file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def version() -> str:
    """The version, read from its one place."""
    found = re.search(r'^__version__ = "([^"]+)"$', read("src/tracr/version.py"), re.MULTILINE)
    if not found:
        raise NotReadyError('src/tracr/version.py has no line `__version__ = "..."`')
    return found[1]


def need(holds: object, otherwise: str) -> None:
    """Raise unless something holds."""
    if not holds:
        raise NotReadyError(otherwise)


def command(*words: str) -> Callable[[], None]:
    """A check that a command succeeds."""

    def run() -> None:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        need(done.returncode == 0, f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    return run


def git(*words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def check_tree() -> None:
    """Nothing is changed or untracked: a release is a commit."""
    changed = git("status", "--porcelain")
    need(not changed, f"commit or remove these first:\n{changed}")


def check_version() -> None:
    """The version has three numbers, has no tag yet, and is the one of CITATION.cff; pyproject.toml has none."""
    now = version()
    need(re.fullmatch(r"\d+\.\d+\.\d+", now), f"the version is {now}; write MAJOR.MINOR.PATCH")
    need(f"v{now}" not in git("tag").split(), f"there is a tag v{now} already; raise src/tracr/version.py")
    cited = re.search(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    need(cited and cited[1].strip("\"'") == now, f"write `version: {now}` in CITATION.cff")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    need("version" not in project, "pyproject.toml has a version; src/tracr/version.py is its one place")


def check_changelog() -> None:
    """CHANGELOG.md has a dated section for the version, below an empty `Unreleased`."""
    now = version()
    sections = re.split(r"^## ", read("CHANGELOG.md"), flags=re.MULTILINE)[1:]
    titles = [section.splitlines()[0].strip() for section in sections]
    need(titles[0] == "Unreleased", "CHANGELOG.md must begin with the section Unreleased")
    need(
        re.fullmatch(rf"{re.escape(now)} \(\d{{4}}-\d\d-\d\d\)", titles[1]),
        f"the second section of CHANGELOG.md is {titles[1]!r}; write `## {now} (YYYY-MM-DD)`, the day of the release",
    )
    need(len(sections[0].strip().splitlines()) == 1, f"move the lines of Unreleased to the section {now}")


def check_addresses() -> None:
    """pyproject.toml names the public address of the project."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    need(
        project.get("urls", {}).get("Source"),
        "the project has no public address yet. Once it has, add Source, Documentation, Issues and Changelog to "
        "[project.urls] in pyproject.toml, `repository-code` in CITATION.cff, and how to report in SECURITY.md",
    )


CHECKS = (
    Check("tree", "the checkout has no changes", check_tree),
    Check("version", "one version, not tagged yet, the same in CITATION.cff", check_version),
    Check("changelog", "a dated section for the version", check_changelog),
    Check("addresses", "the project's own in [project.urls]", check_addresses),
    Check(
        "project-files",
        "templates, workflows and metadata",
        command(sys.executable, "-m", "pytest", "-q", "tests/test_project_files.py"),
    ),
    Check("test", "lint, types and the normal tier", command("make", "test"), slow=True),
    Check("kernel", "the C kernel under sanitizers", command("make", "kernel-check"), slow=True),
    Check(
        "wheel",
        "build the files; the wheels without compiler and network; the tests",
        command("make", "test-wheel"),
        slow=True,
    ),
    Check(
        "metadata",
        "what PyPI says of the files",
        command(sys.executable, "-m", "twine", "check", "--strict", "dist/*"),
        slow=True,
    ),
    Check("extras", "all extras together", command(sys.executable, "tools/extras.py"), slow=True),
    Check("docs", "the site and its links", command("make", "docs"), slow=True),
    Check("browser", "the pages in a browser", command("make", "browser"), slow=True),
    Check("slow", "the slow tier", command("make", "slow"), slow=True),
)


def chosen(words: list[str] | None) -> list[Check]:
    """The checks that the options choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=[check.name for check in CHECKS], help="only these"
    )
    parser.add_argument("--list", action="store_true", help="list the checks")
    given = parser.parse_args(words)
    if given.list:
        print("\n".join(f"{check.name:14} {check.what}{' (slow)' if check.slow else ''}" for check in CHECKS))
        sys.exit()
    if given.only:
        return [check for check in CHECKS if check.name in given.only]
    return [check for check in CHECKS if not (given.quick and check.slow)]


def main(words: list[str] | None = None) -> int:
    """Run the checks; 0 if all hold."""
    checks = chosen(words)
    failed = []
    for check in checks:
        print(f"{check.name:14} {check.what} ... ", end="", flush=True)
        try:
            check.run()
        except NotReadyError as problem:
            failed.append(check.name)
            print(f"NOT READY\n    {str(problem).replace(chr(10), chr(10) + '    ')}")
        else:
            print("ok")
    if failed:
        print(f"\nnot ready: {', '.join(failed)}")
        return 1
    left = [check.name for check in CHECKS if check not in checks]
    if left:
        print(f"\nthese hold; not checked: {', '.join(left)}")
        return 0
    print(
        f"\neverything holds for {version()}. What is left is for a person: tag v{version()}, replace the wheel\n"
        "of this platform in dist, built for the checks, with those of the workflow `wheels` (indexes refuse\n"
        f"the tag linux_x86_64; the workflow's is manylinux), and upload:\n\n    {UPLOAD}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
