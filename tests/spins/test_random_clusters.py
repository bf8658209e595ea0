"""Chayes and Machta's chains of random clusters: exact means, other chains, theory, equal files."""

from dataclasses import replace

import numpy as np
import pytest
from cli_support import refusal
from helpers import lattice, slow, slow_but
from spin_support import SPIN_SWEEP, TINY, graph_of, key_of, tiny_topology, z_of

from percolab import InputError, sweep
from percolab.analysis.stored_spins import compute_thermodynamics
from percolab.analysis.theory.torus import wrapping_probabilities
from percolab.bonds.words import GENERATORS
from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.measure.rows import CLUSTERS, LARGEST, SPANNING, SUM_SQUARES
from percolab.measure.spins import OPEN_BONDS
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS
from percolab.run.engine import choose_engine
from percolab.run.request import Observer, open_study
from percolab.spins.chayes_machta import ClusterChain
from percolab.tasks.kind import make_sampler
from percolab.tasks.study_file import make_request
from percolab.validation.enumeration import count_configurations

SHAPES = {
    f"{kind} {n} x {n}": ((n, n), (kind,) * 2) for n in (2, 3) for kind in ("open", "periodic")
}
ROW = {"clusters": CLUSTERS, "sum_squares": SUM_SQUARES, "largest": LARGEST}
SWEEP = SPIN_SWEEP | {"model": "random-cluster:q=2.5", "measure": ["sizes", "series"]}


def topology_of(name):
    if name in TINY:
        return tiny_topology(name)
    shape, kinds = SHAPES[name]
    return lattice("square").topology(shape, kinds)


def run_clusters(topology, q, p, *, chains=300, burn_in=20, sweeps=60, seed=1, **given):
    """Return rows and numbers of many chains, int64 (chains, sweeps, width) each."""
    labeler = new_labeler(given.get("labeler"), "cpu", topology)
    one, generator = ClusterChain(labeler, q), GENERATORS[given.get("rng", "xorwow")]
    rows, numbers = [], []
    for number in range(chains):
        one.begin(generator, [key_of(seed, number, p)], [number % 2 == 1])
        one.skip(burn_in)
        row, counted = one.advance(sweeps)
        rows.append(row[0])
        numbers.append(counted[0])
    return np.array(rows), np.array(numbers)


def found_in(rows, numbers):
    found = {name: rows[..., place].astype(float) for name, place in ROW.items()}
    return found | {"open_bonds": numbers[..., OPEN_BONDS].astype(float)}


def exact_means(topology, q, p):
    """Return the means over all sets of open bonds, of weights p^b (1 - p)^(B - b) q^clusters."""
    sites, bonds = graph_of(topology)
    labels, opened = np.arange(sites)[None], np.zeros(1)
    for i, j in bonds:
        low = np.minimum(labels[:, i], labels[:, j])[:, None]
        high = np.maximum(labels[:, i], labels[:, j])[:, None]
        labels = np.concatenate([labels, np.where(labels == high, low, labels)])
        opened = np.concatenate([opened, opened + 1])
    sizes = np.stack([(labels == site).sum(axis=1) for site in range(sites)], axis=1)
    clusters = (sizes > 0).sum(axis=1)
    weights = p**opened * (1 - p) ** (len(bonds) - opened) * q**clusters
    values = {
        "clusters": clusters,
        "sum_squares": (sizes**2).sum(axis=1),
        "largest": sizes.max(axis=1),
        "open_bonds": opened,
        "open_bonds_squared": opened**2,
    }
    return {name: float(weights @ each / weights.sum()) for name, each in values.items()}


@pytest.mark.parametrize("q", [1.5, 2.5, slow(3.7)])
@pytest.mark.parametrize("name", slow_but([*SHAPES, "irregular", "kagome 4 x 2"], "periodic 3 x 3"))
def test_means_are_the_exact_ones(name, q):
    topology, p = topology_of(name), 0.55
    exact = exact_means(topology, q, p)
    for rng in GENERATORS:
        found = found_in(*run_clusters(topology, q, p, rng=rng, seed=int(10 * q), chains=400))
        found["open_bonds_squared"] = found["open_bonds"] ** 2
        for quantity, values in found.items():
            assert abs(z_of(values, exact[quantity])) <= 4, (name, q, rng, quantity)


def test_q_of_one_is_percolation_whose_sweeps_are_independent():
    topology, p = topology_of("open 3 x 3"), 0.5
    sites, bonds = graph_of(topology)
    clusters, squares = (
        sum(count * 0.5 ** len(bonds) for count in counts)
        for counts in count_configurations(sites, bonds)
    )
    found = found_in(*run_clusters(topology, 1.0, p, seed=77, burn_in=0))
    assert abs(z_of(found["clusters"], clusters)) <= 4
    assert abs(z_of(found["sum_squares"], squares)) <= 4
    bonds_open = found["open_bonds"]
    assert abs(z_of(bonds_open, p * len(bonds))) <= 4
    products = bonds_open[:, 1:] * bonds_open[:, :-1]
    assert abs(z_of(products, (p * len(bonds)) ** 2)) <= 4


@pytest.mark.parametrize("q", [slow(1.5), 2.5, slow(3.4)])
def test_wrapping_at_the_self_dual_point_is_that_of_theory(q):
    """Two directions are q times as probable as none, and both as conformal theory has them."""
    topology = lattice("square").topology((24, 24), ("periodic",) * 2)
    p = np.sqrt(q) / (1 + np.sqrt(q))
    rows, _ = run_clusters(topology, q, p, chains=240, burn_in=150, sweeps=120, seed=int(10 * q))
    flags = rows[..., SPANNING]
    both = (1 << FIRST_WRAPPING) | (1 << (FIRST_WRAPPING + 1))
    two, none = flags & (1 << TWO_DIRECTIONS) != 0, flags & both == 0
    theory = wrapping_probabilities(1j, q)
    assert abs(z_of(two - q * none, 0.0)) <= 4
    assert abs(z_of(none * 1.0, theory.none)) <= 4
    assert abs(z_of((flags & (1 << FIRST_WRAPPING) != 0) * 1.0, theory.x)) <= 4


def test_theory_of_two_states_is_that_of_the_ising_model_s_boundary_conditions():
    """Antiperiodic along x has the states without a cluster that winds an odd number of times.

    Their partition functions are sums of theta functions, a = theta_2 = theta_4 and b = theta_3 of
    the square torus; windings such as (2, 1) are rarer than 5e-5.
    """
    n = np.arange(-9, 10)
    a, b = (np.exp(-np.pi * (n + half) ** 2).sum() for half in (0.5, 0.0))
    found = wrapping_probabilities(1j, 2)
    y_alone = found.y - found.both
    assert found.none + y_alone == pytest.approx(b / (2 * a + b), abs=5e-5)
    assert found.none + found.oblique == pytest.approx((2 * a - b) / (2 * a + b), abs=1e-4)
    assert found.cross == pytest.approx(2 * found.none, rel=1e-12)


@pytest.mark.parametrize("labeler", ["four_step", "reference"])
def test_labelers_give_the_same_sweeps(labeler):
    topology = lattice("kagome").topology((8, 6), ("periodic", "open"))
    one = run_clusters(topology, 2.5, 0.55, chains=4)
    other = run_clusters(topology, 2.5, 0.55, chains=4, labeler=labeler)
    for own, others in zip(one, other, strict=True):
        np.testing.assert_array_equal(own, others)


def run_to(path, **changes):
    return sweep("square", out=path, **(SWEEP | changes))


def test_energy_and_specific_heat_follow_from_the_open_bonds(tmp_path):
    """Of q = 2 those of the Potts model, whose satisfied bonds are counted."""
    given = {"L": [6], "p": [0.55], "samples": 200 * 100, "sweeps": 130, "burn_in": 30, "seed": 8}
    models = "random-cluster:q=2", "potts:q=2"
    runs = (run_to(tmp_path / f"{n}.h5", **given, model=model) for n, model in enumerate(models))
    one, other = (compute_thermodynamics(run)[0] for run in runs)
    for name in ("energy", "specific_heat", "improved_susceptibility"):
        error = np.hypot(one.errors[name], other.errors[name])
        assert 0 < error < 0.1 * abs(one.values[name])
        assert abs(one.values[name] - other.values[name]) <= 4 * error, name
    assert "order" not in one.values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model random-cluster:q=0.9", "q = 0.9, but Chayes and Machta's algorithm needs"),
        ("--model random-cluster:q=nan", "q = nan, but Chayes and Machta's algorithm needs"),
        ("--model random-cluster", "q is written as in random-cluster:q=2.5"),
        ("--model random-cluster:q=two", "'two' is not a number"),
        ("--model potts:q=2.5", "random-cluster:q=2.5 has any real q from 1 on"),
        ("--model random-cluster:q=2.5 --update wolff", "update"),
        (
            "--model random-cluster:q=2.5 --boundary periodic --measure correlation",
            "random clusters have no spins",
        ),
    ],
)
def test_what_it_has_not_is_refused_in_one_line(options, message):
    assert message in refusal("sweep", "--lattice", "square", "-L", "8", *options.split())


def test_a_gpu_is_refused_and_auto_takes_the_cpu(monkeypatch):
    request = make_request("square", **{**SWEEP, "device": "auto"})
    opened = open_study(request.study, request.rule, request.options)
    with pytest.raises(InputError, match=r"random-cluster:q=2\.5 is sampled only on the CPU: use"):
        choose_engine(opened, {"device": Device("cuda")}, Observer())
    # As where there is a GPU.
    monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda *_: None)
    chosen = choose_engine(opened, {"device": Device("auto")}, Observer())
    assert chosen.device == Device("cpu")


def test_blocks_of_one_long_chain_are_its_parts():
    """Judged by a chain of as many sweeps in one block, never taken up again."""
    request = make_request("square", **{**SWEEP, "chains": 1, "L": [9]})
    task = replace(request.study.tasks[9], block_size=15)
    blocks = make_sampler(task, device=Device("cpu")).sample(range(4))
    (one,) = make_sampler(replace(task, chains=0, block_size=60), device=Device("cpu")).sample([0])
    np.testing.assert_array_equal(sum(block.sums for block in blocks), one.sums)


def test_a_stored_state_with_bonds_that_are_not_there_is_refused():
    topology = topology_of("open 3 x 3")
    chain = ClusterChain(new_labeler(None, "cpu", topology), 2.5)
    planes = np.zeros_like(chain.copy_planes())
    chain.resume(planes, 1)
    for plane in range(planes.shape[1]):
        wrong = planes.copy()
        wrong[0, plane, -1] |= np.uint32(1 << 31)
        with pytest.raises(InputError, match="that the lattice lacks"):
            chain.resume(wrong, 1)
