"""percolab label: configurations, graphs, images and slabs, judged by others' labelings."""

import json
import struct
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import SAMPLE, answer, png, refusal, run, smallest_sites, text_of
from helpers import CHAIN, cpu_labeler, label_pairs, slow
from PIL import Image
from scipy import ndimage

import percolab
from percolab import InputError, load_graph
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.configurations import Clusters, label_slabs, read_labels, site_configuration
from percolab.configurations.array_files import otsu_threshold
from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.topology import bonds_between, unpack_bits
from percolab.measure.rows import SPANNING
from percolab.tasks.study import Task


def label_sites(topology, occupied):
    """Return the labels of sites by scipy, from the list of the lattice's bonds."""
    _, one, other = topology.bonds().T
    both = occupied[one] & occupied[other]
    labels = label_pairs(one[both], other[both], topology.num_points)
    return np.where(occupied, labels, -1)


# Sites


@pytest.mark.parametrize("labeler", ["reference", "raster", "four_step", "label_equivalence"])
@pytest.mark.parametrize("boundary", ["open", "periodic", "periodic,open"])
@pytest.mark.parametrize("name", ["square", "triangular", "honeycomb", "kagome", "three-twelve"])
def test_neighbours_are_those_of_the_lattice(name, boundary, labeler):
    lattice = load_lattice(name)
    shape = (6 * lattice.cell[1], 12 * lattice.cell[0])
    given = np.random.default_rng(3).random(shape) < 0.6
    np.save("image.npy", given)
    configuration = site_configuration("image.npy", lattice, boundary)
    topology = configuration.topology
    occupied = given.ravel() & unpack_bits(topology.occupied, topology.num_points)
    found = configuration.label(labeler).labels
    np.testing.assert_array_equal(found, label_sites(topology, occupied))
    explicit = topology.explicit()
    np.testing.assert_array_equal(bonds_between(explicit, occupied), configuration.opened)


def test_bond_longer_than_the_array_joins_nothing():
    bonds = "".join(f"[[bonds]]\noffset = {offset}\n" for offset in ("[1, 0]", "[0, 1]", "[-8, 1]"))
    text = f'name = "long"\ndimension = 2\n[cell]\nshape = [1, 1]\n{bonds}'
    for shape in ((1, 5), (5, 1), (2, 2), (9, 2)):
        topology = lattice_from_text(text, where="long").topology(shape)
        sites = np.ones(topology.num_points, bool)
        np.testing.assert_array_equal(bonds_between(topology, sites), topology.exists)


def test_lattice_of_a_file_in_one_dimension_is_a_row():
    Path("chain.toml").write_text(CHAIN)
    np.save("row.npy", np.array([1, 1, 0, 1], np.int8))
    options = ("--lattice", "chain.toml", "--out", "labels.npy")
    answer("label", "row.npy", *options)
    assert np.load("labels.npy").tolist() == [0, 0, -1, 3]
    answer("label", "row.npy", *options, "--boundary", "periodic")
    assert np.load("labels.npy").tolist() == [0, 0, -1, 0]


def test_point_without_a_site_has_no_label_whatever_the_image_says():
    np.save("image.npy", np.ones((4, 6), bool))
    answer("label", "image.npy", "--lattice", "kagome", "--out", "labels.npy")
    labels = np.load("labels.npy")
    vacant = np.zeros((4, 6), bool)
    vacant[1::2, 1::2] = True
    np.testing.assert_array_equal(labels == -1, vacant)
    assert not labels[~vacant].any()


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, ">i2", np.float32])
@pytest.mark.parametrize("order", ["C", slow("F")])
def test_arrays_of_every_type_say_the_same(dtype, order):
    occupied = np.random.default_rng(1).random((9, 40)) < 0.55
    expected = smallest_sites(ndimage.label(occupied)[0])
    given = (occupied if dtype is bool else 7 * occupied).astype(dtype, order=order)
    np.save("image.npy", given)
    with h5py.File("image.h5", "w") as file:
        file.create_dataset("run/3", data=given, chunks=True, compression="gzip")
    for name in ("image.npy", "image.h5:/run/3", "image.h5:run/3"):
        found = site_configuration(name).label().labels
        np.testing.assert_array_equal(found.reshape(9, 40), expected)


@pytest.mark.parametrize("kind", ["1 bit", "8 bits", "16 bits", "grey"])
def test_rows_of_an_image_are_the_second_axis(kind):
    occupied = np.random.default_rng(2).random((11, 35)) < 0.5
    if kind == "16 bits":
        Image.fromarray(occupied.astype(np.uint16) * 65535).save("image.png")
    else:
        value = 90 if kind == "grey" else 255
        png("image.png", occupied.astype(np.uint8) * value, "1" if kind == "1 bit" else "L")
    found = site_configuration("image.png").label().labels.reshape(11, 35)
    expected = smallest_sites(ndimage.label(occupied)[0])
    np.testing.assert_array_equal(found, expected)


# Bonds and samples


@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize("name", ["honeycomb", "cubic", "kagome"])
def test_packed_bonds_are_labeled_as_given(name, boundary):
    lattice, kinds = load_lattice(name), (boundary,) * load_lattice(name).dimension
    labeler = cpu_labeler("reference", lattice.topology(lattice.shape(6), kinds))
    labeler.open_bonds(XORWOW, 3, 0, p_to_threshold(0.4))
    opened = labeler.opened.reshape(labeler.topology.exists.shape)
    np.save("bonds.npy", opened)
    answer("label", "bonds.npy", "--lattice", name, "-L", 6, "--boundary", boundary,
           "--out", "labels.npy")  # fmt: skip
    expected = percolab.label(lattice, 6, boundary=kinds, opened=opened)
    occupied = unpack_bits(labeler.topology.occupied, expected.size).reshape(expected.shape)
    np.testing.assert_array_equal(np.load("labels.npy"), np.where(occupied, expected, -1))


@pytest.mark.parametrize("rng", ["xorwow", "philox"])
def test_sample_is_that_of_the_python_interface_and_so_of_a_sweep(rng):
    answer("label", *SAMPLE, "--rng", rng, "--out", "labels.npy")
    labels = np.load("labels.npy")
    assert labels.dtype == np.int32
    expected = percolab.label("honeycomb", 16, 0.65, seed=4, sample=2, rng=rng)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("numbering", ["standard", "random"])
def test_sample_on_a_bethe_lattice_is_that_of_a_sweep(numbering):
    lattice, size = BetheLattice(3, numbering), 6
    options = ("--lattice", lattice.name, "-L", size, "-p", 0.6, "--seed", 4)
    told = json.loads(answer("label", *options, "--sample", 2, "--json"))
    with h5py.File("labels.h5") as file:
        labels = file["labels"][...]
    expected = percolab.label(lattice, size, 0.6, seed=4, sample=2, labeler="reference")
    np.testing.assert_array_equal(labels, expected)
    task = Task(lattice, size, lattice.boundaries, (0.6,), seed=4)
    item = cpu_labeler("reference", lattice.topology(lattice.shape(size)))
    (row,) = item.rows(XORWOW, task.stream_seed, np.array([2]), np.array([p_to_threshold(0.6)]))
    assert [told["clusters"], told["largest"], told["second_largest"]] == row[:3].tolist()
    assert bool(told["spanning"]) == bool(row[SPANNING])


def test_serial_labels_count_the_clusters():
    image = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1]], np.uint8)
    np.save("image.npy", image)
    answer("label", "image.npy", "--out", "labels.npy")
    assert np.load("labels.npy").tolist() == [[-1, 1, 1], [-1, -1, -1], [6, -1, 8]]
    answer("label", "image.npy", "--out", "labels.npy", "--serial")
    assert np.load("labels.npy").tolist() == [[-1, 0, 0], [-1, -1, -1], [1, -1, 2]]


@pytest.mark.parametrize("serial", [(), ("--serial",)])
def test_hdf5_holds_labels_sizes_and_their_origin(serial):
    told = json.loads(answer("label", *SAMPLE, "--out", "labels.h5", "--json", *serial))
    expected = percolab.label("honeycomb", 16, 0.65, seed=4, sample=2, serial=bool(serial))
    with h5py.File("labels.h5") as file:
        labels, sizes, roots = (file[name][...] for name in ("labels", "sizes", "roots"))
        texts = ("format", "numbering", "record", "summary", "lattice")
        attributes = {name: text_of(file, name) for name in texts}
    np.testing.assert_array_equal(labels, expected)
    assert (labels.dtype, sizes.dtype, roots.dtype) == (np.int32, np.int64, np.int32)
    numbers = np.arange(sizes.size) if serial else roots
    for number, size, root in zip(numbers, sizes, roots, strict=True):
        here = np.flatnonzero(labels.ravel() == number)
        assert (here.size, here[0]) == (size, root)
    assert attributes["format"] == "percolab labels"
    assert attributes["numbering"] == ("serial" if serial else "smallest site")
    record, summary = (json.loads(attributes[key]) for key in ("record", "summary"))
    assert {**record, **summary} == {k: told[k] for k in told if k in {**record, **summary}}
    assert told.keys() - {**record, **summary} == {"labels", "shape", "crossing_clusters"}
    assert record == {
        "kind": "sample", "lattice": "honeycomb", "boundary": ["open", "open"], "L": 16,
        "p": 0.65, "seed": 4, "sample": 2, "rng": "xorwow",
    }  # fmt: skip
    assert attributes["lattice"] == load_lattice("honeycomb").source


def test_equal_labels_are_equal_files():
    for name in ("one", "other"):
        answer("label", *SAMPLE, "--out", f"{name}.h5")
    assert Path("one.h5").read_bytes() == Path("other.h5").read_bytes()


def test_summary_counts_clusters_and_says_what_spans():
    image = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]])
    np.save("image.npy", image)
    told = json.loads(answer("label", "image.npy", "--json"))
    keys = ("sites", "clusters", "largest", "second_largest", "open_axes", "spanning", "shape")
    assert [told[key] for key in keys] == [7, 3, 4, 2, ["x", "y"], ["x"], [3, 4]]
    np.save("image.npy", image.T)
    assert json.loads(answer("label", "image.npy", "--json"))["spanning"] == ["y"]
    told = json.loads(answer("label", "image.npy", "--boundary", "open,periodic", "--json"))
    assert (told["open_axes"], told["spanning"]) == (["x"], [])
    assert answer("label", "image.npy") == (
        "3 clusters of 7 sites in labels.h5\ncluster 0 of 4 sites spans along y\n\n"
        "phase     sites  share   clusters  largest  share spanning x  share spanning y  surface\n"
        "occupied  7      0.5833  3         4        0                 0.5714            9\n"
    )
    np.save("image.npy", np.zeros((1, 1), int))
    told = json.loads(answer("label", "image.npy", "--json"))
    assert [told[key] for key in keys] == [0, 0, 0, 0, ["x", "y"], [], [1, 1]]


@pytest.mark.parametrize("suffix", ["npy", "h5"])
@pytest.mark.parametrize("serial", [(), ("--serial",)])
def test_labels_are_read_as_they_were_written(suffix, serial):
    np.save("image.npy", np.random.default_rng(5).random((8, 90)) < 0.6)
    answer("label", "image.npy", "--out", f"labels.{suffix}", *serial)
    found = read_labels(f"labels.{suffix}").clusters
    expected = site_configuration("image.npy").label()
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.sizes, expected.sizes)


def test_any_numbers_may_name_clusters():
    topology = load_lattice("square").topology((3, 2))
    found = Clusters.of_any_labels(np.array([9, -1, 4, 9, 4, 2**40]), topology)
    assert found.labels.tolist() == [0, -1, 2, 0, 2, 5]
    assert found.numbers.tolist() == [0, -1, 1, 0, 1, 2]


# CUDA


@pytest.mark.parametrize(
    ("name", "size", "labeler", "chosen"),
    [
        ("chain.toml", 40, (), "four_step"),
        ("chain.toml", 40, ("--labeler", "tiled"), "four_step"),
        ("chain.toml", 40, ("--labeler", "label_equivalence"), "label_equivalence"),
        ("square", 9, (), "tiled"),
        ("hypercubic-4d", 4, (), "tiled"),
    ],
)
def test_lattice_that_tiles_cannot_have_is_labeled_by_four_steps_and_said_so(
    name, size, labeler, chosen, monkeypatch
):
    Path("chain.toml").write_text(CHAIN)
    asked = []

    def on_the_cpu(labeler, kind, topology, model):
        """Stands for a CUDA labeler of any name: what it labels, it labels on the CPU."""
        asked.append((labeler, kind))
        if topology.num_points > 1000:
            raise ValueError("too many for it")
        return new_labeler("reference", "cpu", topology, model)

    monkeypatch.setattr("percolab.configurations.configuration.new_labeler", on_the_cpu)
    monkeypatch.setattr(Device, "resolve", lambda self: Device("cuda"))
    options = ("--lattice", name, "-L", size, "-p", 0.3, *labeler)
    done = run("label", *options, "--device", "auto", "--out", "labels.npy")
    assert done.exit_code == 0, done.output
    note = "tiled needs bonds along two axes; four_step is used instead\n"
    assert done.stderr == (note if chosen == "four_step" else "")
    expected = percolab.label(
        name, size, 0.3, device="auto", labeler=labeler[-1] if labeler else None
    )
    np.testing.assert_array_equal(np.load("labels.npy"), expected)
    assert asked == [(chosen, "cuda")] * 2
    told = refusal("label", "--lattice", "square", "-L", 40, "-p", 0.3, "--device", "auto")
    assert told == "1600 sites on auto: too many for it"


# --- graphs ---


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
        sites = ["Ada", "Bob", "Cy", "Dan", "Eve"] if name == "g.h5" else "01234"
        rows = [f"{site},{label}\n" for site, label in zip(sites, (0, 0, 0, 3, 3))]
        assert answer("export", name, "--sites") == "site,label\n" + "".join(rows)
    refused = (
        "g.h5: the file of a graph's labels has no coordinates; percolab show --graph draws a "
        "sample of the graph"
    )
    assert refusal("plot", "g.h5") == refusal("show", "g.h5") == refused
    assert (
        refusal("plot", "g.npy")
        == "g.npy: give the lattice of these labels by percolab show --lattice"
    )


# --- images and arrays ---


def grey(shape=(12, 16), seed=1):
    """Return two phases with noise, uint8, and which pixels are bright."""
    rng = np.random.default_rng(seed)
    bright = rng.random(shape) < 0.55
    return (np.where(bright, 180, 70) + rng.integers(-20, 20, shape)).astype(np.uint8), bright


def test_a_threshold_makes_sites_of_a_grey_image():
    values, bright = grey()
    Image.fromarray(values).save("grey.png")
    expected = percolab.label(bright)
    for options in (("--threshold", 125), ("--threshold", "otsu")):
        record = json.loads(answer("label", "grey.png", *options, "--out", "a.npy", "--json"))
        np.testing.assert_array_equal(np.load("a.npy"), expected)
        assert 89 <= record["threshold"] <= 159
    answer("label", "grey.png", "--threshold", 125, "--below", "--out", "a.npy")
    np.testing.assert_array_equal(np.load("a.npy"), percolab.label(~bright))
    np.testing.assert_array_equal(percolab.label(values, threshold="otsu"), expected)


def test_the_proposal_of_a_refused_image_works():
    values, bright = grey()
    Image.fromarray(values).save("grey.png")
    told = refusal("label", "grey.png")
    number = told.partition("--threshold ")[2].split()[0]
    answer("label", "grey.png", "--threshold", number, "--out", "a.npy")
    np.testing.assert_array_equal(np.load("a.npy"), percolab.label(bright))
    colour = np.stack([values, values, values // 2], axis=-1)
    Image.fromarray(colour).save("colour.png")
    number = refusal("label", "colour.png").partition("(")[2].split()[0]
    answer("label", "colour.png", "--threshold", number, "--out", "a.npy")
    np.testing.assert_array_equal(np.load("a.npy"), percolab.label(bright))


def test_images_that_are_grey_in_another_way_are_read():
    _, bright = grey()
    expected = percolab.label(bright)
    image = Image.fromarray(255 * bright.astype(np.uint8))
    for mode in ("RGB", "RGBA", "LA", "P", "1"):
        image.convert(mode).save("mask.png")
        answer("label", "mask.png", "--out", "a.npy")
        np.testing.assert_array_equal(np.load("a.npy"), expected)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.float32])
def test_a_stack_of_images_is_an_array_in_space(dtype):
    stack = np.random.default_rng(3).random((3, 5, 4)) < 0.5
    scale = dtype(1 if dtype is bool else 200)
    images = [Image.fromarray(layer.astype(dtype) * scale) for layer in stack]
    images[0].save("stack.tif", save_all=True, append_images=images[1:])
    answer("label", "stack.tif", "--out", "a.npy")
    np.testing.assert_array_equal(np.load("a.npy"), percolab.label(stack))
    images[0].save("one.tiff")
    answer("label", "one.tiff", "--out", "a.npy")
    np.testing.assert_array_equal(np.load("a.npy"), percolab.label(stack[0]))


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_values_of_a_tiff_are_those_stored_also_where_0_is_white(dtype):
    mask = np.random.default_rng(3).random((5, 8)) < 0.3
    Image.fromarray(mask.astype(dtype)).save("mask.tif")
    data = Path("mask.tif").read_bytes()
    entry = struct.pack("<HHI", 262, 3, 1)
    assert data.count(entry) == 1
    Path("white.tif").write_bytes(data.replace(entry + b"\x01", entry + b"\x00"))
    for name in ("mask.tif", "white.tif"):
        np.testing.assert_array_equal(percolab.label(name), percolab.label(mask))


def test_a_mask_from_python_is_that_of_the_command_line():
    mask = np.random.default_rng(1).integers(0, 2, (9, 10)) * 7
    np.save("mask.npy", mask)
    options = ("--lattice", "triangular", "--boundary", "periodic,open")
    answer("label", "mask.npy", *options, "--out", "a.npy")
    found = percolab.label(mask, lattice="triangular", boundary=["periodic", "open"])
    np.testing.assert_array_equal(found, np.load("a.npy"))
    assert found.dtype == np.int32
    serial = percolab.label(mask.astype(bool), lattice=Path("triangular").name, serial=True,
                            boundary="periodic,open")  # fmt: skip
    np.testing.assert_array_equal(np.unique(found)[1:][serial[serial >= 0]], found[found >= 0])


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        (np.array([[0, 1, 2]]), {}, "the array: holds 1 and 2, but a site configuration holds 0"),
        (np.ones((2, 2), complex), {}, "the array: holds complex128; a site"),
        (np.ones(3), {}, "the array: an array of 1 dimensions; name its lattice"),
        (np.ones((2, 2)), {"L": 2}, "L: an image is a configuration already; leave it out"),
        (np.ones((2, 2)), {"below": True}, "the array: below says which side of a threshold"),
        ("scan.h5", {"phase": 0}, "scan.h5: name the dataset as well, as in scan.h5:/path"),
        ("square", {"lattice": "square"}, "lattice: only an image has it; leave it out"),
    ],
    ids=str,
)
def test_what_is_no_mask_is_refused_in_one_line(given, options, told):
    with pytest.raises(InputError) as error:
        percolab.label(given, **options)
    assert str(error.value).startswith(told)


def test_otsu_separates_what_differs_most():
    # By hand: of 0, 0, 1, 9, 10 the split after 1 has the largest variance between the parts.
    assert otsu_threshold(np.array([0, 0, 1, 9, 10])) == 1
    assert otsu_threshold(np.array([[5, 5]])) == 5
    many = np.concatenate([np.linspace(0, 1, 5000), np.linspace(9, 10, 5000)])
    assert 1 <= otsu_threshold(many) <= 9


# --- slab by slab ---


SHAPES = [(6, 7, 9), (9, 5, 33), (5, 1, 7), (7, 1, 1), (12, 11), (5, 1)]


def assert_equal_to_the_whole(image, slabs, **options):
    """Compare labels, phases and what spans with those of the image labeled at once."""
    whole = percolab.label(image, **options)
    out = np.full(image.shape, -7, np.int32)
    found = percolab.label_in_slabs(image, slabs=slabs, out=out, **options)
    np.testing.assert_array_equal(out, whole.array)
    assert found.num_clusters == whole.num_clusters
    for one, other in zip(found.phases, whole.phases, strict=True):
        assert one.to_dict() == other.to_dict()
    for name in ("spanning", "wrapping"):
        ours, theirs = getattr(found, name), getattr(whole, name)
        assert set(ours) == set(theirs)
        for axis, labels in theirs.items():
            np.testing.assert_array_equal(ours[axis], labels)
    return found


KINDS = ("open", "periodic", "last", "others")
QUICK = ((1, "periodic"),)


@pytest.mark.parametrize(
    ("steps", "boundary"),
    [case if case in QUICK else slow(*case) for case in product((1, 2, 3), KINDS)],
)
def test_labels_of_slabs_are_those_of_the_whole_image(steps, boundary):
    random = np.random.default_rng(steps)
    for number, shape in enumerate(SHAPES):
        if steps > len(shape):
            continue
        last = len(shape) - 1
        kinds = {
            "last": ["open"] * last + ["periodic"],
            "others": ["periodic"] * last + ["open"],
        }.get(boundary, [boundary] * len(shape))
        connectivity = {2: (4, 8), 3: (6, 18, 26)}[len(shape)][steps - 1]
        share = (0.2, 0.5)[number % 2]
        image = random.choice(np.array([0, 1, 3]), shape, p=[1 - share, share / 2, share / 2])
        image.flat[-1] = 3
        for slabs in (2, shape[0]):
            options = {"boundary": kinds, "connectivity": connectivity, "phase": "1,3"}
            assert_equal_to_the_whole(image, slabs, **options)


def test_a_cluster_that_winds_through_all_slabs_is_one():
    # A snake: layers joined at one end, then at the other, so that labels are joined late.
    image = np.zeros((13, 12), np.uint8)
    image[::2] = 1
    image[1::4, -1] = image[3::4, 0] = 1
    for slabs in (1, 2, 5, 13):
        found = assert_equal_to_the_whole(image, slabs, phase=1)
        assert found.num_clusters == 1
        comb = np.ascontiguousarray(image[::-1].T)
        assert_equal_to_the_whole(comb, min(slabs, 12), phase="0,1")


@pytest.mark.slow
def test_a_helix_wraps_only_if_it_closes():
    image = np.eye(12, dtype=bool) | np.eye(12, k=1, dtype=bool)
    image[-1, 0] = True
    for slabs in (1, 2, 5, 12):
        found = assert_equal_to_the_whole(image, slabs, boundary="periodic")
        assert [each.tolist() for each in found.wrapping.values()] == [[0], [0]]
        found = assert_equal_to_the_whole(image, slabs, boundary="periodic,open")
        assert (found.wrapping["x"].size, found.spanning["y"].tolist()) == (0, [0])
        two = np.concatenate([image[:, ::2] | image[:, 1::2]] * 2)
        assert_equal_to_the_whole(two, slabs, boundary="periodic")
    # A ring that closes by two diagonal bonds from the last row to the first.
    ring = np.zeros((5, 8), bool)
    ring[0, :4] = ring[-1, 4:] = True
    for slabs in (1, 2, 5):
        found = assert_equal_to_the_whole(ring, slabs, boundary="periodic", connectivity=8)
        assert [each.tolist() for each in found.wrapping.values()] == [[0], []]
    # Four bars, each of them joined to the next one across the periodic axis of the slabs alone.
    image = np.zeros((8, 8), bool)
    image[:, ::2] = True
    image[0] = [1, 0, 1, 1, 1, 1, 1, 1]
    for row in (image, image[::-1], np.roll(image, 3, axis=0)):
        for slabs in (1, 3, 8):
            assert_equal_to_the_whole(np.ascontiguousarray(row), slabs, boundary="periodic")


@pytest.mark.slow
def test_bonds_over_several_layers_join_slabs():
    bonds = "".join(f"[[bonds]]\noffset = {offset}\n" for offset in ("[1, 0]", "[2, 1]", "[-1, 3]"))
    text = f'name = "long"\ndimension = 2\n[cell]\nshape = [1, 1]\n{bonds}'
    lattice = lattice_from_text(text, where="long")
    random = np.random.default_rng(6)
    for height, boundary in ((12, "open"), (12, "periodic"), (4, "periodic"), (3, "periodic")):
        for _ in range(5):
            image = random.random((height, 10)) < 0.4
            for slabs in range(1, height // 3 + 1):
                assert_equal_to_the_whole(image, slabs, lattice=lattice, boundary=boundary)


def test_vacant_points_of_a_lattice_have_no_label():
    image = np.random.default_rng(2).random((8, 12)) < 0.8
    text = (
        'name = "rows"\ndimension = 2\n[cell]\nshape = [2, 1]\n'
        "[[bonds]]\noffset = [1, 0]\n[[bonds]]\noffset = [1, 1]\nat = [[0, 0]]\n"
        "[[bonds]]\noffset = [0, 1]\nat = [[1, 0]]\n"
    )
    lattice = lattice_from_text(text, where="rows")
    assert_equal_to_the_whole(image, 3, lattice=lattice, boundary="periodic,open")


def test_anything_that_is_read_in_slices_is_labeled():
    image = np.random.default_rng(3).integers(0, 3, (10, 6, 7)).astype(np.uint8)
    whole = percolab.label(image, phase="0,2")
    np.save("image.npy", image)
    np.save("fortran.npy", np.asfortranarray(image))
    Path("slices").mkdir()
    for number, layer in enumerate(image):
        np.save(f"slices/s{number}.npy", layer)
    with h5py.File("image.h5", "w") as file:
        file["image"] = image
        for given in (file["image"], np.load("image.npy", mmap_mode="r"), "image.npy",
                      "fortran.npy", "slices", "slices/*.npy"):  # fmt: skip
            found = percolab.label_in_slabs(given, phase="0,2", slabs=4, out="a.npy")
            np.testing.assert_array_equal(np.load("a.npy"), whole.array)
            np.testing.assert_array_equal(found, whole.array)
            np.testing.assert_array_equal(percolab.label(given, phase="0,2"), whole.array)
        target = file.create_dataset("labels", image.shape, np.int64)
        percolab.label_in_slabs(image, phase="0,2", slabs=4, out=target)
        np.testing.assert_array_equal(target[...], whole.array)
    found = percolab.label_in_slabs("image.h5:/image", phase="0,2", slabs=4, out="a.npy")
    np.testing.assert_array_equal(found.array, whole.array)


def test_the_command_in_slabs_says_what_the_one_without_says():
    image = np.random.default_rng(3).integers(0, 3, (10, 6, 7)).astype(np.uint8)
    np.save("image.npy", image)
    for options in (("--phase", "all"), ("--threshold", "1", "--below")):
        told = answer("label", "image.npy", *options, "--slabs", "3", "--out", "a.npy")
        assert told.splitlines()[0].endswith(" sites in a.npy")
        whole = answer("label", "image.npy", *options, "--out", "b.npy")
        assert told.splitlines()[1:] == whole.splitlines()[-len(told.splitlines()) + 1 :]
        # The mark at the end says who wrote it, too.
        assert Path("a.npy").read_bytes() == Path("b.npy").read_bytes()
        part = json.loads(answer("label", "image.npy", *options, "--slabs", "auto", "--out",
                                 "a.npy", "--json"))  # fmt: skip
        record = json.loads(answer("label", "image.npy", *options, "--out", "a.npy", "--json"))
        assert {key: record[key] for key in part} == part
    assert set(record) - set(part) == {"second_largest", "crossing_clusters"}


def test_slabs_are_as_many_as_the_memory_takes(free_memory):
    free_memory(4 * label_slabs._BYTES * 3 * 60)
    bounds = label_slabs._cut((10, 6, 10), "auto", 1)
    assert bounds == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--slabs 0 --phase 1", "slabs = 0, but it must be auto or an integer from 1 to 4"),
        ("--slabs 5 --phase 1", "slabs = 5, but it must be auto or an integer from 1 to 4"),
        ("--slabs few --phase 1", "slabs = 'few', but it must be auto or"),
        ("--slabs 2 --phase 9", "image.npy: no phase 9 in it; its values are 0, 1, 2"),
        ("--slabs 2 --threshold otsu", "image.npy: Otsu's threshold needs the whole image"),
        ("--slabs 2 --phase 1 --out a.h5", "a.h5: with slabs labels can only be written as .npy"),
        ("--slabs 2 --phase 1 --serial", "--serial: labels in slabs (--slabs) have none"),
        (
            "--slabs 2 --phase 1 --out a.npy --sizes a.csv",
            "--sizes: not with --slabs; afterwards use percolab export a",
        ),
        ("--slabs 2 --phase 1 --lattice diamond", "slabs: diamond with 4 layers cannot be cut"),
        ("--slabs 2 -L 4 --lattice square", "-L: an image (--slabs) has none; leave it out"),
        ("--slabs 2 --out image.npy --phase 1", "image.npy: is the input itself"),
    ],
)
def test_what_slabs_cannot_do_is_refused_in_one_line_and_leaves_nothing(options, told):
    np.save("image.npy", np.arange(48).reshape(4, 3, 4) % 3)
    before = sorted(Path().iterdir())
    assert refusal("label", "image.npy", *options.split()).startswith(told)
    assert sorted(Path().iterdir()) == before
