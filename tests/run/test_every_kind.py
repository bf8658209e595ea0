"""Every kind of study has one file, whoever measured it, and however it was stopped or merged."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from cli_support import answer, blocks_in, without_runs
from helpers import slow_but
from process_support import Interrupting
from spin_support import SPIN_SWEEP

from percolab import InputError, sweep
from percolab.measure.columns import FLOW_WORDS
from percolab.run.stored import Interrupted
from percolab.store.merging import merge
from percolab.store.results import read_results
from percolab.tasks.blocks import same_block

GRID = {"L": [6, 8], "p": [0.4, 0.6], "samples": 60, "block_size": 10}
ORDERED = {"L": [6, 8], "samples": 60, "block_size": 10}
SPINS = SPIN_SWEEP | {"measure": ["sizes", "series"]}
STUDIES = {
    "grid": GRID | {"measure": ["sizes", "gyration"]},
    "sizes of their own": GRID | {"samples": [30, 70]},
    "openings": GRID | {"measure": ["openings"], "model": "site"},
    "flows": GRID | {"measure": [*FLOW_WORDS]},
    "threshold": ORDERED | {"method": "threshold"},
    "microcanonical": ORDERED | {"method": "microcanonical"},
    "trees": ORDERED | {"method": "tree"},
    "chains": SPINS | {"model": "potts:q=3"},
    "one chain": SPINS | {"model": "potts:q=3", "chains": 1},
    "random clusters": SPINS | {"model": "random-cluster:q=2.5"},
    "one random cluster": SPINS | {"model": "random-cluster:q=2.5", "chains": 1},
    "random graphs": {"lattice": "ba:m=2", "L": [50, 80], "p": [0.2, 0.4], "samples": 200},
}


def measured(kind, path=None, **changes):
    given = {"lattice": "square", "seed": 5, "device": "cpu", "workers": 1} | STUDIES[kind]
    return sweep(**given | changes, out=path)


@cache
def undisturbed(kind):
    """Return the study that one worker made in one go, without records of runs."""
    return without_runs(measured(kind))


def count_blocks(results):
    return sum(len(item.blocks) for item in results.tasks.values())


def fewer(kind):
    """Return about half of the samples of a study."""
    samples = STUDIES[kind]["samples"]
    return 30 if isinstance(samples, list) else samples // 2


def by_workers_and_another_labeler(kind, path):
    # Of a tree and of bonds that open one by one it is the method.
    has_labeler = "method" not in STUDIES[kind] or kind == "threshold"
    measured(kind, path, workers=3, labeler="four_step" if has_labeler else None)


def by_an_executor(kind, path):
    with ThreadPoolExecutor(2) as executor:
        measured(kind, path, samples=fewer(kind))
        measured(kind, path, executor=executor, workers=None)
        # It is left open, and samplers of another study are not taken for those of this one.
        found = measured(kind, executor=executor, workers=None)
    assert without_runs(found) == undisturbed(kind)
    assert (found.runs[0]["executor"], found.runs[0]["workers"]) == ("ThreadPoolExecutor", 2)


def stopped_and_topped_up(kind, path):
    with pytest.raises(Interrupted):
        measured(kind, path, observer=Interrupting())
    assert 0 < blocks_in(path) < count_blocks(measured(kind))
    measured(kind, path, samples=fewer(kind))
    measured(kind, path)


def grown(kind, path):
    measured(kind, path, L=STUDIES[kind]["L"][:1], samples=fewer(kind))
    measured(kind, path, workers=2)


def merged_from_parts(kind, path):
    if STUDIES[kind].get("chains"):
        pytest.skip("one long chain has no parts")
    # Of many parts some have no block of a size.
    count = 12 if kind == "sizes of their own" else 3
    parts = [f"part-{k}.h5" for k in range(1, count + 1)]
    for k, part in enumerate(parts, 1):
        measured(kind, part, part=f"{k}/{count}")
    answer("merge", *parts, "--out", path)
    assert sum(map(blocks_in, parts)) == blocks_in(path)


WAYS = (
    by_workers_and_another_labeler,
    by_an_executor,
    stopped_and_topped_up,
    grown,
    merged_from_parts,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", slow_but(STUDIES, *(STUDIES.keys() - {"flows"})))
def test_a_study_has_the_file_of_one_that_is_undisturbed(kind, way, request):
    # All blocks that are made together, before each is made by itself.
    undisturbed(kind)
    request.getfixturevalue("one_block_calls")
    path = Path("results.h5")
    way(kind, path)
    assert without_runs(read_results(path)) == undisturbed(kind)
    before = path.read_bytes()
    measured(kind, path)
    assert path.read_bytes() == before, "nothing was left to do"


@pytest.mark.parametrize("kind", slow_but(STUDIES, *(STUDIES.keys() - {"flows"})))
def test_files_of_other_seeds_merge(kind):
    one, other = measured(kind), measured(kind, seed=6)
    merged = merge([("a", one), ("b", other)])
    assert count_blocks(merged) == count_blocks(one) + count_blocks(other)
    for part in (one, other):
        for key, item in part.tasks.items():
            for number, block in item.blocks.items():
                assert same_block(block, merged.tasks[key].blocks[number])


MANY = [kind for kind, study in STUDIES.items() if "chains" not in study and kind != "flows"]


SAME = [*((kind, kind) for kind in MANY), ("threshold", "grid"), ("microcanonical", "grid")]


@pytest.mark.parametrize(("kind", "other"), SAME)
def test_the_same_samples_do_not_merge_nor_do_those_of_another_method(kind, other):
    with pytest.raises(InputError, match=r"b and a both hold (samples|chains) 0 to "):
        merge([("a", measured(kind)), ("b", measured(other))])
