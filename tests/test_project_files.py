"""The files around the package: workflows, templates, metadata, the changelog, and the scripts of a release."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracr
from tracr.extras import EXTRAS

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
if not GITHUB.is_dir():
    pytest.skip("this is not a checkout", allow_module_level=True)
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tool(name: str) -> ModuleType:
    """A script of the folder `tools`."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def steps(workflow: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in workflow["jobs"].items() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_well_formed(path: Path) -> None:
    """Jobs have a machine or call a workflow that exists; steps run or use something; no rights by default."""
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert workflow[True]  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert ("runs-on" in job) != ("uses" in job)
        assert (ROOT / job["uses"]).is_file() if "uses" in job else job["steps"]
        assert {*([job["needs"]] if "needs" in job else [])} <= {*workflow["jobs"]}
    for _, step in steps(workflow):
        assert ("run" in step) != ("uses" in step), step
        assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/x@v1"))


def test_workflows_run_what_there_is() -> None:
    """Targets of the Makefile and scripts of the repository, and no others."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) | {"docs"}
    runs = [step["run"] for path in WORKFLOWS for _, step in steps(read(path)) if "run" in step]
    for line in runs:
        assert set(re.findall(r"\bmake ([\w-]+)", line)) <= targets, line
        for script in re.findall(r"python ((?:tools|benchmarks)/[\w/]+\.py)", line):
            assert (ROOT / script).is_file(), script
    assert len(runs) > 15


def test_the_matrix_has_every_python_and_system() -> None:
    """Those of the classifiers."""
    matrix = read(GITHUB / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    named = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert matrix["python"] == named == ["3.11", "3.12", "3.13", "3.14"]


def test_templates_are_well_formed() -> None:
    """Every form has a name, a description and fields with different ids."""
    forms = [path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert len(forms) == 3
    for path in forms:
        form = read(path)
        assert form["name"]
        assert form["description"]
        fields = [one for one in form["body"] if one["type"] != "markdown"]
        assert len({one["id"] for one in fields}) == len(fields) > 1
        assert all(one["attributes"]["label"] for one in fields)
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}


def test_one_version() -> None:
    """`version.py` is the source; the citation says the same, and the first version of the changelog too."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tracr.version.__version__"}
    assert read(ROOT / "CITATION.cff")["version"] == tracr.__version__
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:2] == ["Unreleased", tracr.__version__]


def test_every_optional_library_has_its_extra() -> None:
    """As errors name them: those of pyproject.toml, apart from the tools of developers."""
    distributions = {"sklearn": "scikit-learn", "transformer_lens": "transformer-lens"}
    extras = PROJECT["project"]["optional-dependencies"]
    needed = {extra: {re.split("[>=<]", one)[0] for one in extras[extra]} for extra in extras}
    for library, extra in EXTRAS.items():
        assert distributions.get(library, library) in needed[extra], library
    known = {distributions.get(library, library) for library in EXTRAS}
    assert {one for extra in needed.keys() - {"dev", "docs", "release"} for one in needed[extra]} == known


def libraries_needed(folder: Path) -> set[tuple[str, str]]:
    """The libraries that modules of a folder ask for with `need`, each with the extra that the error names."""
    calls = re.compile(r'need\("([\w.]+)", (?:extra=)?"([\w-]+)"\)')
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    return {(module.partition(".")[0], extra) for text in texts for module, extra in calls.findall(text)}


def test_errors_name_an_extra_that_has_the_library() -> None:
    """Everywhere; and the laboratory's own extra has all that its commands need, apart from figures and graphs."""
    extras = PROJECT["project"]["optional-dependencies"]
    distributions = {"sklearn": "scikit-learn", "transformer_lens": "transformer-lens"}
    has = {extra: {re.split("[>=<]", one)[0] for one in extras[extra]} for extra in extras}
    asked = libraries_needed(ROOT / "src" / "tracr")
    assert len(asked) > 10
    assert {
        (library, extra) for library, extra in asked if distributions.get(library, library) not in has[extra]
    } == set()
    laboratory = {library for library, _ in libraries_needed(ROOT / "src" / "tracr" / "lab")}
    assert {distributions.get(library, library) for library in laboratory - {"matplotlib", "networkx"}} == has["lab"]


def test_every_extra_is_described() -> None:
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([\w-]+)`", " ".join(rows))) == {*PROJECT["project"]["optional-dependencies"]}


def test_no_address_is_invented() -> None:
    """Until the project has an address of its own, its metadata name the papers only, and no release is ready."""
    urls = PROJECT["project"]["urls"]
    assert "example" not in str(urls)
    if "Source" not in urls:
        assert all(address.startswith("https://arxiv.org/abs/") for address in urls.values())
        release = tool("release")
        with pytest.raises(release.NotReadyError, match="no public address yet"):
            release.check_addresses()


def test_the_checklist_of_a_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs checks, says what to do where one fails, and has no command that uploads."""
    release = tool("release")
    monkeypatch.setattr(release, "git", lambda *_: "")  # no tags yet
    assert release.main(["--only", "version"]) == 0
    assert "version" in capsys.readouterr().out
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "src" / "tracr").mkdir(parents=True)
    (tmp_path / "src" / "tracr" / "version.py").write_text('__version__ = "1.2.3"\n')
    changelog = tmp_path / "CHANGELOG.md"
    for text, problem in (
        ("## 1.2.3 (2026-01-01)\n", "must begin with the section Unreleased"),
        ("## Unreleased\n\n## 1.2.3\n", "write `## 1.2.3 "),
        ("## Unreleased\n\n- x\n\n## 1.2.3 (2026-01-01)\n", "move the lines"),
    ):
        changelog.write_text(text)
        assert release.main(["--only", "changelog"]) == 1
        assert problem in capsys.readouterr().out
    changelog.write_text("## Unreleased\n\n## 1.2.3 (2026-01-01)\n")
    assert release.main(["--only", "changelog"]) == 0
    monkeypatch.setattr(release, "CHECKS", (release.Check("nothing", "holds", lambda: None),))
    assert release.main([]) == 0
    assert "indexes refuse the tag linux_x86_64" in " ".join(capsys.readouterr().out.split())
    source = (ROOT / "tools" / "release.py").read_text()
    assert source.count("twine upload") == 1  # in the text it prints
    assert re.search(r'^UPLOAD = "python -m twine upload', source, re.MULTILINE)


GOOD = {
    "kernel": True,
    "loaded": ["numpy", "tracr"],
    "import_ratio": 2.0,
    "wheel_bytes": 1,
    "installed_bytes": 1,
    "differing": [],
    "answers": {"hist@level1": ["[1]", "[1]"]},
}


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {}, None),
        ("tracr-1-py3-none-any.whl", {"kernel": False}, None),
        ("tracr-1-py3-none-any.whl", {}, "the C kernel is in the wheel of all platforms"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"kernel": False}, "the C kernel is missing"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"loaded": ["numpy", "torch", "tracr"]}, "loads numpy, torch, tracr"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"import_ratio": 99.0}, "99.0 times as long"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"wheel_bytes": 10**8}, "100,000,000 bytes"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"installed_bytes": 10**8}, "the installed files"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"differing": ["tracr/x.lark"]}, "source tree's tracr/x.lark"),
        ("tracr-1-cp311-abi3-linux_x86_64.whl", {"answers": {"hist": ["[1]", "[2]"]}}, "differs from numpy's"),
    ],
)
def test_what_is_wrong_with_a_wheel(name: str, change: dict[str, Any], problem: str | None) -> None:
    """`make test-wheel` fails for each of these."""
    found = tool("artefacts").wrong(name, {**GOOD, **change})
    assert found == [] if problem is None else problem in found[0]


def test_a_large_source_distribution_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any wheel is installed; a folder without wheels too."""
    artefacts = tool("artefacts")
    with pytest.raises(artefacts.ArtefactError, match="has no wheels"):
        artefacts.test(tmp_path)
    (tmp_path / "tracr-1-py3-none-any.whl").touch()
    (tmp_path / "tracr-1.tar.gz").write_bytes(b"12345")
    monkeypatch.setattr(artefacts, "SOURCE_BYTES", 4)
    with pytest.raises(artefacts.ArtefactError, match=r"tracr-1\.tar\.gz has 5 bytes, more than 4"):
        artefacts.test(tmp_path)


def test_a_wheel_has_the_files_of_the_source_tree(tmp_path: Path) -> None:
    """A file that is missing, changed or added is found; the kernel, caches and line ends are no difference."""
    source, wheel = tmp_path / "src", tmp_path / "tracr-1-py3-none-any.whl"
    for name in ("a.py", "b.lark", "c.js", "kernel.c", "__pycache__/a.pyc", "_kernel.abi3.so"):
        path = source / "tracr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1\r\n")
    packed = {"tracr/a.py": "1\n", "tracr/b.lark": "1\n", "tracr/c.js": "1\n", "tracr-1.dist-info/WHEEL": ""}

    def found(**changed: str) -> list[str]:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, content in {**packed, **changed}.items():
                if content != "missing":
                    archive.writestr(name, content)
        differing: list[str] = tool("artefacts").differing(wheel, source)
        return differing

    assert found() == []
    assert found(**{"tracr/b.lark": "missing"}) == ["tracr/b.lark"]
    assert found(**{"tracr/c.js": "2\n", "tracr/d.py": "", "x.py": ""}) == ["tracr/c.js", "tracr/d.py", "x.py"]


def test_no_compiler_is_found(tmp_path: Path) -> None:
    """Under the variables with which wheels are tested."""
    variables = tool("artefacts").without_compiler(tmp_path)
    assert variables["PATH"] == str(tmp_path)
    script = "import shutil; print([shutil.which(name) for name in ('cc', 'gcc', 'clang')])"
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[None, None, None]"


def test_the_kernel_is_chosen_by_a_variable() -> None:
    """A misspelt choice is refused; `make test-wheel` builds both kinds of wheels."""
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"],
        cwd=ROOT,
        env={**os.environ, "TRACR_KERNEL": "maybe"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "TRACR_KERNEL is 'maybe'; it must be one of optional, required, none" in done.stderr


def test_the_coverage_that_is_told_was_measured() -> None:
    """CONTRIBUTING.md has the number, day and commit of the report, and the report is of the whole normal tier."""
    report = (ROOT / "docs" / "benchmarks" / "coverage.txt").read_text(encoding="utf-8")
    head = re.match(r"Lines and branches run by the normal tier; (\S+), commit (\w+); without .*torch.*\n\n", report)
    assert head, "not of the whole tier, or tests failed"
    share = re.search(r"^all +([\d.]+) % of ([\d,]+)$", report, re.MULTILINE)
    assert share
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"runs {share[1]} % of {share[2]} lines and branches ({head[1]}, commit {head[2]};" in page


def test_parts_of_a_coverage_run_are_the_whole_normal_tier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every folder and file of tests and every doctest is in one part; a run that goes on leaves out what it has."""
    report = tool("coverage_report")
    named = [word for part in report.parts() for word in part]
    paths = PROJECT["tool"]["pytest"]["ini_options"]["testpaths"]
    assert {word for word in named if not word.startswith("tests/")} == {*paths} - {"tests"}
    for path in (ROOT / "tests").rglob("test_*.py"):
        inside = path.relative_to(ROOT).as_posix()
        assert sum(inside == word or inside.startswith(f"{word}/") for word in named) == 1, inside
    statuses = iter([0, 1, 5, 0])
    run: list[str] = []

    def pretend(words: list[str], **_: Any) -> Any:
        run.append(words[-1])
        return subprocess.CompletedProcess(words, next(statuses))

    monkeypatch.setattr(report, "DATA", tmp_path)
    monkeypatch.setattr(report.subprocess, "run", pretend)
    assert report.measured([["a"], ["b"], ["c"]], None) == {"b": 1}
    assert report.measured([["a"], ["b"], ["c"], ["d"]], None, resume=True) == {"b": 1}
    assert run == ["a", "b", "c", "d"]
    monkeypatch.undo()
    assert "tests failed in b (exit status 1)" in report.shown({"tracr": (1, 2)}, [], None, {"b": 1})


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_say_what_they_need(path: Path) -> None:
    """The first cell has the command, with an extra for every library that is imported, and says if a clone is needed.

    All notebooks are stored with their outputs and show an explorer page.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    head = "".join(cells[0]["source"])
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    text = "\n".join("".join(cell["source"]) for cell in code)
    asked = re.search(r"pip install 'tracr\[([\w,-]+)\]'", head)
    assert asked
    extras = PROJECT["project"]["optional-dependencies"]
    has = {re.split("[>=<]", one)[0] for extra in asked[1].split(",") for one in extras[extra]}
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE)) & {*EXTRAS}
    assert {name.replace("_", "-") for name in imported} <= has
    assert ("docs/natural" in text) == ("a clone of" in head)
    assert ".explore(" in text
    assert all(cell["execution_count"] for cell in code)
    assert sum(bool(cell["outputs"]) for cell in code) >= len(code) - 1
