"""Consolidation by hierarchical sewing: 2 x 2 tiles become one, then 2 x 2 of those, and so on.

At each level a block has 2 x 2 parts.  Two threads sew the seam between upper and lower parts, one
the left and one the right half; then one thread sews the seam between left and right.  To sew is
to join the ends of the open bonds across it, by union-find.  What crosses a periodic boundary is
joined after the last level, one thread a bond.
"""

import numpy as np
from numba import int32, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import other_end
from percolab.kernels.union_find import union
from percolab.labelers.four_step_cuda import entry_offsets
from percolab.labelers.periodic_cuda import periodic_kernel
from percolab.papers.weigel2011.tiles import (
    TileStep,
    is_in,
    is_open,
    num_tiles,
    site_at,
    tile_bounds,
)


@inner
def before_seam(seam, step):
    """Return (first, end): the coordinates from which a bond over ``step`` crosses a seam.

    The seam lies before the coordinate ``seam``.
    """
    return int32(min(seam, seam - step)), int32(max(seam, seam - step))


@inner
def sew(labels, start, opened, base, adjacency, tiles, k, owners, part):
    """Join the ends of the open bonds of class k from owners within bounds to the same part."""
    left, top, right, bottom = owners
    for y in range(max(top, part[1]), min(bottom, part[3])):
        for x in range(max(left, part[0]), min(right, part[2])):
            if is_in(int32(x + tiles.right[k]), int32(y + tiles.down[k]), part):
                i = site_at(x, y, tiles)
                if is_open(opened, base, adjacency, k, i):
                    union(labels, start, i, other_end(adjacency.ends, k, i))


@cuda.jit(cache=True)
def sewing_kernel(labels, opened, adjacency, tiles, half):
    """Join parts of edge ``half``, int32, 2 x 2 of them a block of two threads."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    whole = tile_bounds(int32(cuda.blockIdx.x), int32(half + half), tiles)
    left, top, right, bottom = whole
    middle_x, middle_y = int32(left + half), int32(top + half)
    if cuda.threadIdx.x == 0:
        column = left, top, min(middle_x, right), bottom
    else:
        column = middle_x, top, right, bottom
    for k in range(len(adjacency.ends)):
        first, end = before_seam(middle_y, tiles.down[k])
        owners = left, first, right, end
        sew(labels, start, opened, base, adjacency, tiles, k, owners, column)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for k in range(len(adjacency.ends)):
            first, end = before_seam(middle_x, tiles.right[k])
            owners = first, top, end, bottom
            sew(labels, start, opened, base, adjacency, tiles, k, owners, whole)


class Sewing(TileStep):
    """Hierarchical sewing; labels are trees whose roots are the smallest sites of clusters."""

    def run(self, entries):
        """Join the clusters of all tiles."""
        batch, launch = self.batch, self.batch.launches
        bonds = self.labels, batch.opened, batch.adjacency
        shape, half = batch.topology.shape, int(self.tiles.edge)
        while half < max(shape):
            grid = num_tiles(shape, 2 * half), entries
            launch.blocks(sewing_kernel, grid, 2, *bonds, self.tiles, np.int32(half))
            half *= 2
        launch.one(periodic_kernel, batch.topology.num_periodic_bonds, entries, *bonds)
