"""Partitions are found by the options that select them, and loaded when they are."""

import subprocess
import sys

import pytest

from percolab.papers.fink1997.partition import BOXES, BoxJob
from percolab.papers.fink1997.quad import Merge
from percolab.parts.partitions import PARTITIONS, choose_partition, make_job
from percolab.parts.parts import Whole
from percolab.parts.ranks import RankJob
from percolab.parts.slab_partition import SLABS

SWEEPS = """
import sys
import percolab.cli.sweep, percolab.run.mpi, percolab.run.runner
from percolab import sweep
asked = {"L": [4, 6], "p": [0.4, 0.6], "samples": 4, "device": "cpu"}
for given in ({}, {"slabs": 2}, {"split": "lattice", "workers": 2, "merge": "tree"}):
    sweep("square", **asked, **given)
print([name for name in sys.modules if name.startswith("percolab.papers")])
sweep("square", **asked, split="lattice", blocks="2x1")
print("percolab.papers.fink1997.quad" in sys.modules)
"""


@pytest.mark.slow
def test_sweeps_load_nothing_of_papers_until_an_option_selects_it(tmp_path):
    command = [sys.executable, "-c", SWEEPS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["[]", "True"]


@pytest.mark.parametrize(
    ("options", "partition"),
    [
        ({}, SLABS),
        ({"slabs": 4, "blocks": None, "merge": "tree"}, SLABS),
        ({"blocks": "1x1"}, BOXES),
        ({"merge": "tree:runs"}, BOXES),
        ({"blocks": "2x2", "merge": "tree"}, BOXES),
    ],
)
def test_options_select_a_partition(options, partition):
    assert choose_partition(options) is partition


def test_the_record_of_a_job_names_its_partition():
    from percolab.lattices.lattice import load_lattice

    whole = Whole(load_lattice("square"), (8, 8), ("open", "periodic"))
    jobs = {
        "slabs": RankJob(whole, ((4,), (4,)), tally=True, p=0.5),
        "boxes": BoxJob(whole, (2, 2), Merge("quad", bubbles=True), 4),
    }
    assert jobs.keys() == PARTITIONS.keys()
    for name, job in jobs.items():
        assert job.record()["partition"] == name
        assert make_job(job.record()) == job
