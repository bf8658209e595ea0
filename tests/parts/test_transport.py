"""Messages between ranks: threads, processes of one host, and real MPI ranks (tests/run)."""

import socket
import threading
from contextlib import ExitStack, closing

import numpy as np
import pytest
from parts_support import run_local

from percolab.parts import transport
from percolab.parts.transport import Local, RankLost, Sockets

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
