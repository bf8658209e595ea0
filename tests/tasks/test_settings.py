"""One table declares every setting: options, keys, arguments and stored studies are made of it."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import percolab
from percolab import InputError, load_lattice
from percolab.cli.sweep import command
from percolab.kernels.device import Device
from percolab.kernels.registry import load
from percolab.measure.columns import MEASURES
from percolab.tasks.kind_registry import KINDS, METHODS
from percolab.tasks.settings import FILE_KEYS, KIND_SETTINGS, SETTINGS, takes_settings
from percolab.tasks.study import Sampling, Study
from percolab.tasks.study_file import make_request, read_request

REPOSITORY = Path(__file__).parents[2]
#: A value of every setting that all tasks of a study share, not its default.
CHOSEN = {
    "method": "threshold",
    "measure": ("sizes", "gyration"),
    "rng": "philox",
    "model": "site",
    "seed": 7,
    "block_size": 5,
}
OF_SPINS = {"update": "wolff", "burn_in": 30, "every": 4, "chains": 1}


def test_the_arguments_of_a_sweep_are_the_settings():
    shown = inspect.signature(percolab.sweep).parameters
    assert list(shown) == [*SETTINGS, "observer", "progress"]
    for name, setting in SETTINGS.items():
        assert (shown[name].default, shown[name].annotation) == (
            setting.default,
            setting.annotation,
        )
    assert [name for name, item in shown.items() if item.kind is item.POSITIONAL_OR_KEYWORD] == [
        "lattice"
    ]


def test_the_documentation_of_a_sweep_tells_of_every_argument():
    for name in inspect.signature(percolab.sweep).parameters:
        assert f"\n{name}: " in percolab.sweep.__doc__


@pytest.mark.parametrize("function", [percolab.sweep, make_request])
def test_an_argument_that_is_no_setting_is_refused(function):
    message = f"{function.__name__}\\(\\) got an unexpected keyword argument 'colour'"
    with pytest.raises(TypeError, match=message):
        function("square", colour=1)
    with pytest.raises(TypeError, match=r"argument 'sample'; did you mean 'samples'\?"):
        function("square", sample=1)


def test_a_function_that_takes_settings_gets_them():
    @takes_settings
    def taken(lattice=None, *, more=0, **settings):
        return lattice, more, settings

    assert taken("cubic", more=2, rng="philox") == ("cubic", 2, {"rng": "philox"})
    assert "rng" in inspect.signature(taken).parameters


def test_the_options_of_a_sweep_are_the_settings_in_their_order():
    own = ["study", "plan", "prepare", "as_json", "quiet", "verbose"]
    names = [item.name for item in command.params if item.name not in own]
    assert names == [name for name in SETTINGS if name != "block_size"]


def test_the_keys_of_a_study_file_are_the_settings(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("")
    with pytest.raises(InputError) as error:
        read_request(path, {})
    assert str(error.value).endswith(", ".join(sorted(FILE_KEYS)))
    assert set(SETTINGS) - set(FILE_KEYS) == {
        "device", "labeler", "workers", "executor", "part", "slabs", "split", "blocks", "merge",
    }  # fmt: skip


def test_what_a_study_is_left_with_are_the_defaults_of_the_table():
    request = make_request("square", L=[4])
    for name in CHOSEN:
        assert getattr(request.study, name) == SETTINGS[name].default
    assert request.options["device"] == Device(SETTINGS["device"].default)
    for name in ("labeler", "workers", "slabs"):
        assert request.options[name] == SETTINGS[name].default


@pytest.mark.parametrize(("name", "value"), {**CHOSEN, **OF_SPINS}.items())
def test_a_stored_study_says_what_was_chosen(name, value):
    square, model = load_lattice("square"), {"model": "ising"} if name in OF_SPINS else {}
    usual = Study(square, (4,), ("open", "open"), **model)
    study = Study(square, (4,), ("open", "open"), **{**model, name: value})
    stored = json.loads(json.dumps(study.description()))
    assert stored != usual.description()
    assert Study.from_description(stored, square) == study
    assert getattr(study.tasks[4], name) == value


def test_every_setting_that_all_kinds_have_was_chosen():
    assert Sampling.__dataclass_fields__.keys() - {"functions", *KIND_SETTINGS} == CHOSEN.keys()


def test_the_help_of_measure_and_method_names_every_word():
    for setting, words in (("measure", MEASURES), ("method", METHODS)):
        assert {*words} <= {*re.findall(r"\w+", SETTINGS[setting].help)}


def test_every_setting_of_a_kind_is_stored_with_a_study_or_gives_p():
    of_kinds = set().union(*(load(entry.place).settings for entry in KINDS.values()))
    assert of_kinds == set(KIND_SETTINGS)
    fields = Study.__dataclass_fields__.keys()
    assert of_kinds - fields == {"beta", "T", "K"}


# A setting that does not exist, added where a developer would add it.
MADE_UP = {
    "percolab/tasks/settings.py": (
        "    rng: Annotated[",
        '    colour: Annotated[str, Setting(default="red", help="Of the bonds.")]\n'
        "    rng: Annotated[",
    ),
    "percolab/tasks/study.py": (
        "    rng: str = ",
        '    colour: str = SETTINGS["colour"].default\n    rng: str = ',
    ),
}
USED = """
import json, sys, percolab
from pathlib import Path
from click.testing import CliRunner
from percolab.cli import main
from percolab.errors import InputError
from percolab.run.request import continue_results
from percolab.store.results import StoredResults
from percolab.tasks.study import Study
from percolab.tasks.study_file import make_request, read_request
told = CliRunner().invoke(main, ["sweep", "--help"]).stdout
Path("study.toml").write_text('lattice = "square"\\nL = 4\\np = 0.5\\ncolour = "blue"')
studies = [
    read_request(Path("study.toml"), {}).study,
    make_request("square", L=[4], p=[0.5], colour="blue").study,
]
kept = Study.from_description(studies[0].description(), studies[0].structure)
green = make_request("square", L=[4], p=[0.5], colour="green")
try:
    continue_results(green.study, green.rule, StoredResults(kept), "kept.h5")
except InputError as error:
    refused = str(error)
print(json.dumps({
    "help": "--colour TEXT" in told and "Of the bonds.  [default: red]" in told,
    "documented": "colour: Of the bonds." in percolab.sweep.__doc__,
    "colours": [*(study.colour for study in [*studies, kept]), kept.tasks[4].colour],
    "plain": "colour" in make_request("square").study.description(),
    "refused": refused,
}))
"""


@pytest.mark.slow
def test_a_new_setting_is_declared_once_and_held_by_the_study(tmp_path):
    """Beside its declaration it is a field of the tasks, where it is used."""
    shutil.copytree(
        REPOSITORY / "percolab", tmp_path / "percolab", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, (before, after) in MADE_UP.items():
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USED], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["help"]
    assert found["documented"]
    assert found["colours"] == ["blue"] * 4
    assert not found["plain"]
    assert "holds another study (colour is blue there, green here)" in found["refused"]
