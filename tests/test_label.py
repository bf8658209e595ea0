"""percolab label: configurations of every kind to labels and sizes, judged by others' labelings."""

import io
import json
import tracemalloc
from collections import deque
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal, run, stored
from helpers import TEXTS, cpu_labeler
from PIL import Image
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import percolab
from percolab.bethe import BetheLattice
from percolab.configurations import Clusters, read_labels, site_configuration
from percolab.configurations.site_bonds import bonds_between
from percolab.graph_structure import load_graph
from percolab.kernels.clusters import SPANNING
from percolab.kernels.open_bonds import XORWOW, threshold_of
from percolab.lattice import lattice_from_text, load_lattice
from percolab.sampler import Device
from percolab.study import Task
from percolab.topology import unpack_bits

#: Shapes of images, tried in turn: ones, lines, around the edge of a word of 32 bonds.
SHAPES = {2: [(1, 1), (1, 9), (33, 1), (7, 31), (8, 32), (13, 33)], 3: [(1, 1, 1), (4, 5, 33)]}
SAMPLE = ("--lattice", "honeycomb", "-L", 16, "-p", 0.65, "--seed", 4, "--sample", 2)


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def test_square_and_cubic_neighbours_are_those_of_scipy():
    random = np.random.default_rng(8)
    for number in range(100):
        dimension = 2 + number % 2
        shape = SHAPES[dimension][number // 2 % len(SHAPES[dimension])]
        occupied = random.random(shape) < (0.0, 1.0, 0.2, 0.45, 0.6)[number // 4 % 5]
        if number % 20 == 19:
            occupied[:] = False
            occupied.flat[random.integers(occupied.size)] = True
        np.save("image.npy", occupied)
        configuration = site_configuration("image.npy")
        clusters = configuration.label()
        expected = smallest_sites(ndimage.label(occupied)[0], occupied)
        np.testing.assert_array_equal(clusters.labels.reshape(shape), expected)
        sizes = np.unique(expected[expected >= 0], return_counts=True)
        np.testing.assert_array_equal(clusters.roots, sizes[0])
        np.testing.assert_array_equal(clusters.sizes, sizes[1])


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
@pytest.mark.parametrize("order", ["C", "F"])
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
    labeler.open_bonds(XORWOW, 3, 0, threshold_of(0.4))
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
    options = ("--bethe", 3, "--shells", size, "--numbering", numbering, "-p", 0.6, "--seed", 4)
    told = json.loads(answer("label", *options, "--sample", 2, "--json"))
    with h5py.File("labels.h5") as file:
        labels = file["labels"][...]
    expected = percolab.label(lattice, size, 0.6, seed=4, sample=2, labeler="reference")
    np.testing.assert_array_equal(labels, expected)
    task = Task(lattice, size, lattice.boundaries, (0.6,), seed=4)
    item = cpu_labeler("reference", lattice.topology(lattice.shape(size)))
    (row,) = item.rows(XORWOW, task.stream_seed, np.array([2]), np.array([threshold_of(0.6)]))
    assert [told["clusters"], told["largest"], told["second_largest"]] == row[:3].tolist()
    assert bool(told["spanning"]) == bool(row[SPANNING])
    other = ("--lattice", lattice.name, "-L", size, "-p", 0.6, "--seed", 4, "--sample", 2)
    assert json.loads(answer("label", *other, "--json")) == told


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
        attributes = dict(file.attrs)
    np.testing.assert_array_equal(labels, expected)
    assert (labels.dtype, sizes.dtype, roots.dtype) == (np.int32, np.int64, np.int32)
    numbers = np.arange(sizes.size) if serial else roots
    for number, size, root in zip(numbers, sizes, roots, strict=True):
        here = np.flatnonzero(labels.ravel() == number)
        assert (here.size, here[0]) == (size, root)
    assert attributes["format"] == "percolab labels"
    assert attributes["numbering"] == ("serial" if serial else "smallest site")
    record, summary = (json.loads(attributes[key]) for key in ("record", "summary"))
    assert {**record, **summary} == {k: told[k] for k in told if k not in ("labels", "shape")}
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
        "3 clusters of 7 sites in labels.h5\nlargest 4, second largest 2\nspanning along y\n"
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


# What is refused


def npy_with(header):
    """Return the bytes of an NPY file that has this header and no data."""
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def prepared():
    """Write files that are wrong in one way each."""
    np.save("good.npy", np.ones((3, 3), bool))
    np.save("labels_like.npy", np.array([[-1, 0], [1, 1]]))
    np.save("three.npy", np.array([[0, 1], [2, 1]], np.uint8))
    np.save("nan.npy", np.array([[0.0, 1.0], [np.nan, 1.0]]))
    np.save("infinite.npy", np.array([[0.0, np.inf]]))
    np.save("complex.npy", np.zeros((2, 2), complex))
    np.save("text.npy", np.array([["a", "b"]]))
    np.save("row.npy", np.ones(4, bool))
    np.save("four.npy", np.ones((2, 2, 2, 2), bool))
    np.save("empty.npy", np.ones((0, 3), bool))
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("archive.npz", np.ones((2, 2)))
    whole = Path("good.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-2])
    Path("stub.npy").write_bytes(whole[:30])
    Path("renamed.npy").write_bytes(b"not numpy at all")
    Path("huge.npy").write_bytes(
        npy_with("{'descr': '|b1', 'fortran_order': False, 'shape': (65536, 65536)}")
    )
    Path("claims.npy").write_bytes(
        npy_with("{'descr': '|b1', 'fortran_order': False, 'shape': (20000, 1000)}")
    )
    Path("negative.npy").write_bytes(
        npy_with("{'descr': '|b1', 'fortran_order': False, 'shape': (-3, -3)}")
    )
    Path("code.npy").write_bytes(npy_with("__import__('os').abort()"))
    pixels = np.zeros((40, 40), np.uint8)
    pixels[::2, 1::3] = 255
    colour = np.stack([pixels] * 3, axis=-1)
    Image.fromarray(colour).save("colour.png")
    png("alpha.png", colour, "RGBA")
    png("grey_alpha.png", pixels, "LA")
    png("palette.png", pixels, "P")
    png("transparent.png", pixels, "L", transparency=0)
    png("grey.png", np.arange(1600, dtype=np.uint8).reshape(40, 40))
    Path("cut.png").write_bytes(png(Path("whole.png"), pixels).read_bytes()[:70])
    jpeg = io.BytesIO()
    Image.fromarray(pixels).save(jpeg, "JPEG")
    Path("photo.png").write_bytes(jpeg.getvalue())
    with h5py.File("data.h5", "w") as file:
        file["mask"] = np.ones((3, 3), np.uint8)
        file["text"] = "words"
        file["table"] = np.zeros(3, dtype=[("x", int)])
        file["group/inner"] = np.ones((2, 2))
        file["soft"] = h5py.SoftLink("/mask")
        file["away"] = h5py.ExternalLink("other.h5", "/mask")
        file["nothing"] = h5py.Empty("f8")
        file.create_dataset("claims", (40000, 1000), np.uint8, chunks=(1000, 1000))
        layout = h5py.VirtualLayout((2, 2), np.uint8)
        layout[:] = h5py.VirtualSource("other.h5", "mask", (2, 2))
        file.create_virtual_dataset("virtual", layout)
    Path("broken.h5").write_bytes(Path("data.h5").read_bytes()[:900])
    np.save("bonds.npy", np.zeros((2, 1), np.uint32))
    np.save("wide.npy", np.zeros((2, 1), np.int64))
    np.save("outside.npy", np.full((2, 1), 2**32 - 1, np.uint32))
    Path("folder.npy").mkdir()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nowhere.npy", "nowhere.npy: no such file"),
        ("folder.npy", "folder.npy: is not a regular file"),
        ("labels_like.npy", "labels_like.npy: holds -1, but a site configuration holds 0"),
        ("three.npy", "three.npy: holds 1, but a site configuration holds 0 (vacant) and one"),
        ("nan.npy", "nan.npy: holds nan, but"),
        ("infinite.npy", "infinite.npy: holds inf, but"),
        ("complex.npy", "complex.npy: holds complex128; a site configuration holds booleans"),
        ("text.npy", "text.npy: holds <U1; a"),
        ("row.npy", "row.npy: an array of 1 dimensions; name its lattice with --lattice"),
        ("four.npy", "four.npy: an array of 4 dimensions; name its lattice"),
        ("four.npy --lattice cubic", "four.npy: 4 dimensions, but cubic has 3"),
        ("good.npy --lattice cubic", "good.npy: 2 dimensions, but cubic has 3"),
        ("empty.npy", "empty.npy: 0 sites, but 1 to 2147483584 can be labeled"),
        ("objects.npy", "objects.npy: holds Python objects (a pickle), which are not read"),
        ("archive.npz", "archive.npz: not .npy, .png, or an HDF5 dataset"),
        ("short.npy", "short.npy: truncated: 7 bytes of data, but (3, 3) of bool are 9"),
        ("stub.npy", "stub.npy: is not an NPY file, or its header is damaged"),
        ("renamed.npy", "renamed.npy: is not an NPY file"),
        ("huge.npy", "huge.npy: 4294967296 sites, but 1 to"),
        ("claims.npy", "claims.npy: truncated: 0 bytes of data"),
        ("negative.npy", "negative.npy: the header gives the shape (-3, -3)"),
        ("code.npy", "code.npy: is not an NPY file, or its header is damaged"),
        ("colour.png", "colour.png: an image of mode RGB with colours, palette or alpha; save it"),
        ("alpha.png", "alpha.png: an image of mode RGBA"),
        ("grey_alpha.png", "grey_alpha.png: an image of mode LA"),
        ("palette.png", "palette.png: an image of mode P"),
        ("transparent.png", "transparent.png: an image of mode L with colours, palette or alpha"),
        ("grey.png", "grey.png: holds 1, but a site configuration holds 0 (vacant) and one"),
        ("cut.png", "cut.png: is not a PNG image, or is truncated or damaged"),
        ("photo.png", "photo.png: is not a PNG image"),
        ("data.h5", "data.h5: name the dataset as well, as in data.h5:/path/to/dataset"),
        ("data.h5:/absent", "data.h5: no dataset '/absent': / holds away, claims, group"),
        ("data.h5:/mask/deep", "data.h5: no dataset '/mask/deep': /mask holds nothing"),
        ("data.h5:/group", "data.h5: /group is no dataset but a group; it holds inner"),
        ("data.h5:/soft", "data.h5: '/soft': 'soft' is a link, and links are not followed"),
        ("data.h5:/away", "data.h5: '/away': 'away' is a link, and links are not followed"),
        ("data.h5:/virtual", "data.h5:/virtual takes its data from another file"),
        ("data.h5:/claims", "data.h5:/claims claims more data than its file can hold"),
        ("data.h5:/text", "data.h5:/text: holds no plain numbers"),
        ("data.h5:/table", "data.h5:/table: holds [('x', '<i8')]; a"),
        ("data.h5:/nothing", "data.h5:/nothing: holds no plain numbers"),
        ("broken.h5:/mask", "broken.h5: is not a readable HDF5 file"),
        ("good.npy --lattice squar", "unknown lattice 'squar'; did you mean 'square'?"),
        ("good.npy --boundary perodic", "unknown boundary 'perodic'; did you mean 'periodic'?"),
        ("good.npy --boundary open,open,open", "boundary: 3 given, but square has 2 axes"),
        ("good.npy --labeler rastre", "unknown labeler 'rastre'; did you mean 'raster'?"),
        ("good.npy --device quick", "--device quick: must be auto, cpu, cuda or cuda:n"),
        ("good.npy -p 0.5", "-p: INPUT is a configuration already; leave it out"),
        ("good.npy --seed 3", "--seed: INPUT is a configuration already; leave it out"),
        ("good.npy --lattice kagome --boundary periodic", "kagome: 3 grid points along periodic"),
        ("bonds.npy -L 4", "a configuration of bonds (-L) needs --lattice"),
        ("bonds.npy -L 7 --lattice square", "bonds.npy: uint32 (2, 1), but the open bonds of squ"),
        ("wide.npy -L 4 --lattice square", "wide.npy: int64 (2, 1), but the open bonds of square"),
        ("good.npy -L 3 --lattice square", "good.npy: bool (3, 3), but the open bonds of square"),
        ("outside.npy -L 4 --lattice square", "outside.npy: word 0 of class 0 opens a bond that"),
        ("--lattice square -L 4", "a sample (without INPUT) needs -p"),
        ("", "a sample (without INPUT) needs --lattice and -L and -p"),
        ("--lattice square -L 0 -p 0.5", "L = 0, but it must be an integer of at least 1"),
        ("--lattice square -L 99999 -p 0.5", "L = 99999: 9999800001 sites, but at most"),
        ("--lattice square -L 4 -p nan", "p = nan, but it must be a number from 0 to 1"),
        ("--lattice square -L 4 -p 1.5", "p = 1.5, but it must be a number from 0 to 1"),
        ("--lattice square -L 4 -p 0.5 --rng xorwov", "unknown rng 'xorwov'; did you mean"),
        ("--bethe 3 --shells 4", "a Bethe lattice needs -p"),
        ("--bethe 3 -p 0.5", "a Bethe lattice needs --shells"),
        ("--bethe 3 --shells 4 -p 0.5 -L 4", "-L: a Bethe lattice (--bethe) has its own size"),
        ("--bethe 3 --shells 0 -p 0.5", "0 shells, but a Bethe lattice has at least 1"),
        ("--bethe 2 --shells 4 -p 0.5", "coordination number 2: a Bethe lattice needs at least 3"),
        ("--bethe 3 --shells 4 -p 0.5 --numbering randm", "unknown numbering 'randm'; did you"),
        ("--lattice bethe:3 -L 4 -p 0.5 --boundary open", "unknown boundary 'open'"),
        ("--lattice square -L 4 -p 0.5 --shells 4", "--shells: only a Bethe lattice (--bethe) has"),
        ("good.npy --bethe 3", "--bethe: INPUT is a configuration already; leave it out"),
        ("good.npy --out labels.txt", "labels.txt: labels are written as .npy or .h5"),
        ("good.npy --out no/labels.h5", "no/labels.h5: the directory no does not exist"),
        ("good.npy --out folder.npy", "folder.npy: is a directory"),
        ("good.npy --out good.npy", "good.npy: is the input itself; give another name"),
        ("data.h5:/mask --out data.h5", "data.h5: is the input itself; give another name"),
        ("good.npy --out data.h5", "data.h5: holds something else than labels; give another name"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(arguments, told):
    prepared()
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
    assert refusal("label", *arguments.split()).startswith(told)
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before


def test_results_of_a_sweep_are_never_replaced_but_labels_are():
    stored(Path("results.h5"))
    before = Path("results.h5").read_bytes()
    assert "holds something else" in refusal("label", *SAMPLE, "--out", "results.h5")
    assert Path("results.h5").read_bytes() == before
    for _ in range(2):
        answer("label", *SAMPLE, "--out", "labels.h5")


@pytest.mark.parametrize("name", ["claims.npy", "huge.npy", "data.h5:/claims", "short.npy"])
def test_no_memory_is_taken_for_what_is_not_there(name):
    prepared()
    run("label", "good.npy")
    tracemalloc.start()
    try:
        refusal("label", name)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_large_image_is_refused_before_it_is_unpacked(monkeypatch):
    png("image.png", np.zeros((100, 100), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 9000)
    assert refusal("label", "image.png") == "image.png: more than 9000 pixels; save it as NPY"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert refusal("label", "image.png") == "image.png: more than 1000 pixels; save it as NPY"


def test_more_sites_than_fit_into_memory_are_refused(monkeypatch):
    class Little:
        available = 10**5

    np.save("image.npy", np.ones((100, 100), bool))
    monkeypatch.setattr("psutil.virtual_memory", lambda: Little)
    assert "10000 sites need 0.0 GB of memory" in refusal("label", "image.npy")
    assert "L = 99 needs" in refusal("label", "--lattice", "square", "-L", 99, "-p", 0.5)
    told = refusal("label", "--bethe", 3, "--shells", 10, "-p", 0.5)
    assert told.startswith("10 shells: 3070 sites need 0.0 GB of memory")


@pytest.mark.parametrize("name", ["image.npy", "image.png", "image.h5"])
def test_damage_anywhere_in_a_file_is_told_in_one_line(name):
    """Flip and cut bytes: a file is labeled or refused, and nothing else happens."""
    pixels = (np.random.default_rng(1).random((16, 16)) < 0.5).astype(np.uint8)
    np.save("image.npy", pixels)
    png("image.png", pixels * 255)
    # Without the checksums of this format HDF5 itself may loop forever.
    with h5py.File("image.h5", "w", libver=("v108", "v108")) as file:
        file.create_dataset("mask", data=pixels, chunks=(8, 8), compression="gzip")
    whole = Path(name).read_bytes()
    random = np.random.default_rng(4)
    for turn in range(100):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= int(random.integers(1, 256))
        Path(name).write_bytes(damaged[: random.integers(len(whole))] if turn % 3 == 0 else damaged)
        result = run("label", f"{name}:/mask" if name.endswith("h5") else name, "--out", "l.npy")
        assert result.exit_code in (0, 2), (turn, result.exception)
        assert result.exit_code == 0 or len(result.stderr.splitlines()) == 1
        if name == "image.png" and result.exit_code == 0:
            # Every part of a PNG has a checksum.
            np.testing.assert_array_equal(np.load("l.npy") >= 0, pixels)


def test_lattice_of_a_users_file_is_kept_in_the_labels():
    Path("mine.toml").write_text(TEXTS["honeycomb_unit_cell"])
    np.save("image.npy", np.ones((3, 8), bool))
    answer("label", "image.npy", "--lattice", "mine.toml")
    found = read_labels("labels.h5")
    assert found.lattice.name == "honeycomb_unit_cell"
    assert found.lattice.digest == load_lattice("mine.toml").digest


# CUDA


class _Batch:
    """Stands for a CUDA labeler of any name: what it labels, it labels on the CPU."""

    def __init__(self, topology, model, *, capacity):
        assert capacity == 1
        if topology.num_points > 1000:
            raise ValueError("too many for it")
        self.single = cpu_labeler("reference", topology)

    def open_bonds(self, generator, seed, samples, thresholds):
        self.single.open_bonds(generator, seed, *samples, *thresholds)
        return 1

    def load_bonds(self, opened):
        self.single.opened[:] = opened.ravel()
        return 1

    def label_items(self, items):
        self.labels = [self.single.label()]

    def labels_of(self, items):
        return self.labels


@pytest.mark.parametrize(
    ("name", "size", "labeler", "chosen"),
    [
        ("hypercubic-4d", 4, (), "four_step"),
        ("hypercubic-4d", 4, ("--labeler", "tiled"), "four_step"),
        ("hypercubic-4d", 4, ("--labeler", "label_equivalence"), "label_equivalence"),
        ("square", 9, (), "tiled"),
    ],
)
def test_lattice_that_tiles_cannot_have_is_labeled_by_four_steps_and_said_so(
    name, size, labeler, chosen, monkeypatch
):
    asked = []

    def class_of(labeler, kind):
        asked.append((labeler, kind))
        return _Batch

    monkeypatch.setattr("percolab.api.labeler_class", class_of)
    monkeypatch.setattr(Device, "resolve", lambda self: Device("cuda"))
    options = ("--lattice", name, "-L", size, "-p", 0.3, *labeler)
    done = run("label", *options, "--device", "auto", "--out", "labels.npy")
    assert done.exit_code == 0, done.output
    note = "tiled knows 3 axes at most; four_step takes its place\n"
    assert done.stderr == (note if chosen == "four_step" else "")
    expected = percolab.label(
        name, size, 0.3, device="auto", labeler=labeler[-1] if labeler else None
    )
    np.testing.assert_array_equal(np.load("labels.npy"), expected)
    assert asked == [(chosen, "cuda")] * 2
    told = refusal("label", "--lattice", "square", "-L", 40, "-p", 0.3, "--device", "auto")
    assert told == "1600 sites on auto: too many for it"


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
    matrix = coo_array((np.ones(len(pairs)), pairs.T), (300, 300))
    component = connected_components(matrix, directed=False)[1]
    smallest = np.unique(component, return_index=True)[1][component]
    labels, sizes = labels_in("labels.h5"), np.unique(component, return_counts=True)[1]
    np.testing.assert_array_equal(labels, smallest)
    assert said["clusters"] == sizes.size
    assert said["largest"] == sizes.max()
    spans = component[0] in (component[5], component[299])
    assert said["spanning"] == ["source-target"] * spans


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
        (("--lattice", "square"), "--lattice: a graph (--graph) has its own; leave it out"),
        (("--seed", "2"), "--seed: without -p all bonds are open; leave it out"),
        (("--source", "0"), "source is given without target"),
        (("--bethe", "3"), "--bethe: a graph (--graph) is no Bethe lattice"),
    ],
)
def test_what_a_graph_does_not_have_is_refused(options, told):
    Path("graph.csv").write_text("0,1\n1,2\n")
    assert told in refusal("label", "--graph", "graph.csv", *options)
    assert not Path("labels.h5").exists()
