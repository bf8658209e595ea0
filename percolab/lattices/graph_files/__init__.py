"""Graphs and site lists that a user wrote: edge lists, Matrix Market, SciPy, GraphML and GML.

Nothing that is read is evaluated or unpickled, memory stays within a small multiple of the bonds,
and a file that cannot be used is rejected in one line.  docs/graph-files.md is the user's page.

    stream         bytes of a file, unpacked, within limits; text in blocks of whole lines
    pair_lines     blocks of lines -> pairs of sites, or the one line that reports what is wrong
    edge_list      text with two columns, CSV among it
    objects        networkx graphs, sparse matrices, arrays and lists of edges
    matrix_market  .mtx
    sparse_npz     .npz as scipy.sparse.save_npz writes it
    through_networkx   .graphml and .gml
    graph_data     what every reader returns: self-loops left out, parallel edges merged
    weights        the bonds' weights
    repeats        the compiled search for parallel edges
    reader         read_graph: which file is read how
    site_list      read_sites: the sites of a source or a target
"""

from percolab.lattices.graph_files.graph_data import GraphData
from percolab.lattices.graph_files.reader import read_graph
from percolab.lattices.graph_files.site_list import names_file, read_sites

__all__ = ["GraphData", "names_file", "read_graph", "read_sites"]
