"""Local labeling by breadth-first search: one thread a tile grows cluster after cluster."""

import numpy as np
from numba import int32, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.inner import inner
from percolab.labelers.four_step_cuda import entry_offsets
from percolab.papers.weigel2011.own_labels import own_labels_kernel
from percolab.papers.weigel2011.tiles import TileStep, is_in, is_open, site_at, tile_bounds


@inner
def pack_place(x, y, bounds):
    """Return a grid point as the queue holds it: y and x in its tile, 16 bits each."""
    row, column = uint32(int32(y - bounds[1])), uint32(int32(x - bounds[0]))
    return uint32(uint32(row << uint32(16)) | column)


@inner
def visit(labels, start, seed, queue, last, tiles, bounds, x, y):
    """Label a site by the seed and queue it, unless it was visited; return the queue's new end.

    Sites are scanned upwards, so the seed is the smallest site of its cluster in the tile, and a
    site of this cluster has been visited if it is the seed or does not label itself any more.
    """
    j = site_at(x, y, tiles)
    if j == seed or labels[uint32(start + j)] != j:
        return last
    labels[uint32(start + j)] = seed
    queue[last] = pack_place(x, y, bounds)
    return uint32(last + uint32(1))


@inner
def grow(labels, start, queue, first, opened, base, adjacency, tiles, bounds, x, y):
    """Label the cluster, inside a tile, of the grid point (x, y) by its site.

    The queue has room for a tile's sites from ``queue[first]`` on.
    """
    seed, last = site_at(x, y, tiles), uint32(first + uint32(1))
    queue[first] = pack_place(x, y, bounds)
    while first != last:
        place = uint32(queue[first])
        first = uint32(first + uint32(1))
        x = int32(bounds[0] + int32(place & uint32(0xFFFF)))
        y = int32(bounds[1] + int32(place >> uint32(16)))
        i = site_at(x, y, tiles)
        for k in range(len(adjacency.ends)):
            # The bond that the site owns, and the one of this class that leads to it.
            right, down = tiles.right[k], tiles.down[k]
            to_x, to_y = int32(x + right), int32(y + down)
            if is_in(to_x, to_y, bounds) and is_open(opened, base, adjacency, k, i):
                last = visit(labels, start, seed, queue, last, tiles, bounds, to_x, to_y)
            to_x, to_y = int32(x - right), int32(y - down)
            j = site_at(to_x, to_y, tiles)
            if is_in(to_x, to_y, bounds) and is_open(opened, base, adjacency, k, j):
                last = visit(labels, start, seed, queue, last, tiles, bounds, to_x, to_y)


@cuda.jit(cache=True)
def bfs_kernel(labels, queue, opened, adjacency, tiles):
    """Label the clusters of every tile of every entry: one block of one thread a tile."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    bounds = tile_bounds(int32(cuda.blockIdx.x), tiles.edge, tiles)
    left, top, right, bottom = bounds
    # The sites of the tiles before it.
    before = uint32(uint32(top) * uint32(tiles.width) + uint32(left) * uint32(bottom - top))
    first = uint32(start + before)
    for y in range(top, bottom):
        for x in range(left, right):
            i = site_at(x, y, tiles)
            if labels[uint32(start + i)] == i:
                grow(labels, start, queue, first, opened, base, adjacency, tiles, bounds, x, y)


class Bfs(TileStep):
    """Breadth-first search; labels point to the smallest site of the cluster in the tile."""

    def __init__(self, batch, labels, tiles):
        super().__init__(batch, labels, tiles)
        self._queue = cuda.device_array(labels.size, np.uint32)

    @staticmethod
    def memory(extent, edge, entries):
        """Return the bytes of the queues, which have room for every site."""
        return 4 * entries * extent.num_points

    def run(self, entries):
        """Label the clusters of all tiles."""
        batch, launch = self.batch, self.batch.launches
        points = batch.topology.num_points
        launch.each(own_labels_kernel, points, entries, self.labels, batch.adjacency.num_points)
        bonds = batch.opened, batch.adjacency, self.tiles
        grid = self.num_tiles, entries
        launch.blocks(bfs_kernel, grid, 1, self.labels, self._queue, *bonds)
