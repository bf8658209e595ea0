"""What flows as columns of sweeps: stored, continued, merged and exported like the others."""

import csv
import json

import numpy as np
import pytest
from cli_support import answer
from helpers import assert_same_blocks, slow

import percolab
from percolab.configurations.configuration import random_configuration
from percolab.errors import InputError
from percolab.figures.kinds import StudyFigures
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, unpack_open
from percolab.kinds.memory import estimate_memory
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import FLOW_WORDS
from percolab.measure.measurements import MEASUREMENTS
from percolab.measure.tallies import quarter_edges
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


@pytest.mark.parametrize("model", ["bond", slow("site")])
def test_columns_have_the_sums_over_the_samples(model):
    results = percolab.sweep("square", measure=",".join(FLOW_WORDS), model=model, **ASKED)
    (item,) = results.tasks.values()
    for word in (word for word in FLOW_WORDS if word != "path_lengths"):
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
    assert problem.startswith("lengths of paths were not counted: sweep with --measure")


def test_a_study_continues_and_merges_to_the_blocks_of_one_run(tmp_path):
    words = {"measure": FLOW_WORDS, **ASKED, "samples": 80}
    whole = percolab.sweep("square", **words)
    path = tmp_path / "own.h5"
    percolab.sweep("square", **words | {"samples": 40}, out=path)
    assert_same_blocks(percolab.sweep("square", **words, out=path, workers=2), whole)
    for part in (1, 2):
        percolab.sweep("square", **words, part=f"{part}/2", out=tmp_path / f"{part}.h5")
    merged = percolab.merge([tmp_path / "1.h5", tmp_path / "2.h5"], out=tmp_path / "both.h5")
    assert_same_blocks(merged, whole)
    assert_same_blocks(percolab.open_results(path), whole)


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
    with pytest.raises(InputError, match="measure path: between two terminals; give an open axis"):
        percolab.sweep("square", measure="path", **torus)
    with pytest.raises(InputError, match=r"measure backbone: .* give source and target"):
        percolab.sweep(graph=[(0, 1), (1, 2)], measure="backbone", p=0.5, samples=10)


def test_flow_along_one_layer_is_refused_in_one_line():
    with pytest.raises(InputError, match="site 0 is in both terminals"):
        percolab.sweep("square", measure="backbone", **ASKED | {"L": [1]})


def test_memory_of_what_flows_is_stated():
    task = {"L": [64], "p": [0.5], "samples": 10}
    plain, own = (
        make_request("square", **task, measure=words).study.task(64) for words in ((), "backbone")
    )
    for kind, part, least in (("cpu", 0, 100), ("cuda", 1, 80)):
        more = estimate_memory(own, None, kind)[part] - estimate_memory(plain, None, kind)[part]
        assert more >= 64 * 64 * least
    assert estimate_memory(own, None, "cpu").device == 0
