"""Files of program records: deterministic, without duplicates, resumable."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

import tracr
from tests.datasets.killing import kill_when, run
from tracr.datasets import Controls, Record, read_programs, run_python, same_structure, sample, write_programs
from tracr.datasets.workers import over_processes

CONTROLS = Controls(("a", "b"), 4, max_ops=4)


def test_records_tell_the_whole_program() -> None:
    """From its seed, and from its source, a program comes back; its measures are what was counted."""
    for record in sample(40, seed=2, controls=CONTROLS):
        assert same_structure(record.program, run_python(record.source))
        assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
        assert record.size.selectors == record.kinds.get("Select", 0)


def test_no_meaning_comes_twice() -> None:
    """Small programs often mean the same; only the first of them is taken."""
    records = list(sample(60, controls=Controls(("a", "b"), 2, max_ops=1)))
    assert len({record.meaning for record in records}) == len(records) == 60
    assert [record.id for record in records] == list(range(60))
    assert records[-1].seed[1] > 60


def test_a_larger_sample_begins_with_the_smaller() -> None:
    """`count` says only where to stop."""
    assert list(sample(10, controls=CONTROLS)) == list(islice(sample(30, controls=CONTROLS), 10))
    assert next(sample(1, seed=1)) != next(sample(1, seed=2))


def test_sampling_ends_when_nothing_new_is_left() -> None:
    """With no ops there are a few programs only; asking for more is an error, not a loop."""
    with pytest.raises(tracr.TracrError, match="different programs were found"):
        list(sample(10_000, controls=Controls(("a",), 1, max_ops=0)))


def test_processes_give_the_same_file(tmp_path: Path) -> None:
    """Byte for byte, however many work."""
    write_programs(tmp_path / "one", 70, 5, CONTROLS)
    with over_processes(2) as workers:
        write_programs(tmp_path / "two", 70, 5, CONTROLS, workers)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_grows(tmp_path: Path) -> None:
    """More programs are added, fewer leave it as it is, other options are refused."""
    path = tmp_path / "programs.jsonl"
    write_programs(path, 20, 5, CONTROLS)
    write_programs(path, 50, 5, CONTROLS)
    write_programs(path, 10, 5, CONTROLS)
    assert list(read_programs(path)) == list(sample(50, 5, CONTROLS))
    before = path.read_bytes()
    for seed, controls in ((6, CONTROLS), (5, Controls())):
        with pytest.raises(tracr.FormatError, match="another seed or other options"):
            write_programs(path, 60, seed, controls)
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 30, 400])
def test_an_unfinished_line_is_written_anew(tmp_path: Path, cut: int) -> None:
    """Wherever a process was killed, the file ends up the same."""
    path = tmp_path / "programs.jsonl"
    write_programs(path, 20, 5, CONTROLS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    write_programs(path, 20, 5, CONTROLS)
    assert path.read_bytes() == whole


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """A file with something else in it is not overwritten."""
    path = tmp_path / "notes.txt"
    path.write_text("precious\n")
    with pytest.raises(tracr.FormatError, match=r"line 1 of .* is not the record of a program"):
        write_programs(path, 5)
    assert path.read_text() == "precious\n"


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """The second is told to wait."""
    path = tmp_path / "programs.jsonl"

    def second(_: object) -> None:
        with pytest.raises(tracr.FormatError, match="another process is writing"):
            write_programs(path, 5)

    write_programs(path, 2, progress=second)


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """Killed twice and started again, the command writes the file an undisturbed one writes."""
    path, options = tmp_path / "killed.jsonl", ("--seed", 3, "--max-len", 4)
    for lines in (20, 60):
        kill_when(
            lambda lines=lines: path.exists() and path.read_bytes().count(b"\n") >= lines,
            *("--count", 100_000, "-o", path, *options),
        )
    found = path.read_bytes().count(b"\n") + 30
    done = run("--count", found, "-o", path, *options)
    assert done.returncode == 0, done.stderr
    assert "30 in" in done.stdout
    write_programs(tmp_path / "whole.jsonl", found, 3, Controls(max_seq_len=4))
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
