"""What the tests of slabs on CUDA share: interfaces on the host, and how two are compared."""

from dataclasses import replace

import numpy as np
from parts_support import row_of_the_whole

from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS
from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.parts.interface import Face, Interface, close, join, make_row
from percolab.parts.interface_cuda import FACE_WORDS, count_bonds_kernel, scan_counts_kernel
from percolab.parts.parts import Parts
from percolab.parts.raster import SlabRaster
from percolab.parts.tiled_cuda import SlabTiled

cuda = load_cuda()


def on_host(interface: Interface) -> Interface:
    """Return an interface whose arrays are on the host."""
    low, high = (
        Face(face.clusters.copy_to_host(), face.codes.copy_to_host())
        for face in (interface.low, interface.high)
    )
    sizes, flags = interface.sizes.copy_to_host(), interface.flags.copy_to_host()
    return replace(interface, low=low, high=high, sizes=sizes, flags=flags)


def assert_same_clusters(found: Interface, expected: Interface, case) -> None:
    """Assert that two interfaces are equal but for the numbers and the references of clusters."""
    assert replace(found.sums, loop=0) == replace(expected.sums, loop=0), case
    assert bool(found.sums.loop) == bool(expected.sums.loop), case
    assert found.num_clusters == expected.num_clusters, case
    kinds = (np.uint32, np.int64, np.uint64, np.uint32)
    arrays = (found.low.clusters, found.low.codes, found.sizes, found.flags)
    assert tuple(array.dtype for array in arrays) == kinds, case
    numbers = np.full(found.num_clusters, 2**32 - 1, np.uint32)
    for one, other in ((found.low, expected.low), (found.high, expected.high)):
        assert one.codes.size == other.codes.size, case
        numbers[one.clusters] = other.clusters
    assert np.unique(numbers).tolist() == list(range(found.num_clusters)), case
    for one, other in ((found.low, expected.low), (found.high, expected.high)):
        np.testing.assert_array_equal(numbers[one.clusters], other.clusters, err_msg=str(case))
    if found.low.codes.size + found.high.codes.size and not found.sums.flags >> FIRST_WRAPPING:
        # Codes of a cluster differ by one number; where it winds, also by what its loops wind.
        named = np.concatenate([found.low.clusters, found.high.clusters])
        one, other = (np.concatenate([f.low.codes, f.high.codes]) for f in (found, expected))
        moved = np.zeros(found.num_clusters, np.int64)
        moved[named] = one - other
        np.testing.assert_array_equal(one - other, moved[named], err_msg=str(case))
    np.testing.assert_array_equal(found.sizes, expected.sizes[numbers], err_msg=str(case))
    np.testing.assert_array_equal(found.flags, expected.flags[numbers], err_msg=str(case))


def check_bonds_before() -> None:
    """Check how many open bonds there are before each block of a cut, where these are many."""
    rng, most = np.random.default_rng(1), PER_THREAD * THREADS
    for blocks in (1, most - 1, most, 2 * most + 3):
        words = rng.integers(2**32, size=(blocks, FACE_WORDS), dtype=np.uint32)
        words[-1, -1:] = 0
        each = np.bitwise_count(words).sum(axis=1)
        # The last block is not whole.
        opened = cuda.to_device(words.ravel()[:-1])
        counts, total = cuda.device_array(blocks, np.uint32), cuda.device_array(1, np.uint32)
        count_bonds_kernel[blocks, FACE_WORDS](opened, counts)
        np.testing.assert_array_equal(counts.copy_to_host(), each)
        scan_counts_kernel[1, THREADS](counts, total)
        np.testing.assert_array_equal(counts.copy_to_host(), np.cumsum(each) - each)
        assert total.copy_to_host()[0] == each.sum()


def compare_interfaces(whole, draws, layers, first=0, *, tally=False) -> list[list[Interface]]:
    """Compare interfaces of slabs from a layer on with the CPU's; return those joined on CUDA."""
    labelers = [kind(whole, max(layers), tally=tally) for kind in (SlabTiled, SlabRaster)]
    parts = Parts(whole)
    joined = []
    for draw in draws:
        start, together = first, None
        for thick in layers:
            part, following = parts.part(start, thick), None
            after = start + thick + thick % 2
            if after + thick <= whole.num_layers:
                # The next one is begun beforehand, or another one, of which nothing may stay.
                following = parts.part(after, thick)
            interface = labelers[0].make_interface(part, draw, following)
            expected = labelers[1].make_interface(part, draw)
            interface, case = on_host(interface), (whole, draw, start, thick)
            assert_same_clusters(interface, expected, case)
            together = interface if together is None else join(together, interface)
            start += thick
        joined.append(together)
    return joined


def compare_rows(whole, draws, layers, *, tally=False) -> None:
    """Compare interfaces of all slabs with the CPU's, and their rows with those of the whole."""
    for draw, interface in zip(draws, compare_interfaces(whole, draws, layers, tally=tally)):
        row = make_row(close(interface) if whole.is_closed else interface)
        expected = row_of_the_whole(whole, draw, tally=tally)
        np.testing.assert_array_equal(row.numbers, expected, err_msg=f"{whole} {draw}")
