"""Published thresholds: against closed forms, bounds, each other, and simulation."""

from math import hypot, pi, sin, sqrt
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_z
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from percolab.analysis.averaging import LEAST_SIZES
from percolab.api import fit, sweep
from percolab.lattices.lattice import lattice_names, load_lattice
from percolab.tasks.study_file import read_request

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs" / "thresholds"

every_lattice = pytest.mark.parametrize("name", lattice_names())
MODELS = ("bond", "site")
every_threshold = pytest.mark.parametrize(
    ("name", "model"),
    [
        (name, model)
        for name in lattice_names()
        for model in MODELS
        if load_lattice(name).threshold(model)
    ],
)
STUDIED = sorted(path.stem for path in CONFIGS.glob("*.toml"))
every_studied_lattice = pytest.mark.parametrize("name", STUDIED)

CLOSED_FORMS = {
    "1/2": 0.5,
    "sqrt(1/2)": sqrt(0.5),
    "2 sin(pi/18)": 2 * sin(pi / 18),
    "1 - 2 sin(pi/18)": 1 - 2 * sin(pi / 18),
    "sqrt(1 - 2 sin(pi/18))": sqrt(1 - 2 * sin(pi / 18)),
}


@every_lattice
def test_lattice_publishes_a_bond_threshold_and_none_of_an_unknown_model(name):
    assert load_lattice(name).threshold("bond") is not None
    assert {item.model for item in load_lattice(name).thresholds} <= {*MODELS}
    assert load_lattice(name).threshold("nothing") is None


@every_threshold
def test_published_threshold_is_its_expression_or_has_an_error(name, model):
    found = load_lattice(name).threshold(model)
    assert found.cite[-4:] in found.reference
    assert found.cite.split()[0] in found.reference
    if found.expression:
        assert found.value == pytest.approx(CLOSED_FORMS[found.expression], abs=1e-15)
        assert found.error == 0
    else:
        assert 0 < found.error < 1e-4


@every_lattice
def test_thresholds_keep_the_bounds_that_hold_on_every_lattice(name):
    # G. Grimmett, Percolation (1999), theorem 1.33, for at most z bonds at a site.
    item = load_lattice(name)
    shape = tuple(4 * cell if item.dimension < 4 else 3 * cell for cell in item.cell)
    bonds = item.topology(shape, ("periodic",) * item.dimension).bonds()
    z = int(np.bincount(bonds[:, 1:].ravel()).max())
    bond, site = (item.threshold(model) for model in MODELS)
    assert 1 / (z - 1) < bond.value < 1
    assert site is None or bond.value < site.value < 1 - (1 - bond.value) ** z


def test_thresholds_of_related_lattices_fit_together():
    def p_c(name, model):
        return load_lattice(name).threshold(model).value

    # Two bonds in series for one; duals, a line graph, a decorated line graph, matching lattices.
    assert p_c("lieb", "bond") ** 2 == pytest.approx(p_c("square", "bond"), abs=1e-15)
    assert p_c("triangular", "bond") + p_c("honeycomb", "bond") == pytest.approx(1, abs=1e-15)
    assert p_c("kagome", "site") == p_c("honeycomb", "bond")
    assert p_c("three-twelve", "site") ** 2 == pytest.approx(p_c("kagome", "site"), abs=1e-15)
    assert p_c("square", "site") + p_c("square-nnn", "site") == pytest.approx(1, abs=1e-15)


#: Lattice sizes at which spanning sets in within 20 % of p_c, by dimension.
SIZE = {2: 48, 3: 16, 4: 10, 5: 8}


def spanning_share(name, model, p, samples=20):
    """Return in how many of some samples the last axis is spanned, by scipy alone."""
    item = load_lattice(name)
    topology = item.topology(item.shape(SIZE[item.dimension]))
    bonds, (first, last) = topology.bonds()[:, 1:], topology.end_layers[-1]
    random = np.random.default_rng(len(name))
    spanned = 0
    for _ in range(samples):
        is_open = random.random(topology.num_points) < p
        kept = is_open[bonds].all(axis=1) if model == "site" else random.random(len(bonds)) < p
        ends = bonds[kept].T
        shape = (topology.num_points,) * 2
        label = connected_components(coo_array((np.ones(len(ends[0])), ends), shape))[1]
        is_site = is_open if model == "site" else np.ones(topology.num_points, bool)
        spanned += bool(set(label[first[is_site[first]]]) & set(label[last[is_site[last]]]))
    return spanned / samples


@every_threshold
def test_spanning_sets_in_at_the_published_threshold(name, model):
    p_c = load_lattice(name).threshold(model).value
    assert spanning_share(name, model, 0.8 * p_c) <= 0.2
    assert spanning_share(name, model, 1.2 * p_c) >= 0.8


def swept_threshold(name):
    """Return p_c and its error from a sweep whose p are placed by the pilot."""
    results = sweep(
        name,
        L=[12, 24, 48, 96],
        samples=[8000, 8000, 4000, 4000],
        boundary=["periodic", "open"],
        seed=16,
        device="cpu",
    )
    found = fit(results)
    assert found.chi_square.p_value > 1e-3
    return found.threshold, found.threshold_error


@pytest.mark.slow
def test_swept_thresholds_of_duals_add_up_to_one_and_kagome_has_its_own():
    # From L = 12 on, terms that the fit leaves out move p_c by less than a third of these errors.
    triangular, honeycomb, kagome = map(swept_threshold, ("triangular", "honeycomb", "kagome"))
    assert max(error for _, error in (triangular, honeycomb, kagome)) < 1.2e-3
    assert_z(triangular[0] + honeycomb[0], 1.0, hypot(triangular[1], honeycomb[1]))
    assert_z(kagome[0], load_lattice("kagome").threshold().value, kagome[1])


@every_studied_lattice
def test_a_lattices_study_looks_nothing_up(name):
    request = read_request(CONFIGS / f"{name}.toml", {})
    study = request.study
    assert study.structure.name == request.out.stem == name
    assert study.p is None
    assert study.method == "grid"
    # Smallest sizes are left out in turn, and end layers are alike where sizes are whole cells.
    assert len(study.sizes) > LEAST_SIZES
    assert all(size % cell == 0 for size in study.sizes for cell in study.structure.cell)
