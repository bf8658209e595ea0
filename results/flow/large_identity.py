"""C - C* - V + E of one square torus that is larger than memory, C and C* counted slab by slab.

    python results/flow/large_identity.py [L] [SLABS]          a GPU; 1048576 and 1024 unless given

The dual of a square torus is one as well, whose bonds are open where those that they cross are
closed.  With every axis turned round, both of a site cross those of one site, each that of the
other direction: bond k of dual site i crosses bond 1 - k of site N - 1 - i.  So a word of bonds of
the dual is a word of the lattice, backwards and inverted, and a slab of it is drawn like any other.
That is done in a process of its own, in which kernels draw such words.  Open bonds are counted by a
kernel of this program, from the words alone.

First the turn is checked, with labels by scipy, on small tori.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from numba import cuda, njit, uint32, uint64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from percolab.bonds import words
from percolab.bonds.batch import new_batch
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: Generator, seed and sample, and p, which is the threshold.
STREAM, P = (words.XORWOW, 2026, 1), 0.5
TORUS = ("periodic", "periodic")
SMALL, SAMPLES = 32, 200
#: Threads of a block, and blocks, that count open bonds.
THREADS, BLOCKS = 256, 4096


def check_turn():
    """Return in how many samples the identity does not hold, with clusters counted by scipy."""
    sites, wrong = SMALL**2, 0
    batch = new_batch("cpu", load_lattice("square").topology((SMALL, SMALL), TORUS))
    there = np.arange(sites)
    # The bonds of a site lead back along x and along y.
    back = (there - 1) % SMALL + there // SMALL * SMALL, (there - SMALL) % sites
    for sample in range(SAMPLES):
        one = (np.array([x], np.uint64) for x in (sample, words.p_to_threshold(P)))
        batch.fill(*STREAM[:2], *one)
        own = batch.copy_open_words(1).view(np.uint8)
        bonds = np.unpackbits(own, bitorder="little").reshape(2, sites).astype(bool)
        counts = []
        for opened in (bonds, ~bonds[::-1, ::-1]):
            ends = [
                np.concatenate(x) for x in zip(*((there[o], b[o]) for o, b in zip(opened, back)))
            ]
            graph = coo_array((np.ones(ends[0].size), ends), shape=(sites, sites))
            counts.append(connected_components(graph, directed=False)[0])
        wrong += counts[0] - counts[1] - sites + int(bonds.sum()) not in (-1, 0, 1)
    return wrong


def measure(size, slabs, *, dual):
    """Return (clusters, bits of what winds) of the torus, or of its dual, in slabs on a GPU."""
    if dual:
        words.open_word = make_dual_words(size * size // 32)
    # Kernels take the function that draws a word when they are imported.
    from percolab.parts.parts import Whole
    from percolab.parts.raster import SampleKey
    from percolab.parts.slabs import Slabs, thicknesses

    whole = Whole(load_lattice("square"), (size, size), TORUS)
    key = SampleKey(*STREAM, words.p_to_threshold(P))
    row = Slabs(whole, thicknesses(whole, slabs), kind="cuda").row(key).numbers
    return int(row[CLUSTERS]), int(row[SPANNING])


def make_dual_words(words_of_class):
    """Return what draws a word of the dual; words_of_class: of one direction."""
    draw, count = words.open_word, words_of_class

    @njit
    def open_dual_word(generator, seed, sample, word, threshold, exists):
        direction = uint64(word) // uint64(count)
        place = uint64(word) - direction * uint64(count)
        crossed = (uint64(1) - direction) * uint64(count) + (uint64(count - 1) - place)
        bits, turned = (
            draw(generator, seed, sample, crossed, threshold, uint32(0xFFFFFFFF)),
            uint32(0),
        )
        for n in range(32):
            bit = uint32(uint32(bits >> uint32(n)) & uint32(1))
            turned = uint32(turned | uint32(bit << uint32(31 - n)))
        return uint32(uint32(~turned) & uint32(exists))

    return open_dual_word


def count_open_bonds(size):
    """Return how many bonds of the torus are open."""
    draw = words.open_word

    @cuda.jit
    def count(generator, seed, sample, threshold, number, sums):
        thread = uint64(cuda.grid(1))
        total, word = uint64(0), thread
        while word < number:
            total += uint64(
                cuda.popc(draw(generator, seed, sample, word, threshold, uint32(0xFFFFFFFF)))
            )
            word += uint64(cuda.gridsize(1))
        sums[thread] = total

    sums = cuda.device_array(THREADS * BLOCKS, np.uint64)
    generator, *key = STREAM
    numbers = (*key, words.p_to_threshold(P), size * size // 16)
    count[BLOCKS, THREADS](np.int64(generator), *map(np.uint64, numbers), sums)
    return int(sums.copy_to_host().sum())


def main():
    """Check a torus, or measure the dual alone for the process that does."""
    size, slabs = (*map(int, sys.argv[1:3]), *(2**20, 1024)[len(sys.argv[1:3]) :])
    start = time.perf_counter()
    if sys.argv[3:] == ["dual"]:
        print(json.dumps([*measure(size, slabs, dual=True), time.perf_counter() - start]))
        return
    print(f"{check_turn()} of {SAMPLES} small tori wrong [{time.perf_counter() - start:.1f} s]")
    clusters, flags = measure(size, slabs, dual=False)
    print(f"C = {clusters} [{time.perf_counter() - start:.1f} s]", flush=True)
    bonds = count_open_bonds(size)
    print(f"E = {bonds} [{time.perf_counter() - start:.1f} s]", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # Compiled kernels are kept by their files, which are those of other words.
        own = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, str(size), str(slabs), "dual"]
        answer = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    other, other_flags, seconds = json.loads(answer.stdout)
    found = clusters - other - size**2 + bonds
    by_winding = [
        1 if own >> TWO_DIRECTIONS & 1 else 0 if own >> FIRST_WRAPPING & 3 else -1
        for own in (flags, other_flags)
    ]
    is_right = found == by_winding[0] == -by_winding[1]
    print(
        f"square {size} x {size} in {slabs} slabs: C* = {other} ({seconds:.1f} s), C - C* - V + E "
        f"= {found}, by winding {by_winding[0]}, of the dual {by_winding[1]}: "
        f"{'OK' if is_right else 'WRONG'} [{time.perf_counter() - start:.1f} s]"
    )


if __name__ == "__main__":
    main()
