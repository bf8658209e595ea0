"""Parts on real GPUs: interfaces, joins, rows and peers are those of the CPU."""

import multiprocessing
from contextlib import closing
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import lattice, probabilities
from interface_support import assert_same_interface, fake_interface, joined_on_gpu, random_steps
from parts_support import interfaces_of, row_by_slabs
from slab_support import check_bonds_before, compare_interfaces, compare_rows

from percolab.api import sweep
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import p_to_threshold
from percolab.coupled import new_coupling
from percolab.kernels.device import Device, gpu_count
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import period_codes
from percolab.measure.tallies import num_bins
from percolab.parts.interface import join
from percolab.parts.parts import Whole
from percolab.parts.ranks import (
    Leader,
    RankJob,
    choose_rank_layers,
    follow,
    interface_from_head,
    interface_head_arrays,
    offered_bytes,
)
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs, thicknesses
from percolab.parts.transport import Sockets
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


MODELS = (
    BOND,
    Model.parse("site"),
    Model.parse("site-bond:site=0.9"),
    Model.parse("site-bond:bond=0.8"),
)
#: Grid points of a layer, and the layers of slabs, in words and across them.
LAYERS = {2: (((1501,), (70, 31, 40)), ((1024,), (64, 64, 31))), 3: (((61, 47), (20, 3, 11)),)}


def draws_of(name, model, number):
    """Return draws of samples below the threshold, at it and above it, and at p = 1."""
    middle = probabilities(name)[2] ** (0.6 if model.draws_sites else 1)
    ps = (0.6 * middle, middle, 0.97 * middle + 0.03, 1.0)
    return [SampleKey(number % 2, 5, 10 * number + k, p_to_threshold(p)) for k, p in enumerate(ps)]


@pytest.mark.parametrize("name", ["square", "triangular", "kagome", "cubic", "bcc"])
def test_interfaces_and_rows_are_those_of_the_cpu(name):
    item = load_lattice(name)
    boundaries = product(("open", "periodic"), repeat=item.dimension)
    for n, ((layer, layers), boundary) in enumerate(product(LAYERS[item.dimension], boundaries)):
        axes = zip((*layer, sum(layers)), item.cell, boundary)
        shape = tuple(
            -(-size // cell) * cell if kind == "periodic" else size for size, cell, kind in axes
        )
        slabs = (*layers[:-1], layers[-1] + shape[-1] - sum(layers))
        model, tally = MODELS[(n + n // 4) % 4], n % 3 == 0
        whole = Whole(item, shape, boundary, model)
        compare_rows(whole, draws_of(name, model, n), slabs, tally=tally)


@pytest.mark.parametrize("bits", [31, 36, 41, 54])
@pytest.mark.parametrize("width", [3001, 2048])
def test_interfaces_far_inside_are_those_of_the_cpu(bits, width):
    shape, boundary = (width, 2**55 // width), ("periodic", "open")
    whole = Whole(load_lattice("square"), shape, boundary, MODELS[bits % 4])
    draws = [SampleKey(generator, 5, 1, p_to_threshold(0.7)) for generator in (0, 1)]
    compare_interfaces(whole, draws, (100, 50, 100), 2**bits // width - 120, tally=True)


def test_open_bonds_before_every_block_of_a_face_are_counted():
    check_bonds_before()


@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize(("name", "width", "p"), [("square", 2**19, 0.5), ("cubic", 512, 0.2488)])
def test_rows_of_slabs_with_wide_faces_are_those_of_whole_lattices(name, width, p, boundary):
    item, depth = load_lattice(name), 210
    shape = (width,) * (item.dimension - 1) + (depth,)
    kinds = (boundary,) * item.dimension
    slabs = Slabs(Whole(item, shape, kinds), (32,) * 6 + (18,), kind="cuda")
    reference = new_coupling(None, "cuda", item.topology(shape, kinds))
    for generator in (0, 1):
        draw = SampleKey(generator, 7, 3, p_to_threshold(p))
        one = np.array([draw.sample], np.uint64), np.array([draw.threshold], np.uint64)
        expected = reference.rows(generator, draw.seed, *one)[0]
        np.testing.assert_array_equal(slabs.row(draw).numbers, expected)


WHOLE = Whole(load_lattice("cubic"), (40, 36, 60), ("periodic", "open", "periodic"))
DRAWS = [SampleKey(0, 1, sample, 2**62) for sample in (2, 3)]


def interface_of(draw, kind):
    """Return the slabs and an interface of the upper half of the lattice."""
    slabs = Slabs(WHOLE, (30,), kind=kind, first_layer=30)
    return slabs, slabs.interface(0, draw)


def offer_interfaces(pipe, device):
    from percolab.parts.peers_cuda import Outbox

    with Device("cuda", device).driven():
        outbox = Outbox()
        for draw in DRAWS:
            _, interface = interface_of(draw, "cuda")
            pipe.send(interface_head_arrays(interface) + outbox.offer(interface))
            pipe.recv()


# Of one GPU, and from one to another where there are two.
@pytest.mark.parametrize("device", [0, 1])
def test_an_interface_of_another_process_is_copied_here(device):
    if device >= gpu_count("cuda"):
        pytest.skip("there are no two GPUs")
    from percolab.parts.peers_cuda import Inbox

    mine, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=offer_interfaces, args=(other, device), daemon=True
    )
    process.start()
    with Device("cuda", 0).driven():
        inbox = Inbox()
        for draw in DRAWS:
            assert mine.poll(120)
            *head, where, name = mine.recv()
            slabs, expected = interface_of(draw, "cuda")
            expected = slabs.copied(expected)
            found = slabs.copied(inbox.take([where, name], interface_from_head(head), 1))
            assert expected.num_bytes == offered_bytes([where, name]) > 0
            # A loop may be found either way around.
            assert replace(found.sums, loop=0) == replace(expected.sums, loop=0)
            assert found.first_layer == expected.first_layer == 30
            # Numbers of clusters may be in another order.
            for one, two in ((found.low, expected.low), (found.high, expected.high)):
                sizes = found.sizes[one.clusters], expected.sizes[two.clusters]
                np.testing.assert_array_equal(*sizes)
                flags = found.flags[one.clusters], expected.flags[two.clusters]
                np.testing.assert_array_equal(*flags)
                assert one.codes.shape == two.codes.shape
            mine.send("copied")
        # What does not exist any more, here either, cannot be mapped.
        process.join(60)
        del inbox
        assert Inbox().take([where, name], interface_from_head(head), 1) is None


def follow_with_socket(folder, size):
    with closing(Sockets(1, size, folder)) as transport:
        follow(transport)


def test_ranks_of_two_processes_hand_on_interfaces_without_the_host(tmp_path_factory, monkeypatch):
    """Rows are those of the whole lattice; the message has only the place of the interface."""
    folder = tmp_path_factory.mktemp("s")
    process = multiprocessing.get_context("spawn").Process(
        target=follow_with_socket, args=(folder, 2), daemon=True
    )
    process.start()
    devices = ("cuda:0", "cuda:1" if gpu_count("cuda") > 1 else "cuda:0")
    job = RankJob(WHOLE, choose_rank_layers(WHOLE, 2, thick=16), devices=devices, p=0.3)
    with closing(Sockets(0, 2, folder)) as transport:
        leader = Leader(transport)
        for draw in DRAWS:
            row, steps = leader.row(job, draw)
            np.testing.assert_array_equal(row.numbers, row_by_slabs(WHOLE, draw).numbers)
            (joined,) = (step for step in steps if step.stage == 0)
            assert joined.bytes > 10_000 > transport.traffic.bytes_received
        leader.end()
    process.join(60)
    assert process.exitcode == 0
