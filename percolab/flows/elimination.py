"""The conductance between the terminals, and the potential of every node of the backbone.

Nodes are eliminated from the network one by one: the conductance between any two neighbours i, j of
an eliminated node grows by g_i g_j / (sum of all g), which changes nothing for the rest.  For two
neighbours this is the series rule, for three the star-triangle rule, for more a step of Gaussian
elimination.  There are no subtractions, so every result is right to a few units in its last place.
The node with the fewest neighbours is eliminated first, which in two dimensions keeps the network
sparse for long.  In three dimensions it fills up: beyond a limit of work (``MOST_WORK``) the
potentials of the remaining nodes are found by conjugate gradients.

All sums have a fixed order, so a sample's result is the same bit for bit wherever it is computed.

Sources: D. J. Frank and C. J. Lobb, Phys. Rev. B 37, 302 (1988), star and triangle in two
dimensions; W. F. Tinney and J. W. Walker, Proc. IEEE 55, 1801 (1967), the fewest neighbours first;
M. R. Hestenes and E. Stiefel, J. Res. Natl. Bur. Stand. 49, 409 (1952), conjugate gradients.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.flows.net import Net
from percolab.kernels.inner import inner, inner_with_arrays

#: Number of products of two conductances after which conjugate gradients take over: per bond of the
#: backbone, and its minimum.
MOST_WORK, LEAST_WORK = 30, 10**7
#: Conjugate gradients end at this squared norm of the residual, relative to the initial one.
_DONE = 1e-26
#: The nodes of the two terminals.
_SOURCE, _SINK = 0, 1
_NONE = -1


class Lists(NamedTuple):
    """The positions of the neighbour lists of k nodes in two arrays that all nodes share.

    begin: int64 (k,); size, room: int32 (k,), length and capacity of each list.  The shared arrays
    are the neighbours, int32, and the conductances to them, float64.  A list that outgrows its
    capacity moves to their end; when they are full, gaps are removed.
    """

    begin: Any
    size: Any
    room: Any


class Queue(NamedTuple):
    """The nodes by their number of neighbours: a linked list for each number, int32.

    heads: (k + 1,), the first node of each list; after, before: (k,), the next and the previous one
    """

    heads: Any
    after: Any
    before: Any


def solve(
    net: Net, marks: NDArray[np.uint8], conductances: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the conductance between the terminals, and the potential of every node.

    marks: uint8 (m,), the bonds of the backbone, at least one.  conductances: float64 (m,), of all
    bonds.  Potentials: float64 (nodes,), 1 at the first terminal, 0 at the second and outside of
    the backbone.

    InputError: conductances differ so much that conjugate gradients do not converge.
    """
    ranks = np.full(net.starts.size - 1, _NONE, np.int32)
    bonds = np.flatnonzero(marks)
    count = _rank_nodes(net, bonds, ranks)
    lists, ends, values = _list_neighbours(ranks[net.pairs[bonds]], conductances[bonds], count)
    order, queue = np.empty(count, np.int32), _empty_queue(count)
    work = max(MOST_WORK * bonds.size, LEAST_WORK)
    gone, ends, values = _eliminate(lists, ends, values, queue, order, work)
    voltages = np.zeros(count)
    voltages[_SOURCE] = 1.0
    rest = np.array([node for node in range(2, count) if lists.room[node] >= 0], np.int32)
    if rest.size:
        starts, rest_ends, rest_values = _compact(lists, ends, values, rest)
        voltages[rest] = 0.5
        if not _converge(rest, starts, rest_ends, rest_values, voltages):
            raise InputError("conductances differ too much: conjugate gradients do not converge")
    conductance = _current(lists, ends, values, rest, voltages)
    _substitute(lists, ends, values, order[:gone], voltages)
    potentials = np.zeros(ranks.size)
    inside = ranks >= 0
    potentials[inside] = voltages[ranks[inside]]
    return float(conductance), potentials


def _empty_queue(count: int) -> Queue:
    heads, after, before = np.full((3, count + 1), _NONE, np.int32)
    return Queue(heads, after, before)


@njit(nogil=True, cache=True)
def _rank_nodes(net, bonds, ranks):
    """Number the nodes of the bonds, terminals first; return the number of nodes."""
    ranks[net.root], ranks[net.sink] = _SOURCE, _SINK
    count = 2
    for n in range(bonds.size):
        for end in range(2):
            node = net.pairs[bonds[n], end]
            if ranks[node] == _NONE:
                ranks[node] = count
                count += 1
    return count


@njit(nogil=True, cache=True)
def _list_neighbours(pairs, conductances, count):
    """Return the lists of neighbours for these bonds; parallel bonds are added up."""
    size, room = np.zeros(count, np.int32), np.zeros(count, np.int32)
    for n in range(pairs.shape[0]):
        room[pairs[n, 0]] += 1
        room[pairs[n, 1]] += 1
    begin = np.zeros(count, np.int64)
    for node in range(count):
        room[node] += 2
        if node:
            begin[node] = begin[node - 1] + room[node - 1]
    total = begin[count - 1] + room[count - 1]
    ends, values = np.empty(2 * total, np.int32), np.empty(2 * total)
    for n in range(pairs.shape[0]):
        for end in range(2):
            node, other = pairs[n, end], pairs[n, 1 - end]
            place = begin[node] + size[node]
            ends[place], values[place] = other, conductances[n]
            size[node] += 1
    at = np.full(count, -1, np.int64)
    for node in range(count):
        _add_parallel(node, begin, size, ends, values, at)
    return Lists(begin, size, room), ends, values


@inner
def _add_parallel(node, begin, size, ends, values, at):
    """Merge repeated neighbours in the list of a node; at: int64 (k,), all -1."""
    kept = begin[node]
    for place in range(begin[node], begin[node] + size[node]):
        other = ends[place]
        if at[other] >= 0:
            values[at[other]] += values[place]
        else:
            ends[kept], values[kept], at[other] = other, values[place], kept
            kept += 1
    for place in range(begin[node], kept):
        at[ends[place]] = -1
    size[node] = kept - begin[node]


@njit(nogil=True, cache=True)
def _eliminate(lists, ends, values, queue, order, work):
    """Eliminate nodes one by one; return how many, and the arrays, which may have grown.

    The list of an eliminated node stays as it was then, and its capacity becomes -1.  order: int32
    (k,), is set to the eliminated nodes.  work: number of products of conductances at which to end.
    """
    begin, size, room = lists
    used = begin[size.size - 1] + room[size.size - 1]
    at = np.full(size.size, -1, np.int64)
    for node in range(size.size - 1, 1, -1):
        _put(node, size[node], queue)
    gone, degree = 0, 0
    while gone < size.size - 2 and work > 0:
        while queue.heads[degree] < 0:
            degree += 1
        node = queue.heads[degree]
        _take(node, degree, queue)
        room[node] = -1
        order[gone] = node
        gone += 1
        total = 0.0
        for place in range(begin[node], begin[node] + degree):
            total += values[place]
        for n in range(degree):
            one = ends[begin[node] + n]
            before = size[one]
            needed = before + degree
            if needed > room[one]:
                ends, values, used = _move(one, 2 * needed, lists, ends, values, used)
            share = values[begin[node] + n] / total
            _replace(one, node, n, share, degree, lists, ends, values, at)
            if one > _SINK:
                _take(one, before, queue)
                _put(one, size[one], queue)
        work -= degree * degree
        degree = max(degree - 1, 0)
    return gone, ends, values


@inner
def _replace(one, node, n, share, degree, lists, ends, values, at):
    """In the list of a node's n-th neighbour, replace the node by its other neighbours."""
    begin, size, _ = lists
    start, first = begin[one], begin[node]
    last = start + size[one]
    place = start
    while place < last:
        other = ends[place]
        if other == node:
            last -= 1
            ends[place], values[place] = ends[last], values[last]
            continue
        at[other] = place
        place += 1
    for k in range(degree):
        other = ends[first + k]
        if k == n:
            continue
        value = values[first + k] * share
        if at[other] >= 0:
            values[at[other]] += value
        else:
            ends[last], values[last] = other, value
            last += 1
    for place in range(start, last):
        at[ends[place]] = -1
    size[one] = last - start


@inner_with_arrays
def _move(node, wanted, lists, ends, values, used):
    """Move a node's list to the end of the arrays with a new capacity; return the arrays."""
    if used + wanted > ends.size:
        ends, values, used = _make_room(wanted, lists, ends, values)
    start, count = lists.begin[node], lists.size[node]
    for n in range(count):
        ends[used + n], values[used + n] = ends[start + n], values[start + n]
    lists.begin[node], lists.room[node] = used, wanted
    return ends, values, used + wanted


@inner_with_arrays
def _make_room(wanted, lists, ends, values):
    """Return arrays without gaps from moved lists, with at least ``wanted`` free places at the end.

    Also return where the free places begin.
    """
    begin, size, room = lists
    kept = int64(wanted)
    for node in range(size.size):
        kept += max(size[node], room[node])
    more = np.empty(max(ends.size, 2 * kept), ends.dtype)
    larger, used = np.empty(more.size, values.dtype), int64(0)
    # Array expressions would cost seconds of compilation, for Numba's error messages.
    for node in range(size.size):
        for n in range(size[node]):
            more[used + n], larger[used + n] = ends[begin[node] + n], values[begin[node] + n]
        begin[node] = used
        used += max(size[node], room[node])
    return more, larger, used


@inner
def _put(node, degree, queue):
    """Insert a node at the head of the list of nodes with ``degree`` neighbours."""
    heads, after, before = queue
    following = heads[degree]
    after[node], before[node] = following, -1
    if following >= 0:
        before[following] = node
    heads[degree] = node


@inner
def _take(node, degree, queue):
    """Remove a node from the list of nodes with ``degree`` neighbours."""
    heads, after, before = queue
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        heads[degree] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@njit(nogil=True, cache=True)
def _compact(lists, ends, values, rest):
    """Return starts, neighbours and conductances of the remaining nodes, in their order."""
    starts = np.zeros(rest.size + 1, np.int64)
    for n in range(rest.size):
        starts[n + 1] = starts[n] + lists.size[rest[n]]
    own_ends, own_values = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    for n in range(rest.size):
        first, count = lists.begin[rest[n]], lists.size[rest[n]]
        own_ends[starts[n] : starts[n + 1]] = ends[first : first + count]
        own_values[starts[n] : starts[n + 1]] = values[first : first + count]
    return starts, own_ends, own_values


@njit(nogil=True, cache=True)
def _converge(rest, starts, ends, values, voltages):
    """Solve for the voltages of the remaining nodes from initial values; return success.

    Conjugate gradients, preconditioned by the sum of the conductances of every node.
    """
    count = rest.size
    step, residual = np.zeros(voltages.size), np.empty(count)
    sums, image = np.empty(count), np.empty(count)
    _apply(rest, starts, ends, values, voltages, residual)
    norm = 0.0
    for n in range(count):
        sums[n] = values[starts[n] : starts[n + 1]].sum()
        residual[n] = -residual[n]
        step[rest[n]] = residual[n] / sums[n]
        norm += residual[n] * step[rest[n]]
    enough = norm * _DONE
    for _ in range(20 * count + 1000):
        if norm <= enough:
            return True
        _apply(rest, starts, ends, values, step, image)
        curvature = 0.0
        for n in range(count):
            curvature += image[n] * step[rest[n]]
        width, before, norm = norm / curvature, norm, 0.0
        for n in range(count):
            voltages[rest[n]] += width * step[rest[n]]
            residual[n] -= width * image[n]
            norm += residual[n] * residual[n] / sums[n]
        ratio = norm / before
        for n in range(count):
            step[rest[n]] = residual[n] / sums[n] + ratio * step[rest[n]]
    return norm <= enough


@inner
def _apply(rest, starts, ends, values, voltages, currents):
    """Write the current that flows out of every remaining node."""
    for n in range(rest.size):
        own, total = voltages[rest[n]], 0.0
        for place in range(starts[n], starts[n + 1]):
            total += values[place] * (own - voltages[ends[place]])
        currents[n] = total


@njit(nogil=True, cache=True)
def _current(lists, ends, values, rest, voltages):
    """Return the conductance: the power dissipated between the remaining nodes and terminals."""
    total = 0.0
    for n in range(-2, rest.size):
        node = rest[n] if n >= 0 else n + 2
        for place in range(lists.begin[node], lists.begin[node] + lists.size[node]):
            difference = voltages[node] - voltages[ends[place]]
            total += values[place] * difference * difference
    return total / 2


@njit(nogil=True, cache=True)
def _substitute(lists, ends, values, order, voltages):
    """Find the voltages of the eliminated nodes, the last one first."""
    for n in range(order.size - 1, -1, -1):
        node, sums, total = order[n], 0.0, 0.0
        for place in range(lists.begin[node], lists.begin[node] + lists.size[node]):
            sums += values[place]
            total += values[place] * voltages[ends[place]]
        voltages[node] = total / sums


@njit(nogil=True, cache=True)
def sum_powers(shares, power):
    """Return the sum of |share|^power, float64, added in the given order; power: an integer."""
    total = 0.0
    for share in shares:
        product = 1.0
        for _ in range(power):
            product *= abs(share)
        total += product
    return total
