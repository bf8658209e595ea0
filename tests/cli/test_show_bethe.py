"""Bethe lattices as figures: shell by shell, in the colours of their labels."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, put_text, refusal, sealed_again
from matplotlib.collections import EllipseCollection, LineCollection
from show_support import colour_of_labels, hexes, one

import percolab
from percolab.configurations import random_configuration
from percolab.figures.colours import SPANNING
from percolab.figures.networks import bethe_places, plot_bethe
from percolab.lattices.bethe import BetheLattice, bethe_topology, site_numbers

pytestmark = pytest.mark.usefixtures("own_directory")


@pytest.mark.parametrize("numbering", ["standard", "random"])
@pytest.mark.parametrize(("shells", "z"), [(5, 3), (3, 4)])
def test_bethe_lattice_is_drawn_radially_in_the_colours_of_its_labels(shells, z, numbering):
    lattice = BetheLattice(z, numbering)
    configuration = random_configuration(lattice, shells, 0.6, seed=3)
    labels = percolab.label(configuration.topology, opened=configuration.opened)
    figure, numbers = plot_bethe(configuration.label(), lattice, shells)
    (axes,) = figure.axes
    places, sites = bethe_places(shells, z), site_numbers(labels.size, numbering)
    discs = one(axes, EllipseCollection)
    np.testing.assert_array_equal(discs.get_offsets(), places)
    assert [text.get_text() for text in axes.texts] == list(map(str, sites))
    colours = colour_of_labels(sites, hexes(discs.get_facecolors()), labels)
    closed, opened = (item for item in axes.collections if isinstance(item, LineCollection))
    topology = bethe_topology(shells, coordination_number=z, numbering=numbering)
    where = np.argsort(sites)
    expected = {True: {}, False: {}}
    for _, u, v in topology.bonds().tolist():
        inner, outer = sorted([u, v], key=lambda site: where[site])
        ends = tuple(np.ravel(places[[where[inner], where[outer]]]).round(6))
        expected[bool(labels[u] == labels[v])][ends] = colours[int(labels[u])]
    found = {
        tuple(np.ravel(line).round(6)): colour
        for line, colour in zip(opened.get_segments(), hexes(opened.get_colors()), strict=True)
    }
    assert found == expected[True]
    assert {tuple(np.ravel(line).round(6)) for line in closed.get_segments()} == set(
        expected[False]
    )
    assert numbers["clusters"] == np.unique(labels).size
    assert numbers["site_numbers"] == sites.tolist()
    assert numbers["site_labels"] == labels[sites].tolist()


def test_shells_stand_at_equal_distances_and_equal_angles():
    places = bethe_places(4, 3)
    radii = np.linalg.norm(places, axis=1)
    assert radii.round(9).tolist() == [0] + 3 * [1] + 6 * [2] + 12 * [3] + 24 * [4]
    angles = np.sort(np.arctan2(*places[-24:].T))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 24)
    np.testing.assert_allclose(places[1], [0, 1], atol=1e-12)


def test_large_bethe_lattice_has_no_numbers_in_it():
    clusters = random_configuration(BetheLattice(), 8, 0.5).label()
    figure, _ = plot_bethe(clusters, BetheLattice(), 8)
    assert not list(figure.axes[0].texts)


def test_bethe_cluster_from_the_centre_outwards_is_named():
    told = json.loads(answer("show", "--lattice", "bethe:3", "-L", 3, "-p", 1.0, "--json"))
    assert told["spanning"] == ["source-target"]
    assert told["prominent"][0] == {
        "label": 0, "size": 22, "spanning": ["source-target"], "colour": SPANNING[0],
    }  # fmt: skip
    clusters = random_configuration(BetheLattice(), 3, 1.0).label()
    figure, _ = plot_bethe(clusters, BetheLattice(), 3)
    (text,) = figure.legends[0].get_texts()
    assert (
        text.get_text() == "largest cluster, 22 of 22 sites, from the centre to the outermost shell"
    )


@pytest.mark.slow
def test_labels_of_a_bethe_lattice_are_drawn_as_the_sample_is():
    sample = ("-p", 0.75, "--seed", 5)
    answer("label", "--lattice", "bethe:3:random", "-L", 4, *sample)
    told = []
    for given in (("--lattice", "bethe:3:random", "-L", 4, *sample), ("labels.h5",)):
        told.append((answer("show", *given, "--json"), Path("clusters.png").read_bytes()))
    assert told[0] == told[1]
    numbers = json.loads(told[0][0])
    assert numbers["title"] == "Bethe lattice, $z = 3$, random numbering, $p = 0.75$, seed 5"
    labels = percolab.label("bethe:3:random", 4, 0.75, seed=5)
    assert numbers["site_labels"] == labels[numbers["site_numbers"]].tolist()


def test_labels_say_which_bethe_lattice_they_are_on():
    answer("label", "--lattice", "bethe:3", "-L", 4, "-p", 0.5)
    with h5py.File("labels.h5", "r+") as file:
        put_text(file, "lattice", "bethe:3:randm")
    sealed_again(Path("labels.h5"))
    assert refusal("show", "labels.h5").startswith("labels.h5: is damaged: unknown numbering")
    with h5py.File("labels.h5", "r+") as file:
        put_text(file, "lattice", "bethe:3")
        file["labels"][7] = -2
    sealed_again(Path("labels.h5"))
    assert refusal("show", "labels.h5") == (
        "labels.h5: label -2, but labels are at least -1 (no site)"
    )
