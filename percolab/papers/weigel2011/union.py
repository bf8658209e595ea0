"""Local labeling by union-find: one thread a tile inserts bond after bond."""

from numba import int32, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import other_end
from percolab.kernels.union_find import find
from percolab.labelers.four_step_cuda import entry_offsets
from percolab.papers.weigel2011.own_labels import own_labels_kernel
from percolab.papers.weigel2011.tiles import TileStep, is_in, is_open, site_at, tile_bounds


@inner
def insert(labels, start, i, j):
    """Join the trees of i and j, the larger root under the smaller; paths stay as they are."""
    i, j = find(labels, start, i), find(labels, start, j)
    labels[uint32(start + max(i, j))] = min(i, j)


@cuda.jit(cache=True)
def union_kernel(labels, opened, adjacency, tiles):
    """Join the bonds inside every tile of every entry: one block of one thread a tile."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    bounds = tile_bounds(int32(cuda.blockIdx.x), tiles.edge, tiles)
    left, top, right, bottom = bounds
    for y in range(top, bottom):
        for x in range(left, right):
            i = site_at(x, y, tiles)
            for k in range(len(adjacency.ends)):
                to_x, to_y = int32(x + tiles.right[k]), int32(y + tiles.down[k])
                if is_in(to_x, to_y, bounds) and is_open(opened, base, adjacency, k, i):
                    insert(labels, start, i, other_end(adjacency.ends, k, i))


class Union(TileStep):
    """Union-find; labels are trees whose roots are the smallest sites of clusters in the tile."""

    def run(self, entries):
        """Label the clusters of all tiles."""
        batch, launch = self.batch, self.batch.launches
        points = batch.topology.num_points
        launch.each(own_labels_kernel, points, entries, self.labels, batch.adjacency.num_points)
        bonds = batch.opened, batch.adjacency, self.tiles
        launch.blocks(union_kernel, (self.num_tiles, entries), 1, self.labels, *bonds)
