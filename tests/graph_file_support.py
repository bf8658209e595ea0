"""Graphs to try the readers on, files of every format, what is read back and what is refused."""

import gzip
import re
import tracemalloc
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from percolab.errors import InputError
from percolab.lattices.graph_files import read_graph

KINDS = ["empty", "sparse", "dense", "star", "path", "complete", "multi", "loops"]


def random_graph(seed):
    """Return (num_sites, edges) of a small graph: every eighth of one kind."""
    rng = np.random.default_rng(seed)
    kind, n = KINDS[seed % len(KINDS)], int(rng.integers(1, 30))
    sites = np.arange(n)
    edges = {
        "empty": np.empty((0, 2), int),
        "sparse": rng.integers(0, n, (n // 3, 2)),
        "dense": rng.integers(0, n, (4 * n, 2)),
        "star": np.column_stack([np.full(n, rng.integers(n)), rng.permutation(n)]),
        "path": np.column_stack([sites[:-1], sites[1:]]),
        "complete": np.column_stack(np.triu_indices(n, 1)),
        "multi": rng.integers(0, min(n, 4), (20, 2)),
        "loops": np.column_stack([sites, np.where(rng.random(n) < 0.5, sites, sites[::-1])]),
    }[kind]
    return n, rng.permutation(edges).tolist()


def write_edges(path, edges):
    """Write an edge list, one edge a line, and return its path."""
    Path(path).write_text("".join(f"{one} {other}\n" for one, other in edges))
    return path


def expected(edges, *, multi):
    """Return (bonds, self-loops, merged edges) by plain Python: what an edge list should give."""
    bonds = [edge for edge in edges if edge[0] != edge[1]]
    loops, merged = len(edges) - len(bonds), 0
    if not multi:
        seen, once = set(), []
        for edge in bonds:
            if frozenset(edge) not in seen:
                once.append(edge)
            seen.add(frozenset(edge))
        bonds, merged = once, len(bonds) - len(once)
    return bonds, loops, merged


def counted(bonds):
    """Return how many bonds there are between each two sites."""
    return Counter((min(bond), max(bond)) for bond in np.asarray(bonds).reshape(-1, 2).tolist())


def write_bytes(path, data):
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def written(path, text):
    """Return the path of a file with this text, packed if its name says so."""
    write_bytes(path, text if isinstance(text, bytes) else text.encode())
    return path


def refusal(path, message, **options):
    """Check that a file is refused in one line that has its name and this message."""
    with pytest.raises(InputError) as caught:
        read_graph(path, **options)
    line = str(caught.value)
    assert re.match(re.escape(f"{path}: ") + ".*" + message, line), line
    assert "\n" not in line
    assert line.count(str(path)) == 1
    assert len(line) < len(str(path)) + 400


def peak_of_refusal(path, message):
    """Return the most memory, in MiB, that is taken while a file is refused."""
    refusal(path, message)  # whatever is loaded and compiled once
    tracemalloc.start()
    try:
        refusal(path, message)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def write_text(path, num_sites, edges, *, row="{} {}", header="", newline="\n"):
    lines = [header] if header else []
    lines += [row.format(*edge) for edge in edges]
    write_bytes(path, "".join(line + newline for line in lines or ["# no edges"]).encode())


def entries_of(edges, halves):
    """Return entries of a matrix: edges as given, once in the lower half, or at both places."""
    if halves == "both":
        return [*edges, *[(v, u, *w) for u, v, *w in edges if u != v]]
    if halves == "lower":
        return [(max(u, v), min(u, v), *w) for u, v, *w in edges]
    return edges


def write_mtx(path, num_sites, edges, *, kind="pattern general", halves="as given", value=""):
    """Write edges (u, v) with this value, or (u, v, weight) with Fortran's exponents."""
    entries = entries_of(edges, halves)
    is_integer = all(isinstance(each, int) for entry in entries for each in entry)
    kind = kind.format("integer" if is_integer else "real")
    lines = [f"%%MatrixMarket matrix coordinate {kind}", "% a comment"]
    lines += [f"{num_sites} {num_sites} {len(entries)}"]
    for u, v, *w in entries:
        lines += [
            f"{u + 1} {v + 1}{value or ' ' * len(w)}" + "".join(map(str, w)).replace("e", "D")
        ]
    write_bytes(path, "\n".join([*lines, ""]).encode())


def matrix_of(num_sites, edges, halves="both"):
    """Return the adjacency matrix, duplicates kept, of edges (u, v) or (u, v, weight)."""
    entries = entries_of(edges, halves)
    ends = np.array([entry[:2] for entry in entries], int).reshape(-1, 2)
    values = np.array([entry[2] if len(entry) > 2 else 1.0 for entry in entries])
    values = values if entries else np.empty(0, int)
    return scipy.sparse.coo_array((values, ends.T), shape=(num_sites, num_sites))


def write_mmwrite(path, num_sites, edges):
    """SciPy's own writer; parallel entries are summed in a CSR matrix before."""
    scipy.io.mmwrite(path, matrix_of(num_sites, edges).tocsr().tocoo(), symmetry="symmetric")


def write_npz(path, num_sites, edges, *, kind="coo", halves="both", compressed=True):
    matrix = matrix_of(num_sites, edges, halves)
    if kind == "bsr":
        side = next(side for side in (4, 3, 2, 1) if num_sites % side == 0)
        matrix = scipy.sparse.bsr_array(matrix.tocsr(), blocksize=(side, side))
    elif kind != "coo":
        matrix = matrix.asformat(kind)
    scipy.sparse.save_npz(path, matrix, compressed=compressed)


def write_coords(path, num_sites, edges):
    """The layout of later SciPy releases: one array of coordinates."""
    matrix = matrix_of(num_sites, edges)
    np.savez(path, format=b"coo", shape=matrix.shape, data=matrix.data, coords=matrix.coords)


def write_networkx(path, num_sites, edges, *, graph_class="MultiGraph"):
    networkx = pytest.importorskip("networkx")
    graph = getattr(networkx, graph_class)()
    graph.add_nodes_from(range(num_sites))
    graph.add_weighted_edges_from((u, v, *(w or [0.5])) for u, v, *w in edges)
    writer = networkx.write_gml if ".gml" in path.name else networkx.write_graphml
    writer(graph, path)


#: Files that keep every edge, by name: writer, whether the number of sites is in the file.
EVERY_EDGE = {
    "a.txt": (write_text, False),
    "tabs.tsv": (partial(write_text, row="{}\t{}", header="# a\tb"), False),
    "blanks.edges": (partial(write_text, row="  {}   {} 0.5  x", header="% asym"), False),
    "noheader.csv": (partial(write_text, row="{},{}"), False),
    "crlf.csv": (partial(write_text, row="{},{},1", header="a,b,c", newline="\r\n"), False),
    "named.csv": (partial(write_text, row='x,"{1}",2,"{0}"', header='a,target,w,"Source"'), False),
    "from_to.csv": (partial(write_text, row='"r, 1";{};0;{}', header=";From;Weight;To"), False),
    "rows.csv": (partial(write_text, row="9,{},{}", header=",one,other"), False),
    "a.txt.gz": (write_text, False),
    "a.csv.gz": (partial(write_text, row="{},{}", header="source,target"), False),
    "given.mtx": (partial(write_mtx, halves="lower"), True),
    "both.mtx": (partial(write_mtx, halves="both", kind="integer general", value=" 7"), True),
    "half.mtx": (partial(write_mtx, halves="lower", kind="real symmetric", value=" -1.5e-3"), True),
    "half.mtx.gz": (partial(write_mtx, halves="lower", kind="pattern symmetric"), True),
    "coo.npz": (partial(write_npz, kind="coo"), True),
    "coords.npz": (write_coords, True),
    "multi.graphml": (partial(write_networkx, graph_class="MultiGraph"), True),
    "multi.gml": (partial(write_networkx, graph_class="MultiGraph"), True),
    "multi.graphml.gz": (partial(write_networkx, graph_class="MultiDiGraph"), True),
}

#: Files whose writer merges parallel edges, by name.
MERGED = {
    "csr.npz": partial(write_npz, kind="csr"),
    "csc.npz": partial(write_npz, kind="csc", compressed=False),
    "bsr.npz": partial(write_npz, kind="bsr"),
    "dia.npz": partial(write_npz, kind="dia"),
    "scipy.mtx": write_mmwrite,
    "simple.graphml": partial(write_networkx, graph_class="Graph"),
    "simple.gml": partial(write_networkx, graph_class="DiGraph"),
}
