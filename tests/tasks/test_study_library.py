"""Studies that come with percolab are found by name, listed with a sentence each."""

from pathlib import Path

import pytest
from cli_support import answer, refusal

from percolab.tasks.study_file import read_request
from percolab.tasks.study_library import find_study, studies_folder, study_names, study_summary

CONFIGS = Path(__file__).parents[2] / "configs"

pytestmark = pytest.mark.usefixtures("own_directory")


def test_the_studies_are_those_of_the_repository():
    files = {path.relative_to(CONFIGS).as_posix() for path in CONFIGS.rglob("*.toml")}
    assert {f"{name}.toml" for name in study_names()} == files
    assert len(study_names()) == len(files) > 30
    assert studies_folder().samefile(CONFIGS)


def test_a_built_package_has_its_own(monkeypatch, tmp_path):
    built = tmp_path / "percolab" / "configs" / "own"
    built.mkdir(parents=True)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "other.toml").touch()
    (built / "study.toml").write_text("# What it\n# is for.\n#\n# More.\nL = 4\n")
    monkeypatch.setattr(
        "percolab.tasks.study_library.resources.files", lambda name: tmp_path / name
    )
    assert study_names() == ["own/study"]
    assert study_summary("own/study") == "What it is for."


@pytest.mark.parametrize("name", study_names())
def test_every_study_says_in_a_sentence_what_it_is_for(name):
    summary = study_summary(name)
    assert summary[0].isupper()
    assert summary.endswith(".")
    assert 30 < len(summary) < 130
    lattice = read_request(find_study(name), {}).study.structure
    assert lattice.title in summary or lattice.name in summary


def test_the_list_has_a_line_a_study():
    lines = answer("studies").splitlines()[1:]
    assert [line.split()[0] for line in lines] == study_names()
    assert all(line.endswith(study_summary(line.split()[0])) for line in lines)


def test_one_study_is_shown_as_its_file():
    assert answer("studies", "torus/square") == (CONFIGS / "torus" / "square.toml").read_text()


def test_a_file_of_that_path_wins_over_the_name():
    assert find_study("quick") == CONFIGS / "quick.toml"
    Path("quick").mkdir()
    assert find_study("quick") == CONFIGS / "quick.toml"
    Path("quick").rmdir()
    Path("quick").write_text("L = [4]\n")
    assert refusal("sweep", "quick") == (
        "quick: a study file ends in .toml; a lattice goes with --lattice"
    )
    Path("quick.toml").write_text("L = [4]\n")
    assert find_study("quick.toml") == Path("quick.toml")


def test_a_sweep_finds_a_study_by_name():
    path = CONFIGS / "torus" / "square.toml"
    message = refusal("sweep", "torus/square", "--boundary", "x")
    assert message.startswith(f"{path} with boundary given: ")


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("qick", "did you mean 'quick'?"),
        ("quick.toml", "did you mean 'quick'?"),
        ("configs/quick.toml", "did you mean 'quick'?"),
        ("configs/torus/square.toml", "did you mean 'torus/square'?"),
        ("kagom", "did you mean 'thresholds/kagome'?"),
        ("kagome", "did you mean 'thresholds/kagome'? (a lattice goes with --lattice)"),
        ("small", "did you mean 'cubic/small' or 'cubic-first/small'?"),
        ("fig5", "did you mean 'komura2016-fig5' or 'komura2016-fig5-small'?"),
        ("nowhere", "percolab studies lists them"),
    ],
)
def test_what_is_neither_file_nor_study_is_told_with_near_names(given, hint):
    for command in ("sweep", "studies"):
        message = refusal(command, given)
        assert message == f"{given}: no such file, and no study of this name; {hint}"


def test_json_is_of_the_list():
    assert refusal("studies", "quick", "--json").endswith("leave out the name")
    assert '"name": "quick"' in answer("studies", "--json")
