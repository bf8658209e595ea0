"""Errors, the value of p_c and progress have colours on a terminal alone, never with NO_COLOR."""

import os
import pty
import subprocess
import sys

import pytest
from cli_support import refusal

from percolab.cli.progress import ProgressWatcher
from percolab.cli.terminal import colour, has_colour

RED, GREEN, BOLD, END = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
PLAIN = "p_c = 0.5001(3)\n"
PROGRAM = f"from percolab.cli.terminal import echo; echo({PLAIN.strip()!r})"


def printed_on_a_terminal(*command, **environment):
    """Return what a program writes to a terminal as its stdout and stderr."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm", **os.environ, "NO_COLOR": "", **environment}
    try:
        subprocess.run(
            [sys.executable, *command], stdout=theirs, stderr=theirs, env=variables, check=False
        )
        return os.read(ours, 4096).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_gets_colours_and_nothing_else_does():
    coloured = f"p_c = {GREEN}{BOLD}0.5001(3){END}\n"
    assert printed_on_a_terminal("-c", PROGRAM) == coloured
    assert printed_on_a_terminal("-c", PROGRAM, NO_COLOR="1") == PLAIN
    assert printed_on_a_terminal("-c", PROGRAM, TERM="dumb") == PLAIN
    command = [sys.executable, "-c", PROGRAM]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == PLAIN


def test_an_error_begins_in_red():
    told = printed_on_a_terminal("-m", "percolab", "fitt")
    assert told == f"{RED}{BOLD}percolab: error:{END} {refusal('fitt')}\n"


@pytest.mark.parametrize(
    "text",
    [
        "no p_c: the best fit is rejected (p-value 2e-08, below 0.001)",
        "R(p_c)    0.531(56)",
        '{"p_c": 0.5}',
        "L  p_c  error",
        "a file named percolab: error: x",
    ],
)
def test_nothing_but_values_of_p_c_and_errors_is_coloured(text):
    assert colour(text) == text


def test_the_table_of_a_fit_has_its_p_c_coloured():
    line = "p_c       0.5010(22)     whole error; 1/nu = 3/4"
    assert colour(line) == line.replace("0.5010(22)", f"{GREEN}{BOLD}0.5010(22){END}")


def test_progress_is_coloured_on_a_terminal(monkeypatch):
    bars = []
    monkeypatch.setattr(ProgressWatcher, "_new_bar", lambda self, **options: bars.append(options))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        assert has_colour(sys.stderr) == is_terminal
        ProgressWatcher().started(10, 0)
    assert [bar["colour"] for bar in bars] == ["green", None]
