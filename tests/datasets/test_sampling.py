"""Files of program records: deterministic, without duplicates, resumable."""

from __future__ import annotations

import contextlib
import json
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.datasets.killing import kill_when, run
from tracr.datasets import Controls, Record, read_programs, run_python, same_structure, sample, write_programs
from tracr.workers import over_processes

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


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a file, some of refused programs among them."""
    path = tmp_path_factory.mktemp("sample") / "programs.jsonl"
    write_programs(path, 12, 5, CONTROLS)
    return path.read_bytes().splitlines(keepends=True)


def reads_and_goes_on(path: Path, lines: list[bytes]) -> list[bool]:
    """Whether a file of these lines can be read, and whether it can be gone on with."""
    answers = []
    for use in (lambda: list(read_programs(path, refused=True)), lambda: write_programs(path, 14, 5, CONTROLS)):
        path.write_bytes(b"".join(lines))
        try:
            use()
            answers.append(True)
        except tracr.FormatError:
            answers.append(False)
    return answers


def test_a_repeated_or_moved_record_is_noticed(tmp_path: Path, lines: list[bytes]) -> None:
    """By reading and by going on, wherever it is; so is a missing one where programs are added."""
    path = tmp_path / "programs.jsonl"
    assert reads_and_goes_on(path, lines) == [True, True]
    for place in range(len(lines)):
        assert reads_and_goes_on(path, [*lines[:place], lines[place], *lines[place:]]) == [False, False]
        assert reads_and_goes_on(path, [*lines, lines[place]]) == [False, False]
        if place:
            swapped = [*lines[: place - 1], lines[place], lines[place - 1], *lines[place + 1 :]]
            assert reads_and_goes_on(path, swapped) == [False, False]
        if place < len(lines) - 1:
            assert reads_and_goes_on(path, [*lines[:place], *lines[place + 1 :]]) == [True, False]


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_record_is_noticed(tmp_path: Path, lines: list[bytes], data: st.DataObject) -> None:
    """One bit of a record turned: the file is refused, or says what it said."""
    place = data.draw(st.integers(0, len(lines) - 1))
    byte, bit = data.draw(st.integers(0, len(lines[place]) - 2)), data.draw(st.integers(0, 7))
    changed = bytearray(lines[place])
    changed[byte] ^= 1 << bit
    path = tmp_path / "programs.jsonl"
    path.write_bytes(b"".join(lines))
    before = list(read_programs(path, refused=True))
    path.write_bytes(b"".join([*lines[:place], bytes(changed), *lines[place + 1 :]]))
    with contextlib.suppress(tracr.FormatError):
        assert list(read_programs(path, refused=True)) == before


def test_files_without_checksums_are_still_read(tmp_path: Path, lines: list[bytes]) -> None:
    """As they were written before there were any; what is added has them."""
    path = tmp_path / "programs.jsonl"
    records = [json.loads(line) for line in lines]
    old = [json.dumps({key: record[key] for key in record if key != "check"}).encode() + b"\n" for record in records]
    path.write_bytes(b"".join(old))
    assert list(read_programs(path)) == list(sample(12, 5, CONTROLS))
    write_programs(path, 14, 5, CONTROLS)
    assert list(read_programs(path)) == list(sample(14, 5, CONTROLS))
    assert b'"check"' in path.read_bytes().splitlines()[-1]
    assert reads_and_goes_on(path, [*old, old[-1]]) == [False, False]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """The second is told to wait."""
    path = tmp_path / "programs.jsonl"

    def second(_: object) -> None:
        with pytest.raises(tracr.FormatError, match="another process is writing"):
            write_programs(path, 5)

    write_programs(path, 2, progress=second)


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """Killed twice and started again, the command writes the file an undisturbed one writes."""
    path, options = tmp_path / "killed.jsonl", ("--seed", 3, "--max-len", 4)

    def written(lines: int) -> bool:
        return path.exists() and path.read_bytes().count(b"\n") >= lines

    for lines in (20, 60):
        kill_when(partial(written, lines), *("--count", 100_000, "-o", path, *options))
    found = path.read_bytes().count(b"\n") + 30
    done = run("--count", found, "-o", path, *options)
    assert done.returncode == 0, done.stderr
    assert "30 in" in done.stdout
    write_programs(tmp_path / "whole.jsonl", found, 3, Controls(max_seq_len=4))
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
