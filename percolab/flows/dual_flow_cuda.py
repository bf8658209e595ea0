"""CUDA: red bonds, trails and the backbone of planar lattices, by labels of the dual.

Each of two opposite sides is a terminal, contracted to one node with everything beyond it
(:mod:`percolab.lattices.corners`).  A face has two labels: that of its cluster of the dual, and
that of the same cluster one turn further around the terminals, which differs for clusters that lead
around.  On a cylinder the dual is made of two turns, and these are the labels of a face and of the
face one turn away; on a lattice with four open sides one turn leads from the outside on the left to
the outside on the right, and other clusters do not lead around.  If the terminals are connected:

* an open bond that is a bridge but not red has the same label on both sides;
* a red bond has, on one side, the label that its other side has one turn further;
* of the open bonds without bridges that are not red, those in clusters that touch a terminal are on
  trails.

Around a site that is no terminal, corners whose labels are equal, or equal one turn further, divide
its bonds into groups; bonds of one group are in one block (a part without an articulation point).
The backbone is made of all blocks between the terminals: blocks with a bond of a terminal that no
two equal labels enclose, and blocks next to a cluster of the dual that leads around and meets the
site twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import config, int32, types, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch
from percolab.flows.dual_bridges_cuda import (
    DualLabels,
    dual_memory,
    entries_at_once,
    label_memory,
    new_batch_labeler,
)
from percolab.flows.net import end_layers
from percolab.kernels.atomics import atomic_or
from percolab.kernels.cuda import cuda
from percolab.kernels.device import free_memory
from percolab.kernels.launches import PER_THREAD, THREADS, element, zero_kernel
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import find, union
from percolab.labelers.forest import Reading
from percolab.lattices.corners import MOST_BONDS, Corners
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology

#: Indices of a sample's numbers, in the order of the reader.
_RED, _TRAILS, _BONDS, _SITES = 0, 1, 2, 3
#: Marks of a cluster of trails that touches the first, or the second, terminal.
_FIRST, _LAST = 1, 2
#: The label one turn further of a cluster that does not lead around.
_NOWHERE = 0x80000000
#: The largest number of bonds around the sites of all threads of a block.
_BONDS_OF_BLOCK = MOST_BONDS * THREADS
#: The largest number of threads of a block that works along a side.
_SIDE_THREADS = 8 if config.ENABLE_CUDASIM else 512


class Plane(NamedTuple):
    """A lattice and its dual, for kernels; pairs of int32 are for both axes.

    bonds, around: as in :class:`percolab.lattices.corners.Corners`; starts: the same, uint32
    outside:       uint32 (2,), the faces at both ends of a side that is not cyclic; else (0,)
    shape, cell:   grid points of the lattice and of a cell
    wraps:         as ``shape``, but 0 along open axes
    faces:         per cell, int32; size, before, turn: as in the dual (``before``: its ``around``)
    axis:          from terminal to terminal, int32; depth: layers of each terminal, int32
    points, dual_points, num_words: numbers of grid points, of faces, and of words per class, uint32
    """

    bonds: Any
    around: Any
    starts: Any
    outside: Any
    shape: Any
    cell: Any
    wraps: Any
    faces: Any
    size: Any
    before: Any
    turn: Any
    axis: Any
    depth: Any
    points: Any
    dual_points: Any
    num_words: Any


class Trails(NamedTuple):
    """The trails of all entries, for kernels.

    kept:      uint32 (entries * words,), open bonds without bridges that are not red
    labels:    uint32 (entries * points,), of the clusters of kept bonds
    marks:     uint8 (entries * points,), by label, the terminals that its cluster touches
    connected: uint32 (entries,), whether the terminals are connected
    parents:   uint32 (entries * (32 * words + 1),), union-find parents that join the bonds of
               trails to blocks; the last bond is the virtual bond between the terminals
    """

    kept: Any
    labels: Any
    marks: Any
    connected: Any
    parents: Any


@cuda.jit(device=True)
def _wrapped(at, size):
    """Wrap a coordinate that is at most one period outside of the lattice, int32."""
    at = int32(at)
    if at < int32(0):
        return int32(at + size)
    return int32(at - size) if at >= size else at


@cuda.jit(device=True)
def _place(plane, i):
    """Return the coordinates of a site, and those of its cell, int32 each."""
    wide = uint32(plane.shape[0])
    y = uint32(uint32(i) // wide)
    x = uint32(uint32(i) - uint32(y * wide))
    cell_x, cell_y = uint32(x // uint32(plane.cell[0])), uint32(y // uint32(plane.cell[1]))
    return int32(x), int32(y), int32(cell_x), int32(cell_y)


@cuda.jit(device=True)
def _cell_point(plane, place):
    """Return which point of its cell a site is, uint32."""
    x, y, cell_x, cell_y = place
    own_x = int32(x - int32(cell_x * plane.cell[0]))
    own_y = int32(y - int32(cell_y * plane.cell[1]))
    return uint32(own_x + int32(own_y * plane.cell[0]))


@cuda.jit(device=True)
def _edge_labels(plane, labels, start):
    """Return the labels of the outside at both ends of a side, uint32; not for cylinders."""
    if plane.outside.size == 0:
        return uint32(0), uint32(0)
    left, right = plane.outside[0], plane.outside[1]
    return uint32(labels[uint32(start + left)]), uint32(labels[uint32(start + right)])


@cuda.jit(device=True)
def _face_labels(plane, labels, start, edges, place, face):
    """Return the label of a face, and its label one turn further, uint32.

    face: its number in its cell, and that cell's offset from the cell of ``place``, int32
    """
    u = _wrapped(place[2] + face[1] + plane.before[0], plane.size[0])
    v = _wrapped(place[3] + face[2] + plane.before[1], plane.size[1])
    at = uint32(int32(int32(int32(v * plane.size[0]) + u) * plane.faces) + face[0])
    label = uint32(labels[uint32(start + at)])
    if plane.outside.size != 0:
        left, right = edges
        if label == left:
            return label, right
        if label == right:
            return label, left
        return label, uint32(label | uint32(_NOWHERE))
    u = _wrapped(u + plane.turn[0], plane.size[0])
    v = _wrapped(v + plane.turn[1], plane.size[1])
    at = uint32(int32(int32(int32(v * plane.size[0]) + u) * plane.faces) + face[0])
    return label, uint32(labels[uint32(start + at)])


@cuda.jit(device=True)
def _row(table, n, first):
    """Return three numbers of a row of a table from a column on."""
    return table[n, first], table[n, first + 1], table[n, first + 2]


@cuda.jit(device=True)
def _terminal_of(plane, layer):
    """Return which terminal a layer belongs to, 1 or 2, or 0."""
    if layer < plane.depth:
        return int32(1)
    return int32(2) if layer >= int32(plane.shape[plane.axis] - plane.depth) else int32(0)


@cuda.jit(cache=True)
def keep_trails_kernel(opened, words, first, labels, plane, kept, numbers):
    """Set the bonds of ``kept``, which is initially empty, and count red bonds; a thread per site.

    opened: uint32, ``words`` per entry, starting at entry ``first``.  labels: of the dual.
    numbers: uint64 (all entries, 4).
    """
    shared = cuda.shared.array(1, types.uint32)
    entry = uint32(cuda.blockIdx.y)
    base, own = uint32(uint32(entry + first) * words), uint32(entry * words)
    start = uint32(entry * plane.dual_points)
    edges = _edge_labels(plane, labels, start)
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    red, cell_points = uint32(0), uint32(plane.cell[0] * plane.cell[1])
    for step in range(PER_THREAD):
        i = element(step)
        if i < plane.points:
            place, word, row = _place(plane, i), uint32(i >> uint32(5)), uint32(0)
            row, layer = _cell_point(plane, place), place[plane.axis]
            while word < words:
                if has_bit(opened[uint32(base + word)], i & uint32(31)):
                    terminal = _terminal_of(plane, layer)
                    other = _terminal_of(plane, int32(layer + plane.bonds[row, 6]))
                    if terminal == int32(0) or other != terminal:
                        sides = labels, start, edges, place
                        one, _ = _face_labels(plane, *sides, _row(plane.bonds, row, 0))
                        label, turned = _face_labels(plane, *sides, _row(plane.bonds, row, 3))
                        if one != label:
                            bit = uint32(uint32(1) << uint32(i & uint32(31)))
                            atomic_or(kept, uint32(own + word), bit)
                        if one == turned:
                            red = uint32(red + uint32(1))
                word = uint32(word + plane.num_words)
                row = uint32(row + cell_points)
    if red != uint32(0):
        cuda.atomic.add(shared, 0, red)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and shared[0] != uint32(0):
        cuda.atomic.add(numbers, (uint32(entry + first), _RED), uint64(shared[0]))


@cuda.jit(cache=True)
def mark_trails_kernel(sites, terminal, points, trails):
    """Mark the clusters of trails that touch a terminal; a thread for each of its sites.

    terminal: uint8, _FIRST or _LAST; launch the kernel with _FIRST first.
    """
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < sites.size:
        start = uint32(entry * points)
        place = uint32(start + trails.labels[uint32(start + sites[n])])
        mark = trails.marks[place]
        if terminal == _LAST and mark & _FIRST:
            trails.connected[entry] = uint32(1)
        # All threads of a cluster write the same value.
        trails.marks[place] = mark | terminal


@cuda.jit(device=True)
def _is_marked(plane, trails, entry, i):
    """Return whether a site is in a cluster of trails that touches a terminal."""
    start = uint32(entry * plane.points)
    return trails.marks[uint32(start + trails.labels[uint32(start + i)])] != 0


@cuda.jit(cache=True)
def begin_trails_kernel(words, plane, trails, first, numbers):
    """Make every bond of trails a separate block, and count these bonds; a thread per site."""
    shared = cuda.shared.array(1, types.uint32)
    entry = uint32(cuda.blockIdx.y)
    if trails.connected[entry] == uint32(0):
        return
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    base, virtual = uint32(entry * words), uint32(words << uint32(5))
    start, count = uint32(entry * uint32(virtual + uint32(1))), uint32(0)
    for step in range(PER_THREAD):
        i = element(step)
        if i == uint32(0):
            trails.parents[uint32(start + virtual)] = virtual
        if i < plane.points and _is_marked(plane, trails, entry, i):
            word, bit = uint32(i >> uint32(5)), uint32(i & uint32(31))
            while word < words:
                if has_bit(trails.kept[uint32(base + word)], bit):
                    bond = uint32(uint32(word << uint32(5)) + bit)
                    trails.parents[uint32(start + bond)] = bond
                    count = uint32(count + uint32(1))
                word = uint32(word + plane.num_words)
    if count != uint32(0):
        cuda.atomic.add(shared, 0, count)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and shared[0] != uint32(0):
        cuda.atomic.add(numbers, (uint32(entry + first), _TRAILS), uint64(shared[0]))


@cuda.jit(device=True)
def _root(parents, start, i):
    """Return the root of a bond, and shorten the path to it; parents have smaller numbers."""
    parent = parents[uint32(start + i)]
    while parent != i:
        above = parents[uint32(start + parent)]
        if above == parent:
            return parent
        parents[uint32(start + i)] = above
        i, parent = above, parents[uint32(start + above)]
    return i


@cuda.jit(device=True)
def _join(parents, start, i, j):
    """Join the blocks of two bonds."""
    i, j = _root(parents, start, i), _root(parents, start, j)
    if i != j:
        union(parents, start, i, j)


@cuda.jit(device=True)
def _kept_bond(plane, trails, base, place, row):
    """Return the bond of a row of ``around`` if it is kept, or 0xFFFFFFFF; uint32."""
    x, y = int32(place[0] + plane.around[row, 1]), int32(place[1] + plane.around[row, 2])
    if plane.wraps[0] != int32(0):
        x = _wrapped(x, plane.wraps[0])
    if plane.wraps[1] != int32(0):
        y = _wrapped(y, plane.wraps[1])
    none = uint32(0xFFFFFFFF)
    if x < int32(0) or y < int32(0) or x >= plane.shape[0] or y >= plane.shape[1]:
        return none
    owner = uint32(x + int32(y * plane.shape[0]))
    word = uint32(uint32(uint32(plane.around[row, 0]) * plane.num_words) + (owner >> uint32(5)))
    if not has_bit(trails.kept[uint32(base + word)], owner & uint32(31)):
        return none
    return uint32(uint32(word << uint32(5)) + uint32(owner & uint32(31)))


@cuda.jit(cache=True)
def join_corners_kernel(words, labels, plane, trails):
    """Join the bonds of blocks at every site that is no terminal; a thread per site."""
    entry = uint32(cuda.blockIdx.y)
    if trails.connected[entry] == uint32(0):
        return
    base, virtual = uint32(entry * words), uint32(words << uint32(5))
    start, dual_start = uint32(entry * uint32(virtual + 1)), uint32(entry * plane.dual_points)
    edges, parents = _edge_labels(plane, labels, dual_start), trails.parents
    # For every thread the bonds of its site, and the labels of the corners after them.
    bonds = cuda.shared.array(_BONDS_OF_BLOCK, types.uint32)
    ones = cuda.shared.array(_BONDS_OF_BLOCK, types.uint32)
    turned = cuda.shared.array(_BONDS_OF_BLOCK, types.uint32)
    thread = uint32(cuda.threadIdx.x)
    for step in range(PER_THREAD):
        i = element(step)
        if i >= plane.points or not _is_marked(plane, trails, entry, i):
            continue
        place = _place(plane, i)
        if _terminal_of(plane, place[plane.axis]) != int32(0):
            continue
        # A thread's entries are THREADS apart.
        point, end = _cell_point(plane, place), thread
        for row in range(plane.starts[point], plane.starts[uint32(point + uint32(1))]):
            bond = _kept_bond(plane, trails, base, place, row)
            if bond != uint32(0xFFFFFFFF):
                face = _row(plane.around, row, 3)
                both = _face_labels(plane, labels, dual_start, edges, place, face)
                bonds[end], ones[end], turned[end] = bond, both[0], both[1]
                end = uint32(end + uint32(THREADS))
        # A bit for each corner of a cluster that leads around.
        around, n = uint32(0), thread
        while n < end:
            # Go back to the previous corner with the label of the corner after this bond.
            before = _before(n, thread, end)
            while before != n and ones[n] != ones[before] and ones[n] != turned[before]:
                before = _before(before, thread, end)
            following = _after(before, thread, end)
            # Joining each bond of a group to the next is enough: skip the step back to the first.
            if following > n:
                _join(parents, start, bonds[n], bonds[following])
            other = thread
            while other < end:
                if ones[n] == turned[other]:
                    around = uint32(around | uint32(uint32(1) << uint32(n // uint32(THREADS))))
                other = uint32(other + uint32(THREADS))
            n = uint32(n + uint32(THREADS))
        if around != uint32(0):
            n = thread
            while n < end:
                if has_bit(around, uint32(n // uint32(THREADS))):
                    # The group between this corner and the next corner of such a cluster.
                    following = _after(n, thread, end)
                    last = following
                    while not has_bit(around, uint32(last // uint32(THREADS))):
                        last = _after(last, thread, end)
                    if ones[n] == turned[last]:
                        _join(parents, start, bonds[following], virtual)
                n = uint32(n + uint32(THREADS))


@cuda.jit(device=True)
def _after(n, thread, end):
    """Return the index of the bond after bond n around the thread's site, uint32."""
    n = uint32(n + uint32(THREADS))
    return thread if n == end else n


@cuda.jit(device=True)
def _before(n, thread, end):
    """Return the index of the bond before bond n around the thread's site, uint32."""
    return uint32((end if n == thread else n) - uint32(THREADS))


@cuda.jit(cache=True)
def join_side_kernel(words, labels, plane, trails, places, faces, corner, reach):
    """Join the bonds of a terminal that no two equal labels enclose; a thread block per entry.

    places, faces: of a :class:`percolab.lattices.corners.Side`.  corner: uint32 (entries * faces
    of the dual,), by label, one of its corners.  reach: uint32 (entries * 2 * faces,), by that
    corner, one more than the last corner with the same label, in both turns.
    """
    furthest = cuda.shared.array(_SIDE_THREADS, types.uint32)
    entry, thread = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    if trails.connected[entry] == uint32(0):
        return
    threads, size, turn = uint32(cuda.blockDim.x), uint32(faces.size), uint32(places.size)
    start, own = uint32(entry * plane.dual_points), uint32(entry * uint32(size * uint32(2)))
    base, virtual = uint32(entry * words), uint32(words << uint32(5))
    a = thread
    while a < size:
        corner[uint32(start + labels[uint32(start + faces[a])])] = a
        reach[uint32(own + a)] = reach[uint32(uint32(own + size) + a)] = uint32(0)
        a = uint32(a + threads)
    cuda.syncthreads()
    is_cyclic, a = plane.outside.size == 0, thread
    while a < size:
        at = corner[uint32(start + labels[uint32(start + faces[a])])]
        if is_cyclic and a >= turn:
            at = uint32(at + size)
        cuda.atomic.max(reach, uint32(own + at), uint32(a + uint32(1)))
        a = uint32(a + threads)
    cuda.syncthreads()
    # Each thread works on one part of the side.
    part = uint32(uint32(uint32(size + threads) - uint32(1)) // threads)
    first = uint32(thread * part)
    last, most = min(uint32(first + part), size), uint32(0)
    for a in range(first, last):
        most = max(most, _reach(labels, start, faces, corner, reach, own, turn, is_cyclic, a))
    furthest[thread] = most
    cuda.syncthreads()
    most = uint32(0)
    for n in range(thread):
        most = max(most, furthest[n])
    for a in range(first, last):
        most = max(most, _reach(labels, start, faces, corner, reach, own, turn, is_cyclic, a))
        n = uint32(a)
        if is_cyclic:
            # In the second turn all pairs of corners that enclose a bond begin after corner 0.
            n = uint32(uint32(a) - turn) if a >= turn else turn
        if most <= uint32(a) and n < turn:
            bond = places[n]
            word = uint32(base + (bond >> uint32(5)))
            if has_bit(trails.kept[word], bond & uint32(31)):
                _join(trails.parents, uint32(entry * uint32(virtual + 1)), bond, virtual)


@cuda.jit(device=True)
def _reach(labels, start, faces, corner, reach, own, turn, is_cyclic, a):
    """Return the last corner of a side with the label of corner a, at least a itself, uint32."""
    a = uint32(a)
    at = uint32(own + corner[uint32(start + labels[uint32(start + faces[a])])])
    # One more than the last corner in each turn, or 0.
    first, second = reach[at], uint32(0)
    if is_cyclic:
        second = reach[uint32(at + faces.size)]
        # Corners with equal labels are less than one turn apart.
        if a < turn:
            if second != uint32(0) and uint32(second - uint32(1)) < uint32(a + turn):
                return uint32(second - uint32(1))
        else:
            around = uint32(first + faces.size)
            if first != uint32(0) and uint32(around - uint32(1)) < uint32(a + turn):
                return uint32(around - uint32(1))
            first = second
    return uint32(first - uint32(1))


@cuda.jit(cache=True)
def shorten_ways_kernel(words, plane, trails):
    """Make the root of every bond of trails its parent; a thread per site.

    Only roots are written: shortening paths in other threads could overwrite a root.
    """
    entry = uint32(cuda.blockIdx.y)
    if trails.connected[entry] == uint32(0):
        return
    base, virtual = uint32(entry * words), uint32(words << uint32(5))
    start = uint32(entry * uint32(virtual + uint32(1)))
    for step in range(PER_THREAD):
        i = element(step)
        if i == uint32(0):
            trails.parents[uint32(start + virtual)] = find(trails.parents, start, virtual)
        if i < plane.points and _is_marked(plane, trails, entry, i):
            word, bit = uint32(i >> uint32(5)), uint32(i & uint32(31))
            while word < words:
                if has_bit(trails.kept[uint32(base + word)], bit):
                    bond = uint32(uint32(word << uint32(5)) + bit)
                    trails.parents[uint32(start + bond)] = find(trails.parents, start, bond)
                word = uint32(word + plane.num_words)


@cuda.jit(cache=True)
def count_backbone_kernel(words, plane, trails, first, numbers):
    """Count the bonds and sites of the backbone; a thread per site."""
    shared = cuda.shared.array(2, types.uint32)
    entry, thread = uint32(cuda.blockIdx.y), uint32(cuda.threadIdx.x)
    if trails.connected[entry] == uint32(0):
        return
    if thread < uint32(2):
        shared[thread] = uint32(0)
    cuda.syncthreads()
    base, virtual = uint32(entry * words), uint32(words << uint32(5))
    start = uint32(entry * uint32(virtual + uint32(1)))
    backbone = trails.parents[uint32(start + virtual)]
    bonds, sites = uint32(0), uint32(0)
    for step in range(PER_THREAD):
        i = element(step)
        if i < plane.points and _is_marked(plane, trails, entry, i):
            place, is_site = _place(plane, i), uint32(0)
            point = _cell_point(plane, place)
            for row in range(plane.starts[point], plane.starts[uint32(point + uint32(1))]):
                bond = _kept_bond(plane, trails, base, place, row)
                if bond == uint32(0xFFFFFFFF):
                    continue
                if trails.parents[uint32(start + bond)] == backbone:
                    is_site = uint32(1)
                    if plane.around[row, 1] == 0 and plane.around[row, 2] == 0:
                        bonds = uint32(bonds + uint32(1))
            sites = uint32(sites + is_site)
    if sites != uint32(0):
        cuda.atomic.add(shared, 0, bonds)
        cuda.atomic.add(shared, 1, sites)
    cuda.syncthreads()
    if thread < uint32(2) and shared[thread] != uint32(0):
        place = uint32(entry + first), uint32(uint32(_BONDS) + thread)
        cuda.atomic.add(numbers, place, uint64(shared[thread]))


def copy_plane(lattice: Lattice, topology: Topology, corners: Corners) -> Plane:
    """Return the plane of a topology for kernels."""

    def pair(numbers: Any) -> tuple[np.int32, np.int32]:
        return np.int32(numbers[0]), np.int32(numbers[1])

    dual, axis = corners.dual, topology.open_axes[-1]
    is_cyclic = any(dual.turn)
    layers = np.repeat([at[axis] for at in topology.offsets], lattice.cell[0] * lattice.cell[1])
    bonds = np.column_stack([corners.bonds, layers]).astype(np.int32)
    outside = corners.sides[0].faces[[0, -1]][: 2 * (not is_cyclic)]
    arrays = bonds, corners.around, corners.starts.astype(np.uint32), outside
    wraps = np.where(np.arange(2) == axis, 0, topology.shape) * is_cyclic
    return Plane(
        *map(cuda.to_device, arrays),
        *map(pair, (topology.shape, lattice.cell, wraps)),
        np.int32(dual.faces),
        *map(pair, (dual.size, dual.around, dual.turn)),
        np.int32(axis),
        np.int32(topology.grid.depths[axis]),
        *map(np.uint32, (topology.num_points, dual.topology.num_points, topology.num_words)),
    )


def flow_memory(topology: Topology, corners: Corners, entries: int) -> Memory:
    """Return the memory of :class:`DualFlow` for a number of entries."""
    dual, nodes = corners.dual, 32 * topology.num_bond_words + 1
    each = 4 * (nodes + dual.topology.num_points + _reach_size(corners) + 1) + topology.num_points
    labels = dual_memory(dual, entries).plus(label_memory(topology, entries))
    return labels.plus(Memory(device=entries * each))


def make_flow(batch: CudaBatch, lattice: Lattice, corners: Corners) -> DualFlow | None:
    """Return a :class:`DualFlow` for a batch; None if not even one sample fits into memory."""
    if flow_memory(batch.topology, corners, 1).device > free_memory(cuda):
        return None
    return DualFlow(batch, lattice, corners)


def _reach_size(corners: Corners) -> int:
    """Return the number of corners of the longer side, in both turns."""
    return 2 * max(side.faces.size for side in corners.sides)


class DualFlow:
    """A counter of red bonds, trails and backbones in every sample of a labeler's batch.

    batch: samples of a planar lattice; corners: for the two sides of its last open axis.
    A few samples are read at a time.
    """

    def __init__(self, batch: CudaBatch, lattice: Lattice, corners: Corners) -> None:
        topology, dual = batch.topology, corners.dual
        nodes, points = 32 * topology.num_bond_words + 1, topology.num_points
        entries = entries_at_once(batch, lambda entries: flow_memory(topology, corners, entries))
        # The bonds of all entries together are numbered with 32 bits.
        entries = min(entries, (2**32 - 1) // nodes)
        self._batch, self._dual = batch, DualLabels(batch, dual, entries)
        self._labeler = new_batch_labeler(topology, entries, batch.launches)
        self._entries = min(self._dual.batch.capacity, self._labeler.batch.capacity)
        self._plane = copy_plane(lattice, topology, corners)
        self._ends = [cuda.to_device(end.astype(np.uint32)) for end in end_layers(topology)]
        self._sides = [tuple(map(cuda.to_device, side)) for side in corners.sides]
        self._trails = Trails(
            self._labeler.batch.opened,
            self._labeler.labels,
            cuda.device_array(entries * points, np.uint8),
            cuda.device_array(entries, np.uint32),
            cuda.device_array(entries * nodes, np.uint32),
        )
        self._corner = cuda.device_array(entries * dual.topology.num_points, np.uint32)
        self._reach = cuda.device_array(entries * _reach_size(corners), np.uint32)
        self._numbers = cuda.device_array((batch.capacity, _SITES + 1), np.uint64)
        self._flat = self._numbers.reshape(self._numbers.size)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, 4)."""
        launches, size = self._batch.launches, entries * (_SITES + 1)

        def work() -> None:
            launches.each(zero_kernel, size, 1, self._flat, np.uint32(size))
            for first in range(0, entries, self._entries):
                self._read(first, min(self._entries, entries - first))

        launches.call(("dual flow", entries), work)
        launches.wait()
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        # If the terminals are not connected, clusters of the dual that lead around were counted.
        rows[rows[:, _BONDS] == 0] = 0
        return rows

    def _read(self, first: int, entries: int) -> None:
        """Add up the numbers of ``entries`` entries, starting at entry ``first``."""
        launches, topology, trails = self._batch.launches, self._batch.topology, self._trails
        plane, points = self._plane, topology.num_points
        number, words = np.uint32(first), np.uint32(topology.num_bond_words)
        for array, size in ((trails.kept, int(words)), (trails.marks, points)):
            launches.each(zero_kernel, entries * size, 1, array, np.uint32(entries * size))
        launches.each(zero_kernel, entries, 1, trails.connected, np.uint32(entries))
        labels, counts = self._dual.join(first, entries), (number, self._numbers)
        kept = plane, trails.kept, self._numbers
        opened = self._batch.opened, words, number
        launches.each(keep_trails_kernel, points, entries, *opened, labels, *kept)
        self._labeler.join(entries, Reading.LABELS).make_labels()
        for end, terminal in zip(self._ends, (_FIRST, _LAST), strict=True):
            marks = end, np.uint8(terminal), plane.points, trails
            launches.one(mark_trails_kernel, end.size, entries, *marks)
        launches.each(begin_trails_kernel, points, entries, words, plane, trails, *counts)
        launches.each(join_corners_kernel, points, entries, words, labels, plane, trails)
        for side in self._sides:
            bonds = words, labels, plane, trails, *side, self._corner, self._reach
            threads = min(1 << (side[1].size // 4).bit_length(), _SIDE_THREADS)
            launches.blocks(join_side_kernel, entries, threads, *bonds)
        launches.each(shorten_ways_kernel, points, entries, words, plane, trails)
        launches.each(count_backbone_kernel, points, entries, words, plane, trails, *counts)
