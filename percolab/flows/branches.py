"""One depth-first search of a graph: the branches that one site, or one bond, would cut off.

Source: R. Tarjan, SIAM J. Comput. 1, 146 (1972).
"""

import numpy as np
from numba import njit


@njit(cache=True)
def search_branches(starts, others, bonds, count):
    """Search every cluster depth first.

    Returns for every site, int64 (count,) each, its parent, -1 for a root, the bond to the parent,
    the number of sites in its branch, and its root; and bool (count,) each, whether its branch has
    no bond to a site above the parent, and whether the bond to the parent is a bridge.
    """
    above, via = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    sizes, root = np.ones(count, np.int64), np.full(count, -1, np.int64)
    number, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    is_cut, is_bridge = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    at = starts[:-1].copy()
    reached = 0
    for begin in range(count):
        if root[begin] >= 0:
            continue
        site, root[begin] = begin, begin
        number[begin] = low[begin] = reached
        reached += 1
        while site >= 0:
            if at[site] < starts[site + 1]:
                other, bond = others[at[site]], bonds[at[site]]
                at[site] += 1
                if root[other] < 0:
                    above[other], via[other], root[other] = site, bond, begin
                    number[other] = low[other] = reached
                    reached += 1
                    site = other
                elif bond != via[site]:
                    low[site] = min(low[site], number[other])
                continue
            parent = above[site]
            if parent >= 0:
                sizes[parent] += sizes[site]
                low[parent] = min(low[parent], low[site])
                is_cut[site] = low[site] >= number[parent]
                is_bridge[site] = low[site] > number[parent]
            site = parent
    return above, via, sizes, root, is_cut, is_bridge
