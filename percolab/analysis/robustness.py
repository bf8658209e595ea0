"""Robustness of a network against removal, and what its degrees and bonds alone say of p_c.

robustness  R = 1/N sum_{Q=1}^{N} s(Q), s(Q) being the share of all sites that is in the largest
            cluster once Q of the N sites are removed: C. M. Schneider, A. A. Moreira, J. S.
            Andrade, S. Havlin and H. J. Herrmann, Proc. Natl. Acad. Sci. USA 108, 3838 (2011).  Of
            bonds the sum is over their number: A. Zeng and W. Liu, arXiv:1203.2982.
mean_field  <k> / (<k^2> - <k>), the p_c of random graphs with these degrees and no correlations
            (Molloy and Reed's criterion).
bound       1 / lambda, lambda being the largest eigenvalue of the non-backtracking (Hashimoto)
            matrix: a lower bound of p_c for bonds and for sites, exact on infinite trees, and low
            where there are many short loops (Y. Lin, W. Chen and Z. Zhang, arXiv:1610.08217).

lambda is that of the matrix ((A, 1 - D), (1, 0)) of 2 N rows, A being the adjacency matrix and D
the degrees, which has the same eigenvalues but for some of +-1 (Ihara and Bass).  Sites with one
bond add none, so they are cut off first, until no site has fewer than two.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from percolab.analysis.convolution import block_mean_and_error
from percolab.analysis.json_values import Record
from percolab.analysis.value import Value
from percolab.lattices.graph import Graph
from percolab.measure.openings import bin_width
from percolab.store.task_result import TaskResult

#: What the numbers are, in words.
ROBUSTNESS = "robustness: s_1/N, averaged over all removals"
MEAN_FIELD = "mean-field p_c of random removal: <k>/(<k^2> - <k>)"
BOUND = "lower bound of it, close where short loops are few: 1/lambda, non-backtracking"
#: Graphs with more bonds are not asked for their eigenvalue unless a user does so.
MOST_BONDS = 10**6
#: Rows of a matrix whose eigenvalues are found all at once.
_DENSE = 200


@dataclass(frozen=True)
class NetworkBounds(Record):
    """What degrees and bonds of a graph say of the p_c of random removal.

    mean_degree: <k>.  mean_field: <k>/(<k^2> - <k>).  bound: 1/lambda; 1 of a forest.  Both are NaN
    where no site has two bonds.
    """

    mean_degree: float
    mean_field: float
    bound: float


def measure_robustness(item: TaskResult) -> Value:
    """Return R of the stored samples of a graph by method microcanonical, with its error.

    The error is the scatter of blocks: 0 where an order leaves nothing to chance, NaN of one block.
    Beyond 2^13 openings the largest cluster of the intact graph, which is left out of R, is taken
    from the bin of openings that it is in.
    """
    sums, count = item.stacked("largest"), item.task.num_openings
    width = bin_width(count)
    intact = sums[:, -1] / (count - width * (sums.shape[1] - 1) + 1)
    scale = item.samples * item.task.num_sites * max(count, 1)
    blocks = ((sums.sum(axis=1) - intact) / scale)[:, None]
    mean, error = block_mean_and_error(blocks, item.samples)
    return Value(float(mean[0]), float(error[0]))


def network_bounds(graph: Graph) -> NetworkBounds:
    """Return the mean-field value and the lower bound of p_c of a graph.

    InputError: a graph out of a results file, whose bonds are not there.

    >>> found = network_bounds(Graph.of_bonds(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
    >>> round(found.mean_field, 12), round(found.bound, 12)
    (0.5, 0.5)
    """
    pairs = graph.bonds.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.num_sites).astype(np.float64)
    first, second = degrees.mean(), (degrees**2).mean()
    if degrees.max(initial=0.0) < 2:
        return NetworkBounds(float(first), nan, nan)
    return NetworkBounds(
        float(first), float(first / (second - first)), min(1.0, 1.0 / _largest_eigenvalue(pairs))
    )


def _largest_eigenvalue(pairs: np.ndarray) -> float:
    """Return that of the non-backtracking matrix, at least 1."""
    import scipy.sparse as sparse
    from scipy.sparse.linalg import eigs

    core = pairs[pairs[:, 0] != pairs[:, 1]]
    while core.size:
        degrees = np.bincount(core.ravel())
        inside = (degrees[core] > 1).all(axis=1)
        if inside.all():
            break
        core = core[inside]
    if not core.size or degrees.max() == 2:
        return 1.0
    _, numbered = np.unique(core, return_inverse=True)
    one, other = numbered.reshape(-1, 2).T
    count = int(numbered.max()) + 1
    adjacency = sparse.coo_array((np.ones(one.size), (one, other)), (count, count)).tocsr()
    adjacency = adjacency + adjacency.T
    unit = sparse.eye_array(count)
    rest = unit - sparse.diags_array(np.asarray(adjacency.sum(axis=1)).ravel())
    matrix = sparse.block_array([[adjacency, rest], [unit, None]], format="csr")
    if 2 * count <= _DENSE:
        return float(np.linalg.eigvals(matrix.toarray()).real.max())
    found = eigs(matrix, k=1, which="LR", v0=np.ones(2 * count), return_eigenvectors=False)
    return float(found[0].real)
