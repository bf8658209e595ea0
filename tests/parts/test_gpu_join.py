"""CUDA joins interfaces as the CPU does, on a real GPU."""

import numpy as np
import pytest
from helpers import lattice, probabilities
from interface_support import assert_same_interface, fake_interface, joined_on_gpu, random_steps
from parts_support import interfaces_of

from percolab.api import sweep
from percolab.bonds.words import p_to_threshold
from percolab.lattices.topology import period_codes
from percolab.measure.tallies import num_bins
from percolab.parts.interface import join
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import thicknesses
from percolab.tasks.blocks import same_block

pytestmark = pytest.mark.gpu

OPEN, TORUS, MIXED = ("open",) * 3, ("periodic",) * 3, ("periodic", "open", "periodic")
SHAPES = {"square": (700, 90), "kagome": (502, 60), "cubic": (60, 50, 24)}


@pytest.fixture(scope="module")
def gpu():
    from percolab.parts.join_cuda import InterfacesCuda

    return InterfacesCuda()


@pytest.mark.parametrize("boundary", [OPEN, TORUS, MIXED], ids=["open", "torus", "mixed"])
@pytest.mark.parametrize("name", SHAPES)
def test_joined_interfaces_and_rows_equal_those_of_the_cpu(gpu, name, boundary):
    shape, rng = SHAPES[name], np.random.default_rng(len(name))
    for number, p in enumerate(probabilities(name) * 2):
        whole = Whole(lattice(name), shape, boundary[: len(shape)])
        layers, tally = thicknesses(whole, 5), number % 2 == 0
        draw = SampleKey(number % 2, 5, number, p_to_threshold(p))
        interfaces = interfaces_of(whole, draw, layers, tally=tally)
        chain = number % 3 == 0
        steps = [0] * 4 if chain else random_steps(5, rng)
        joined_on_gpu(gpu, interfaces, steps, whole, keep=chain)


def made(rng, entries, clusters, *, codes):
    """Return two interfaces with random entries of equally many bonds a face.

    Clusters are at places of their own, so that none winds.
    """
    interfaces, places = [], rng.integers(-20, 20, (2, clusters, 2))
    for side in range(2):
        named = np.concatenate([np.arange(clusters), rng.integers(clusters, size=entries)])
        faces = [rng.permutation(named) for _ in range(2)]
        given = [period_codes(places[side, face]) for face in faces] if codes else None
        sizes = rng.integers(1, 2**40, clusters)
        interface = fake_interface(side, sizes, *faces, codes=given, bins=num_bins(2**50))
        interface.flags[:] = rng.integers(16, size=clusters)
        interfaces.append(interface)
    return interfaces


@pytest.mark.parametrize("codes", [False, True], ids=["open", "torus"])
@pytest.mark.parametrize(("entries", "clusters"), [(10, 100_000), (300_000, 100_000), (50_000, 3)])
def test_many_random_entries_are_joined_as_on_the_cpu(gpu, entries, clusters, codes):
    from percolab.parts.join_cuda import to_device, to_host

    rng = np.random.default_rng(entries)
    for _ in range(3):
        low, high = made(rng, entries, clusters, codes=codes)
        expected, found = join(low, high), to_host(gpu.join(to_device(low), to_device(high)))
        assert_same_interface(expected, found)
        assert not expected.sums.loop


def test_paths_of_a_million_links_are_joined(gpu):
    from percolab.parts.join_cuda import to_device, to_host

    links = np.arange(500_000)
    faces = np.repeat(links, 2)[1:-1], np.repeat(links[:-1], 2)
    for step in (1, -1):
        low = fake_interface(0, np.ones(links.size), [], faces[0][::step])
        high = fake_interface(1, np.ones(links.size - 1), faces[1][::step], [0])
        found = to_host(gpu.join(to_device(low), to_device(high)))
        assert_same_interface(join(low, high), found)
        assert found.sizes.tolist() == [2 * links.size - 1]


@pytest.mark.parametrize(
    ("name", "size", "boundary"),
    [("square", 600, "periodic"), ("cubic", 64, ("open", "periodic", "periodic"))],
)
def test_a_study_in_slabs_has_the_blocks_of_whole_samples(name, size, boundary):
    settings = {"L": [size], "p": list(probabilities(name)[1:4]), "samples": 6, "block_size": 2}
    settings |= {"boundary": boundary, "measure": "sizes"}
    found = sweep(lattice(name), **settings, slabs=5, device="cuda", workers=2)
    expected = sweep(lattice(name), **settings, device="cpu")
    (one,), (other,) = found.tasks.values(), expected.tasks.values()
    assert found.runs[0]["slabs"] == {str(size): 5}
    assert all(same_block(block, other.blocks[n]) for n, block in one.blocks.items())
    assert one.blocks.keys() == other.blocks.keys()
