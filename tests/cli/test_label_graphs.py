"""``percolab label --graph``: clusters of a graph in the numbers of its file."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import label_pairs

import percolab
from percolab.lattices.graph import load_graph

pytestmark = pytest.mark.usefixtures("own_directory")


def labels_in(name: str) -> np.ndarray:
    with h5py.File(name) as file:
        return file["labels"][...]


def random_pairs(hub: bool) -> np.ndarray:
    """Return edges of 300 sites; with a hub its number is the largest, so sites get others."""
    drawn = np.random.default_rng(4).integers(0, 300, (200, 2))
    pairs = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    spokes = [[k, 299] for k in range(0, 290, 3)] if hub else np.empty((0, 2), int)
    return np.vstack([pairs, spokes])


@pytest.mark.parametrize("hub", [False, True])
def test_a_graph_file_is_labeled_in_its_own_numbers(hub):
    pairs = random_pairs(hub)
    np.savetxt("graph.csv", pairs, fmt="%d", delimiter=",")
    assert (load_graph("graph.csv").inner_numbers is not None) == hub
    said = json.loads(
        answer("label", "--graph", "graph.csv", "--source", "0", "--target", "5,299", "--json")
    )
    smallest = label_pairs(*pairs.T, 300)
    labels, sizes = labels_in("labels.h5"), np.unique(smallest, return_counts=True)[1]
    np.testing.assert_array_equal(labels, smallest)
    assert said["clusters"] == sizes.size
    assert said["largest"] == sizes.max()
    spans = smallest[0] in (smallest[5], smallest[299])
    assert said["spanning"] == ["source-target"] * spans


def test_labels_know_the_names_of_their_sites():
    # A hub, so that sites have other numbers inside.
    pairs = [("hub", f"{n}th") for n in range(0, 60, 2)] + [("1st", "3rd"), ("a", "hub")]
    labels = percolab.label(graph=pairs)
    hub = {name for pair in pairs for name in pair if "hub" in pair}
    at = dict(zip(labels.site_names, labels.tolist(), strict=True))
    assert {name for name in at if at[name] == at["hub"]} == hub
    assert at["1st"] == at["3rd"] != at["a"]
    assert percolab.label(graph=[(0, 1)]).site_names is None
    assert percolab.label("square", 4, p=0.5).site_names is None


def test_a_sample_on_a_graph_joins_no_more_than_the_graph():
    np.savetxt("graph.csv", random_pairs(False), fmt="%d", delimiter=",")
    whole = json.loads(answer("label", "--graph", "graph.csv", "--json"))
    some = json.loads(
        answer("label", "--graph", "graph.csv", "-p", "0.5", "--model", "site", "--json")
    )
    assert some["largest"] < whole["largest"]
    assert 100 < some["sites"] < 200
    assert (labels_in("labels.h5") < 0).sum() == 300 - some["sites"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lattice", "square"), "--lattice: a graph has its own; leave it out"),
        (("--seed", "2"), "--seed: without -p all bonds are open; leave it out"),
        (("--source", "0"), "source is given without target"),
    ],
)
def test_what_a_graph_does_not_have_is_refused(options, told):
    Path("graph.csv").write_text("0,1\n1,2\n")
    assert told in refusal("label", "--graph", "graph.csv", *options)
    assert not Path("labels.h5").exists()


def test_labels_of_a_graph_have_a_status_and_a_report_and_no_picture():
    Path("g.csv").write_text("Ada,Bob\nBob,Cy\nDan,Eve\n")
    for name in ("g.h5", "g.npy"):
        told = answer("label", "--graph", "g.csv", "--out", name)
        shown = answer("status", name)
        assert shown in (told, "\n".join(told.splitlines()[:2]) + "\n")
        assert ("Ada, Bob, Cy" in shown) == (name == "g.h5")
        answer("report", name)
        assert "2 clusters of 5 sites" in Path("g.html").read_text()
        assert answer("export", name) == "label,sites\n0,3\n3,2\n"
    refused = (
        "g.h5: labels of a graph, whose sites have no places in the file; percolab show --graph "
        "finds places for those of a sample"
    )
    assert refusal("plot", "g.h5") == refusal("show", "g.h5") == refused
    assert refusal("plot", "g.npy") == "g.npy: name the lattice with percolab show --lattice"
