"""The help in groups, -q and -v anywhere on the line, and what a sweep says before it samples."""

import logging
import re

import pytest
from cli_support import TINY, answer, run

from percolab.cli import COMMANDS, main
from percolab.cli.groups import GroupedCommand
from percolab.tasks.setting_groups import GROUPS
from percolab.tasks.settings import SETTINGS


def sections(text):
    """Return the flags that each section of a help text lists."""
    found, name = {}, None
    for line in text.splitlines():
        if re.fullmatch(r"\S.*:", line):
            name = line[:-1]
        elif name and (flags := re.match(r"  (-[\w-]+(?:, -[\w-]+)*)", line)):
            found.setdefault(name, []).append(flags[1])
    return found


def test_the_help_of_a_sweep_lists_every_setting_in_its_group():
    found = sections(answer("sweep", "--help"))
    assert list(found) == [*GROUPS, "Options"]
    assert found["Options"] == ["-h, --help"]
    for name, setting in SETTINGS.items():
        flags = (f"--{name.replace('_', '-')}",) if setting.flags is None else setting.flags
        homes = [group for group, listed in found.items() if ", ".join(flags) in listed]
        assert homes == ([setting.group] if flags else []), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_listed_once(name):
    command = main.get_command(None, name)
    listed = [flags for each in sections(answer(name, "--help")).values() for flags in each]
    assert len(set(listed)) == len(listed)
    assert len(listed) == sum(item.param_type_name == "option" for item in command.params) + 1
    if isinstance(command, GroupedCommand):
        assert len(sections(answer(name, "--help"))["Options"]) == 1


@pytest.mark.parametrize("line", [("-q", *TINY), (*TINY, "-q"), ("-q", *TINY, "--quiet")])
def test_quiet_holds_wherever_it_is_given(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    assert run(*line).stderr == ""


@pytest.mark.parametrize("line", [("-v", *TINY), (*TINY, "--verbose")])
def test_verbose_holds_wherever_it_is_given(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("percolab")
    try:
        assert "saved results.h5" in run(*line, "-q").stderr
    finally:
        logger.handlers, logger.level = [], logging.NOTSET


def test_a_sweep_says_first_what_it_is_about_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run(*TINY, "--device", "cpu", "--workers", 1).stderr.splitlines()[0]
    assert first == (
        "square, bond, boundary open; L = 4, 6; p = 0.5; 10 samples of each; on cpu by raster, "
        "1 worker; file results.h5"
    )
    assert run(*TINY, "--device", "cpu").stderr == ""  # nothing is missing
    more = "--boundary", "open,periodic", "--out", "b.h5", "--target-error", "0.1"
    line = run("sweep", "--lattice", "square", "-L", "4,6", *more).stderr.splitlines()[0]
    assert "boundary open, periodic; L = 4, 6; p by a pilot; until the error of p_c is 0.1" in line


def test_options_of_settings_have_the_help_that_their_command_gives_them():
    shown = {name: " ".join(answer(name, "--help").split()) for name in ("tree", "exact")}
    assert "[default: tree.h5]" in shown["tree"]
    assert "Show the probability at these p, too" in shown["exact"]
