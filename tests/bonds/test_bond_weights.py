"""Bonds with probabilities of their own, and clusters of a source: against all configurations."""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import assert_z, label_pairs, slow_but

import percolab
from percolab import InputError, label, load_lattice, sweep
from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND, Model
from percolab.bonds.models import MODELS, ModelEntry, bond_weights
from percolab.bonds.weights import BondWeights
from percolab.bonds.words import GENERATORS, TOP, p_to_threshold, uniform_number
from percolab.coupled import new_coupling
from percolab.coupled.points import PointByPoint
from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.lattices.graph import make_graph
from percolab.lattices.topology import unpack_bits
from percolab.run.engine import choose_engine
from percolab.run.request import Observer, open_study
from percolab.tasks.study_file import make_request

#: Two triangles and a tail; rows (site, site, weight).
SHARES = [(0, 1, 0.5), (1, 2, 1.0), (2, 0, 0.25), (1, 3, 0.8), (2, 3, 0.0), (3, 4, 0.9)]
RATES = [(0, 1, 0.5), (1, 2, 1), (2, 0, 7.5), (1, 3, 2), (2, 3, 0), (3, 4, 0.1)]
GIVEN = {"bond-weight": SHARES, "bond-rate": RATES}
OPTIONS = {"device": "cpu", "seed": 3, "workers": 1}


def probability(model, weight, p):
    return p * weight if model == "bond-weight" else 1 - (1 - p) ** weight


def exact_means(model, p, source):
    """Return means over all configurations: P(0 and 4 connected), <s_1>, <s_src>, <s_src^2>."""
    total, rows = np.zeros(4), GIVEN[model]
    for states in product((0, 1), repeat=len(rows)):
        chances = [probability(model, w, p) for *_, w in rows]
        chance = np.prod([q if is_open else 1 - q for q, is_open in zip(chances, states)])
        opened = np.array([row[:2] for row, is_open in zip(rows, states) if is_open], int)
        label = label_pairs(*opened.reshape(-1, 2).T, 5).tolist()
        own = sum(each in {label[site] for site in source} for each in label)
        largest = max(map(label.count, label))
        total += chance * np.array([label[0] == label[4], largest, own, own**2])
    return total


@dataclass(frozen=True)
class Doubled(Model):
    """Two bonds in place of each one: one of a lattice is open with probability 1 - (1 - p)^2."""

    name: ClassVar[str] = "doubled"

    def make_record(self, topology):
        return BondWeights(np.full(32 * topology.num_bond_words, 2.0), np.uint32(True))


def test_a_model_with_a_record_of_its_own_is_drawn_by_it_and_refused_where_none_knows_it(
    monkeypatch,
):
    monkeypatch.setattr(bond_weights, "Doubled", Doubled, raising=False)
    entry = ModelEntry("doubled", "", "bonds.models.bond_weights:Doubled")
    monkeypatch.setitem(MODELS, "doubled", entry)
    topology = load_lattice("square").topology((12, 12))
    drawn = []
    for model, p in ((Doubled(), 0.3), (BOND, 1 - 0.7**2)):
        batch = new_batch("cpu", topology, model)
        batch.fill(0, 3, np.zeros(1, np.uint64), np.array([p_to_threshold(p)], np.uint64))
        drawn.append(batch.copy_open_words(1))
    assert np.array_equal(*drawn)
    assert not Doubled().openings_have_p
    request = make_request(lattice="square", model="doubled", L=[8], p=[0.3], samples=5)
    opened = open_study(request.study, request.rule, request.options)
    with pytest.raises(InputError, match="only on the CPU"):
        choose_engine(opened, {"device": Device("cuda")}, Observer())
    with pytest.raises(InputError, match="model doubled: it cannot be drawn in parts"):
        sweep("square", model="doubled", L=[8], p=[0.3], samples=5, slabs=2, **OPTIONS)


@pytest.mark.parametrize("model", slow_but(GIVEN, "bond-weight"))
def test_reliability_and_outbreaks_are_those_of_all_configurations(model):
    p, count = [0.2, 0.6, 1.0], 1500
    given = {"graph": GIVEN[model], "model": model, "p": p, "samples": count, "measure": "source"}
    ends = {"source": [0], "target": [4]}
    results = sweep(**given, **ends, **OPTIONS)
    alone = sweep(**given, source=[2, 3], **OPTIONS)
    for k, value in enumerate(p):
        exact = exact_means(model, value, [0])
        pair = exact_means(model, value, [2, 3])
        for found, name, expected in (
            (results, "spanning", exact[0]),
            (results, "largest", exact[1]),
            (results, "source_sites", exact[2]),
            (results, "source_squares", exact[3]),
            (alone, "source_sites", pair[2]),
            (alone, "source_squares", pair[3]),
        ):
            _, mean, error = found.means(name)
            if error[k]:
                assert_z(mean[k], expected, error[k])
            else:
                assert mean[k] == pytest.approx(expected, abs=1e-12)
    assert "spanning" not in {column.name for column in alone.columns()}


def test_edges_and_their_weights_may_be_a_tuple():
    names, weights = [("a", "b"), ("b", "c")], [0.5, 0.25]
    given = {"p": [0.5], "samples": 30, **OPTIONS}
    rows = [(*pair, weight) for pair, weight in zip(names, weights)]
    for model in ("bond", *GIVEN):
        one, other = (
            sweep(graph=graph, model=model, **given) for graph in ((names, weights), rows)
        )
        assert one.study.structure == other.study.structure
        assert one.means("largest")[1] == other.means("largest")[1]
    with pytest.raises(InputError, match="1 weights for 2 bonds"):
        sweep(graph=(names, weights[:1]), model="bond-weight", **given)
    with pytest.raises(InputError, match="1 weights for 2 bonds"):
        label(graph=(names, weights[:1]))


def test_probabilities_in_titles_are_mathematics():
    titles = [Model.parse(model).title for model in (*GIVEN, "random-cluster:q=2.5")]
    assert [title.partition("$")[2] for title in titles] == ["p\\,w$", "1 - (1 - p)^w$", "q = 2.5$"]


@pytest.mark.parametrize("model", GIVEN)
@pytest.mark.parametrize("generator", GENERATORS.values())
def test_a_bond_is_open_if_its_number_is_below_its_own_probability(model, generator):
    graph = make_graph(GIVEN[model], weights=True)
    topology = graph.topology((5,))
    batch, seed = new_batch("cpu", topology, Model.parse(model)), np.uint64(2**63 + 9)
    places = graph.bond_numbers()
    for sample, p in product(range(200), (0.0, 0.3, 1.0)):
        limit = np.array([p_to_threshold(p)], np.uint64)
        batch.fill(generator, seed, np.array([sample], np.uint64), limit)
        is_open = unpack_bits(batch.opened, 32 * batch.opened.size)[places]
        for (*_, weight), place, found in zip(GIVEN[model], places.tolist(), is_open, strict=True):
            u = uniform_number(generator, seed, np.uint64(sample), place // 32, place % 32)
            assert found == (u < probability(model, weight, p) * TOP)


@pytest.mark.parametrize("model", GIVEN)
def test_a_grid_is_those_of_single_points(model):
    graph = make_graph(GIVEN[model], weights=True, source=0, target=4)
    topology, draw = graph.topology((5,)), Model.parse(model)
    grid = np.array([p_to_threshold(p) for p in (0.0, 0.1, 0.35, 0.5, 0.99, 1.0)], np.uint64)
    key, samples = (0, np.uint64(5)), np.arange(300, dtype=np.uint64)
    rows = new_coupling("raster", "cpu", topology, draw).grid_rows(*key, samples, grid)
    single = PointByPoint(new_labeler("reference", "cpu", topology, draw))
    np.testing.assert_array_equal(rows, single.grid_rows(*key, samples, grid))


@pytest.mark.slow
def test_thresholds_of_samples_are_those_of_all_configurations():
    study = {"graph": RATES, "model": "bond-rate", "source": 0, "target": 4, "samples": 2000}
    found = sweep(**study, method="threshold", **OPTIONS)
    for p in (0.3, 0.8):
        _, mean, error = found.means("spanning", p=[p])
        assert_z(mean[0], exact_means("bond-rate", p, [0])[0], error[0])
    with pytest.raises(InputError, match="spans at p = 1 in less than half of"):
        sweep(**study | {"graph": SHARES, "model": "bond-weight"}, method="threshold", **OPTIONS)


def test_the_source_of_a_site_study_that_is_vacant_has_no_cluster():
    results = sweep(
        graph=[(0, 1), (1, 2)], model="site", source=1, measure="source", p=[0.5],
        samples=4000, **OPTIONS,
    )  # fmt: skip
    _, mean, error = results.means("source_sites")
    assert_z(mean[0], 0.5 * (1 + 2 * 0.5), error[0])


def test_hubs_that_are_renumbered_keep_their_source_and_weights():
    star = [(site, 400, 0.5 if site else 1.0) for site in range(400)]
    results = sweep(
        graph=star, model="bond-weight", source=0, measure="source", p=[1.0], samples=400, **OPTIONS
    )
    assert results.study.structure.inner_numbers is not None
    _, mean, error = results.means("source_sites")
    assert_z(mean[0], 2 + 399 / 2, error[0])


def test_the_command_line_and_label_take_weights(tmp_path):
    (tmp_path / "g.csv").write_text("source,target,weight\n0,1,1\n1,2,0\n2,3,1\n")
    text = answer("sweep", "--graph", "g.csv", "--model", "bond-weight", "--source", 0, "-p", 1,
                  "--measure", "source", "--samples", 20, "--device", "cpu", "-q")  # fmt: skip
    assert "source of 1" in text
    assert "target" not in text
    assert "lower bound" not in text  # which is that of bonds that are alike
    assert "source_sites" in answer("export", "results.h5")
    labels = percolab.label(graph="g.csv", model="bond-weight", p=1.0)
    assert labels.tolist() == [0, 0, 2, 2]
    answer("label", "--graph", "g.csv", "-p", 1, "--model", "bond-weight", "--out", "l.npy")
    assert np.load("l.npy").tolist() == [0, 0, 2, 2]
    assert percolab.flow(graph="g.csv", model="bond-weight", p=1.0, source=0, target=1).connected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"graph": [(0, 1, 1.5)]}, "model bond-weight: weight 1.5, but weights are from 0 to 1"),
        ({"graph": [(0, 1, -1)], "model": "bond-rate"}, "weight -1, but weights are at least 0"),
        ({"graph": [(0, 1)]}, "a list has rows (site, site, weight)"),
        ({"lattice": "square"}, "and square is not one: give graph"),
        ({"graph": percolab.Graph.of_bonds(2, [(0, 1)])}, "give them by Graph.with_weights"),
        ({"graph": SHARES, "method": "microcanonical", "p": None}, "the model is bond or site"),
        ({"graph": SHARES, "method": "tree", "p": None}, "model must be bond"),
        ({"graph": SHARES, "source": 0}, "source is given without target"),
        ({"graph": SHARES, "measure": "source"}, "measure source needs a graph"),
        ({"graph": SHARES, "measure": "source", "source": 9}, "source names site 9"),
    ],
)
def test_what_has_no_weights_or_source_is_refused_in_a_line(given, message):
    with pytest.raises(InputError) as error:
        sweep(**{"model": "bond-weight", "p": [0.5], "samples": 5, **OPTIONS, **given})
    assert message in str(error.value)


def test_weights_are_of_the_cpu_alone():
    request = make_request(graph=SHARES, model="bond-weight", p=[0.5], samples=5)
    opened = open_study(request.study, request.rule, request.options)
    with pytest.raises(InputError, match="sampled only on the CPU: use device cpu"):
        choose_engine(opened, {"device": Device("cuda")}, Observer())


def test_weights_are_sampled_where_there_is_no_gpu_and_no_device_is_given():
    given = {key: value for key, value in OPTIONS.items() if key != "device"}
    assert sweep(graph=SHARES, model="bond-weight", p=[0.5], samples=5, **given).study.p == (0.5,)


def test_weights_that_change_are_another_study(tmp_path):
    (tmp_path / "g.txt").write_text("0 1 0.5\n1 2 0.5\n")
    study = ("sweep", "--graph", "g.txt", "--model", "bond-weight", "-p", "0.5", "--samples", 10,
             "--device", "cpu", "-q")  # fmt: skip
    answer(*study)
    (tmp_path / "g.txt").write_text("0 1 0.5\n1 2 0.25\n")
    assert "digest" in refusal(*study)
