"""Archives of arrays that are no adjacency matrix are refused; nothing in them is unpickled."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse
from graph_file_support import matrix_of, peak_of_refusal, refusal, written

from percolab.lattices.graph_files import read_graph

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
    "unsigned": (
        CSR,
        {"indptr": np.array([0, 2**64 - 1, 1, 4], np.uint64)},
        "",
    ),
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
    """Write an archive of raw members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in arrays.items():
            file.writestr(f"{name}.npy", data)
    return path


def raw(array):
    data = io.BytesIO()
    np.lib.format.write_array(data, array)
    return data.getvalue()


def test_arrays_smaller_than_they_promise_take_no_memory(tmp_path):
    members = {name: raw(array) for name, array in CSR.items()}
    for shape in ((10**12,), (2**40, 2**40), (5,), (3,)):
        header = io.BytesIO()
        layout = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, layout)
        path = archive(tmp_path / "a.npz", {**members, "data": header.getvalue() + bytes(32)})
        assert peak_of_refusal(path, WHAT + "array 'data' promises") < 4


def test_matrix_of_many_sites_and_few_edges_takes_no_memory(tmp_path):
    path = stored(tmp_path / "a.npz", {**COO, "shape": np.array([10**9, 10**9])})
    assert peak_of_refusal(path, "1000000000 sites for 2 edges") < 4


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    path = stored(tmp_path / "a.npz", {**CSR, "data": np.zeros(2**26, np.int8)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("more.npy", raw(np.zeros(2**27, np.int8)))
    assert peak_of_refusal(path, ".*unpack to more than 134217728") < 4
