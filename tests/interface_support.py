"""Interfaces for tests: made-up ones, and those of a GPU compared with those of the CPU."""

from dataclasses import replace

import numpy as np

from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.parts.interface import Face, Interface, InterfaceSums, close, join, make_row


def fake_interface(first_layer, sizes, low, high, *, flags=0, bins=0, axes=2, codes=None):
    """Return an interface of one layer of three, with clusters of given sizes and nothing finished.

    codes: of the entries of both faces; None where no axis is periodic.
    """
    faces = (
        Face(np.array(entries, np.uint32), np.array(given, np.int64))
        for entries, given in zip((low, high), codes or ([], []))
    )
    sizes = np.array(sizes, np.uint64)
    sums = InterfaceSums.empty(bins)
    flags = np.full(sizes.size, flags, np.uint32)
    return Interface(first_layer, 1, 3, axes, *faces, sizes, flags, sums)


def assert_same_interface(expected: Interface, found: Interface, case=None) -> None:
    """Assert that interfaces on the host are equal but for numbers and references of clusters."""
    assert bool(expected.sums.loop) == bool(found.sums.loop), case
    assert replace(expected.sums, loop=0) == replace(found.sums, loop=0), case
    sums = found.sums
    values = (*sums.clusters, sums.cubes, sums.fourths, *sums.bins, sums.flags, sums.loop)
    assert {type(value) for value in values} == {int}
    for name in ("first_layer", "layers", "num_layers", "axes", "num_clusters"):
        assert getattr(expected, name) == getattr(found, name), case
    arrays = (found.low.clusters, found.low.codes, found.sizes, found.flags)
    assert [array.dtype for array in arrays] == [np.uint32, np.int64, np.uint64, np.uint32], case
    numbers = np.full(found.num_clusters, 2**32 - 1, np.uint32)
    faces = (found.low, expected.low), (found.high, expected.high)
    for one, other in faces:
        assert one.codes.size == other.codes.size, case
        numbers[one.clusters] = other.clusters
    assert np.unique(numbers).tolist() == list(range(found.num_clusters)), "one that no bond names"
    for one, other in faces:
        np.testing.assert_array_equal(numbers[one.clusters], other.clusters, err_msg=str(case))
    np.testing.assert_array_equal(found.sizes, expected.sizes[numbers], err_msg=str(case))
    np.testing.assert_array_equal(found.flags, expected.flags[numbers], err_msg=str(case))
    winds = (sums.flags | int(np.bitwise_or.reduce(found.flags))) >> FIRST_WRAPPING or sums.loop
    if found.low.codes.size + found.high.codes.size and not winds:
        # Codes of a cluster differ by one number; where it winds, also by what its loops wind.
        named = np.concatenate([found.low.clusters, found.high.clusters])
        one, other = (np.concatenate([f.low.codes, f.high.codes]) for f in (found, expected))
        moved = np.zeros(found.num_clusters, np.int64)
        moved[named] = one - other
        np.testing.assert_array_equal(one - other, moved[named], err_msg=str(case))


def random_steps(interfaces, rng):
    """Return which of the interfaces that are left is joined to the next, step by step."""
    return [int(rng.integers(n)) for n in range(interfaces - 1, 0, -1)]


def joined_on_gpu(gpu, interfaces, steps, whole, *, keep):
    """Join interfaces on the host and on a GPU alike, compare each result, and the rows.

    keep: whether results stay where they are, which they may in a chain; else they are copied.
    """
    from percolab.parts.join_cuda import to_device, to_host

    left = [(interface, to_device(interface)) for interface in interfaces]
    for n in steps:
        (low, low_there), (high, high_there) = left[n : n + 2]
        expected, found = join(low, high), gpu.join(low_there, high_there)
        assert_same_interface(expected, to_host(found))
        left[n : n + 2] = [(expected, found if keep else to_device(to_host(found)))]
    ((expected, found),) = left
    if whole.is_closed:
        expected, found = close(expected), gpu.close(found)
        assert_same_interface(expected, to_host(found))
    one, other = make_row(expected), make_row(found)
    np.testing.assert_array_equal(one.numbers, other.numbers)
    assert one[1:] == other[1:]
    return other
