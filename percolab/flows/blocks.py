"""The backbone: the bonds on paths between the terminals; a path visits no site twice.

It is the block (the part without an articulation point) that contains the virtual bond between the
terminals.  A depth-first search from the second terminal, with the first one as its parent, cuts
off the parts that are attached to one node only, and leaves this block.

Source: R. Tarjan, SIAM J. Comput. 1, 146 (1972).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint32

from percolab.flows.net import UNSEEN, Net
from percolab.kernels.inner import inner

_UNSEEN = UNSEEN


class Block(NamedTuple):
    """Memory for a depth-first search, and the nodes of the block that it finds.

    number: uint32 (nodes,), the order in which nodes are reached, 0 if not; low: uint32 (nodes,),
    the lowest number that a node's branch leads back to; via: uint32 (nodes,), the bond by which it
    was reached; at: int64 (nodes,), its next bond; path: uint32 (nodes,), the ancestors of the
    current node; left: uint32 (nodes,), the nodes not cut off, in the end the block, with the
    second terminal first; inside: uint8 (nodes,), whether a node is in the block
    """

    number: Any
    low: Any
    via: Any
    at: Any
    path: Any
    left: Any
    inside: Any


def make_block(net: Net) -> Block:
    """Allocate memory for the block of one sample at a time."""
    nodes = net.starts.size - 1
    number, low, via, path, left = np.empty((5, nodes), np.uint32)
    return Block(number, low, via, np.empty(nodes, np.int64), path, left, np.empty(nodes, np.uint8))


@njit(nogil=True, cache=True)
def find_block(net, is_open, block):
    """Find the block of the virtual bond; return its number of nodes, 0 if there is no block.

    net: a :class:`percolab.flows.net.Net`.  is_open: uint8 (bonds,).  block: a :class:`Block`.
    The block's n + 1 nodes are ``left[:n]`` and the first terminal.
    """
    number, low, via, at, path, left, inside = block
    number[:] = 0
    inside[:] = 0
    number[net.root], number[net.sink], low[net.sink] = 1, 2, 2
    via[net.sink], at[net.sink] = _UNSEEN, net.starts[net.sink]
    path[0], left[0] = net.sink, net.sink
    depth, count, reached = 0, 1, 2
    while depth >= 0:
        node = path[depth]
        n = at[node]
        if n < net.starts[node + uint32(1)]:
            at[node] = n + 1
            bond, other = net.bonds[n], net.ends[n]
            if is_open[bond] == 0 or bond == via[node]:
                continue
            if number[other] == 0:
                reached += 1
                number[other], low[other] = reached, reached
                via[other], at[other] = bond, net.starts[other]
                depth, count = depth + 1, count + 1
                path[depth], left[count - 1] = other, other
            elif number[other] < low[node]:
                low[node] = number[other]
            continue
        depth -= 1
        if depth >= 0:
            above = path[depth]
            if low[node] >= number[above]:
                count = _cut_off(node, left, count)
            elif low[node] < low[above]:
                low[above] = low[node]
    if low[net.sink] != 1:
        return 0
    inside[net.root] = 1
    for n in range(count):
        inside[left[n]] = 1
    return count + 1


@inner
def _cut_off(node, left, count):
    """Return the number of nodes left after removing a node and all that were reached after it."""
    while left[count - 1] != node:
        count -= 1
    return count - 1
