"""What is printed without a terminal and with one, wide, narrow, and for ASCII only."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cli.calling import run, run_apart


def test_no_colour_codes_and_no_broken_lines_when_piped() -> None:
    """Whatever the width, unless colour is asked for."""
    for words in (("show", "sort", "3", "1"), ("info", "sort"), ("list",), ("--help",)):
        done = run(*words, COLUMNS="40", TERM="xterm-256color")
        assert "\x1b" not in done.stdout
        assert not any(line.endswith(" ") for line in done.stdout.splitlines() if words[0] != "--help")
    piped = run_apart("info", "sort", COLUMNS="40", TERM="xterm-256color").stdout
    assert piped == run("info", "sort", COLUMNS="40", TERM="xterm-256color").stdout
    assert "whose target_pos equals this position's number (None if there is none), as sort" in piped


def test_terminals_that_know_ascii_only() -> None:
    """Tokens they cannot show are spelled out."""
    done = run_apart("show", "length", "é", "--vocab", "é", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\xe9" in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_colour_and_lines_that_fit() -> None:
    """Columns that do not fit come in several tables."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    words = [sys.executable, "-m", "tracr.cli", "show", "hist", *"abcabc", "--max-len", "12"]
    process = subprocess.Popen(words, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm-256color"})
    os.close(slave)
    output = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(master)
    assert process.wait() == 0
    text = output.decode()
    assert "\x1b[" in text
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    assert all(len(line) <= 50 for line in lines)
    rows = [line.split()[2:] for line in lines if line.split()[:2] == ["hist", "interpreter"]]
    assert len(rows) > 1
    assert [value for row in rows for value in row] == ["2"] * 6
