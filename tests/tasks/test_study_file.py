"""A study file means what it says, wherever it is found, and what is wrong in it is reported."""

import os
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal

from percolab.errors import InputError
from percolab.tasks.settings import DEFAULT_SAMPLES, DEFAULT_SIZES
from percolab.tasks.study import SAMPLE_VERSION
from percolab.tasks.study_file import make_request, read_request
from percolab.tasks.study_library import find_study, studies_folder, study_names, study_summary
from percolab.tasks.values import parse_probabilities, parse_sizes

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))
CHAIN = 'name = "chain"\ndimension = 1\ncell = { shape = [1] }\nbonds = [{ offset = [1] }]\n'


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", (0.5,)),
        ("0,1", (0.0, 1.0)),
        (" 0.4, 0.5 ,0.6,", (0.4, 0.5, 0.6)),
        ("4e-1", (0.4,)),
        ("0.5:0.6:3", (0.5, 0.55, 0.6)),
        ("0:1:2", (0.0, 1.0)),
        ("0.1:0.7:7", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
    ],
)
def test_p_is_a_list_or_a_range_with_both_ends(text, values):
    assert parse_probabilities(text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the list is empty"),
        (",", "the list is empty"),
        ("x", "'x' is not a number"),
        ("0.5;0.6", "'0.5;0.6' is not a number"),
        ("nan", "p = nan, but it must be a number from 0 to 1"),
        ("inf", "p = inf, but it must be a number from 0 to 1"),
        ("-0.1", "p = -0.1, but it must be a number from 0 to 1"),
        ("50", "p = 50, but it must be a number from 0 to 1 (50 % is 0.5)"),
        ("0.5,1.1", "p = 1.1, but it must be a number from 0 to 1"),
        ("0.5:1.1:3", "p = 1.1, but it must be a number from 0 to 1"),
        ("0.6:0.5:3", "from must be below to"),
        ("0.5:0.5:3", "from must be below to"),
        ("0.5:0.6:0", "count from 2 to 10000"),
        ("0.5:0.6:1", "count from 2 to 10000"),
        ("0.5:0.6:99999999", "count from 2 to 10000"),
        ("0.5:0.6", "from:to:count"),
        ("0.5:0.6:-3", "from:to:count"),
        ("0.5:0.6:2.5", "from:to:count"),
        ("0.5:0.6:3:4", "from:to:count"),
        (":0.6:3", "is not a number"),
    ],
)
def test_p_that_is_none_is_told(text, message):
    with pytest.raises(InputError) as error:
        parse_probabilities(text)
    assert message in str(error.value)


def test_sizes_are_a_list_of_positive_integers():
    assert parse_sizes("64") == (64,)
    assert parse_sizes("64, 128") == (64, 128)
    assert parse_sizes("1e3, 2.5E1x1e2") == (1000, (25, 100))
    assert parse_sizes("1e1:1e3:3") == (10, 100, 1000)


@pytest.mark.parametrize("text", ["", "0", "-3", "8,", "8,,9", "x", "1.5e0", "1e-3", "8 9", "nan"])
def test_a_size_that_is_none_is_told(text):
    with pytest.raises(InputError, match=r"L = '.*', but it must be an integer of at least 1"):
        parse_sizes(text)


SIZES = DEFAULT_SIZES[2]


def test_an_empty_request_is_the_default_study():
    request = make_request()
    assert request.study.structure.name == "honeycomb"
    assert request.study.sizes == SIZES
    assert request.study.p is None
    assert request.study.boundary == ("open", "open")
    assert request.rule.samples == dict.fromkeys(SIZES, DEFAULT_SAMPLES)
    assert request.rule.target_error is None
    assert request.out == Path("results.h5")


def test_a_target_error_alone_sets_no_number_of_samples():
    assert make_request(target_error=1e-3).rule.samples is None


@pytest.mark.parametrize(
    ("boundary", "meant"),
    [
        ("periodic", ("periodic", "periodic")),
        ("open,periodic", ("open", "periodic")),
        ("open, periodic", ("open", "periodic")),
        (["periodic"], ("periodic", "periodic")),
        (["periodic", "open"], ("periodic", "open")),
    ],
)
def test_one_boundary_holds_for_all_axes(boundary, meant):
    assert make_request(boundary=boundary, p=[0.5]).study.boundary == meant


def test_numbers_of_numpy_are_as_good_as_pythons():
    plain = make_request("square", L=[4, 8], p=[0.25, 0.5], seed=3, samples=[5, 6])
    numpy = make_request(
        "square",
        L=np.array([4, 8]),
        p=np.array([0.25, 0.5]),
        seed=np.int64(3),
        samples=np.array([5, 6]),
    )
    assert numpy == plain
    assert numpy.study.description() == plain.study.description()
    assert type(numpy.study.description()["seed"]) is int


def test_one_number_is_a_list_of_one():
    given = [(4, 0.5), ([4], [0.5]), ("4", "0.5")]
    one, listed, text = (make_request("square", L=size, p=p) for size, p in given)
    assert one == listed == text


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_study_files_that_come_with_percolab_can_be_read(path):
    request = read_request(path, {})
    assert request.study.sizes
    assert request.out.suffix == ".h5"


def test_every_key_of_a_study_file_is_read(tmp_path):
    text = """
    lattice = "square"
    L = [8, 16]
    p = "0.4:0.6:3"
    boundary = ["open", "periodic"]
    samples = [30, 20]
    target_error = 0.01
    seed = 7
    rng = "philox"
    block_size = 5
    method = "grid"
    out = "mine.h5"
    """
    request = read_request(written(tmp_path / "study.toml", text), {})
    assert request.study.description() == {
        "lattice": "square",
        "lattice_digest": request.study.structure.digest,
        "L": [8, 16],
        "boundary": ["open", "periodic"],
        "method": "grid",
        "p": [0.4, 0.5, 0.6],
        "seed": 7,
        "rng": "philox",
        "model": "bond",
        "block_size": 5,
        "sample_version": SAMPLE_VERSION,
    }
    assert request.rule.samples == {8: 30, 16: 20}
    assert request.rule.target_error == 0.01
    assert request.out == Path("mine.h5")


def test_options_stand_over_the_keys_of_the_file(tmp_path):
    path = written(tmp_path / "study.toml", 'lattice = "square"\nL = 8\nseed = 7\nsamples = 9')
    request = read_request(path, {"L": (4, 6), "seed": 3})
    assert request.study.sizes == (4, 6)
    assert request.study.seed == 3
    assert request.study.structure.name == "square"
    assert request.rule.samples == {4: 9, 6: 9}


def test_a_lattice_file_is_found_beside_the_study_file(tmp_path, monkeypatch):
    written(tmp_path / "chain.toml", CHAIN)
    path = written(tmp_path / "study.toml", 'lattice = "chain.toml"\nL = 8')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert read_request(path, {}).study.structure.name == "chain"


LONG = "a" * 5000
#: What a study file can get wrong, and what must be said of it.
WRONG = {
    "L = ": "is not valid TOML",
    "L = 8\nL = 9": "is not valid TOML",
    "size = 8": "unknown key 'size'",
    "sampels = 8": "unknown key 'sampels'; did you mean 'samples'?",
    "Boundary = 'open'": "did you mean 'boundary'?",
    "lattice = 3": "lattice: int given, but it must be a name, a file or a Lattice",
    "lattice = 'sqare'": "unknown lattice 'sqare'; did you mean 'square'?",
    "lattice = 'mine.toml'": "mine.toml: no such file",
    "L = 0": "L = 0, but it must be an integer of at least 1",
    "L = -3": "L = -3, but",
    "L = 1.5": "L = 1.5, but",
    "L = true": "L = True, but",
    "L = '8.5'": "L = '8.5', but it must be an integer of at least 1",
    "L = []": "L: the list is empty",
    "L = [8, 0]": "L = 0, but it must be an integer of at least 1",
    "L = 400000000": "L = 400000000: 160000000000000000 sites, but a study needs fewer than",
    "L = [8, 8]": "a size is given twice",
    "p = nan": "p = nan, but",
    "p = 1.5": "p = 1.5, but",
    "p = -0.5": "p = -0.5, but",
    "p = []": "p: the list is empty",
    "p = [true]": "p = [True], but",
    "p = '0.6:0.5:3'": "p = '0.6:0.5:3': from must be below",
    "boundary = 'opne'": "unknown boundary 'opne'; did you mean 'open'?",
    "boundary = ['open', 3]": "unknown boundary 3; known: open, periodic",
    "boundary = []": "boundary: 0 given, but honeycomb has 2 axes",
    "samples = 0": "samples must be at least 1 for every size",
    "samples = [5, 6]": "samples: 2 numbers given for 4 sizes",
    "target_error = 'x'": "target_error = 'x', but it must be a number",
    "target_error = nan": "target error nan must be above 0 and below 1",
    "target_error = 2": "target error 2.0 must be above 0 and below 1",
    "target_error = 0.1\nL = 8": "a target error on p_c needs at least two sizes L",
    "measure = 3": "measure = 3, but only words are allowed",
    "measure = ['sizes', 3]": "measure = ['sizes', 3], but only words are allowed",
    "measure = ['']": "measure = [''], but it must name some of sizes, gyration",
    "measure = 'size'": "unknown measure 'size'; did you mean 'sizes'?",
    "measure = ['sizes', 'radii']": "unknown measure 'radii'; known: backbone, bridge_free",
    "seed = -1": "seed = -1, but it must be an integer from 0 to",
    "seed = 9223372036854775808": "seed = 9223372036854775808, but",
    "rng = 'philoks'": "unknown rng 'philoks'; did you mean 'philox'?",
    "block_size = -1": "block_size = -1, but at L = 32 it must be from 1 to",
    "out = 3": "out = 3, but it must be the name of a file",
    "": "is empty",
    "# nothing\n": "is empty",
    'lattice = ""': "unknown lattice ''",
    'out = "r.txt"': "out = r.txt ends in .txt",
    f'source = "{LONG}"': "source and target need a graph",
    f'graph = "graph.txt"\nsource = "{LONG}"\ntarget = 1': "source: ",
    f'graph = "graph.txt"\norder = "{LONG}"': "no such file",
    f'lattice = "config:{LONG}"': "no such file",
    f'out = "{LONG}.h5"': "the file name is too long",
    f'measure = "connected"\nsource = "{"1" * 5000}"': "there is no site 1111",
    'graph = "graph.txt"\nsource = [0, true]\ntarget = 2': "sites are one list",
    'graph = "graph.txt"\norder = []': "names no bonds",
    'graph = "graph.txt"\nlattice = false': "a graph has its own",
    "multi = 0": "multi = 0, but it must be True or False",
    "observables = false": "bool given",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:80])
def test_what_a_study_file_gets_wrong_is_told_with_its_name(tmp_path, text):
    written(tmp_path / "graph.txt", "0 1\n1 2\n")
    path = written(tmp_path / "study.toml", text)
    with pytest.raises(InputError) as error:
        read_request(path, {})
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert WRONG[text] in message
    assert "\n" not in message


def test_the_options_at_fault_are_named_beside_the_file(tmp_path):
    path = written(tmp_path / "study.toml", "L = 8")
    with pytest.raises(InputError) as error:
        read_request(path, {"rng": "philoks"})
    assert str(error.value).startswith(f"{path} with rng given: unknown rng 'philoks'")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"L = '\xe9'"], ids=repr)
def test_a_study_file_that_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"study\.toml: is not a text file in UTF-8"):
        read_request(path, {})


def test_a_missing_study_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.toml: no such file"):
        read_request(tmp_path / "nowhere.toml", {})
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_request(tmp_path, {})
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match=r"pipe\.toml: is not a regular file"):
        read_request(tmp_path / "pipe.toml", {})


@pytest.mark.parametrize(
    ("lattice", "sizes"),
    [
        ("honeycomb", (32, 64, 128, 256)),
        ("ruby", (30, 60, 120, 240)),
        ("four-six-twelve", (36, 72, 144, 288)),
        ("cubic", (8, 16, 32, 64)),
        ("hypercubic-4d", (8, 12, 16, 24)),
        ("hypercubic-5d", (6, 8, 10, 12)),
    ],
)
def test_default_sizes_are_smaller_in_more_dimensions_and_multiples_of_the_unit_cell(
    lattice, sizes
):
    assert make_request(lattice).study.sizes == sizes


FOLDER = Path(__file__).parents[2] / "configs"


def test_the_studies_are_those_of_the_repository():
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.toml")}
    assert {f"{name}.toml" for name in study_names()} == files
    assert len(study_names()) == len(files) > 30
    assert studies_folder().samefile(FOLDER)


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
    assert answer("studies", "torus/square") == (FOLDER / "torus" / "square.toml").read_text()


def test_a_file_of_that_path_wins_over_the_name():
    assert find_study("quick") == FOLDER / "quick.toml"
    Path("quick").mkdir()
    assert find_study("quick") == FOLDER / "quick.toml"
    Path("quick").rmdir()
    Path("quick").write_text("L = [4]\n")
    assert refusal("sweep", "quick") == (
        "quick: a study file ends in .toml; a lattice goes with --lattice, a network with --graph"
    )
    Path("quick.toml").write_text("L = [4]\n")
    assert find_study("quick.toml") == Path("quick.toml")


def test_a_sweep_finds_a_study_by_name():
    path = FOLDER / "torus" / "square.toml"
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


@pytest.mark.parametrize(
    "given",
    [
        {"order": np.array(8), "graph": [(0, 1)]},
        {"executor": np.array([8, 16])},
        {"slabs": np.array([])},
        {"out": "\ud800"},
    ],
)
def test_an_array_or_a_name_that_is_no_text_is_refused(given):
    with pytest.raises(InputError, match=f"^{next(iter(given))} = "):
        make_request(**given)
