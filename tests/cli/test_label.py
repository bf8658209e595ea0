"""percolab label: configurations of every kind to labels and sizes, judged by others' labelings."""

import json
from collections import deque
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal, run, text_of
from helpers import cpu_labeler, slow
from PIL import Image
from scipy import ndimage

import percolab
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.configurations import Clusters, read_labels, site_configuration
from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.topology import bonds_between, unpack_bits
from percolab.measure.rows import SPANNING
from percolab.tasks.study import Task

#: A lattice that tiles refuse.
CHAIN = 'name = "chain"\ndimension = 1\ncell = { shape = [1] }\nbonds = [{ offset = [1] }]\n'
SAMPLE = ("--lattice", "honeycomb", "-L", 16, "-p", 0.65, "--seed", 4, "--sample", 2)

pytestmark = pytest.mark.usefixtures("own_directory")


def smallest_sites(labels, occupied):
    """Return labels in which every cluster is named by its smallest site, and -1 is no site."""
    found = np.full(labels.size, -1, np.int32)
    for label in np.unique(labels[occupied]):
        here = np.flatnonzero((labels == label).ravel() & occupied.ravel())
        found[here] = here[0]
    return found.reshape(labels.shape)


def by_walking(topology, occupied):
    """Return the labels of sites by breadth-first search over the list of the lattice's bonds."""
    around = [[] for _ in range(topology.num_points)]
    for _, one, other in topology.bonds().tolist():
        around[one].append(other)
        around[other].append(one)
    labels = np.full(topology.num_points, -1, np.int32)
    for start in np.flatnonzero(occupied):
        queue = deque([start] if labels[start] < 0 else [])
        labels[start] = start if labels[start] < 0 else labels[start]
        while queue:
            for site in around[queue.popleft()]:
                if occupied[site] and labels[site] < 0:
                    labels[site] = start
                    queue.append(site)
    return labels


def png(path, pixels, mode="L", **options):
    Image.fromarray(pixels).convert(mode).save(path, **options)
    return path


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
    np.testing.assert_array_equal(found, by_walking(topology, occupied))
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
    chain = 'name = "chain"\ndimension = 1\n[cell]\nshape = [1]\n[[bonds]]\noffset = [1]\n'
    Path("chain.toml").write_text(chain)
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
    expected = smallest_sites(ndimage.label(occupied)[0], occupied)
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
    expected = smallest_sites(ndimage.label(occupied)[0], occupied)
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
    note = "tiled needs bonds off a chain; four_step takes its place\n"
    assert done.stderr == (note if chosen == "four_step" else "")
    expected = percolab.label(
        name, size, 0.3, device="auto", labeler=labeler[-1] if labeler else None
    )
    np.testing.assert_array_equal(np.load("labels.npy"), expected)
    assert asked == [(chosen, "cuda")] * 2
    told = refusal("label", "--lattice", "square", "-L", 40, "-p", 0.3, "--device", "auto")
    assert told == "1600 sites on auto: too many for it"
