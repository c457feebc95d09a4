"""Runs a side on a case in its own process, and keeps the measurements."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from cases import OURS_ONLY, Case

from tracr.rasp import programs, rasp

__all__ = ["LEVELS", "SIDES", "Results", "run_case"]

HERE = Path(__file__).parent
SIDES = ("original", "level 1", "level 2")
LEVELS = SIDES[1:]
TOLERANCE = 1e-4  # of numbers, times max(1, |number|)

Record = dict[str, Any]


class Results:
    """The measurements by case and side, in a JSON file that is rewritten after every measurement."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        self.data: dict[str, Any] = {"about": {}, "limit": None, "cases": {}}
        if path.is_file() and not fresh:
            self.data = json.loads(path.read_text(encoding="utf-8"))

    @staticmethod
    def key(case: Case, side: str) -> str:
        """The name of a measurement."""
        return f"{case.program} {case.tokens},{case.length} {side}"

    def get(self, case: Case, side: str) -> Record | None:
        """The measurement of a case and side, if there is one."""
        found: Record | None = self.data["cases"].get(self.key(case, side))
        return found

    def put(self, case: Case, side: str, record: Record) -> None:
        """Keep a measurement, also on disk."""
        self.data["cases"][self.key(case, side)] = record
        self.save()

    def save(self) -> None:
        """Write the file, completely or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(self.path.name + ".new")
        new.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        os.replace(new, self.path)

    def describe(self, limit: float, original: dict[str, str]) -> None:
        """Record the machine and the versions."""
        import numpy as np

        machine = f"{platform.machine()}, {os.cpu_count()} processors"
        ours = {"python": platform.python_version(), "numpy": np.__version__}
        self.data |= {"about": {"machine": machine, "ours": ours, "original": original}, "limit": limit}


def run_case(case: Case, side: str, python: Path | None, limit: float, earlier: Iterable[Record | None]) -> Record:
    """Measure one side on one case; `earlier` are the measurements of smaller sizes."""
    if side == "original":
        if case.program in OURS_ONLY:
            return {"status": "absent", "reason": "not in the original's library"}
        if any(record and (record["status"] == "skipped" or record.get("took", 0) > limit / 2) for record in earlier):
            return {"status": "skipped", "reason": f"took more than {limit / 2:g} s at a smaller size"}
        command = [str(python), str(HERE / "original.py")]
    else:
        command = [sys.executable, str(HERE / "ours.py")]
    job = {"case": asdict(case), "level": SIDES.index(side), "speed": case.program not in OURS_ONLY}
    return _judged(case, _run(command, json.dumps(job), limit))


def _run(command: list[str], job: str, limit: float) -> Record:
    """The measurements that a process prints before it ends or is stopped; `cold` is the time to its first answer."""
    record: Record = {"status": "done"}
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    environment.pop("PYTHONPATH", None)
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.extend(process.stderr or []))
        listener.start()
        stopping = threading.Timer(limit, process.kill)
        stopping.start()
        process.stdin.write(job)
        process.stdin.close()
        for line in process.stdout:
            record |= json.loads(line)
            if "ready" in record and "start" not in record:
                record["start"] = time.perf_counter() - started
            if "answered" in record and "cold" not in record:
                record["cold"] = time.perf_counter() - started
        process.wait()
        stopping.cancel()
        listener.join()
    if time.perf_counter() - started >= limit:
        record["status"] = "stopped"
    elif process.returncode != 0:
        last = said[-1].strip() if said else f"exit status {process.returncode}"
        record |= {"status": "failed", "reason": "out of memory" if process.returncode == -9 else last}
    elif "failed" in record:
        record |= {"status": "failed", "reason": record.pop("failed")}
    record["took"] = time.perf_counter() - started
    for name in ("ready", "answered"):
        record.pop(name, None)
    return record


def _judged(case: Case, record: Record) -> Record:
    """The record with its answers compared with our interpreter's, and counted."""
    answers = {name: record.pop(name) for name in ("unpadded", "padded", "interpreter") if name in record}
    if "unpadded" not in answers:
        return record
    inputs = _those_answered(case, len(answers["unpadded"]))
    known = _interpreted(case)
    expected = [known[tuple(tokens)] for tokens in inputs]
    record["unpadded"] = _count(expected, answers["unpadded"])
    if "padded" in answers:
        shorter = [want for want, tokens in zip(expected, inputs, strict=True) if len(tokens) < case.length]
        record["padded"] = _count(shorter, answers["padded"])
    if "interpreter" in answers:
        record["own_interpreter"] = _count(answers["interpreter"], answers["unpadded"])
    return record


def _those_answered(case: Case, count: int) -> list[list[Any]]:
    """The inputs that a worker used: all of each length, or equally many of each."""
    groups = case.inputs()
    if count == sum(map(len, groups)):
        return [tokens for group in groups for tokens in group]
    each = next(each for each in range(1, count + 1) if sum(min(each, len(group)) for group in groups) == count)
    return [tokens for group in groups for tokens in group[:each]]


@lru_cache(maxsize=1)
def _interpreted(case: Case) -> dict[tuple[Any, ...], list[Any] | None]:
    """The reference interpreter's answer to each input; `None` if the program has no answer."""
    program = case.build(programs, rasp)
    found: dict[tuple[Any, ...], list[Any] | None] = {}
    for tokens in (tokens for group in case.inputs() for tokens in group):
        try:
            found[tuple(tokens)] = list(program(tokens))
        except Exception:
            found[tuple(tokens)] = None
    return found


def _count(expected: list[list[Any] | None], given: list[list[Any]]) -> dict[str, int]:
    """The number of inputs compared, of wrong answers, and of answers wrong not only because of `None`."""
    pairs = [(want, got) for want, got in zip(expected, given, strict=True) if want is not None]
    wrong = sum(any(not _same(w, g) for w, g in zip(want, got, strict=True)) for want, got in pairs)
    besides = sum(any(w is not None and not _same(w, g) for w, g in zip(want, got, strict=True)) for want, got in pairs)
    return {"inputs": len(pairs), "wrong": wrong, "wrong_besides_none": besides}


def _same(want: Any, got: Any) -> bool:
    numbers = isinstance(want, int | float) and isinstance(got, int | float)
    return abs(want - got) <= TOLERANCE * max(1, abs(want)) if numbers else bool(want == got)
