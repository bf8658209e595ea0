"""Local labeling by self-labeling: neighbours get the smaller label until no label changes.

A block of threads has a tile, with its labels and open bonds in shared memory, and one thread a
site, or several sites a thread where a tile has more than 1024.  As in the paper labels are
lowered without atomics: where two threads lower the same label at the same time, the loser's bond
is seen again in the next pass.  All that is written in a pass is below what was there before it, so
the passes end; and they end right, since the smallest label of a cluster never changes.
"""

from numba import int32, types, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.inner import inner
from percolab.kernels.launches import MOST_SHARED
from percolab.kernels.neighbours import has_bit
from percolab.labelers.four_step_cuda import entry_offsets
from percolab.papers.weigel2011.tiles import TileStep, is_in, is_open, site_at, tile_bounds

#: The most threads of a block.
_MOST_THREADS = 1024


@inner
def inner_bonds(opened, base, adjacency, tiles, bounds, x, y):
    """Return the open bonds of a site that stay in its tile, bit k for class k."""
    bits = uint32(0)
    if not is_in(x, y, bounds):
        return bits
    i = site_at(x, y, tiles)
    for k in range(len(adjacency.ends)):
        stays = is_in(int32(x + tiles.right[k]), int32(y + tiles.down[k]), bounds)
        if stays and is_open(opened, base, adjacency, k, i):
            bits = uint32(bits | uint32(uint32(1) << uint32(k)))
    return bits


@inner
def lower_ends(shared, bonds, n, tiles):
    """Give both ends of the open bonds of site n the smaller label; return whether one changed."""
    changed = False
    for k in range(len(tiles.right)):
        if has_bit(bonds, k):
            m = uint32(int32(n) + int32(tiles.right[k] + int32(tiles.down[k] * tiles.edge)))
            own, other = shared[n], shared[m]
            if own < other:
                shared[m], changed = own, True
            if other < own:
                shared[n], changed = other, True
    return changed


@cuda.jit(cache=True)
def self_labeling_kernel(labels, opened, adjacency, tiles):
    """Label the clusters of every tile of every entry: one block a tile.

    Shared memory: the labels as places in the tile, row after row; the open bonds of the sites; and
    the last pass in which a label changed.
    """
    shared = cuda.shared.array(0, types.uint32)
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    bounds = tile_bounds(int32(cuda.blockIdx.x), tiles.edge, tiles)
    edge = uint32(tiles.edge)
    sites, threads = uint32(edge * edge), uint32(cuda.blockDim.x)
    last_change = uint32(uint32(2) * sites)
    thread = uint32(cuda.threadIdx.x)
    n = thread
    while n < sites:
        x, y = int32(bounds[0] + int32(n % edge)), int32(bounds[1] + int32(n // edge))
        shared[n] = n
        bonds = inner_bonds(opened, base, adjacency, tiles, bounds, x, y)
        shared[uint32(sites + n)] = bonds
        n = uint32(n + threads)
    if thread == uint32(0):
        shared[last_change] = uint32(0)
    cuda.syncthreads()
    number, changed = uint32(0), True
    while changed:
        number = uint32(number + uint32(1))
        n = thread
        while n < sites:
            if lower_ends(shared, shared[uint32(sites + n)], n, tiles):
                shared[last_change] = number
            n = uint32(n + threads)
        cuda.syncthreads()
        # A thread ahead of this one writes a larger number, and only if this pass changed a label.
        changed = shared[last_change] >= number
    n = thread
    while n < sites:
        x, y = int32(bounds[0] + int32(n % edge)), int32(bounds[1] + int32(n // edge))
        if is_in(x, y, bounds):
            i, root = site_at(x, y, tiles), uint32(shared[n])
            x, y = int32(bounds[0] + int32(root % edge)), int32(bounds[1] + int32(root // edge))
            labels[uint32(start + i)] = site_at(x, y, tiles)
        n = uint32(n + threads)


class SelfLabeling(TileStep):
    """Self-labeling; labels point to the smallest site of the cluster in the tile.

    ValueError where a tile does not fit in shared memory.
    """

    def __init__(self, batch, labels, tiles):
        super().__init__(batch, labels, tiles)
        sites = int(tiles.edge) ** 2
        self._threads, self._shared = min(sites, _MOST_THREADS), 4 * (2 * sites + 1)
        if self._shared > MOST_SHARED:
            raise ValueError(f"tiles of edge {tiles.edge} do not fit in shared memory")

    def run(self, entries):
        """Label the clusters of all tiles."""
        batch, grid = self.batch, (self.num_tiles, entries)
        bonds = batch.opened, batch.adjacency, self.tiles
        batch.launches.blocks(
            self_labeling_kernel, grid, self._threads, self.labels, *bonds, shared=self._shared
        )
