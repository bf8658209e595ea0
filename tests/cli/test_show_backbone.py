"""percolab show --backbone: every open bond once, in the colour of what flows in it."""

import json

import numpy as np
import pytest
from cli_support import answer, refusal
from matplotlib.collections import LineCollection

import percolab
from percolab.configurations.picture import draw_flow_picture
from percolab.lattices.lattice import load_lattice

SAMPLE = ("--lattice", "square", "-L", 24, "-p", 0.52, "--seed", 2)

pytestmark = pytest.mark.usefixtures("own_directory")


def test_open_bonds_are_drawn_once_by_what_flows_in_them():
    figure, numbers = draw_flow_picture(load_lattice("kagome"), 12, p=0.65, seed=4)
    found = percolab.flow("kagome", 12, 0.65, seed=4)
    places = load_lattice("kagome").positions(load_lattice("kagome").shape(12))
    (axes,) = figure.axes
    drawn = [each for each in axes.collections if isinstance(each, LineCollection)]
    other, dangling, backbone, red = (
        {tuple(np.ravel(line).round(6)) for line in each.get_segments()} for each in drawn
    )
    ends = {
        tuple(np.ravel(places[pair]).round(6)): n for n, pair in enumerate(found.bonds.tolist())
    }
    assert {ends[line] for line in red} == set(np.flatnonzero(found.red))
    assert {ends[line] for line in red | backbone} == set(np.flatnonzero(found.backbone))
    assert {ends[line] for line in dangling} == set(np.flatnonzero(found.dangling))
    assert len(other) + len(dangling) + len(backbone) + len(red) == len(found.bonds)
    assert found.connected
    assert len({tuple(each.get_colors()[0]) for each in drawn}) == 4
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert f"backbone: {found.num_backbone - found.num_red} bonds" in texts
    assert numbers["backbone_bonds"] == found.num_backbone


def test_dangling_ends_are_the_rest_of_the_clusters_that_span():
    """By the labels of the clusters, which know nothing of flows."""
    asked = {"seed": 2, "boundary": ("periodic", "open")}
    found = percolab.flow("square", 24, 0.52, **asked)
    labels = percolab.label("square", 24, 0.52, **asked)
    spanning = np.intersect1d(labels[0], labels[-1])
    of_spanning = np.isin(labels.ravel()[found.bonds[:, 0]], spanning)
    assert found.connected
    assert np.array_equal(found.dangling | found.backbone, of_spanning)
    assert not (found.dangling & found.backbone).any()
    assert found.dangling.any()


def test_the_command_writes_the_figure_and_its_numbers():
    answer("show", "--backbone", *SAMPLE, "--out", "one.png")
    told = json.loads(answer("show", "--backbone", *SAMPLE, "--json"))
    assert told["figure"] == "clusters.png"
    found = percolab.flow("square", 24, 0.52, seed=2)
    assert {key: told[key] for key in found.summary()} == found.summary()
    apart = json.loads(answer("show", "--backbone", *SAMPLE[:4], "-p", 0.2, "--json"))
    assert (apart["connected"], apart["bonds_drawn"]["backbone"]) == (False, [])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((*SAMPLE, "--boundary", "periodic"), "no axis is open (--boundary)"),
        (("--lattice", "cubic", "-L", 8, "-p", 0.3), "only backbones in two dimensions are drawn"),
        (("--lattice", "square", "-L", 512, "-p", 0.3), "backbones are drawn of at most"),
        ((*SAMPLE, "--tree"), "--tree: what flows is drawn"),
        (("own.npz",), "labels: what flows is drawn"),
        ((*SAMPLE, "--model", "ising"), "model ising"),
        (("--lattice", "bethe:3", "-L", 8, "-p", 0.3), "is drawn between two sides of a lattice"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, line):
    assert line in refusal("show", "--backbone", *options)
