"""percolab show: drawn are the labels, where the lattice or a Bethe lattice has its sites."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, put_text, refusal, run, sealed_again, stored, text_of
from helpers import FLAT, TEXTS, slow
from matplotlib.collections import EllipseCollection, LineCollection
from show_support import colour_of_labels, drawn, hexes, one, whole_cells

import percolab
from percolab.configurations import Clusters, random_configuration, site_configuration
from percolab.configurations.picture import draw_flow_picture
from percolab.figures import colours
from percolab.figures.colours import NO_SITE, choose_colours
from percolab.figures.configuration import MOST_WITH_BONDS
from percolab.figures.networks import bethe_places, plot_bethe
from percolab.lattices.bethe import BetheLattice, bethe_topology, site_numbers
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import ROW_WIDTH, SPANNING, row_from_labels

SAMPLE = ("--lattice", "honeycomb", "-L", 12, "-p", 0.65, "--seed", 1)
BACKBONE = "--backbone --lattice square -L 24 --seed 2 -p 0.52"


# Bonds


@pytest.mark.parametrize("name", FLAT)
def test_sites_and_open_bonds_are_drawn_in_the_colour_of_their_label(name):
    lattice = load_lattice(name)
    size = whole_cells(lattice, 16)
    p = 0.9 * lattice.threshold().value
    configuration = random_configuration(lattice, size, p, seed=6)
    clusters, figure, numbers = drawn(configuration)
    (axes,) = figure.axes
    assert axes.get_aspect() == 1.0
    places = lattice.positions(configuration.topology.shape)
    discs, lines = one(axes, EllipseCollection), one(axes, LineCollection)
    sites = np.flatnonzero(clusters.labels >= 0)
    np.testing.assert_array_equal(discs.get_offsets(), places[sites])
    colours = colour_of_labels(sites, hexes(discs.get_facecolors()), clusters.labels)
    klass, owner, other = configuration.topology.bonds().T
    opened = unpack_bits(configuration.opened, configuration.topology.num_points)[klass, owner]
    expected = {
        (*places[u].round(6), *places[v].round(6)): colours[clusters.labels[u]]
        for u, v in zip(owner[opened].tolist(), other[opened].tolist(), strict=True)
    }
    found = {
        tuple(np.ravel(line).round(6)): colour
        for line, colour in zip(lines.get_segments(), hexes(lines.get_colors()), strict=True)
    }
    assert found == expected
    assert len(set(colours.values())) > 3
    assert numbers["drawn"] == "bonds"


def test_bond_across_a_periodic_boundary_is_two_halves():
    lattice = load_lattice("square")
    configuration = random_configuration(lattice, 4, 1.0, boundary="periodic")
    _, figure, _ = drawn(configuration)
    lines = np.array(one(figure.axes[0], LineCollection).get_segments())
    lengths = np.linalg.norm(lines[:, 0] - lines[:, 1], axis=1)
    assert sorted(np.unique(lengths, return_counts=True)[1].tolist()) == [16, 24]
    halves = lines[lengths == 0.5]
    outside = np.sort(halves[:, 1].ravel())
    np.testing.assert_array_equal(outside[:8], -0.5)
    np.testing.assert_array_equal(outside[-8:], 3.5)


def test_bonds_leave_a_sheared_or_shifted_lattice_by_half_their_length():
    for name in ("kagome", "three-twelve", "honeycomb"):
        lattice = load_lattice(name)
        size = whole_cells(lattice, 12)
        configuration = random_configuration(lattice, size, 1.0, boundary="periodic")
        _, figure, _ = drawn(configuration)
        lines = np.array(one(figure.axes[0], LineCollection).get_segments())
        lengths = np.linalg.norm(lines[:, 0] - lines[:, 1], axis=1).round(6)
        assert set(lengths) == {0.5, 1.0}
        assert len(lines) == configuration.topology.num_bonds + (lengths == 0.5).sum() / 2


# Cells and layers


@pytest.mark.parametrize("name", ["square", "triangular", "kagome"])
def test_large_sample_is_an_image_of_its_labels_in_real_space(name):
    lattice = load_lattice(name)
    configuration = random_configuration(lattice, 80, 0.5, seed=3)
    assert configuration.topology.num_points > MOST_WITH_BONDS
    clusters, figure, numbers = drawn(configuration)
    (axes,) = figure.axes
    (image,) = axes.images
    pixels = np.asarray(image.get_array()).reshape(-1, 3) / 255
    colours = colour_of_labels(range(6400), hexes(pixels), clusters.labels)
    assert colours.get(-1, NO_SITE) == NO_SITE
    assert numbers["drawn"] == "cells"
    figure.canvas.draw()
    to_data = image.get_transform() - axes.transData
    points = [0, 1, 80, 6399]
    seen = to_data.transform(np.column_stack([np.array(points) % 80, np.array(points) // 80]))
    np.testing.assert_allclose(seen, lattice.positions((80, 80))[points], atol=1e-9)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert (seen > [left, bottom]).all()
    assert (seen < [right, top]).all()


@pytest.mark.parametrize("name", ["cubic", "fcc", "diamond", "stacked-triangular"])
def test_lattice_in_space_is_drawn_as_layers_of_its_labels(name):
    lattice = load_lattice(name)
    configuration = random_configuration(lattice, 10, 0.9 * lattice.threshold().value, seed=3)
    clusters, figure, numbers = drawn(configuration)
    assert numbers["layers"] == [0, 3, 6, 9]
    assert [axes.get_title() for axes in figure.axes] == [f"$z = {z}$" for z in (0, 3, 6, 9)]
    labels = clusters.labels.reshape(10, 100)
    colours = {}
    for axes, layer in zip(figure.axes, numbers["layers"], strict=True):
        pixels = np.asarray(axes.images[0].get_array()).reshape(-1, 3) / 255
        for label, colour in zip(labels[layer].tolist(), hexes(pixels), strict=True):
            assert colours.setdefault(label, colour) == colour


def test_few_layers_are_all_drawn():
    lattice = load_lattice("cubic")
    assert drawn(random_configuration(lattice, 3, 0.2))[2]["layers"] == [0, 1, 2]
    assert len(drawn(random_configuration(lattice, 1, 0.2))[1].axes) == 1


# The command


def test_numbers_are_those_of_the_sample():
    told = json.loads(answer("show", *SAMPLE, "--json"))
    labels = percolab.label("honeycomb", 12, 0.65, seed=1).ravel()
    topology = load_lattice("honeycomb").topology((12, 12))
    row = np.zeros(ROW_WIDTH, np.int64)
    scratch = np.empty(144, np.int32), np.empty(144, np.uint32)
    row_from_labels(labels, topology.occupied, *topology.end_flags(), *scratch, row)
    keys = ("clusters", "largest", "second_largest")
    assert [told[key] for key in keys] == row[:3].tolist()
    assert told["spanning"] == [name for bit, name in enumerate("xy") if row[SPANNING] >> bit & 1]
    assert told["figure"] == "clusters.png"
    assert told["title"] == "honeycomb (brick wall), $L = 12$, $p = 0.65$, seed 1"
    assert Path("clusters.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "suffix"),
    [
        (SAMPLE, "png"),
        slow(SAMPLE, "svg"),
        slow(SAMPLE, "pdf"),
        slow(("--lattice", "bethe:3", "-L", 3, "-p", 0.5), "svg"),
        slow(("--lattice", "cubic", "-L", 5, "-p", 0.3), "png"),
    ],
    ids=["bonds-png", "bonds-svg", "bonds-pdf", "bethe", "layers"],
)
def test_equal_figures_are_equal_files(arguments, suffix):
    for name in ("one", "other"):
        answer("show", *arguments, "--out", f"{name}.{suffix}")
    assert Path(f"one.{suffix}").read_bytes() == Path(f"other.{suffix}").read_bytes()


def test_title_names_sample_and_periodic_axes():
    told = json.loads(answer("show", "--lattice", "square", "-L", 4, "-p", 0.5, "--sample", 7,
                             "--boundary", "periodic,open", "--json"))  # fmt: skip
    assert told["title"] == "square, $L = 4$, $p = 0.5$, seed 1, sample 7, periodic along x"
    assert told["open_axes"] == ["y"]


@pytest.mark.parametrize("serial", [(), slow(("--serial",))])
def test_labels_of_a_file_are_drawn_as_the_sample_is(serial):
    answer("label", *SAMPLE, *serial)
    of_sample = json.loads(answer("show", *SAMPLE, "--json", "--out", "sample.png"))
    of_file = json.loads(answer("show", "labels.h5", "--json"))
    assert of_file == {**of_sample, "figure": "clusters.png", "drawn": "cells"}
    answer("label", *SAMPLE, *serial, "--out", "labels.npy")
    of_array = json.loads(answer("show", "labels.npy", "--lattice", "honeycomb", "--json"))
    assert {**of_array, "title": ""} == {**of_file, "title": ""}
    assert of_array["title"] == "labels.npy"


def test_image_stands_upright():
    np.save("image.npy", np.array([[1, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0]]))
    clusters = site_configuration("image.npy").label()
    for options in ({"opened": None}, {}):
        _, figure, _ = drawn(site_configuration("image.npy"), first_row_on_top=True, **options)
        axes = figure.axes[0]
        assert axes.yaxis_inverted()
        upper = axes.transData.transform([[0, 0], [0, 3]])
        assert upper[0, 1] > upper[1, 1]
    assert clusters.labels[:3].tolist() == [0, 0, 0]
    answer("label", "image.npy")
    told = json.loads(answer("show", "labels.h5", "--json"))
    assert (told["title"], told["drawn"]) == ("image.npy", "bonds")


def test_dollar_sign_in_a_lattice_begins_no_mathematics():
    text = TEXTS["kagome"].replace("dimension", 'title = "costs $3^"\ndimension', 1)
    Path("mine.toml").write_text(text)
    answer("show", "--lattice", "mine.toml", "-L", 4, "-p", 0.5)


def prepared():
    Path("flat.toml").write_text(TEXTS["kagome"].partition("[drawing]")[0])
    np.save("good.npy", np.zeros((3, 3), np.int32))
    np.save("low.npy", np.full((3, 3), -2))
    np.save("real.npy", np.zeros((3, 3)))
    np.save("row.npy", np.zeros(3, int))
    np.save("four.npy", np.zeros((2, 2, 2, 2), int))
    stored(Path("results.h5"))
    run("label", *SAMPLE, "--out", "labels.h5")
    whole = Path("labels.h5").read_bytes()
    Path("cut.h5").write_bytes(whole[: len(whole) // 2])
    changes = {
        "linked.h5": lambda file: file.__setitem__("more", h5py.SoftLink("/labels")),
        "later.h5": lambda file: file.attrs.__setitem__("schema_version", 9),
        "bare.h5": lambda file: file.attrs.__delitem__("record"),
        "odd.h5": lambda file: file.attrs.__setitem__("record", np.bytes_(b"[]")),
        "other.h5": lambda file: put_text(file, "lattice", "name = 3"),
        "empty.h5": lambda file: file.__delitem__("labels"),
    }
    for name, change in changes.items():
        Path(name).write_bytes(whole)
        with h5py.File(name, "r+") as file:
            change(file)
        if name != "linked.h5":
            sealed_again(Path(name))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--lattice hypercubic-4d -L 3 -p 0.2", "hypercubic-4d has dimension 4; only 2 and 3 can"),
        ("--lattice flat.toml -L 4 -p 0.5", "kagome: to draw it, [drawing] needs independent"),
        ("--lattice square -L 5000 -p 0.5", "25000000 grid points, but at most 16777216 can be"),
        ("--lattice square -p 0.5", "a picture of a sample needs -L"),
        ("--lattice square -L 4,8 -p 0.5", "L = 4,8, but it must be one size"),
        ("--lattice kagome -L 5 -p 0.5 --boundary periodic", "L = 5, but along the periodic axis"),
        ("", "a picture of a sample needs --lattice and -L and -p"),
        ("--lattice bethe:3 -L 10 -p 0.5", "10 shells: 3070 sites, but at most 1600 are drawn"),
        ("--lattice bethe:3 -L 99 -p 0.5", "99 shells with coordination number 3: more than"),
        ("good.npy -p 0.5", "-p: labels have none (a lattice goes with --lattice); leave"),
        ("good.npy --lattice cubic", "good.npy: 2 axes, but cubic has 3"),
        ("nowhere.npy", "nowhere.npy: no such file"),
        ("nowhere.h5", "nowhere.h5: no such file"),
        ("image.png", "image.png: labels are .npy or .h5 files, as percolab label writes them"),
        ("low.npy", "low.npy: label -2, but labels are at least -1 (no site)"),
        ("real.npy", "real.npy: holds float64, but labels are integers"),
        ("row.npy", "row.npy: give the lattice of these labels by percolab show --lattice"),
        ("four.npy --lattice hypercubic-4d", "hypercubic-4d has dimension 4; only 2 and 3"),
        ("results.h5", "results.h5: is an HDF5 file, but not one of labels; percolab plot, fit"),
        ("labels.h5 --lattice square", "labels.h5: the file has its lattice and boundary; leave"),
        ("cut.h5", "cut.h5: is not a readable HDF5 file"),
        ("linked.h5", "linked.h5: is damaged: /more is a soft link, and links are not followed"),
        ("later.h5", "later.h5: has schema version 9; this percolab reads version 2"),
        ("bare.h5", "bare.h5: is damaged: "),
        ("odd.h5", "odd.h5: is damaged: "),
        ("other.h5", "other.h5: lattice: "),
        ("empty.h5", "empty.h5: is damaged: there are no labels in it"),
        (f"{BACKBONE} --boundary periodic", "a backbone needs two sides, but no axis is op"),
        ("--backbone --lattice cubic -L 8 -p 0.3", "cubic: only backbones in two dimensions are"),
        ("--backbone --lattice square -L 512 -p 0.3", "262144 grid points, but backbones are dra"),
        (f"{BACKBONE} --tree", "--tree: a backbone is drawn for a sample of percolation; leave it"),
        ("--backbone own.npz", "labels: a backbone is drawn for a sample of percolation; leave it"),
        (f"{BACKBONE} --model ising", "model ising: a backbone is drawn for percolation, not for"),
        ("--backbone --lattice bethe:3 -L 8 -p 0.3", "bethe:3: a backbone is drawn only between"),
        ("good.npy --out figure.gif", "figure.gif: cannot write a figure as '.gif'; use .png"),
        ("good.npy --out no/figure.png", "no/figure.png: the directory no does not exist"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_in_one_line(arguments, told):
    prepared()
    before = sorted(Path().iterdir())
    assert refusal("show", *arguments.split()).startswith(told)
    assert sorted(Path().iterdir()) == before


def test_damage_anywhere_in_a_file_of_labels_is_told_in_one_line():
    answer("label", *SAMPLE)
    whole = Path("labels.h5").read_bytes()
    random = np.random.default_rng(4)
    for _ in range(30):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= int(random.integers(1, 256))
        Path("labels.h5").write_bytes(damaged)
        result = run("show", "labels.h5", "--out", "figure.svg")
        assert result.exit_code in (0, 2), result.exception
        assert result.exit_code == 0 or len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"p": "0.5"}, "its record has p = '0.5'"),
        ({"p": True}, "its record has p = True"),
        ({"seed": [1]}, "its record has seed = [1]"),
        ({"sample": "first"}, "its record has sample = 'first'"),
        ({"kind": 1}, "its record has kind = 1"),
        ({"input": None}, "its record has input = None"),
        ({"model": 3}, "its record has model = 3"),
        ({"model": "sites"}, "its record has unknown model 'sites'"),
        ({"L": 5}, "(46,) labels, but it says that they are those of bethe:3 with 5 shells"),
        ({"L": "4"}, "(46,) labels, but it says that they are those of bethe:3 with 4 shells"),
        ({"L": None}, "(46,) labels, but"),
    ],
)
def test_a_record_that_was_edited_is_refused_in_one_line(change, told):
    answer("label", *(("--lattice", "bethe:3", "-L", 4, "-p", 0.5) if "L" in change else SAMPLE))
    with h5py.File("labels.h5", "r+") as file:
        put_text(file, "record", json.dumps(json.loads(text_of(file, "record")) | change))
    sealed_again(Path("labels.h5"))
    assert refusal("show", "labels.h5").startswith(f"labels.h5: is damaged: {told}")


def test_clusters_of_vacant_sites_are_none():
    topology = load_lattice("square").topology((2, 2))
    clusters = Clusters(np.full(4, -1, np.int32), topology)
    assert choose_colours(clusters).of_sites.tolist() == [0, 0, 0, 0]
    assert clusters.summary()["clusters"] == 0


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
        "label": 0, "size": 22, "spanning": ["source-target"], "colour": colours.SPANNING[0],
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
    told = json.loads(answer("show", *BACKBONE.split(), "--json"))
    assert told["figure"] == "clusters.png"
    assert Path("clusters.png").exists()
    found = percolab.flow("square", 24, 0.52, seed=2)
    assert {key: told[key] for key in found.summary()} == found.summary()
    apart = json.loads(answer("show", *BACKBONE.split()[:-1], 0.2, "--json"))
    assert (apart["connected"], apart["bonds_drawn"]["backbone"]) == (False, [])
