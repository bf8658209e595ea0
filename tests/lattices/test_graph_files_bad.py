"""Graph files that cannot be used are refused in one line, quickly, in little memory."""

import gc
import gzip
import io
import os
import pickle
import zipfile
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from graph_file_support import (
    EVERY_EDGE,
    MERGED,
    matrix_of,
    peak_of_refusal,
    random_graph,
    refusal,
    written,
)

from percolab.errors import InputError
from percolab.lattices.graph_files import GraphData, read_graph, read_sites, through_networkx
from percolab.lattices.graph_files.text import refused

MTX = "%%MatrixMarket matrix coordinate"
XML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


EDGE_LISTS = {
    "negative": ("0 1\n-1 2\n", "line 2: site '-1', but sites are integers 0 to"),
    "huge": ("0 1\n1 99999999999999999999999\n", "line 2: site '9999.*integers 0 to 2147483583"),
    "just too large": ("0 2147483584\n", "line 1: site '2147483584'"),
    "fraction": ("0 1\n\n# x\n1.0 2\n", r"line 4: site '1\.0'"),
    "first": ("# x\n\n% y\n1.0 2\n", r"line 4: site '1\.0'"),
    "power of ten": ("1 1e3\n", "line 1: site '1e3'"),
    "word": ("0 1\n1 x\n", "line 2: site 'x'"),
    "half a header": ("x 1\n2 3\n", "line 1: site 'x'"),
    "plus": ("+0 1\n", r"line 1: site '\+0'"),
    "other digits": ("0 1\n1 ٣\n", "line 2: site '٣'"),
    "one column": ("0 1\n\n2\n", "line 3: '2', but a line names two sites"),
    "one word": ("a\nb\n", "line 1: 'a', but a line names two sites, the ends of a bond"),
    "empty column": ("0,1\n2,\n", "line 2: site ''"),
    "no such column": ("a,source,target\n1,2\n", "line 2: '1,2', but a line names two sites"),
    "open quote": ('0,1\n"2,3\n', "line 2: '\"2,3', but a line names two sites"),
    "mixed": ("0,1\n1 2\n", "line 2: '1 2', but a line names two sites"),
    "nan": ("0 1 0.5\n1 2 NaN\n", "line 2: weight 'NaN', but a weight is a number"),
    "minus nan": ("0,1,-nan\n", "line 1: weight '-nan'"),
    "named nan": ("source,label,weight,target\n0,nan,nan,1\n", "line 2: weight 'nan'"),
    "empty": ("", "is empty"),
    "comments": ("# a\n% b\n \n", "names no sites"),
    "header alone": ("source,target\n", "names no sites"),
    "mark alone": (b"\xef\xbb\xbf", "names no sites"),
    "nul": ("0 1\n1 2\n2 \0003\n", "line 3: holds a NUL byte"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 3: holds a NUL byte"),
    "binary": (b"\x93\x85\xfe,\xff\n\xc3\x28\n", r"line 1: site '.*UTF-8 text of at most 255"),
    "utf-16": ("0 1\n".encode("utf-16"), "NUL byte"),
    "non-ascii": ("0 1\n0 ü\n", "line 2: site 'ü'"),
    "old mac": ("0 1\r1 2\r", "line 1: holds a carriage return"),
    "return inside": ("0 1\n0\r 1\r\n", "line 2: holds a carriage return"),
    "many sites": ("0 1\n5 1999999999\n", "2000000000 sites for 2 edges.*renumber"),
    "matrix": (f"{MTX} pattern general\n2 2 1\n1 2\n", "is a Matrix Market file; name it .mtx"),
    "pajek": ("% made by hand\n*Vertices 2\n1 a\n2 b\n*Edges\n1 2\n", "is a Pajek file, which"),
    "network": ("*Network x\n*Vertices 1\n", r"write_graphml\(networkx.read_pajek\('a.csv"),
    "xml": ("<?xml version='1.0'?>\n<graphml>\n", "line 2: '<graphml>', but a line names"),
    "long": ("0 1\n" + "7" * (1 << 23), "line 2: '7*...', but a line names two sites"),
}


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("name", EDGE_LISTS)
def test_bad_edge_list_is_refused(name, ending, tmp_path):
    text, message = EDGE_LISTS[name]
    refusal(written(tmp_path / f"a.{ending}", text), message)


@pytest.mark.parametrize(
    ("text", "num_sites", "message"),
    [
        *(("0 1\n", count, "a graph has 1 to") for count in (0, -1, 2**31)),
        ("0 1\n3 1", 3, "line 2: site '3'.*0 to 2"),
        (f"{MTX} pattern general\n2 2 1\n1 2\n", 3, "has 2 sites, but 3 were requested"),
    ],
)
def test_a_number_of_sites_that_cannot_be_is_refused(text, num_sites, message, tmp_path):
    path = tmp_path / ("a.mtx" if MTX in text else "a.txt")
    refusal(written(path, text), message, num_sites=num_sites)


MATRICES = {
    "too few": (
        " pattern general\n3 3 3\n1 2\n2 3\n",
        "holds 2 entries, but its header promises 3",
    ),
    "too many": (" pattern general\n3 3 1\n1 2\n2 3\n", "holds 2 entries, but .* promises 1"),
    "loop too many": (" pattern general\n3 3 1\n2 2\n2 3\n", "holds 2 entries, but .* promises 1"),
    "row 0": (" pattern general\n3 3 1\n0 2\n", "line 3: site '0', but sites are integers 1 to 3"),
    "row 4": (" pattern general\n3 3 1\n4 2\n", "line 3: site '4'"),
    "rows": (" pattern general\n1000000000 1000000000 1\n1 2\n", "1000000000 sites for 1 edges"),
    "too many rows": (" pattern general\n2147483648 2147483648 1\n1 2\n", "a graph has 1 to"),
    "no rows": (" pattern general\n0 0 0\n", "has 0 sites"),
    "entries": (" pattern general\n9 9 1000000000000000\n1 2\n", "holds 1 entries"),
    "many digits": (f" pattern general\n9 9 {'9' * 30}\n1 2\n", "line 2: .*three integers"),
    "negative": (" pattern general\n9 9 -1\n", "line 2: '9 9 -1', but rows"),
    "two sizes": (" pattern general\n9 9\n", "line 2: '9 9', but rows"),
    "no size": (" pattern general\n% x\n", "line 1: '', but rows, columns and entries"),
    "not square": (" pattern general\n3 4 0\n", "line 2: 3 rows and 4 columns"),
    "complex": (" complex general\n", "line 1: .*matrix coordinate', pattern, integer or real"),
    "hermitian": (" real hermitian\n", "line 1: .*and general or symmetric"),
    "skew": (" real skew-symmetric\n", "line 1: .*and general or symmetric"),
    "short": (" real\n", "line 1: '%%MatrixMarket matrix coordinate real', but"),
    "value": (" pattern general\n2 2 1\n1 2 0.5\n", "line 3: '1 2 0.5', but a line has 2 columns"),
    "no value": (" real general\n2 2 1\n1 2\n", "line 3: '1 2', but a line has 3 columns"),
    "two values": (" real general\n2 2 1\n1 2 3 4\n", "line 3: .* a line has 3 columns"),
    "word": (" real general\n2 2 1\n1 2 x\n", "line 3: weight 'x'"),
    "minus": (" real general\n2 2 1\n1 2 -\n", "line 3: weight '-'"),
    "nan": (" real general\n2 2 1\n1 2 nan\n", "line 3: weight 'nan'"),
    "nul": (" real general\n2 2 1\n1 2 \0\n", "line 3: holds a NUL"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_bad_matrix_market_file_is_refused(name, tmp_path):
    text, message = MATRICES[name]
    assert peak_of_refusal(written(tmp_path / "a.mtx", MTX + text), message) < 32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n", ".*starts with '%%MatrixMarket matrix"),
        ("%%MatrixMarket tensor x y z\n", ".*starts with '%%MatrixMarket matrix"),
        ("\n\n", ".*starts with '%%MatrixMarket matrix"),
        ("%", ".*starts with '%%MatrixMarket matrix"),
        (
            "%%MatrixMarket matrix array real general\n1 1\n0\n",
            "'%%MatrixMarket matrix array real general', but",
        ),
    ],
)
def test_matrix_market_file_without_its_first_line_is_refused(text, message, tmp_path):
    refusal(written(tmp_path / "a.mtx", text), f"line 1: {message}")


def test_paths_that_are_no_file_are_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    refusal(tmp_path / "none.txt", "no such file")
    (tmp_path / "a.adjlist").write_text("0 1 2 3\n1 2\n")
    refusal(tmp_path / "a.adjlist", ".adjlist is not read; convert it with networkx.write_graphml")
    refusal(tmp_path, "cannot be read: it is a directory")
    refusal(tmp_path / "pipe", "cannot be read: it is not a plain file")
    (tmp_path / "d.npz").mkdir()
    refusal(tmp_path / "d.npz", "cannot be read: it is a directory")
    path = written(tmp_path / "a.txt", "0 1\n")

    def deny(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", deny)
    refusal(path, "cannot be read: permission denied")


def test_too_little_memory_is_said(tmp_path, monkeypatch):
    def lack(*_, **options):
        raise MemoryError

    path = written(tmp_path / "a.txt", "0 1\n")
    monkeypatch.setattr("percolab.lattices.graph_files.edge_list.read_pairs", lack)
    refusal(path, "does not fit into memory")


def test_cut_or_damaged_gzip_data_are_refused(tmp_path):
    rng = np.random.default_rng(1)
    text = "\n".join(f"{u} {v}" for u, v in rng.integers(0, 999, (2000, 2)))
    packed = gzip.compress(text.encode())
    path = tmp_path / "a.txt.gz"
    for size in (2, 9, 100, len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:size])
        refusal(path, "ends early")
    for at, message in ((len(packed) - 6, "damaged: CRC"), (len(packed) // 2, ""), (2, "damaged")):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        refusal(path, message)
    path.write_bytes(packed + b"more")
    refusal(path, "damaged: Not a gzipped file")
    path.write_text("0 1\n")
    refusal(path, "is named .gz but is not gzipped")
    path.write_bytes(gzip.compress(b""))
    refusal(path, "is empty")


@pytest.mark.slow
def test_gzip_data_that_unpack_to_too_much_are_refused(tmp_path):
    path = tmp_path / "a.txt.gz"
    packer = zlib.compressobj(9, wbits=31)
    with path.open("wb") as file:
        for _ in range(200):
            file.write(packer.compress((b"0 0 " + b"x" * 1019 + b"\n") * 2**10))
        file.write(packer.flush())
    assert peak_of_refusal(path, "unpack to more than 134217728 bytes") < 200


def test_a_huge_file_is_not_given_to_networkx(tmp_path, monkeypatch):
    monkeypatch.setattr(through_networkx, "MOST_BYTES", 99)
    refusal(written(tmp_path / "a.gml", "graph []" * 20), "holds more than 99 bytes; GML is for")


GRAPHML = {
    "entities": (
        '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>' + XML + "&b;</graphml>",
        "declares a document type",
    ),
    "elsewhere": (
        '<?xml version="1.0"?><!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml/>',
        "declares a document type",
    ),
    "not xml": ("0 1\n", "is not GraphML: "),
    "cut": (XML + "<graph><node id='a'/>", "is not GraphML: "),
    "no graph": (XML + "</graphml>", "is not GraphML: "),
    "no nodes": (XML + "<graph edgedefault='directed'></graph></graphml>", "has 0 sites"),
    "nan": (
        XML + "<key id='d' for='edge' attr.name='weight' attr.type='double'/><graph "
        "edgedefault='directed'><edge source='a' target='b'><data key='d'>nan</data></edge>"
        "</graph></graphml>",
        "edge a - b: weight nan",
    ),
}


def test_a_billion_entities_take_no_memory(tmp_path):
    names = "abcdefghijklm"
    more = [f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names)]
    text = f'<!DOCTYPE g [<!ENTITY a "{"x" * 99}">{"".join(more)}]>{XML}&m;</graphml>'
    assert peak_of_refusal(written(tmp_path / "a.graphml", text), "declares a document type") < 8


GML = {
    "nothing": ("x", "is not GML: "),
    "cut": ("graph [ node [ id 0 ", "is not GML: "),
    "no nodes": ("graph [ ]", "has 0 sites"),
    "long": ("graph [ " + "!" * 1000, "is not GML: "),
    "unknown site": ("graph [ node [ id 0 ] edge [ source 0 target 1 ] ]", "is not GML: "),
    "twice": ("graph [ node [ id 0 ] node [ id 0 ] ]", "is not GML: "),
    "binary": (b"\xff\0\x01", "is not GML: "),
    "nan": (
        "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight NAN ] ]",
        "edge 0 - 1: weight nan",
    ),
}


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [("graphml", *case) for case in GRAPHML.values()] + [("gml", *case) for case in GML.values()],
    ids=[*GRAPHML, *GML],
)
def test_bad_graphml_and_gml_are_refused(ending, text, message, tmp_path):
    refusal(written(tmp_path / f"a.{ending}", text), message)


def test_lists_within_lists_are_refused(tmp_path):
    # What is finalized at the end of a reader's recursion has no room for it.
    gc.collect()
    gc.disable()
    try:
        refusal(written(tmp_path / "a.gml", "graph [ a " + "[ a " * 10**5), "is not GML: ")
    finally:
        gc.enable()


def test_whatever_another_package_says_becomes_one_line():
    def line(error):
        return str(refused(Path("a.gml"), "GML", error))

    assert line(KeyError()) == "a.gml: is not GML: KeyError"
    assert line(ValueError(" two\nlines ")) == "a.gml: is not GML: two lines"
    assert len(line(ValueError("x" * 999))) == len("a.gml: is not GML: ") + 200
    for error in (InputError("as it is"), MemoryError()):
        assert refused(Path("a.gml"), "GML", error) is error


def test_gml_is_not_evaluated(tmp_path):
    label = f"__import__('pathlib').Path('{tmp_path}/made').touch()"
    found = read_graph(written(tmp_path / "a.gml", f'graph [ node [ id 0 label "{label}" ] ]'))
    assert found.names == (label,)
    assert not (tmp_path / "made").exists()


def outcome(path):
    """Return how reading a file ends."""
    try:
        return "read" if isinstance(read_graph(path), GraphData) else "something else"
    except InputError as error:
        line = str(error)
        return "refused" if line.startswith(f"{path}: ") and "\n" not in line else line


@pytest.mark.parametrize("name", [*EVERY_EDGE, *MERGED])
def test_damaged_files_are_read_or_refused_in_one_line(name, tmp_path):
    write = MERGED.get(name) or EVERY_EDGE[name][0]
    rng = np.random.default_rng(len(name))
    path, outcomes = tmp_path / name, set()
    for seed in range(2, 26):
        write(path, *random_graph(seed))
        data = bytearray(path.read_bytes())
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            data[at] = rng.integers(256)
        path.write_bytes(data[: rng.integers(1, len(data)) if seed % 3 == 0 else None])
        outcomes.add(outcome(path))
    assert "refused" in outcomes
    assert outcomes <= {"read", "refused"}


SITES = [
    ("0,x,1", "no such file"),
    ("0,7", "sites '0,7': site '7', but sites are integers 0 to 6"),
    ("-1", "site '-1'"),
    ("1.5", "site '1.5'"),
    ("99999999999999999999999", "site '99999"),
    ("", "sites '': names no sites"),
    (" , ", "names no sites"),
]
SITES_OF_A_FILE = [
    ("0\n# x\n\n7\n", "line 4: site '7', but sites are integers 0 to 6"),
    ("0 x\n", "line 1: site 'x'"),
    ("-1\n", "line 1: site '-1'"),
    ("0\n\0", "line 2: holds a NUL byte"),
    ("", "is empty"),
    ("# x\n", "names no sites"),
    (b"\xff\xfe", "line 1: site '"),
]


@pytest.mark.parametrize(
    ("is_file", "text", "message"),
    [*((False, *case) for case in SITES), *((True, *case) for case in SITES_OF_A_FILE)],
)
def test_bad_sites_are_refused(is_file, text, message, tmp_path):
    given = written(tmp_path / "s.txt", text) if is_file else text
    with pytest.raises(InputError, match=(f"{given}: " if is_file else "") + message) as caught:
        read_sites(given, 7)
    assert "\n" not in str(caught.value)


WHAT = "is not an adjacency matrix as scipy.sparse.save_npz writes it: "
CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([3, 3]),
    "data": np.ones(4),
    "indices": np.array([1, 0, 2, 1]),
    "indptr": np.array([0, 1, 3, 4]),
}
COO = {
    "format": np.array(b"coo"),
    "shape": np.array([3, 3]),
    "data": np.ones(2),
    "row": np.array([0, 1]),
    "col": np.array([1, 2]),
}
BSR = {
    "format": np.array(b"bsr"),
    "shape": np.array([4, 4]),
    "data": np.ones((1, 2, 2)),
    "indices": np.array([1]),
    "indptr": np.array([0, 1, 1]),
}
WITHOUT = object()

#: Arrays, what is changed in them, and what is said of it; SciPy has words of its own for most.
BAD = {
    "no format": (CSR, {"format": WITHOUT}, "array 'format' is missing"),
    "no shape": (CSR, {"shape": WITHOUT}, ""),
    "no data": (CSR, {"data": WITHOUT}, ""),
    "no indptr": (CSR, {"indptr": WITHOUT}, ""),
    "no row": (COO, {"row": WITHOUT}, ""),
    "other format": (CSR, {"format": np.array(b"dia")}, ""),
    "format number": (CSR, {"format": np.array(7)}, ""),
    "formats": (CSR, {"format": np.array([b"csr", b"coo"])}, ""),
    "objects": (CSR, {"data": np.array([1, None, 2, 3])}, "Object arrays cannot be loaded"),
    "not square": (CSR, {"shape": np.array([3, 4])}, r"a matrix of shape \(3, 4\), but"),
    "one axis": (CSR, {"shape": np.array([3])}, ""),
    "shape of floats": (
        CSR,
        {"shape": np.array([3.0, 3.0])},
        "array 'shape' is float64, not integers",
    ),
    "complex": (CSR, {"data": np.ones(4, complex)}, "its values are complex128"),
    "text": (CSR, {"data": np.array(list("abcd"))}, "its values are <U1"),
    "nan": (CSR, {"data": np.array([1, np.nan, np.inf, -np.inf])}, "a value is NaN"),
    "data of two axes": (CSR, {"data": np.ones((4, 1))}, ""),
    "fewer values": (CSR, {"data": np.ones(3)}, ""),
    "index too large": (CSR, {"indices": np.array([1, 0, 3, 1])}, ""),
    "negative index": (CSR, {"indices": np.array([1, -1, 2, 1])}, ""),
    "index of floats": (CSR, {"indices": np.array([1.0, 0, 2, 1])}, "array 'indices' is float64"),
    "falling": (CSR, {"indptr": np.array([0, 3, 1, 4])}, ""),
    "unsigned": (CSR, {"indptr": np.array([0, 2**64 - 1, 1, 4], np.uint64)}, ""),
    "starts late": (CSR, {"indptr": np.array([1, 1, 3, 4])}, ""),
    "ends late": (CSR, {"indptr": np.array([0, 1, 3, 5])}, ""),
    "short": (CSR, {"indptr": np.array([0, 4])}, ""),
    "indptr of floats": (CSR, {"indptr": np.array([0.0, 1, 3, 4])}, "array 'indptr' is float64"),
    "row too large": (COO, {"row": np.array([0, 3])}, ""),
    "fewer columns": (COO, {"col": np.array([0])}, ""),
    "blocks": (BSR, {"data": np.ones((1, 3, 3))}, ""),
    "no blocks": (BSR, {"data": np.ones((1, 0, 2))}, ""),
    "flat blocks": (BSR, {"data": np.ones(1)}, ""),
    "block index": (BSR, {"indices": np.array([2])}, ""),
}


def stored(path, arrays):
    np.savez_compressed(path, **{k: v for k, v in arrays.items() if v is not WITHOUT})
    return path


@pytest.mark.parametrize("name", BAD)
def test_bad_matrix_is_refused(name, tmp_path):
    arrays, changed, message = BAD[name]
    assert read_graph(stored(tmp_path / "a.npz", arrays)).num_sites > 2, "without the change"
    refusal(stored(tmp_path / "a.npz", {**arrays, **changed}), WHAT + message)


def test_unused_indices_at_the_end_and_infinite_values_are_allowed(tmp_path):
    values = np.array([1, np.inf, -np.inf, 0, 5, 6])
    longer = {**CSR, "indices": np.array([1, 0, 2, 1, 0, 0]), "data": values}
    found = read_graph(stored(tmp_path / "a.npz", longer))
    assert found.bonds.tolist() == [[0, 1], [1, 2]]


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_nothing_is_unpickled(tmp_path):
    made, trap = tmp_path / "made", np.array([Trap(tmp_path / "made")], object)
    path = tmp_path / "a.npz"
    refusal(stored(path, {**CSR, "format": trap}), WHAT + "Object arrays cannot")
    read_graph(stored(path, {**CSR, "more": trap}))
    refusal(written(path, pickle.dumps(trap)), WHAT)
    assert not made.exists()
    pickle.loads(path.read_bytes())[0].close()
    assert made.exists(), "the trap works"


def test_files_that_are_no_archive_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    refusal(written(path, ""), "is empty")
    refusal(written(path, "0 1\n"), WHAT)
    np.save(tmp_path / "a.npy", np.ones(3))
    refusal(written(path, (tmp_path / "a.npy").read_bytes()), WHAT)
    scipy.sparse.save_npz(path, matrix_of(9, [[0, 1]]))
    whole = path.read_bytes()
    refusal(written(path, whole[:-30]), WHAT)
    refusal(written(tmp_path / "b.npz.gz", whole), WHAT)


def archive(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in arrays.items():
            file.writestr(f"{name}.npy", data)
    return path


def raw(array):
    data = io.BytesIO()
    np.lib.format.write_array(data, array)
    return data.getvalue()


def test_arrays_smaller_than_they_promise_and_many_sites_take_no_memory(tmp_path):
    members = {name: raw(array) for name, array in CSR.items()}
    for shape in ((10**12,), (2**40, 2**40), (5,), (3,)):
        header = io.BytesIO()
        layout = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, layout)
        path = archive(tmp_path / "a.npz", {**members, "data": header.getvalue() + bytes(32)})
        assert peak_of_refusal(path, WHAT + "array 'data' declares") < 4
    path = stored(tmp_path / "a.npz", {**COO, "shape": np.array([10**9, 10**9])})
    assert peak_of_refusal(path, "1000000000 sites for 2 edges") < 4


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    path = stored(tmp_path / "a.npz", {**CSR, "data": np.zeros(2**26, np.int8)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("more.npy", raw(np.zeros(2**27, np.int8)))
    assert peak_of_refusal(path, ".*unpack to more than 134217728") < 4
