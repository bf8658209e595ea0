"""The command line refuses a bad sweep in one line that says what is allowed; it leaves nothing."""

import re
from pathlib import Path

import pytest
from cli_support import TINY, answer, changed, left_in, refusal
from helpers import slow

import percolab
from percolab import InputError, Lattice, sweep
from percolab.store.results import read_results
from percolab.tasks.study_file import read_request
from percolab.tasks.values import parse_sizes

BAD_SWEEPS = [
    (("--lattice", "honycomb"), "unknown lattice 'honycomb'; did you mean 'honeycomb'?"),
    (("--lattice", ""), "--lattice is empty"),
    (("-L", ""), "-L/--size is empty"),
    (("-p", ""), "-p is empty"),
    (("--boundary", ""), "--boundary is empty"),
    (("--out", "results.png"), "results.png ends in .png, but a results file ends in .h5"),
    (("--out", "results"), "results has no suffix, but a results file ends in .h5"),
    (("--method", "treshold"), "unknown method 'treshold'; did you mean 'threshold'?"),
    (("--method", "threshold"), "leave out p"),
    (("--lattice", "nowhere.toml"), "nowhere.toml: no such file"),
    (("-L", "0"), "L = '0', but it must be an integer of at least 1"),
    (("-L", "8,8"), "L = 8, 8: a size is given twice"),
    (("-L", "50000"), "L = 50000: 2500000000 sites, but at most 2147483584 can be labeled"),
    (("-L", "9" * 30), "L = 999999999999999999...: no lattice of that size can be labeled"),
    (("-p", "nan"), "p = nan, but it must be a number from 0 to 1"),
    (("--boundary", "opne"), "unknown boundary 'opne'; did you mean 'open'?"),
    (("--boundary", "open,open,open"), "boundary: 3 given, but square has 2 axes"),
    (("--samples", "0"), "'--samples': 0 is not in the range x>=1"),
    (("--samples", "1.5"), "'--samples': '1.5' is not a valid integer"),
    (("--seed", "-1"), "'--seed': -1 is not in the range 0<=x<=9223372036854775807"),
    (("--seed", str(2**63)), "'--seed': 9223372036854775808 is not in the range"),
    (("--samples", str(2**63)), "samples must be below 2^63 for every size"),
    (("--target-error", "nan"), "target error nan must be above 0"),
    (("--target-error", "0.1", "-L", "8"), "a target error on p_c needs at least two sizes L"),
    (("--rng", "xorwov"), "unknown rng 'xorwov'; did you mean 'xorwow'?"),
    (("--device", "nonsense"), "--device nonsense: must be auto, cpu, cuda or cuda:n"),
    (("--device", "cuda"), "--device cuda: no GPU here"),
    (("--labeler", "rastre"), "unknown labeler 'rastre'; did you mean 'raster'?"),
    *(
        ((f"--samples={text}",), f"'--samples': '{text}' is not a valid integer")
        for text in ("1e-2", "1.5e0", "1e999", "e4", "1e", "0x10", "1e4.5", "-1e4")
    ),
    *(
        (("-L", text), f"L = '{text}', but a range is from:to:count")
        for text in ("4:8", "4:8:2:2", "4:x:2", ":")
    ),
    *(
        (("-L", text), f"L = '{text}': from must be at least 1 and below to, and count from 2")
        for text in ("8:4:2", "4:8:1", "0:8:2", "4:8:99999")
    ),
    (("--workers", "0"), "'--workers': 0 is not in the range x>=1"),
    (("--sampels", "5"), "--samples"),
    (("--out", ""), "-o/--out is empty"),
    (("--out", "."), "is a directory; give the name of a file"),
    (("--out", "nowhere/results.h5"), "nowhere/results.h5: the directory"),
]


@pytest.mark.parametrize(("options", "told"), BAD_SWEEPS[:3] + BAD_SWEEPS[-3:], ids=str)
def test_a_sweep_refuses_bad_options_beside_a_study_file(options, told):
    Path("study.toml").write_text('lattice = "square"\nL = 4\np = 0.5\nsamples = 10\n')
    assert told in refusal("sweep", "study.toml", *options)
    assert left_in() == ["study.toml"]


def test_on_a_torus_the_pilot_looks_for_wrapping():
    answer(
        "sweep", "--lattice", "square", "--boundary", "periodic", "-L", "8,16", "--samples", "500"
    )
    for item in read_results("results.h5").tasks.values():
        around = item.column("wrapping_x").sum(axis=0) / item.num_samples
        assert around[0] < 0.2 < 0.8 < around[-1]


def test_a_labeler_that_does_not_run_on_the_device_is_refused(monkeypatch):
    monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda *_: None)
    monkeypatch.setattr("percolab.kernels.device.open_device", lambda name: None)
    monkeypatch.setattr("percolab.kernels.device.gpu_count", lambda name: 1)
    told = refusal(*TINY, "--device", "cuda", "--labeler", "raster")
    assert told.startswith("labeler 'raster' does not run on cuda; these do: four_step, label_equ")
    assert left_in() == []


def test_a_size_too_large_is_refused_before_anything_is_allocated(free_memory, monkeypatch):
    free_memory(10**9)
    monkeypatch.setattr(Lattice, "topology", None)
    told = refusal("sweep", "--lattice", "square", "-L", "64,20000", "--device", "cpu")
    assert re.fullmatch(r"L = 20000 needs \d+\.\d GB of memory; 1\.0 GB are free; --slabs .*", told)
    assert left_in() == []


def test_a_lattice_in_place_of_a_study_file_is_told_apart():
    told = refusal("sweep", "honeycomb")
    assert told.startswith("honeycomb: no such file, and no study of this name; ")
    assert told.endswith(" (a lattice goes with --lattice)")


TORUS = ("sweep", "--lattice", "square", "--boundary", "periodic", "-L", "4", "--samples", "20",
        "--device", "cpu")  # fmt: skip
ISING = (*TORUS, "--model", "ising")
P = ("-p", "0.5")
FERROMAGNETS = "but it must be above 0: cluster updates need a ferromagnet"
FEW = "but it must be like few:8,flip=0.5: from 1 to 1048576 clusters"

MODELS = [
    ("potts", "model potts needs its number of states, as in potts:q=3; q = 1 is bond"),
    ("potts:q=1", "model potts needs its number of states, as in potts:q=3; q = 1 is bond"),
    ("potts:q=0", "model potts: q = 0, but it must be an integer from 2 to 256"),
    ("potts:q=2.5", "q = 2.5, but it must be an integer from 2 to 256"),
    ("potts:q=257", "model potts: q = 257, but it must be an integer from 2 to 256"),
    ("potts:q=", "but it must be an integer from 2 to 256"),
    ("potts:q=two", "but it must be an integer from 2 to 256"),
    ("potts:states=3", "model 'potts:states=3', but states are written as in potts:q=3"),
    ("potts:3", "model 'potts:3', but states are written as in potts:q=3"),
    ("ising:q=3", "model 'ising:q=3': ising has two spins and no q"),
    ("ising:q=2", "or potts:q=2, whose coupling is beta = 2 K"),
    ("site:q=3", "model 'site:q=3', but what is fixed is written as in site-bond:site=0.9"),
    ("site-bond:q=3", "what is fixed is written as in site-bond:site=0.9"),
    ("bond:q=3", "model: q = 3.0, but it must be a number from 0 to 1"),
    ("isign", "unknown model 'isign'; did you mean 'ising'?"),
]


@pytest.mark.parametrize(("model", "told"), MODELS, ids=str)
def test_a_model_that_is_none_is_refused(model, told):
    assert told in refusal(*TORUS, *P, "--model", model)
    assert left_in() == []
    Path("study.toml").write_text(f'lattice = "square"\nL = 4\np = 0.5\nmodel = "{model}"\n')
    assert refusal("sweep", "study.toml").startswith("study.toml: ")
    assert told in refusal("sweep", "study.toml")
    with pytest.raises(InputError) as found:
        sweep("square", L=4, p=0.5, model=model, device="cpu")
    assert told in str(found.value)


COUPLINGS = ["0", "-0.4", "nan", "inf", "-inf", "1e-400", "0.4,-0.1", "0.4,nan"]


@pytest.mark.parametrize("key", ["beta", "T", "K"])
@pytest.mark.parametrize("text", COUPLINGS)
def test_a_coupling_of_no_ferromagnet_is_refused(key, text):
    option = f"--{key}" if len(key) > 1 else f"-{key}"
    told = refusal(*ISING, option, text)
    assert told.startswith(f"{key} = ")
    assert told.endswith(FERROMAGNETS)
    assert left_in() == []
    if "," not in text and text != "1e-400":
        Path("study.toml").write_text(f'lattice = "square"\nmodel = "ising"\nL = 4\n{key} = {text}')
        told = refusal("sweep", "study.toml")
        assert told.startswith(f"study.toml: {key} = ")
        assert told.endswith(FERROMAGNETS)
        with pytest.raises(InputError, match="ferromagnet"):
            sweep("square", L=4, model="ising", device="cpu", **{key: float(text)})


BAD = [
    (("-K", "0.1:0.3"), "a range is from:to:count"),
    (("-K", "0.3:0.1:3"), "from must be below to"),
    (("-K", "0.1:0.3:1"), "count from 2 to 10000"),
    (("-T", "hot"), "T = 'hot' is not a number"),
    (("-K", ","), "K: the list is empty"),
    ((*P, "-T", "2"), "p and T are both given: give only one of them"),
    ((*P, "--beta", "2"), "p and beta are both given"),
    (("-K", ".4", "--beta", ".4"), "beta and K are both given"),
    (("-K", ".4", "--model", "potts:q=3"), "give beta for potts:q=3"),
    (("--beta", ".4", "--model", "bond"), "beta: bond percolation has no temperature"),
    (("-T", "2", "--model", "site"), "T: site percolation has no temperature"),
    ((*P, "--sweeps", "50", "--burn-in", "50"), "sweeps = 50, but the burn-in of 50 leaves none"),
    ((*P, "--sweeps", "20", "--quiet"), "sweeps = 20, but at L = 4 the burn-in is "),
    ((*P, "--sweeps", "0"), "'--sweeps': 0 is not in the range x>=1"),
    ((*P, "--burn-in", "-3"), "burn_in = '-3', but it must be an integer of at least 0, or auto"),
    ((*P, "--burn-in", "1" * 12), "but it must be an integer of at least 0"),
    ((*P, "--method", "threshold"), "those of ising differ at every p: leave it out"),
    (("--method", "threshold"), "those of ising differ at every p: leave it out"),
    ((*P, "-L", "4,6", "--target-error", "0.01"), "those of spins are not: give the number of"),
    ((*P, "--measure", "gyration"), "measure gyration: it is measured for percolation"),
    ((*P, "--update", "woolf"), "unknown update 'woolf'; did you mean 'wolff'?"),
    ((*P, "--update", "sw:3"), "update 'sw:3': sw has no options"),
    ((*P, "--update", "few:0"), FEW),
    ((*P, "--update", "few:3,flip=0"), FEW),
    ((*P, "--update", "few:3,flip=nan"), FEW),
    ((*P, "--update", "few:3,flop=0.5"), FEW),
    ((*P, "--update", "few:9999999"), FEW),
    slow((*P, "--update", "few:3,flip=1e-9", "--quiet"), "give the burn-in (--burn-in)"),
]


@pytest.mark.parametrize(("options", "told"), BAD_SWEEPS, ids=str)
def test_a_sweep_refuses_bad_options_and_leaves_nothing(options, told):
    assert told in refusal(*changed(TINY, *options))
    assert left_in() == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--update", "wolff"), "update: bond percolation has no spins (--model ising)"),
        (("--sweeps", "100"), "sweeps: bond percolation has no spins (--model ising)"),
        (("--burn-in", "10"), "burn_in: bond percolation has no spins (--model ising)"),
        (("--measure", "series"), "measure series: only chains of spins have one"),
    ],
)
@pytest.mark.parametrize("model", ["bond", "site"])
def test_percolation_has_nothing_of_chains(model, options, told):
    assert told.replace("bond", model) in refusal(*TORUS, *P, "--model", model, *options)
    assert left_in() == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("K = [0.4, 'x']", "K = "),
        ("K = true", "K = True, but only numbers are allowed"),
        ("K = ['0.4']", "but only numbers are allowed"),
        ("p = 0.5\nsweeps = -5", "sweeps = -5, but the burn-in of -1 leaves none"),
        ("p = 0.5\nsweeps = 'auto'", "sweeps = 'auto', but only integers are allowed"),
        ("p = 0.5\nburn_in = -2", "burn_in = -2, but it must be an integer from 0"),
        ("p = 0.5\nburn_in = 'all'", "burn_in = 'all', but it must be an integer of at least 0"),
        ("p = 0.5\nupdate = 3", "unknown update 3; known: few, sw, wolff"),
        ("J = 1", "unknown key 'J'"),
        ("field = 0.1", "unknown key 'field'"),
    ],
)
def test_a_study_file_of_spins_is_refused_by_its_name(lines, told):
    size = "" if "L =" in lines else "L = 4\n"
    Path("study.toml").write_text(f'lattice = "square"\nmodel = "ising"\n{size}{lines}\n')
    found = refusal("sweep", "study.toml", "--device", "cpu")
    assert found.startswith("study.toml: ")
    assert told in found
    assert left_in() == ["study.toml"]


def test_a_graph_without_bonds_has_no_transition_but_spins():
    Path("none.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n4 4 0\n")
    command = ("sweep", "--graph", "none.mtx", "--model", "ising", "--device", "cpu", "--quiet")
    told = refusal(*command)
    assert told.startswith("L = 4: none.mtx does not span with all bonds open: give the p values")
    assert left_in() == ["none.mtx"]
    assert "0 bonds" in answer(*command, "-p", "0.5", "--samples", "40")


@pytest.mark.parametrize(
    "where",
    [
        ("--lattice", "bethe:3", "-L", "3,4"),
        slow(("--graph", "path.csv", "--source", "0", "--target", "3")),
    ],
)
def test_what_has_no_sizes_is_swept_and_reported_on_without_a_fit_of_spanning(where):
    """Chains at other p are other samples, so that spanning may fall as p rises."""
    Path("path.csv").write_text("0,1\n1,2\n2,3\n0,2\n")
    command = ("sweep", *where, "--model", "ising", "--samples", "400", "--device", "cpu")
    assert "<s_2>" in answer(*command, "--quiet", "-p", "0.3,0.5,0.52,0.54,0.56,0.9")
    for report in (("fit",), ("fit", "--json"), ("export",)):
        assert answer(*report, "results.h5")
    assert "ising model, update sw" in answer("status", "results.h5")


def test_curves_of_coupled_samples_are_not_drawn_of_chains():
    answer(*changed(ISING, "-L", "4,6", "-p", "0.3,0.5,0.52,0.9", "--burn-in", "20", "--quiet"))
    for kind in ("curves", "drift", "collapse"):
        told = refusal("plot", "results.h5", "--kind", kind, "--out", "plot.png")
        assert "needs independent samples, which sweeps are not" in told
    assert left_in() == [".results.h5.lock", "results.h5"]


@pytest.mark.parametrize(
    ("text", "samples"), [("1e2", 100), ("2.5E2", 250), ("1e+2", 100), ("100", 100)]
)
def test_numbers_of_samples_may_be_powers_of_ten(text, samples):
    sweep = "sweep", "--lattice", "square", "-L", "4", "-p", "0.5", "--device", "cpu", "-q"
    answer(*sweep, "--samples", text)
    (item,) = percolab.open_results("results.h5").tasks.values()
    assert item.num_samples == samples


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("64:256:3", (64, 128, 256)), ("1:4:9", (1, 2, 3, 4)), (" 8 : 27 : 2 ", (8, 27))],
)
def test_sizes_are_ranges_in_equal_ratios(text, sizes):
    assert parse_sizes(text) == sizes
    Path("own.toml").write_text(f'lattice = "square"\nL = "{text}"\n')
    assert read_request(Path("own.toml"), {}).study.sizes == sizes


def test_samples_in_python_may_be_whole_floats():
    results = percolab.sweep("square", L=[4, 6], p=0.5, samples=[2e1, 30], device="cpu")
    assert [item.num_samples for item in results.tasks.values()] == [20, 30]
    for wrong in (20.5, float("nan"), float("inf"), True, "1e4"):
        with pytest.raises(percolab.InputError, match="samples"):
            percolab.sweep("square", L=4, p=0.5, samples=wrong, device="cpu")
