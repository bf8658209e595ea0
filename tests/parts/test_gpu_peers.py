"""Interfaces go from the GPU of one process to that of another, by memory that both map."""

import multiprocessing
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from parts_support import row_by_slabs

from percolab.kernels.device import Device, gpu_count
from percolab.lattices.lattice import load_lattice
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
from percolab.parts.slabs import Slabs
from percolab.parts.transport import Sockets

pytestmark = pytest.mark.gpu

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
