"""Labels slab by slab: those of the whole image at once, bit for bit, and the same table."""

import json
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import slow

import percolab
from percolab.configurations import label_slabs
from percolab.lattices.lattice import lattice_from_text

pytestmark = pytest.mark.usefixtures("own_directory")

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


def test_slabs_are_as_many_as_the_memory_takes(monkeypatch):
    class Little:
        available = 4 * label_slabs._BYTES * 3 * 60

    monkeypatch.setattr("psutil.virtual_memory", lambda: Little)
    bounds = label_slabs._cut((10, 6, 10), "auto", 1)
    assert bounds == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--slabs 0 --phase 1", "slabs = 0, but it must be auto or an integer from 1 to 4"),
        ("--slabs 5 --phase 1", "slabs = 5, but it must be auto or an integer from 1 to 4"),
        ("--slabs few --phase 1", "slabs = 'few', but it must be auto or"),
        ("--slabs 2 --phase 9", "image.npy: no phase 9 in it; its values are 0, 1, 2"),
        ("--slabs 2 --threshold otsu", "image.npy: in slabs Otsu's threshold is not known"),
        ("--slabs 2 --phase 1 --out a.h5", "a.h5: in slabs labels are written as .npy"),
        ("--slabs 2 --phase 1 --serial", "--serial: labels in slabs (--slabs) have none"),
        ("--slabs 2 --phase 1 --lattice diamond", "slabs: diamond on 4 layers cannot be cut"),
        ("--slabs 2 -L 4 --lattice square", "-L: an image (--slabs) has none; leave it out"),
        ("--slabs 2 --out image.npy --phase 1", "image.npy: is the input itself"),
    ],
    ids=str,
)
def test_what_slabs_cannot_do_is_refused_in_one_line_and_leaves_nothing(options, told):
    np.save("image.npy", np.arange(48).reshape(4, 3, 4) % 3)
    before = sorted(Path().iterdir())
    assert refusal("label", "image.npy", *options.split()).startswith(told)
    assert sorted(Path().iterdir()) == before


def test_a_target_of_another_shape_or_type_is_refused():
    image = np.ones((4, 5), bool)
    for out in (np.zeros((4, 4), np.int32), np.zeros((4, 5), np.int16)):
        with pytest.raises(
            percolab.InputError, match=r"but the labels are int32 of shape \(4, 5\)"
        ):
            percolab.label_in_slabs(image, out=out)
