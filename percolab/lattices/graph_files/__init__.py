"""Readers of users' graphs and site lists: edge lists, Matrix Market, SciPy, GraphML and GML.

File contents are never evaluated or unpickled, memory stays within a small multiple of the bonds,
and a file that cannot be used is rejected in one line.  docs/graph-files.md is the user's page.

    text              bytes and lines of a file, unpacked, within limits
    pair_lines        lines -> pairs of sites, or the one line that reports what is wrong
    edge_list         text with two columns, CSV files included
    matrices          .mtx, and .npz as scipy.sparse.save_npz writes it
    through_networkx  .graphml and .gml
    objects           networkx graphs, sparse matrices, arrays and lists of edges
    graph_data        what every reader returns: self-loops left out, parallel edges merged
    weights           the bonds' weights
    site_list         the sites of a source or a target
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from percolab.errors import InputError
from percolab.lattices.graph_files.edge_list import read_edge_list, take_columns
from percolab.lattices.graph_files.graph_data import Edges, GraphData, check_options, merge_edges
from percolab.lattices.graph_files.matrices import read_matrix_market, read_npz
from percolab.lattices.graph_files.site_list import names_file, read_sites
from percolab.lattices.graph_files.through_networkx import read_through_networkx

__all__ = ["GraphData", "names_file", "read_graph", "read_sites"]

#: Readers by the file name's suffix.
_READERS: dict[str, Callable[[Path, int | None, bool], Edges]] = {
    ".mtx": read_matrix_market,
    ".npz": read_npz,
    ".graphml": partial(read_through_networkx, what="GraphML"),
    ".gml": partial(read_through_networkx, what="GML"),
}
#: Text formats that are not read, but could be mistaken for edge lists.
_NOT_READ = (".adjlist", ".gexf", ".pajek")


def read_graph(
    path: str | Path,
    *,
    num_sites: int | None = None,
    multi: bool = False,
    weights: bool = False,
    columns: str | Sequence[str] | None = None,
) -> GraphData:
    """Return the sites and bonds of a graph's file, packed with gzip or not.

    The name says what the file is: ``.mtx`` (Matrix Market), ``.npz`` (scipy.sparse.save_npz),
    ``.graphml``, ``.gml`` (both through networkx); any other name is an edge list, a text with two
    columns of site numbers.  Directed edges are read as undirected, self-loops are left out, and
    edges that join the same two sites are merged into one bond unless ``multi``.

    num_sites: number of sites of an edge list, by default its largest number plus one; any other
               file must have exactly this many
    weights:   read the bonds' weights as well; a merged bond has the least of its edges
    columns:   of an edge list with a header, the names of the columns of the two sites, and of the
               weight: "source,target,weight", or a list of them
    InputError: the file cannot be read, or is not what its name says; with ``weights``, a bond
    without a finite weight, or a graph that the file declares as directed
    """
    check_options(num_sites, multi)
    if not isinstance(path, str | Path):
        raise InputError(f"graph = {path!r}, but it must be the name of a file")
    path, requested = Path(path), take_columns(columns)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in _NOT_READ:
        raise InputError(f"{path}: {suffix} is not read; convert it with networkx.write_graphml")
    read = _READERS.get(suffix)
    if read is not None and requested:
        raise InputError(f"{path}: only edge lists have named columns: leave out --columns")
    try:
        if read is not None:
            edges = read(path, num_sites, weights)
        else:
            edges = read_edge_list(path, num_sites, weights, requested)
        return merge_edges(edges, path, multi)
    except MemoryError as error:
        raise InputError(f"{path}: does not fit into memory") from error
