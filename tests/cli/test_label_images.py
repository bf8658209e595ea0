"""Grey and coloured images, stacks of images, and arrays from Python, as sites."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal
from PIL import Image

import percolab
from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError

pytestmark = pytest.mark.usefixtures("own_directory")


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
        (np.array([[0, 1, 2]]), {}, "the array: holds 1, but a site configuration holds 0"),
        (np.ones((2, 2), complex), {}, "the array: holds complex128; a site"),
        (np.ones(3), {}, "the array: an array of 1 dimensions; name its lattice"),
        (np.ones((2, 2)), {"L": 2}, "L: an image is a configuration already; leave it out"),
        (np.ones((2, 2)), {"below": True}, "the array: below: says which side of a threshold"),
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
