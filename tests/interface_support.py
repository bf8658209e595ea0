"""Interfaces for tests: made-up ones, and those of a GPU compared with those of the CPU."""

from dataclasses import replace

import numpy as np

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


def canonical(interface):
    """Return an interface with its clusters numbered in the order in which entries name them."""
    named = np.concatenate([interface.low.clusters, interface.high.clusters])
    old, first = np.unique(named, return_index=True)
    assert old.tolist() == list(range(interface.num_clusters)), "a cluster that no bond names"
    order = np.argsort(first)
    numbers = np.empty(order.size, np.uint32)
    numbers[order] = np.arange(order.size)
    low, high = (
        Face(numbers[face.clusters] if face.num_bonds else face.clusters, face.codes)
        for face in (interface.low, interface.high)
    )
    return replace(
        interface, low=low, high=high, sizes=interface.sizes[order], flags=interface.flags[order]
    )


def assert_same_interface(expected, found):
    """Assert that interfaces, on the host, are equal but for numbers, references and the loop."""
    assert bool(expected.sums.loop) == bool(found.sums.loop)
    assert replace(expected.sums, loop=0) == replace(found.sums, loop=0)
    sums = found.sums
    numbers = (*sums.clusters, sums.cubes, sums.fourths, *sums.bins, sums.flags, sums.loop)
    assert {type(value) for value in numbers} == {int}
    expected, found = canonical(expected), canonical(found)
    for name in ("first_layer", "layers", "num_layers", "axes"):
        assert getattr(expected, name) == getattr(found, name)
    for name in ("sizes", "flags"):
        np.testing.assert_array_equal(getattr(expected, name), getattr(found, name), name)
        assert getattr(expected, name).dtype == getattr(found, name).dtype
    for one, other in ((expected.low, found.low), (expected.high, found.high)):
        np.testing.assert_array_equal(one.clusters, other.clusters)
        assert one.codes.size == other.codes.size


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
