"""What flows as columns of sweeps: stored, continued, merged and exported like the others."""

import csv
import json

import numpy as np
import pytest
from cli_support import answer
from helpers import assert_same_blocks, slow

import percolab
from percolab import InputError, load_lattice
from percolab.analysis.stored_data import read_flow_moments
from percolab.configurations.configuration import random_configuration
from percolab.figures.kinds import StudyFigures
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, unpack_open
from percolab.kinds.memory import estimate_memory
from percolab.measure.columns import FLOW_WORDS
from percolab.measure.measurements import MEASUREMENTS
from percolab.measure.tallies import CURRENT_BINS, current_edges, quarter_edges
from percolab.tasks.study_file import make_request

ASKED = {"L": [8], "p": [0.45, 0.55], "samples": 40, "block_size": 20, "device": "cpu"}


def number_of(flow, name):
    """Return a number of a flow by its name in a reader; 0 where nothing flows."""
    if name == "current_fourths":
        return flow.current_moment(4)
    return 0 if name == "resistance" and not flow.connected else getattr(flow, name)


def own_flows(model="bond"):
    """Yield (number of p, flow) of the samples of ASKED."""
    for k, p in enumerate(ASKED["p"]):
        for sample in range(40):
            chosen = random_configuration(load_lattice("square"), 8, p, sample=sample, model=model)
            bonds, ends = list_bonds(chosen.topology), chosen.topology.end_layers[1]
            is_open = np.empty(bonds.places.size, np.uint8)
            unpack_open(chosen.opened.ravel(), bonds.places, is_open)
            yield k, Flow(Circuit(bonds, 64, *ends), is_open)


def own_lengths():
    """Return the lengths of the shortest paths of the samples of ASKED, (p, samples)."""
    return np.array([flow.length for _, flow in own_flows()]).reshape(2, -1)


def own_sums(column_numbers, model="bond"):
    """Return sums of numbers of flows over the samples of ASKED, (p, numbers)."""
    sums = np.zeros((2, len(column_numbers)))
    for k, flow in own_flows(model):
        sums[k] += [number_of(flow, name) for name in column_numbers]
    return sums


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bond", slow("site")])
def test_columns_have_the_sums_over_the_samples(model):
    results = percolab.sweep("square", measure=",".join(FLOW_WORDS), model=model, **ASKED)
    (item,) = results.tasks.values()
    for word in set(FLOW_WORDS) - {"connected", "path_lengths", "currents"}:
        found = item.extra(word).sum(axis=0)
        assert found.any()
        expected = own_sums(MEASUREMENTS[word].reader_class.numbers, model)
        assert np.abs(found - expected).max() <= (40 * 2**-31 if word == "conductance" else 0)
        # A conductance is a multiple of 2^-30, and so are sums.
        assert np.array_equal(found * 2**30, np.round(found * 2**30))


def test_paths_are_counted_by_their_lengths_and_drawn():
    results = percolab.sweep("square", measure="path,path_lengths", **ASKED | {"L": [8, 16]})
    small, large = sorted(results.tasks.values(), key=lambda item: item.task.size)
    counts, lengths = small.extra("path_lengths").sum(axis=0), own_lengths()
    edges = quarter_edges(64)
    for k, own in enumerate(lengths):
        assert own.any()
        # Shorter than 64, each length has a bin of its own.
        expected = np.histogram(own[own > 0], np.append(np.unique(edges)[:64], 80))[0]
        assert np.array_equal(counts[k][np.diff(edges) > 0][:64], expected)
    for item in (small, large):
        counts = item.extra("path_lengths")
        assert np.array_equal(counts.sum(axis=2), item.column("spanning_y"))
    figures = StudyFigures(results, lambda: percolab.fit(results))
    _, numbers = figures.draw("path_lengths")
    assert [curve["L"] for curve in numbers["curves"]] == [8, 16]
    for curve in numbers["curves"]:
        widths = np.array(curve["high"]) - curve["low"] + 1
        assert (widths * curve["density"]).sum() == pytest.approx(1)
        # Of a multinomial distribution the error would be this, in the mean over the bins.
        parts, many = widths * curve["density"], sum(curve["count"])
        expected = np.sqrt((parts * (1 - parts) / many).sum())
        found = np.sqrt(((widths * curve["error"]) ** 2).sum())
        assert found == pytest.approx(expected, rel=0.6)
    plain = percolab.sweep("square", **ASKED)
    problem = StudyFigures(plain, lambda: percolab.fit(plain)).problem("path_lengths")
    assert problem.startswith("lengths of shortest paths were not counted: sweep with --measure")


def test_currents_are_counted_by_their_size_and_drawn():
    asked = ASKED | {"L": [8, 16]}
    results = percolab.sweep("square", measure="conductance,currents,backbone", **asked)
    small, _ = sorted(results.tasks.values(), key=lambda item: item.task.size)
    edges, expected, moments = current_edges(), np.zeros((2, CURRENT_BINS)), np.zeros((2, 4))
    for k, flow in own_flows():
        if flow.connected:
            for share in np.abs(flow.currents[flow.backbone]):
                (at,) = np.flatnonzero((share <= edges) & (share > [*edges[1:], -1]))
                expected[k, at] += 1
            moments[k] += flow.largest_current, *map(flow.current_moment, (1, 3, 6))
    counts = small.extra("currents")
    assert np.array_equal(counts.sum(axis=0), expected)
    assert small.extra("current_moments").sum(axis=0) == pytest.approx(moments, abs=40 * 2**-31)
    # All bonds of the backbone are counted, and their squares are the resistance, to a bin's width.
    assert np.array_equal(counts.sum(axis=2), small.extra("backbone")[..., 2])
    centres = 2.0 ** (-np.arange(CURRENT_BINS) / 4)
    resistance = small.extra("conductance")[..., 1].sum(axis=0)
    assert counts.sum(axis=0) @ centres**2 == pytest.approx(resistance, rel=0.05)
    figures = StudyFigures(results, lambda: percolab.fit(results))
    _, numbers = figures.draw("currents")
    assert [curve["L"] for curve in numbers["curves"]] == [8, 16]
    for curve in numbers["curves"]:
        widths = np.log(curve["high"]) - np.log(curve["low"])
        assert (widths * curve["density"]).sum() == pytest.approx(1)
        assert curve["high"][-1] == edges[0] > 1
    curve = numbers["curves"][0]
    drawn = counts.sum(axis=0)[ASKED["p"].index(curve["p"])]
    assert curve["count"] == drawn[-2::-1].tolist()


def test_export_has_means_of_what_flows(tmp_path):
    path = tmp_path / "own.h5"
    results = percolab.sweep("square", measure="bridges,path", **ASKED, out=path)
    answer("export", path, "--out", tmp_path / "means.csv")
    with open(tmp_path / "means.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    (item,) = results.tasks.values()
    bridges = item.extra("bridges")[:, :, 0].sum(axis=0) / 40
    assert [float(row["bridges"]) for row in rows] == pytest.approx(bridges.tolist())
    assert {"path_length", "elastic_sites_error"} <= rows[0].keys()
    told = json.loads(answer("status", path, "--json"))
    assert told["tasks"][0]["measure"] == ["bridges", "path"]


def test_a_torus_has_bridges_and_no_terminals():
    torus = {"boundary": "periodic", **ASKED}
    found = percolab.sweep("square", measure="bridges", **torus)
    (item,) = found.tasks.values()
    assert item.extra("bridges").all()
    with pytest.raises(InputError, match="measure path needs two terminals: give an open axis"):
        percolab.sweep("square", measure="path", **torus)
    with pytest.raises(InputError, match=r"measure backbone needs .* give source and target"):
        percolab.sweep(graph=[(0, 1), (1, 2)], measure="backbone", p=0.5, samples=10)


ENDS = (
    ("open", {"source": "centre", "target": "sides"}),
    slow("open", {"source": "top", "target": "0,4"}),
    # The other one is a side of the last open axis.
    slow("open,periodic", {"source": "centre"}),
    ("periodic", {"source": 2, "target": "center"}),
)


@pytest.mark.parametrize(("boundary", "ends"), ENDS)
@pytest.mark.parametrize("name", ["square", slow("kagome")])
def test_sweeps_and_flow_have_the_same_terminals(name, boundary, ends):
    asked = {"boundary": boundary, **ends}
    words = ("connected", "backbone", "path", "conductance")
    results = percolab.sweep(name, measure=words, **ASKED | {"p": [0.6]}, **asked)
    (item,) = results.tasks.values()
    flows = [percolab.flow(name, 8, 0.6, sample=sample, **asked) for sample in range(40)]
    assert 0 < sum(flow.connected for flow in flows) < 40
    for word in words:
        names = ("connected",) if word == "connected" else MEASUREMENTS[word].reader_class.numbers
        expected = [sum(number_of(flow, each) for flow in flows) for each in names]
        found = item.extra(word).sum(axis=0)[0]
        assert found == pytest.approx(expected, abs=40 * 2**-31 if word == "conductance" else 0)


def test_terminals_are_part_of_a_study_and_of_its_means(tmp_path):
    path, asked = tmp_path / "own.h5", ASKED | {"measure": "path", "L": [4, 8], "p": [0.6]}
    ends = {"source": "centre", "target": "sides"}
    results = percolab.sweep("square", **asked, **ends, out=path)
    stored = percolab.open_results(path)
    assert_same_blocks(stored, results)
    assert stored.study == results.study
    assert stored.study.measure == ("connected", "path")
    assert "source centre, target sides" in answer("status", path)
    of_tasks = {item.label: item.moments["spanning"] for item in read_flow_moments(stored)}
    for key, result in stored.tasks.items():
        assert np.array_equal(of_tasks[key], result.extra("connected")[..., 0])
    plain = percolab.sweep("square", **asked)
    with pytest.raises(InputError, match="has source centre, not "):
        percolab.merge([plain, results])
    others = percolab.sweep("square", **asked, source="centre", target="top")
    assert not others.tasks.keys() & results.tasks.keys()
    (own,) = (each for each in stored.tasks.values() if each.task.size == 8)
    assert own.task.id not in plain.tasks
    # The samples are the same.
    assert own.task.stream_seed in [each.task.stream_seed for each in plain.tasks.values()]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"source": "middle"}, "source 'middle': is no open side; "),
        ({"source": "centre", "boundary": "periodic"}, "measure path needs two terminals"),
        ({"source": "y-", "target": "64"}, "target: there is no site 64"),
        ({"source": "y-", "target": [3, 40]}, "site 3 is in both terminals"),
        ({"source": "y-", "measure": "bridges"}, "source = y-: source and target need"),
        ({"source": "y-", "lattice": "bethe:3", "L": [3]}, "source = y-: source and target"),
        ({"target": "y-", "method": "threshold", "p": None, "measure": ()}, "target: a lattice"),
        ({"target": 0.5}, "target = 0.5, but only integers are allowed"),
    ],
)
def test_terminals_that_are_none_are_refused_in_one_line(asked, message):
    with pytest.raises(InputError, match=message) as error:
        percolab.sweep(**{"lattice": "square", "measure": "path", **ASKED} | asked)
    assert "\n" not in str(error.value)


def test_memory_of_what_flows_is_stated():
    task = {"L": [64], "p": [0.5], "samples": 10}
    plain, own = (
        make_request("square", **task, measure=words).study.tasks[64] for words in ((), "backbone")
    )
    for kind, part, least in (("cpu", 0, 100), ("cuda", 1, 80)):
        more = estimate_memory(own, None, kind)[part] - estimate_memory(plain, None, kind)[part]
        assert more >= 64 * 64 * least
    assert estimate_memory(own, None, "cpu").device == 0
