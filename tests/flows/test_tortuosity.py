"""Tortuosity factors of images: known ones, and those of a dense solve of the same voxels."""

import json

import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import slow

import percolab
from percolab.errors import InputError


def dense_tortuosity(image, *, periodic=False):
    """Return porosity / (D_eff / D) along the first axis of an array, by the matrix of its voxels.

    Concentrations 1 and 0 at the two faces, half a voxel from the middle of the first and the last
    layer; nothing flows through the other sides, or they are periodic.
    """
    voxels = np.argwhere(image)
    number = {tuple(at): n for n, at in enumerate(voxels.tolist())}
    matrix, inflow = np.eye(len(voxels)) * 0.0, np.zeros(len(voxels))
    for at, n in number.items():
        for axis in range(image.ndim):
            for step in (-1, 1):
                other = list(at)
                other[axis] += step
                if axis and periodic:
                    other[axis] %= image.shape[axis]
                if axis == 0 and not 0 <= other[0] < image.shape[0]:
                    matrix[n, n] += 2
                    inflow[n] += 2 * (step < 0)
                elif tuple(other) in number:
                    matrix[n, n] += 1
                    matrix[n, number[tuple(other)]] -= 1
    # Without contact to a face a piece has any concentration, here the least.
    concentration = np.linalg.lstsq(matrix, inflow, rcond=None)[0]
    flux = sum(2 * (1 - concentration[n]) for at, n in number.items() if at[0] == 0)
    area = image[0].size
    through = np.zeros(image.shape)
    for at, n in number.items():
        # What leaves is what enters.
        gained = 2 * (1 - concentration[n]) * (at[0] == 0)
        drops = [concentration[m] - concentration[n] for m in np.flatnonzero(matrix[n]) if m != n]
        times = [-matrix[n, m] for m in np.flatnonzero(matrix[n]) if m != n]
        gained += sum(max(drop, 0) * many for drop, many in zip(drops, times))
        through[at] = gained / flux
    return image.mean() / (flux * image.shape[0] / area), through


@pytest.mark.parametrize("shape", [(6, 9), (5, 4, 3)])
def test_straight_channels_and_whole_images_have_one(shape):
    whole = np.ones(shape, bool)
    assert percolab.flow(whole).tortuosity == pytest.approx(1, rel=1e-13)
    layers = np.zeros(shape, bool)
    layers[..., ::2] = True
    assert percolab.flow(layers).tortuosity == pytest.approx(1, rel=1e-13)
    # Across the layers nothing flows.
    assert percolab.flow(layers, axis="x").tortuosity == np.inf


def test_a_bent_channel_has_the_square_of_its_length():
    """n voxels one after the other, over L layers: G = 1 / n, so that tau = (n / L)^2."""
    stairs = np.zeros((6, 7), bool)
    stairs[0, 0] = stairs[5, 4] = True
    for n in range(1, 5):
        stairs[n, n - 1 : n + 1] = True
    assert percolab.flow(stairs).tortuosity == pytest.approx((10 / 6) ** 2, rel=1e-13)
    dead_end = stairs.copy()
    dead_end[4, 5:] = dead_end[0, 6] = True
    through = percolab.flow(dead_end).through.reshape(dead_end.shape)
    np.testing.assert_allclose(through, stairs, rtol=1e-12)
    # Voxels without a current raise the porosity alone.
    more = dead_end.sum() / stairs.sum()
    assert percolab.flow(dead_end).tortuosity == pytest.approx(more * (10 / 6) ** 2)


@pytest.mark.parametrize(
    ("shape", "p"), [slow((14, 11), 0.75), ((2, 6), 0.9), slow((6, 5, 7), 0.55), ((7, 3, 3), 0.9)]
)
def test_random_images_are_those_of_a_dense_solve(shape, p):
    rng, spanning = np.random.default_rng(5), 0
    last = "yz"[len(shape) - 2]
    for _ in range(4):
        image = rng.random(shape) < p
        found = percolab.flow(image)
        if not found.connected:
            assert found.tortuosity == np.inf
            continue
        spanning += 1
        tortuosity, through = dense_tortuosity(image)
        assert found.tortuosity == pytest.approx(tortuosity, rel=1e-9)
        np.testing.assert_allclose(found.through.reshape(shape), through, rtol=0, atol=1e-9)
        assert found.tortuosity >= 1 - 1e-12
        along_x = percolab.flow(image, axis="x").tortuosity
        turned = percolab.flow(np.moveaxis(image, -1, 0), axis=last).tortuosity
        assert along_x == pytest.approx(turned, rel=1e-9) or along_x == turned == np.inf
        rolled = ("periodic",) * (len(shape) - 1) + ("open",)
        wrapped = percolab.flow(image, boundary=rolled).tortuosity
        assert wrapped == pytest.approx(dense_tortuosity(image, periodic=True)[0], rel=1e-9)
    assert spanning >= 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: percolab.flow("square", 8, 0.9),
        lambda: percolab.flow(np.ones((5, 5), bool), source=0, target="y+"),
        lambda: percolab.flow(np.ones((5, 5), bool), lattice="triangular"),
        lambda: percolab.flow(np.ones((5, 5), bool), boundary="periodic"),
        lambda: percolab.flow(np.ones((5, 5), bool), conductances=np.ones((2, 5, 5))),
        lambda: percolab.flow(graph=[(0, 1)], source=0, target=1),
    ],
)
def test_what_is_no_image_between_faces_has_none(make):
    with pytest.raises(InputError, match="tortuosity is that of an image between two opposite"):
        _ = make().tortuosity


@pytest.mark.usefixtures("own_directory")
def test_the_command_writes_it_for_every_open_axis():
    image = np.zeros((4, 6), bool)
    image[:, 2:4] = True
    np.save("channel.npy", image)
    text = answer("label", "channel.npy", "--tortuosity")
    assert "tortuosity along y: 1\n" in text
    assert "tortuosity along x: infinite, nothing spans along it" in text
    record = json.loads(answer("label", "channel.npy", "--tortuosity", "--json"))
    assert record["tortuosity"] == {"x": None, "y": pytest.approx(1)}
    assert "tortuosity" not in json.loads(answer("label", "channel.npy", "--json"))
    np.save("phases.npy", image + 1)
    for words in (
        ("phases.npy", "--phase", "1,2"),
        ("channel.npy", "--lattice", "triangular"),
        ("channel.npy", "--boundary", "periodic"),
        ("--lattice", "square", "-L", "8", "-p", "0.5"),
    ):
        assert "image on the square or cubic lattice" in refusal("label", *words, "--tortuosity")
