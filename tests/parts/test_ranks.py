"""One lattice over ranks has the row of the whole lattice; messages between ranks."""

import socket
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import fields, replace
from itertools import islice, product

import numpy as np
import pytest
from helpers import slow
from parts_support import (
    MODELS,
    NAMES,
    boundaries_of,
    by_ranks,
    ps_of,
    row_by_slabs,
    row_of_the_whole,
    run_local,
    shape_of,
    structure,
)

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.parts import transport
from percolab.parts.parts import Whole
from percolab.parts.ranks import (
    Leader,
    RankJob,
    choose_rank_layers,
    follow,
    interface_from_arrays,
    interface_to_arrays,
    most_message,
)
from percolab.parts.raster import SampleKey, SlabRaster
from percolab.parts.slabs import Slabs
from percolab.parts.transport import Local, RankLost, Sockets


def assert_rows_equal(name, boundary, model, generator, p, ranks, *, rng, sizes=None):
    whole = Whole(structure(name), shape_of(name, boundary, sizes), boundary, model)
    least = max(whole.reach, 1)
    ranks = min(ranks, whole.num_layers // least)
    while True:
        slabs = int(rng.integers(1, whole.num_layers + 1))
        try:
            layers = choose_rank_layers(whole, ranks, slabs)
            break
        except InputError:
            ranks = max(ranks - 1, 1)
    tally = bool(rng.integers(2))
    draws = [SampleKey(generator, 5, int(rng.integers(1000)), p_to_threshold(p)) for _ in range(2)]
    for draw, (row, _) in zip(draws, by_ranks(RankJob(whole, layers, tally), draws)):
        expected = row_of_the_whole(whole, draw, tally=tally)
        case = f"{name} {whole.shape} {boundary} {model} {draw} p = {p}, layers {layers}"
        np.testing.assert_array_equal(row.numbers, expected, err_msg=case)
        assert row.sum_squares == expected[3], case


@pytest.mark.parametrize("name", [slow("square"), slow("kagome"), slow("cubic"), "far_reaching"])
def test_rows_of_ranks_are_those_of_the_whole_lattice(name):
    rng = np.random.default_rng(len(name))
    boundaries = boundaries_of(name)
    for n, p in enumerate((*ps_of(name), ps_of(name)[2]) * 2):
        boundary, model = boundaries[-n % len(boundaries)], MODELS[(n + n // 5) % 5]
        generator = list(GENERATORS.values())[n // 2 % 2]
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_ranks_with_all_boundaries_and_models(name):
    rng = np.random.default_rng(2)
    cases = product(boundaries_of(name), MODELS, GENERATORS.values(), ps_of(name))
    # Every seventh has all boundaries, models, generators and p, not each with each.
    for n, (boundary, model, generator, p) in islice(enumerate(cases), 0, None, 7):
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, rng=rng)


WHOLE = Whole(structure("square"), (24, 30), ("open", "periodic"))
DRAW = SampleKey(0, 1, 2, p_to_threshold(0.5))


def test_steps_report_what_every_rank_did():
    job = RankJob(WHOLE, choose_rank_layers(WHOLE, 6, 12))
    ((_, steps),) = by_ranks(job, [DRAW])
    # Stage 0 joins (0, 1), (2, 3), (4, 5), stage 1 (0, 2), stage 2 (0, 4); then it is closed.
    joined = [(step.stage, step.rank) for step in steps if 0 <= step.stage < 3]
    assert sorted(joined) == [(0, 0), (0, 2), (0, 4), (1, 0), (2, 0)]
    assert sorted(step.rank for step in steps if step.stage == -1) == list(range(6))
    assert [step.rank for step in steps if step.stage == 3] == [0]
    most = most_message(WHOLE)
    assert all(step.bytes < most + 1000 for step in steps)
    assert sum(step.bytes > 100 for step in steps) == 5


def test_a_message_is_the_interface():
    interface = Slabs(WHOLE, (30,), tally=True).interface(0, DRAW)
    clusters = interface.sums.clusters._replace(sum_squares=2**64 + 5)
    wide = replace(interface.sums, clusters=clusters, cubes=2**190 + 1, loop=-7)
    interface = replace(interface, sums=wide)
    found = interface_from_arrays(interface_to_arrays(interface))
    assert found.sums == wide
    assert [type(getattr(found.sums, item.name)) for item in fields(wide)] == [
        type(getattr(wide, item.name)) for item in fields(wide)
    ]
    for one, other in zip(interface_to_arrays(found), interface_to_arrays(interface), strict=True):
        np.testing.assert_array_equal(one, other)


class Memory64:
    """Stands for memory of GPUs that processes of one host can map: interfaces by their 64 bytes.

    What a rank offers takes the place of what it offered before.
    """

    def __init__(self, *, is_refused=False):
        self.is_refused, self.interfaces, self.taken, self.asked = is_refused, {}, 0, 0

    def peers_of(self, transport, _device):
        """Stand for :func:`percolab.parts.ranks.find_peers`."""
        return Outbox64(self, transport.rank), Inbox64(self)


class Outbox64:
    def __init__(self, memory, rank):
        self.memory, self.name = memory, np.full(64, rank, np.uint8)

    def offer(self, interface):
        arrays = [array.copy() for array in interface_to_arrays(interface)[-6:]]
        self.memory.interfaces[self.name.tobytes()] = arrays
        return [np.array([0, *(array.size for array in arrays)]), self.name]


class Inbox64:
    def __init__(self, memory):
        self.memory = memory

    def take(self, offer, interface, source):
        self.memory.asked += 1
        if self.memory.is_refused:
            return None
        self.memory.taken += 1
        arrays = self.memory.interfaces[offer[1].tobytes()]
        assert offer[0].tolist()[1:] == [array.size for array in arrays]
        return interface_from_arrays([*interface_to_arrays(interface)[:-6], *arrays])


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("is_refused", [False, True])
def test_interfaces_that_other_ranks_can_map_are_copied_there(ranks, is_refused, monkeypatch):
    memory = Memory64(is_refused=is_refused)
    job, draws = (
        RankJob(WHOLE, choose_rank_layers(WHOLE, ranks, 15)),
        [DRAW, replace(DRAW, sample=3)],
    )
    through_host = by_ranks(job, draws)
    monkeypatch.setattr("percolab.parts.ranks.find_peers", memory.peers_of)
    found = by_ranks(job, draws)
    for (row, steps), (expected, others) in zip(found, through_host, strict=True):
        np.testing.assert_array_equal(row.numbers, expected.numbers)
        # Both ways the same bytes are reported.
        joins = sorted(step[:3] for step in steps if step.stage >= 0)
        assert joins == sorted(step[:3] for step in others if step.stage >= 0)
    # A rank that was refused does not offer again.
    assert memory.taken == (0 if is_refused else 2 * (ranks - 1))
    assert memory.asked == (ranks - 1 if is_refused else 2 * (ranks - 1))


@pytest.mark.parametrize("memory", [None, Memory64(), Memory64(is_refused=True)])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_cancelled_row_leaves_nothing_behind(ranks, memory, monkeypatch):
    """Rank 0 leaves between its slabs, or while it waits; the next row is right."""
    if memory is not None:
        monkeypatch.setattr("percolab.parts.ranks.find_peers", memory.peers_of)
    job = RankJob(WHOLE, choose_rank_layers(WHOLE, ranks, 3 * ranks))
    expected = row_by_slabs(WHOLE, DRAW).numbers

    def work(transport):
        if transport.rank:
            return follow(transport)
        leader, found = Leader(transport), []
        for moment in range(6):
            answers = [True] + moment * [False]
            left = leader.row(job, DRAW, lambda left=answers: len(left) > 0 and left.pop())
            found.append(left is None)
            row, _ = leader.row(job, DRAW)
            np.testing.assert_array_equal(row.numbers, expected)
            assert not leader.is_busy
        leader.end()
        return found

    found = run_local(ranks, work)[0]
    # Between slabs, asked three times; then while it waits, perhaps.
    assert found[:3] == [True, True, True]
    if ranks == 1:
        assert not any(found[3:])


class Slow(SlabRaster):
    """Takes its time, and counts all slabs."""

    made = 0

    def make_interface(self, part, draw, following=None):
        Slow.made += 1
        time.sleep(0.1)
        return super().make_interface(part, draw, following)


@pytest.mark.parametrize("answers", [[True], [False, False, True]], ids=["at work", "waiting"])
def test_ranks_leave_a_row_that_rank_0_leaves(answers, monkeypatch):
    """After its one slab, or while it waits for the others."""
    monkeypatch.setattr("percolab.parts.slabs.SlabRaster", Slow)
    layers = ((2,), *((1,) * 14,) * 2)
    answers, Slow.made = iter(answers), 0

    def work(transport):
        if transport.rank:
            return follow(transport)
        leader = Leader(transport)
        assert leader.row(RankJob(WHOLE, layers), DRAW, lambda: next(answers)) is None
        leader.end()

    run_local(3, work)
    assert 1 < Slow.made < 1 + 2 * 14


def test_nothing_is_measured_after_rank_0_has_failed():
    job = RankJob(WHOLE, choose_rank_layers(WHOLE, 2, 2))

    def fail():
        raise ZeroDivisionError

    def work(transport):
        if transport.rank:
            with pytest.raises(RankLost):
                follow(transport)
            return
        leader = Leader(transport)
        with pytest.raises(ZeroDivisionError):
            leader.row(job, DRAW, fail)
        assert leader.is_busy
        with pytest.raises(RankLost, match="rank 0 has failed"):
            leader.row(job, DRAW)
        transport.abort("rank 0 has failed", 1)

    run_local(2, work)


def test_ranks_that_are_not_those_of_the_job_are_refused():
    job = RankJob(WHOLE, choose_rank_layers(WHOLE, 3, 3))
    (alone,) = Local.ranks(1)
    with pytest.raises(InputError, match="3 ranks are needed, but there are 1"):
        Leader(alone).row(job, DRAW)
    many = replace(job, devices=("cuda:0", "cuda:1"))
    with pytest.raises(InputError, match="3 ranks on one host, which has cuda:0, cuda:1; every"):
        many.choose_device(Local.ranks(3)[2])


def test_a_rank_without_memory_says_so(monkeypatch):
    monkeypatch.setattr("percolab.parts.ranks.RankJob.most_memory", Memory(10**18))
    (alone,) = Local.ranks(1)
    with pytest.raises(InputError, match=r"1 ranks on one host need 1000000000.0 GB of memory; "):
        Leader(alone).row(RankJob(WHOLE, ((30,),)), DRAW)


def test_layers_are_even():
    kagome = Whole(structure("kagome"), (8, 23), ("open", "open"))
    # Whole cells of two layers, as long as there are as many as ranks.
    assert choose_rank_layers(kagome, 3, 1) == ((8,), (8,), (7,))
    assert choose_rank_layers(kagome, 3, 7) == ((4, 2, 2), (4, 2, 2), (2, 2, 3))
    assert [sum(own) for own in choose_rank_layers(kagome, 15, 15)] == [2] * 8 + [1] * 7
    assert choose_rank_layers(kagome, 5, 23)[-1] == (1,) * 5
    far = Whole(structure("far_reaching"), (6, 9), ("open", "open"))
    for given, message in (
        ((24, 24), "24 ranks, but there are 23 layers"),
        ((4, 40), "40 slabs, but there are 23 layers"),
    ):
        with pytest.raises(InputError, match=message):
            choose_rank_layers(kagome, *given)
    with pytest.raises(InputError, match="bonds of far_reaching reach over 2 layers"):
        choose_rank_layers(far, 5, 5)


ARRAYS = [
    np.arange(5, dtype=np.uint32),
    np.empty(0, np.int64),
    np.array([[2**63, 1], [0, 7]], np.uint64),
    np.array(True),
    np.array([0.1, -np.inf]),
    np.arange(20, dtype=np.int32)[::3],
]


def assert_equal(found, expected):
    assert [array.dtype for array in found] == [array.dtype for array in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def talk(own):
    """Send to the ranks before and after this one, and check what comes from them."""
    for step in (1, own.size - 1):
        to, source = (own.rank + step) % own.size, (own.rank - step) % own.size
        if own.size == 2:
            got = own.exchange(to, [*ARRAYS, np.array([own.rank])])
        elif own.rank == 0:
            own.send(to, [*ARRAYS, np.array([own.rank])])
            got = own.receive(source)
        else:
            got = own.receive(source)
            own.send(to, [*ARRAYS, np.array([own.rank])])
        assert_equal(got, [*ARRAYS, np.array([source])])
    return own.traffic


def by_sockets(folder, size, work):
    """Do as run_local does, by sockets of ranks that are threads here."""
    found = [None] * size
    with ExitStack() as stack:
        ranks = [stack.enter_context(closing(Sockets(n, size, folder))) for n in range(size)]

        def run(own):
            found[own.rank] = work(own)

        threads = [threading.Thread(target=run, args=(own,)) for own in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("kind", ["local", "sockets"])
def test_messages_arrive_as_they_were_sent_and_are_counted(kind, size, tmp_path):
    found = run_local(size, talk) if kind == "local" else by_sockets(tmp_path, size, talk)
    each = 2 * (sum(array.nbytes for array in ARRAYS) + 8)
    for traffic in found:
        assert (traffic.messages_sent, traffic.messages_received) == (2, 2)
        assert (traffic.bytes_sent, traffic.bytes_received) == (each, each)
        assert traffic.seconds > 0


def test_large_messages_cross_on_their_way(tmp_path):
    large = np.arange(500_000, dtype=np.uint64)
    for found in by_sockets(tmp_path, 2, lambda own: own.exchange(1 - own.rank, [large])):
        assert_equal(found, [large])


def test_chunks_are_all_of_an_array(monkeypatch):
    monkeypatch.setattr(transport, "_CHUNK", 10)
    parts = transport._chunks(ARRAYS[2])
    assert [part.size for part in parts] == [10, 10, 10, 2]
    assert b"".join(part.tobytes() for part in parts) == ARRAYS[2].tobytes()
    assert transport._chunks(ARRAYS[1]) == []


def test_messages_wait_in_order_until_they_are_received(tmp_path):
    sockets = [Sockets(n, 2, tmp_path) for n in range(2)]
    for one, other in (Local.ranks(2), sockets):
        assert not other.has_message(0)
        one.send(1, [np.array([1])])
        one.send(1, [])
        while not other.has_message(0):
            pass
        assert_equal(other.receive(0), [np.array([1])])
        assert other.receive(0) == []
        assert other.receive(0, given_up=lambda: True) is None
        assert other.traffic.waiting > 0
        for wrong in (0, 2, -1):
            with pytest.raises(ValueError, match=f"rank 0 of 2 sends nothing to rank {wrong}"):
                one.send(wrong, [])
    for own in sockets:
        own.close()


def test_a_rank_that_fails_ends_those_that_wait_for_it():
    def work(own):
        if own.rank == 2:
            raise ZeroDivisionError("of rank 2")
        return own.receive(2)

    with pytest.raises(ZeroDivisionError, match="of rank 2"):
        run_local(4, work)


def test_a_rank_that_has_ended_is_lost(tmp_path):
    one, other = (Sockets(n, 2, tmp_path) for n in range(2))
    one.send(1, [np.arange(3)])
    one.close()
    assert_equal(other.receive(0), [np.arange(3)])
    with pytest.raises(RankLost, match="rank 0 has ended"):
        other.receive(0)
    with pytest.raises(RankLost):
        other.send(0, [np.arange(3)])
    other.close()


def test_a_rank_that_does_not_start_is_reported_as_lost(tmp_path):
    one, two = Sockets(0, 3, tmp_path), Sockets(2, 3, tmp_path)
    threading.Timer(0.05, lambda: setattr(one, "lost", "a rank has ended")).start()
    with pytest.raises(RankLost, match="a rank has ended"):
        one.send(1, [])
    one.lost = ""
    # Rank 1 ends before it says who it is.
    with socket.socket(socket.AF_UNIX) as unnamed:
        unnamed.connect(str(tmp_path / "0"))
    assert not one.has_message(2)
    one.remove_folder()
    assert not tmp_path.exists()
    for own in (one, two):
        own.close()
