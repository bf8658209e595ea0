"""A study whose samples are measured in parts, in any way, has the file of whole samples."""

from functools import cache
from pathlib import Path

import pytest
from cli_support import assert_equal_datasets, refusal, stored

from percolab.analysis.stored_data import read_cluster_curves
from percolab.api import sweep
from percolab.store.results import read_results
from percolab.tasks.study import Task

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")

#: One way for each partition, as options of the command line.
WAYS = {
    "slabs": ("--slabs", "2"),
    "ranks": ("--split", "lattice", "--workers", "2"),
    "boxes": ("--split", "lattice", "--blocks", "2x1"),
}
RANKS = {"split": "lattice", "executor": "threads"}
CUBIC = {"lattice": "cubic", "L": (8,), "p": (0.2488,), "boundary": "periodic"}
ODD = {"L": (8, 13)}
slow = pytest.mark.slow
WIDE = {"p": (0.0, 0.3, 0.5, 0.7), "L": (6, 8)}

FILES = [
    {"slabs": "4"},
    {"slabs": "auto"},
    {"slabs": 3, "executor": "processes", "workers": 2, "is_slow": True},
    {**WIDE, "slabs": 3, "rng": "philox"},
    {**WIDE, "slabs": 5, "boundary": ("periodic", "open"), "model": "site", "rng": "philox"},
    {**WIDE, "slabs": 4, "lattice": "triangular", "boundary": "periodic", "model": "site-bond",
     "is_slow": True},
    {**WIDE, "slabs": 5, "lattice": "honeycomb", "boundary": "periodic", "rng": "philox",
     "is_slow": True},
    {**WIDE, "slabs": 3, "lattice": "kagome", "boundary": ("open", "periodic"),
     "model": "site-bond:site=0.9", "rng": "philox"},
    {**WIDE, "slabs": 2, "lattice": "cubic", "boundary": "periodic"},
    {**WIDE, "slabs": 6, "lattice": "bcc", "model": "site", "is_slow": True},
    {**WIDE, "slabs": 3, "lattice": "hypercubic-4d", "L": (4, 6), "rng": "philox",
     "boundary": ("open", "open", "periodic", "open")},
    {**RANKS, **ODD, "workers": 3},
    {**RANKS, **ODD, "workers": 3, "slabs": 8, "executor": "processes", "is_slow": True},
    {**RANKS, "lattice": "kagome", "L": (8,), "boundary": "periodic", "model": "site",
     "workers": 4, "slabs": 7},
    {**RANKS, "lattice": "cubic", "boundary": ("open", "open", "periodic"), "workers": 2,
     "slabs": "auto", "is_slow": True},
    {**RANKS, "blocks": "2x2", "merge": "quad:bubbles,runs"},
    {**RANKS, "blocks": "2x2", "merge": "quad:bubbles,shorter", "is_slow": True},
    {**RANKS, "blocks": "4x2", "merge": "quad:runs", "workers": 1},
    {**RANKS, "blocks": "1x3", "L": (12,)},
    {**RANKS, "merge": "quad:bubbles", "workers": 4},
    {**RANKS, "merge": "tree:bubbles", "workers": 3, "L": (12,)},
    *({**RANKS, **CUBIC, "blocks": "2x2x2", "merge": merge, "is_slow": True}
      for merge in ("tree", "quad", "quad:bubbles,runs", "quad:bubbles,shorter")),
    *({**RANKS, **CUBIC, "blocks": "2x2x2", "merge": merge, "executor": "processes",
       "is_slow": True} for merge in ("tree", "quad:bubbles,runs")),
]  # fmt: skip


@cache
def whole_study(lattice, sizes, p, boundary, model, rng):
    """Return the study of whole samples; for reading only."""
    return sweep(lattice, **settings(sizes, p, boundary, model, rng))


def settings(sizes=(8,), p=(0.4, 0.5), boundary="open", model="bond", rng="xorwow"):
    return {
        "L": list(sizes),
        "p": list(p),
        "boundary": boundary,
        "model": model,
        "rng": rng,
        "samples": 6,
        "block_size": 3,
        "measure": "sizes",
        "device": "cpu",
    }


@pytest.mark.parametrize(
    "given",
    [pytest.param(given, marks=[slow] * given.get("is_slow", False)) for given in FILES],
    ids=lambda given: " ".join(f"{key}={value}" for key, value in given.items()),
)
def test_the_file_of_a_study_in_parts_is_that_of_whole_samples(given):
    way = {key: value for key, value in given.items() if key != "is_slow"}
    study = {"lattice": "square", "L": (8, 12), "p": (0.4, 0.5), "boundary": "open"}
    study |= {"model": "bond", "rng": "xorwow"}
    lattice, *rest = (way.pop(name, default) for name, default in study.items())
    found = sweep(lattice, **settings(*rest), **way, out="parts.h5")
    whole = whole_study(lattice, *rest)
    assert_equal_datasets(Path("parts.h5"), stored(Path("whole.h5"), whole))
    assert found.tasks.keys() == whole.tasks.keys()
    record = found.runs[0]
    assert ("split" in record) == ("split" in way)
    # Where all samples fit, auto cuts none.
    is_cut = "split" in way or way["slabs"] != "auto"
    assert ("slabs" in record) == (is_cut and not {"blocks", "merge"} & way.keys())
    if "split" not in way and is_cut:
        assert record["slabs"] == {str(size): int(way["slabs"]) for size in rest[0]}
    assert not {"split", "slabs"} & whole.runs[0].keys()


def test_a_study_may_be_begun_in_one_way_and_continued_in_others():
    study = settings()
    ways = ({}, {"slabs": 3}, RANKS | {"workers": 2}, RANKS | {"blocks": "2x2"})
    for blocks, way in enumerate(ways, 1):
        found = sweep("square", **study | {"samples": 3 * blocks}, **way, out="results.h5")
        assert len(found.runs) == blocks
        if "split" in way:
            assert found.runs[-1]["split"]["rows"] == 6
    sweep("square", **study | {"samples": 12}, out="whole.h5")
    assert_equal_datasets(Path("results.h5"), Path("whole.h5"))
    # Nothing is left to do.
    sweep("square", **study | {"samples": 12}, slabs=2, out="whole.h5")
    assert len(read_results(Path("whole.h5")).runs) == 1


@pytest.mark.parametrize("way", [{"slabs": 3}, RANKS | {"workers": 2}, RANKS | {"blocks": "2x2"}])
def test_sums_beyond_64_bits_have_two_columns(way, monkeypatch):
    (one,) = sweep("square", **settings()).tasks.values()
    monkeypatch.setattr(Task, "is_wide", property(lambda task: True))
    monkeypatch.setattr("percolab.run.parts_sampler.LOW_BITS", 5)
    wide = read_results(stored(Path("wide.h5"), sweep("square", **settings(), **way)))
    (other,) = wide.tasks.values()
    assert one.task.id == other.task.id
    assert not other.has("sum_squares")
    low, high = other.extra("wide_squares").transpose(2, 0, 1)
    assert high.min() > 0
    assert low.max() < 32 * 3
    expected = one.column("sum_squares").tolist()
    assert (low + 32 * high).tolist() == expected
    for name in ("powers", "size_counts"):
        assert other.extra(name).tolist() == one.extra(name).tolist()
    assert other.column("largest").tolist() == one.column("largest").tolist()
    monkeypatch.setattr("percolab.store.task_result.LOW_BITS", 5)
    (curve,) = read_cluster_curves(wide)
    assert curve.sum_squares.tolist() == expected


REFUSED = [
    (("--measure", "gyration"), "the radii of clusters are not known at a face"),
    (("--measure", "openings"), "they are counted where a sample is in one piece"),
    (("--model", "ising"), "ising has spins, of which a sweep needs all at once"),
    (("--lattice", "bethe:3"), "bethe:3 has no layers to be cut at"),
    (("--labeler", "reference"), "on cpu they are labeled by raster, not by reference"),
    (("--method", "threshold"), "method threshold opens the bonds of a whole sample in order"),
    (("--method", "tree"), "method tree chooses from the bonds of the whole lattice"),
    (("-p", ""), "give p (-p)"),
    (("-p", "", "--plan"), "give p (-p)"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("given", "message"), REFUSED, ids=lambda item: " ".join(item[:2]))
def test_what_parts_cannot_do_is_refused_in_one_line(way, given, message):
    usual = ["--lattice", "square", "-L", "8", "-p", "0.5", "--device", "cpu", *WAYS[way]]
    if given[0] in ("-p", "--method"):
        usual.remove("-p")
        usual.remove("0.5")
        given = given[2:] if given[0] == "-p" else given
    found = refusal("sweep", *usual, *given, "--out", "none.h5")
    assert message in found
    assert found.count("--split lattice") <= 1


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (("--slabs", "4"), "a slab of 2 layers, but bonds of far reach 3 layers far"),
        (("--split", "lattice", "--workers", "3"), "but bonds of far reach 3 layers far"),
        (("--split", "lattice", "--blocks", "1x4"), "along axis y, but bonds of far reach 3 far"),
    ],
)
def test_parts_thinner_than_bonds_reach_are_refused(way, message):
    bonds = ", ".join(
        f"{{ offset = {offset}, at = [[0, 0]] }}" for offset in ([1, 0], [0, 1], [0, 3])
    )
    text = f'name = "far"\ndimension = 2\nbonds = [{bonds}]\n[cell]\nshape = [1, 1]\n'
    Path("far.toml").write_text(text)
    given = ("--lattice", "far.toml", "-L", "8", "-p", "0.5", "--device", "cpu", *way)
    assert message in refusal("sweep", *given, "--out", "none.h5")
