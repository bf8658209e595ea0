"""What the tests of slabs on CUDA share: interfaces on the host, and how two are compared."""

from dataclasses import replace

import numpy as np
from interface_support import assert_same_interface
from parts_support import row_of_the_whole

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS
from percolab.parts.interface import Face, Interface, close, join, make_row
from percolab.parts.interface_cuda import FACE_WORDS, count_bonds_kernel, scan_counts_kernel
from percolab.parts.parts import Parts
from percolab.parts.raster import SlabRaster
from percolab.parts.tiled_cuda import SlabTiled


def on_host(interface: Interface) -> Interface:
    """Return an interface whose arrays are on the host."""
    low, high = (
        Face(face.clusters.copy_to_host(), face.codes.copy_to_host())
        for face in (interface.low, interface.high)
    )
    sizes, flags = interface.sizes.copy_to_host(), interface.flags.copy_to_host()
    return replace(interface, low=low, high=high, sizes=sizes, flags=flags)


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
            assert_same_interface(expected, interface, case)
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
