"""Segmented images: phases, neighbours, stacks of slices, tables; by SciPy's labels."""

import hashlib
import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal, smallest_sites, stored
from helpers import slow
from PIL import Image
from scipy import ndimage

import percolab
from percolab.configurations import read_labels
from percolab.configurations.phases import connectivity_lattice, count_faces
from percolab.configurations.picture import draw_stored_labels

#: Shapes of images: no cubes, and as thin as a layer, a line and a point.
SHAPES = [(6, 7, 9), (1, 6, 33), (2, 1, 7), (1, 1, 1), (3, 1, 1), (9, 11), (1, 34), (2, 2)]


def scipy_labels(image, values, connectivity):
    """Return the labels of the sites with these values, 0 elsewhere."""
    steps = {4: 1, 8: 2, 6: 1, 18: 2, 26: 3}[connectivity]
    structure = ndimage.generate_binary_structure(image.ndim, steps)
    return ndimage.label(np.isin(image, values), structure)[0]


def joined_over(labels, axes, steps):
    """Return labels, 0 for no site, in which neighbours across periodic array axes are one cluster.

    Neighbours are at most one step away along each axis, along ``steps`` axes at most.
    """
    parents = list(range(labels.max() + 1))

    def root(one):
        while parents[one] != one:
            one = parents[one]
        return one

    for site in np.argwhere(labels > 0).tolist():
        for step in product((-1, 0, 1), repeat=labels.ndim):
            other = [one + by for one, by in zip(site, step)]
            outside = [a for a, n in enumerate(labels.shape) if not 0 <= other[a] < n]
            if sum(map(abs, step)) > steps or not set(outside) <= set(axes):
                continue
            there = labels[tuple(one % n for one, n in zip(other, labels.shape))]
            if there:
                parents[root(there)] = root(int(labels[tuple(site)]))
    return np.array([root(one) for one in range(len(parents))])[labels]


@pytest.mark.parametrize("connectivity", [4, 8, 6, slow(18), slow(26)])
def test_neighbours_of_pixels_and_voxels_are_those_of_scipy(connectivity):
    random = np.random.default_rng(connectivity)
    for shape in SHAPES:
        if len(shape) != (2 if connectivity < 6 or connectivity == 8 else 3):
            continue
        for share in (0.2, 0.4):
            mask = random.random(shape) < share
            found = percolab.label(mask, connectivity=connectivity)
            expected = scipy_labels(mask, [1], connectivity)
            np.testing.assert_array_equal(found, smallest_sites(expected))


@pytest.mark.parametrize("connectivity", [8, 6, slow(18), slow(26)])
@pytest.mark.parametrize("periodic", ["x", slow("y"), "xyz"])
def test_periodic_axes_join_opposite_sides_of_any_shape(connectivity, periodic):
    random = np.random.default_rng(5)
    dimension = 2 if connectivity == 8 else 3
    for shape in SHAPES:
        if len(shape) != dimension:
            continue
        names = "xyz"[:dimension]
        boundary = ["periodic" if name in periodic else "open" for name in names]
        axes = [dimension - 1 - "xyz".index(name) for name in periodic if name in names]
        mask = random.random(shape) < 0.3
        found = percolab.label(mask, connectivity=connectivity, boundary=boundary)
        steps = {8: 2, 6: 1, 18: 2, 26: 3}[connectivity]
        one_by_one = joined_over(scipy_labels(mask, [1], connectivity), axes, steps)
        np.testing.assert_array_equal(found, smallest_sites(one_by_one))


def test_lattices_of_18_and_26_neighbours_have_them_at_every_distance():
    for connectivity, lengths in ((18, {1: 3, 2: 6}), (26, {1: 3, 2: 6, 3: 4})):
        lattice = connectivity_lattice(connectivity, 3)
        found = [sum(step**2 for step in bond.offset) for bond in lattice.bonds]
        assert {length: found.count(length) for length in set(found)} == lengths
        assert lattice.coordination_number == connectivity


def segmented(shape=(7, 9, 11), seed=1, values=(0, 1, 2, 5)):
    return np.random.default_rng(seed).choice(np.array(values, np.uint8), shape)


@pytest.mark.parametrize(
    ("phase", "sets"),
    [
        (2, [[2]]),
        ("2", [[2]]),
        ("0,5", [[0], [5]]),
        ([1, (2, 5)], [[1], [2, 5]]),
        ("1,2+5", [[1], [2, 5]]),
        ("all", [[0], [1], [2], [5]]),
        ("1,7", [[1], [7]]),
    ],
)
def test_every_phase_has_the_labels_and_sums_that_it_has_alone(phase, sets):
    image = segmented()
    found = percolab.label(image, phase=phase, connectivity=18)
    expected = np.full(image.shape, -1, np.int32)
    assert [each.name for each in found.phases] == ["+".join(map(str, each)) for each in sets]
    for values, row in zip(sets, found.phases, strict=True):
        here = np.isin(image, values)
        alone = smallest_sites(scipy_labels(image, values, 18))
        expected[here] = alone[here]
        sizes = np.unique(alone[here], return_counts=True)
        assert (row.sites, row.clusters) == (here.sum(), sizes[0].size)
        assert row.share == here.sum() / here.size
        assert row.largest == max(sizes[1].tolist(), default=0)
        for axis, name in enumerate("zyx"):
            layers = np.moveaxis(alone, axis, 0)
            both = set(layers[0].ravel()) & set(layers[-1].ravel()) - {-1}
            crossing = sum(count for label, count in zip(*sizes) if label in both)
            assert row.spanning[name] == crossing / max(here.sum(), 1)
        faces = sum(np.count_nonzero(np.diff(here, axis=axis)) for axis in range(3))
        assert row.surface == faces
    np.testing.assert_array_equal(found, expected)


def test_faces_across_a_periodic_axis_count():
    # One voxel: six faces, of which those on the sides of the image count where they are periodic.
    numbers = np.zeros((1, 2, 3), np.uint8)
    numbers[0, 0, 0] = 1
    assert count_faces(numbers, (0, 1, 2), 2).tolist() == [2, 2]
    assert count_faces(numbers, (1, 2), 2).tolist() == [3, 3]
    assert count_faces(numbers, (2,), 2).tolist() == [4, 4]
    # Along the third axis its neighbour on both sides is itself.
    assert count_faces(numbers, (), 2).tolist() == [4, 4]


def test_share_that_wraps_is_that_of_clusters_that_close_around_the_axis():
    image = np.zeros((5, 6), np.uint8)
    image[1], image[3, :4] = 3, 3
    (row,) = percolab.label(image, phase=3, boundary="periodic,open").phases
    assert (row.wrapping, row.spanning) == ({"x": 0.6}, {"y": 0.0})


def test_phases_that_close_a_ring_together_do_not_wrap():
    np.save("image.npy", np.array([[1, 1, 2, 2, 2], [0, 3, 3, 3, 0]], np.uint8))
    told = answer("label", "image.npy", "--phase", "1,2,3", "--boundary", "periodic")
    assert [line.split()[5:7] for line in told.splitlines()[-3:]] == [["0", "0"]] * 3
    assert answer("status", "labels.h5") == told


def test_table_file_status_and_export_say_the_same():
    image = segmented(seed=4)
    np.save("image.npy", image)
    options = ("--phase", "0,2+5", "--boundary", "open,periodic,open", "--connectivity", "26")
    told = answer("label", "image.npy", *options, "--sizes", "sizes.csv")
    record = json.loads(answer("label", "image.npy", *options, "--json"))
    found = percolab.label(image, phase="0,2+5", boundary="open,periodic,open", connectivity=26)
    assert record["phases"] == [row.to_dict() for row in found.phases]
    header, *rows = (line.split() for line in told.splitlines()[-3:])
    assert " ".join(header) == (
        "phase sites share clusters largest "
        "share spanning x share spanning z share wrapping y surface"
    )
    for text, row in zip(rows, found.phases, strict=True):
        shares = [f"{row.spanning[axis]:.4g}" for axis in "xz"] + [f"{row.wrapping['y']:.4g}"]
        whole = [row.name, str(row.sites), f"{row.share:.4g}", str(row.clusters), str(row.largest)]
        assert text == [*whole, *shares, str(row.surface)]
    assert answer("status", "labels.h5") == told
    assert json.loads(answer("status", "labels.h5", "--json")) == record
    assert answer("export", "labels.h5") == Path("sizes.csv").read_text()
    frame = found.to_pandas()
    frame["spans_x"], frame["spans_z"] = frame["spans_x"].astype(int), frame["spans_z"].astype(int)
    frame["wraps_y"] = frame["wraps_y"].astype(int)
    assert frame.to_csv(index=False) == Path("sizes.csv").read_text()
    assert set(frame["phase"]) == {"0", "2+5"}
    answer("export", "labels.h5", "--out", "sizes.npz")
    np.testing.assert_array_equal(np.load("sizes.npz")["sites"], found.sizes)
    # Written over, as a table of clusters; a file of something else is not.
    answer("export", "labels.h5", "--out", "sizes.csv")
    Path("other.csv").write_text("mine\n")
    assert "holds something else" in refusal("label", "image.npy", *options, "--sizes", "other.csv")
    assert "a.xlsx: cannot" in refusal("label", "image.npy", *options, "--sizes", "a.xlsx")


def test_values_of_any_size_are_phases_of_a_file():
    np.save("image.npy", np.array([[1e20, -0.5, 3], [1e20, 1e20, -0.5]]))
    told = answer("label", "image.npy", "--phase", "1e20,-.5")
    assert [line.split()[:2] for line in told.splitlines()[-2:]] == [["1e20", "3"], ["-0.5", "2"]]
    assert answer("status", "labels.h5") == told


def test_values_that_differ_in_their_last_digit_alone_are_different_phases():
    image = np.array([[2**60, 2**60 + 1], [2**60, 7]], np.uint64)
    values = [2**60, 2**60 + 1]
    for phase in (values, ",".join(map(str, values))):
        found = percolab.label(image, phase=phase)
        assert found.tolist() == [[0, 1], [0, -1]]
        assert [(each.name, each.sites) for each in found.phases] == [
            ("1152921504606846976", 2),
            ("1152921504606846977", 1),
        ]
    assert [each.sites for each in percolab.label(image, phase="all").phases] == [1, 2, 1]
    found = percolab.label(np.array([[0.3, 0.1 + 0.2]]), phase="all")
    assert [each.name for each in found.phases] == ["0.3", "0.30000000000000004"]


@pytest.mark.parametrize(("phase", "names"), [("0,2+5", {"0", "2+5"}), ("2+5", {None})])
def test_a_legend_names_the_phases_of_clusters_where_there_are_several(phase, names):
    image = np.repeat(np.array([[2], [0], [5], [1]]), 6, axis=1)
    np.save("image.npy", image)
    answer("label", "image.npy", "--phase", phase)
    told = json.loads(answer("show", "labels.h5", "--json", "-o", "labels.png"))
    assert {cluster.get("phase") for cluster in told["prominent"]} == names
    stored_labels = read_labels("labels.h5")
    figure, _ = draw_stored_labels(stored_labels, "labels.h5")
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    wanted = "largest cluster, phase 2+5, 6 of 18 sites, spans along x"
    assert texts[0] == wanted if None not in names else "phase" not in texts[0]


def test_a_legend_is_as_narrow_as_its_figure_and_takes_nothing_from_the_panels():
    image = np.broadcast_to(np.arange(100, 108)[:, None], (4, 8, 60)).repeat(2, axis=1)
    np.save("image.npy", image)
    heights = []
    for phase in ("100", "100,101,102,103"):
        answer("label", "image.npy", "--phase", phase, "--out", "labels.h5")
        figure = percolab.show(labels="labels.h5")
        figure.canvas.draw()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        heights.append(figure.axes[0].get_window_extent().height / figure.dpi)
    assert heights[1] > 0.95 * heights[0]


def test_labels_in_a_file_name_the_clusters_of_its_table():
    image = segmented((8, 9), seed=2)
    np.save("image.npy", image)
    answer("label", "image.npy", "--phase", "1,2", "--serial", "--sizes", "sizes.csv")
    found = read_labels("labels.h5")
    assert found.cluster_labels.tolist() == list(range(found.clusters.roots.size))
    assert answer("export", "labels.h5") == Path("sizes.csv").read_text()
    header, *rows = answer("export", "labels.h5", "--sites").split()
    labels = percolab.label(image, phase="1,2", serial=True)
    assert header == "site,label"
    assert rows == [f"{site},{label}" for site, label in enumerate(labels.ravel())]
    for option in ("--sizes", "--tidy", "--thresholds"):
        assert f"{option}: labels have tables of their" in refusal("export", "labels.h5", option)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels.h5", slow("labels.npy")])
def test_every_command_that_shows_results_shows_labels(name):
    image = segmented((6, 8, 9), seed=3)
    np.save("image.npy", image)
    told = answer("label", "image.npy", "--phase", "1", "--out", name)
    assert answer("status", name).splitlines()[0] == told.splitlines()[0]
    answer("report", name, "--out", "page.html")
    page = Path("page.html").read_text()
    for line in answer("status", name).splitlines():
        assert line in page
    assert hashlib.sha256(Path(name).read_bytes()).hexdigest() in page
    drawn = json.loads(answer("show", name, "--json"))
    assert json.loads(answer("plot", name, "--json")) == {
        key: value for key, value in drawn.items() if key != "figure"
    }
    assert Path("labels.png").exists()
    table = answer("export", name).splitlines()
    assert len(table) == 1 + percolab.label(image, phase=1).num_clusters
    for command, option in (("plot", "--kind=curves"), ("report", "--min-size=4")):
        assert refusal(command, name, option).startswith(option.split("=")[0])


def test_titles_name_the_phases():
    np.save("image.npy", np.arange(9).reshape(3, 3))
    for phase, title in (
        ("1", "phase 1"),
        ("1,2+3", "phases 1, 2+3"),
        ("all", "phases 0, 1, ... 8"),
    ):
        answer("label", "image.npy", "--phase", phase)
        drawn = json.loads(answer("plot", "labels.h5", "--json"))
        assert drawn["title"].partition(", ")[2].startswith(title)


def test_an_image_is_not_drawn_as_if_it_were_labels():
    image = segmented((6, 8, 9), seed=3)
    np.save("image.npy", image)
    told = refusal("show", "image.npy")
    assert "pieces on cubic, but a cluster is connected: label an image first" in told
    # Labels of others are drawn, of the lattice that they are of.
    flat = image[0] == 1
    np.save("corners.npy", ndimage.label(flat, np.ones((3, 3)))[0] - 1)
    np.save("sides.npy", ndimage.label(flat)[0] - 1)
    answer("show", "sides.npy")
    assert "pieces on square" in refusal("show", "corners.npy")
    np.save("zeros.npy", ndimage.label(~flat)[0])
    assert refusal("show", "zeros.npy").endswith("of labels (no site is -1, not 0)")
    answer("show", "corners.npy", "--lattice", "square-nnn")
    # Those that percolab wrote are read as they are.
    answer("label", "corners.npy", "--threshold", "-0.5", "--connectivity", "8", "--out", "own.npy")
    answer("status", "own.npy")


def test_an_image_is_not_taken_for_labels():
    np.save("image.npy", np.eye(3, dtype=np.int32))
    Path("empty.npy").touch()
    for command in ("status", "plot", "report", "export"):
        for name in ("image.npy", "empty.npy"):
            assert refusal(command, name) == f"{name}: has no labels from percolab label"


def test_commands_that_take_no_labels_say_which_do():
    np.save("image.npy", np.eye(3, dtype=bool))
    answer("label", "image.npy")
    told = refusal("fit", "labels.h5")
    assert told.endswith("percolab show, plot, status, report and export read labels")
    stored(Path("results.h5"))
    assert answer("status", "results.h5").startswith("square")


def test_slices_are_one_stack_in_the_order_of_their_numbers():
    stack = segmented((12, 5, 4), values=(0, 90, 200))
    Path("slices").mkdir()
    for number, layer in enumerate(stack):
        Image.fromarray(layer).save(f"slices/s{number}.png")
    Path("slices/notes.txt").write_text("not an image")
    expected = percolab.label(stack, phase=200)
    for given in (("slices",), ("slices/*.png",), sorted(map(str, Path("slices").glob("*.png")))):
        answer("label", *given, "--phase", "200", "--out", "a.npy")
        np.testing.assert_array_equal(np.load("a.npy"), expected)
    record = json.loads(answer("label", "slices", "--phase", "200", "--json"))
    assert record["input"] == "s0.png ... s11.png (12 slices)"
    np.testing.assert_array_equal(percolab.label("slices", phase=200), expected)
    files = list(Path("slices").glob("*.png"))
    np.testing.assert_array_equal(percolab.label(files, phase=200), expected)


def test_what_is_no_stack_is_refused_in_one_line():
    Path("slices").mkdir()
    for number in range(3):
        Image.fromarray(np.zeros((4, 5 + (number == 2)), np.uint8)).save(f"slices/s{number}.png")
    assert refusal("label", "slices") == (
        "slices/s2.png: 4 x 6 uint8, but slices/s0.png is 4 x 5 uint8"
    )
    np.save("slices/more.npy", np.zeros((4, 5), np.uint8))
    assert refusal("label", "slices") == (
        "slices: holds .npy and .png; give those of one kind, as in slices/*.npy"
    )
    assert refusal("label", "none/*.png") == "none/*.png: no file matches this pattern"
    Path("empty").mkdir()
    assert refusal("label", "empty").startswith("empty: a folder without .npy, .png")
    np.save("cube.npy", np.zeros((2, 2, 2), np.uint8))
    assert refusal("label", "cube.npy", "slices/s0.png") == (
        "cube.npy: 3 axes, but each slice of a stack must be an image with two"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--phase 7", "image.npy: no phase 7 in it; its values are 0, 1, 2, 5"),
        ("--phase 1,1", "phase = 1,1: 1 is given twice"),
        ("--phase 1,x", "phase: 'x', but a phase is a number, the value of its"),
        ("--phase 1 --threshold 2", "image.npy: phase and threshold both say what is occupied"),
        ("--phase 1 --connectivity 8", "connectivity = 8, but in 3 dimensions it is 6, 18, 26"),
        ("--phase 1 --connectivity 6 --lattice cubic", "connectivity: cubic has its own"),
        ("--phase 1 --connectivity 5", "Invalid value for '--connectivity': '5' is not one of"),
        ("-L 4 --lattice square --phase 1", "--phase: only an image has it; leave it out"),
    ],
)  # fmt: skip
def test_phases_that_cannot_be_are_refused_in_one_line(options, told):
    np.save("image.npy", segmented())
    assert refusal("label", "image.npy", *options.split()).startswith(told)


def test_labels_are_an_array_that_knows_its_clusters():
    mask = np.random.default_rng(3).random((9, 14)) < 0.6
    for serial in (False, True):
        labels = percolab.label(mask, serial=serial)
        assert isinstance(labels, np.ndarray)
        assert labels.shape == mask.shape
        names, sizes = np.unique(labels[labels >= 0], return_counts=True)
        np.testing.assert_array_equal(labels.cluster_labels, names)
        np.testing.assert_array_equal(labels.sizes, sizes)
        assert labels.num_clusters == names.size
        both = np.intersect1d(labels[:, 0], labels[:, -1])
        np.testing.assert_array_equal(labels.spanning["x"], both[both >= 0])
        # What is computed from it is plain, and so is a pickle of it.
        for plain in (labels.array, labels[1:], labels == 3, labels + 1, np.maximum(labels, 2),
                      pickle.loads(pickle.dumps(labels)), np.asarray(labels)[:]):  # fmt: skip
            assert type(plain) is np.ndarray
        assert labels.array.base is not None
        assert np.shares_memory(labels.array, labels)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(labels)), labels.array)
        assert isinstance(labels[0, 0], np.int32)
        assert isinstance(labels.max(), np.integer)
        with pytest.raises(AttributeError, match="not a copy of it"):
            _ = labels.copy().sizes


def test_labels_of_a_sample_know_what_spans_and_wraps():
    labels = percolab.label("square", 12, 0.6, boundary="periodic,open", seed=2)
    clusters = percolab.configurations.random_configuration(
        percolab.load_lattice("square"), 12, 0.6, boundary="periodic,open", seed=2
    ).label()
    for name in ("spanning", "wrapping"):
        found = {axis: clusters.roots[n].tolist() for axis, n in getattr(clusters, name).items()}
        assert {axis: each.tolist() for axis, each in getattr(labels, name).items()} == found
    assert labels.wrapping["x"].size
    assert labels.phases == []
    assert percolab.label(graph=[(0, 1), (3, 4)]).sizes.tolist() == [2, 1, 2]
