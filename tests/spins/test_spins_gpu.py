"""Chains of spins on a real GPU against the CPU, bit for bit, after many sweeps."""

from unittest.mock import patch

import numpy as np
import pytest
from helpers import BASELINES, CUDA_LABELERS, lattice
from spin_support import assert_chains_equal, assert_chains_resume, key_of, knotted_graph

from percolab.bonds.words import GENERATORS
from percolab.kernels.device import Device
from percolab.labelers import new_labeler, serving_labeler
from percolab.lattices.bethe import bethe_topology
from percolab.spins import one_block
from percolab.spins.chains import new_chains
from percolab.spins.chains_cuda import CudaChains
from percolab.spins.one_block import OneBlockChains
from percolab.spins.update import Update
from percolab.tasks.blocks import same_block
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

pytestmark = pytest.mark.gpu

SWEEPS = 1000
UPDATES = ("sw", "wolff", "few:5,flip=0.6")
#: About where spins order, on lattices of three to six neighbours.
P = {2: 0.58, 3: 0.63, 7: 0.73, 256: 0.94}
#: Name: lattice, shape and boundary; odd, below a word, across words and tiles.
CASES = {
    "square": ("square", (131, 67), "periodic"),
    "square open": ("square", (37, 129), "open"),
    "square, one tile": ("square", (64, 64), "periodic"),
    "square, narrow": ("square", (3, 33), "periodic"),
    "triangular": ("triangular", (129, 65), "periodic"),
    "honeycomb": ("honeycomb", (130, 66), "periodic"),
    "kagome": ("kagome", (134, 34), "periodic"),
    "cubic": ("cubic", (33, 9, 17), "periodic"),
}


def topology_of(name):
    if name == "graph":
        return knotted_graph(3001)
    if name == "bethe":
        return bethe_topology(10)
    lattice_name, shape, boundary = CASES[name]
    return lattice(lattice_name).topology(shape, (boundary,) * len(shape))


#: Name: lattice, shape and boundary of chains that one block of threads sweeps each.
ONE_BLOCK = {
    "square": ("square", (64, 64), ("periodic", "periodic")),
    "square open": ("square", (61, 65), ("open", "open")),
    "square mixed": ("square", (33, 124), ("periodic", "open")),
    "one word": ("square", (5, 6), ("periodic", "periodic")),
    "one warp": ("square", (32, 32), ("periodic", "periodic")),
    "two warps": ("square", (47, 33), ("periodic", "periodic")),
    "narrow": ("square", (3, 33), ("periodic", "periodic")),
    "line": ("square", (1, 200), ("open", "periodic")),
    "triangular": ("triangular", (63, 65), ("periodic", "periodic")),
    "square-nnn": ("square-nnn", (40, 40), ("open", "periodic")),
    "honeycomb": ("honeycomb", (64, 64), ("periodic", "periodic")),
    "kagome": ("kagome", (62, 66), ("periodic", "periodic")),
    "cubic": ("cubic", (16, 16, 16), ("periodic",) * 3),
    "cubic mixed": ("cubic", (33, 9, 13), ("periodic", "open", "periodic")),
    "fcc": ("fcc", (16, 14, 16), ("periodic",) * 3),
    "diamond": ("diamond", (16, 16, 16), ("open",) * 3),
}


def new_chains_of(labeler, topology, rule, *, count, tally, in_one_block):
    """Return chains on the GPU; in_one_block: whether one block of threads sweeps each."""
    if in_one_block:
        chains = new_chains(labeler, "cuda", topology, rule, capacity=count, tally=tally)
        assert type(chains) is OneBlockChains
        return chains
    joined = new_labeler(labeler, "cuda", topology, capacity=count, tally=tally)
    return CudaChains(joined, rule)


def compare(
    labeler, topology, update, q, rng, *, sweeps=SWEEPS, count=3, tally=False, in_one_block=False
):
    """Compare chains at several p, of both starts, with those of the CPU."""
    rule = Update.parse(update).rule(q)
    keys = [key_of(51, n, P[q] * (0.8 + 0.1 * n)) for n in range(count)]
    chains = new_chains_of(
        labeler, topology, rule, count=count, tally=tally, in_one_block=in_one_block
    )
    where = f"{labeler} {topology.shape} {update} q = {q}"
    assert_chains_equal(chains, keys, GENERATORS[rng], (7, sweeps - 7), tally=tally, where=where)


def compare_at(p, labeler, topology):
    """Compare two chains at this p, whose lists of bonds are more or less full."""
    keys = [key_of(52, n, p) for n in range(2)]
    chains = new_chains(labeler, "cuda", topology, Update().rule(2), capacity=2)
    assert_chains_equal(chains, keys, 0, (12,))


@pytest.mark.parametrize("rng", GENERATORS)
@pytest.mark.parametrize("q", P)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("labeler", CUDA_LABELERS)
@pytest.mark.parametrize("case", ["square", "kagome", "cubic"])
def test_a_thousand_sweeps_equal_the_cpu(case, labeler, update, q, rng):
    compare(labeler, topology_of(case), update, q, rng)


@pytest.mark.parametrize("labeler", CUDA_LABELERS)
@pytest.mark.parametrize("case", [*CASES, "graph", "bethe"])
def test_every_topology_equals_the_cpu(case, labeler):
    topology = topology_of(case)
    if serving_labeler(labeler, "cuda", topology) != labeler:
        pytest.skip("another labeler serves it")
    for n, (update, q) in enumerate([("sw", 2), ("wolff", 3), ("few:40,flip=0.9", 2), ("sw", 7)]):
        rng = list(GENERATORS)[n % 2]
        compare(labeler, topology, update, q, rng, sweeps=100, count=5, tally=n % 2 == 0)


@pytest.mark.parametrize("labeler", BASELINES)
@pytest.mark.parametrize("case", ["square", "square open", "kagome"])
def test_schemes_of_papers_equal_the_cpu(case, labeler):
    topology = topology_of(case)
    if serving_labeler(labeler, "cuda", topology) != labeler:
        pytest.skip("another labeler serves it")
    for update, q in [("sw", 2), ("wolff", 3)]:
        compare(labeler, topology, update, q, "xorwow", sweeps=50)


@pytest.mark.parametrize("labeler", CUDA_LABELERS)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.58, 0.75, 0.95, 1.0])
def test_lists_are_long_enough_at_every_p(labeler, p):
    """Ordered and disordered spins fill the lists of the tile kernel in other ways."""
    topology = lattice("square").topology((1023, 515), ("periodic",) * 2)
    compare_at(p, labeler, topology)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("case", ONE_BLOCK)
def test_one_block_a_chain_equals_the_cpu(case, update):
    name, shape, boundary = ONE_BLOCK[case]
    topology = lattice(name).topology(shape, boundary)
    for n, q in enumerate(P):
        rng = list(GENERATORS)[n % 2]
        # What comes last is more than one launch does.
        sweeps = SWEEPS if q > 2 else 2 * SWEEPS + 100
        # Few chains have four threads a word, many have one.
        parts = (4, 2, 1, 1)[n]
        # Eight planes of spins beside the periodic boundaries of 4096 sites in space are too much.
        fits = q < 256 or topology.num_axes < 3
        with patch.object(one_block, "_MOST_PARTS", parts):
            compare("tiled", topology, update, q, rng, sweeps=sweeps, in_one_block=fits)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.58, 0.75, 0.95, 1.0])
@pytest.mark.parametrize("listed", [1, None])
def test_one_block_lists_what_it_has_room_for(p, listed, monkeypatch):
    """Lists are long enough at every p, or filled again."""
    if listed:
        monkeypatch.setattr(one_block, "_list_capacity", lambda topology: listed)
    for name, shape in [("square", (64, 64)), ("cubic", (16, 16, 16))]:
        compare_at(p, None, lattice(name).topology(shape, ("periodic",) * len(shape)))


def test_more_chains_than_fit_on_the_device_at_a_time_equal_the_cpu():
    topology, rule = lattice("square").topology((20, 20), ("periodic",) * 2), Update().rule(2)
    count = 20_000
    keys = [key_of(53, n, 0.5 + 0.1 * (n % 3)) for n in range(count)]
    chains = new_chains(None, "cuda", topology, rule, capacity=count)
    assert type(chains) is OneBlockChains
    assert chains.capacity == count
    assert_chains_equal(chains, keys, 0, (9,), every=199)


@pytest.mark.parametrize("labeler", CUDA_LABELERS)
@pytest.mark.parametrize("update", UPDATES)
def test_chains_continue_from_given_spins_and_past_sweeps_that_are_not_fetched(labeler, update):
    topology, rule = topology_of("square"), Update.parse(update).rule(3)
    keys = [key_of(53, n, P[3] * (0.8 + 0.1 * n)) for n in range(3)]
    chains = new_chains(labeler, "cuda", topology, rule, capacity=3)
    assert_chains_equal(chains, keys, 0, (50,), skipped=100)
    assert_chains_resume(chains, keys, 0, skipped=100, sweeps=50)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("devices", [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_one_long_chain_continues_on_another_device(devices, every):
    task = Task(
        lattice("square"), 48, ("periodic",) * 2, (0.55, 0.5858, 0.62), model="ising", burn_in=50,
        block_size=40, every=every, chains=1, seed=9, measure=("series", "sizes", "correlation"),
    )  # fmt: skip
    whole = make_sampler(task, device=Device("cpu")).sample(range(4))
    first, second = map(Device, devices)
    blocks = make_sampler(task, device=first).sample(range(2))
    blocks += make_sampler(task, device=second, end=blocks[-1].end).sample(range(2, 4))
    for block, expected in zip(blocks, whole, strict=True):
        assert same_block(block, expected)
        assert block.end.sweeps == expected.end.sweeps
        np.testing.assert_array_equal(block.end.planes, expected.end.planes)
