"""percolab threshold --weights and percolab field: what they print, write and refuse."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, left_in, refusal, run
from PIL import Image

import percolab

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")

FIELD = np.array([[3, 1, 2, 5], [9, 9, 4, 7], [0, 6, 8, 1]])


@pytest.fixture
def field():
    np.save("field.npy", FIELD)
    return ("threshold", "--weights", "field.npy")


def test_the_answer_is_a_table_and_paths_are_written(field):
    assert answer(*field, "--boundary", "periodic,open", "--out", "path.csv").splitlines() == [
        "sites of square; the first open at 0",
        "                level  barrier  open sites  saddle  steps  winding",
        "wraps around x  5      5        0.58333     3       4      1,0",
        "spans y         7      7        0.75000     7       2      0,0",
        "1 direction     5      5        0.58333     3",
        "2 directions    7      7        0.75000     7",
        "paths in path.csv",
    ]
    rows = Path("path.csv").read_text().splitlines()
    assert rows[0] == "axis,step,site,x,y,value"
    assert rows[1:6] == ["x,0,3,3,0,5", "x,1,0,4,0,3", "x,2,1,5,0,1", "x,3,2,6,0,2", "x,4,3,7,0,5"]
    assert [row.split(",")[0] for row in rows[6:]] == ["y"] * 3
    # It is percolab's own, and may be replaced.
    answer(*field, "--out", "path.csv")


def test_json_is_what_python_has_to_say(field):
    found = json.loads(answer(*field, "--above", "--json"))
    assert found == percolab.threshold(weights=FIELD, above=True).to_dict()
    assert found == percolab.threshold(weights="field.npy", above=True).to_dict()
    assert found == json.loads(answer(*field, "--above", "--json", "--device", "auto"))
    assert found["axes"]["x"]["path"] == [4, 5, 6, 7]


def test_weights_are_read_of_images_hdf5_and_graph_files():
    Image.fromarray(FIELD.astype(np.uint8)).save("field.png")
    assert "\nspans x       5 " in answer("threshold", "--weights", "field.png")
    with h5py.File("rock.h5", "w") as file:
        file["pores/size"] = FIELD
    assert "sites of square" in answer("threshold", "--weights", "rock.h5:/pores/size")
    Path("roads.csv").write_text("source,target,weight\na,b,3\nb,c,-2\na,c,5\n")
    of_graph = ("threshold", "--graph", "roads.csv", "--source", "a", "--target", "c")
    lines = answer(*of_graph, "--weights", "file", "--out", "path.csv").splitlines()
    assert lines[2] == "connects source-target  3      5        0.66667     b-a     2      0"
    assert Path("path.csv").read_text().splitlines()[1:] == [
        "source-target,0,a,",
        "source-target,1,b,3",
        "source-target,2,c,-2",
    ]
    np.save("lengths.npy", [1.0, 1.5, 7.0])
    assert json.loads(answer(*of_graph, "--weights", "lengths.npy", "--json"))["bottom"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "cuda"), "--device cuda: no GPU here"),
        (("--device", "gpu"), "--device gpu: must be auto, cpu, cuda or cuda:n"),
        (("-L", "4"), "-L: given weights (--weights) have no samples"),
        (("--error", "1e-3"), "--error: given weights (--weights) have no samples"),
        (("--out", "path.h5"), "path.h5: cannot write paths as '.h5'"),
        (("--out", "notes.csv"), "notes.csv: holds something else than a path of percolab's"),
        (("--multi",), "multi: only a graph has it"),
        (("--boundary", "closed"), "unknown boundary 'closed'"),
        (("cubic",), "field.npy: has the shape (3, 4), but the weights of sites have (z, y, x)"),
        (("bethe:3",), "lattice: bethe:3"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(field, arguments, message):
    Path("notes.csv").write_text("mine")
    before = left_in(".")
    assert message in refusal(*field, *arguments)
    assert left_in(".") == before


def test_large_integers_are_printed_as_they_are():
    np.save("large.npy", FIELD + 2**62)
    assert f" {2**62 + 5}  5 " in answer("threshold", "--weights", "large.npy")


def test_a_threshold_needs_a_lattice_or_weights():
    assert "name a LATTICE" in refusal("threshold")
    assert "--above: only given weights" in refusal("threshold", "square", "--above")
    assert "--boundary: only given weights" in refusal("threshold", "square", "--boundary", "open")
    assert "--weights file: only a graph's file" in refusal("threshold", "--weights", "file")


def test_a_field_is_written_and_percolates():
    assert answer("field", "16x8", "--exponent", "1", "--seed", "3") == "field in field.npy\n"
    field = np.load("field.npy")
    assert np.array_equal(field, percolab.gaussian_field((16, 8), 1, seed=3))
    assert run("threshold", "--weights", "field.npy", "--boundary", "periodic").exit_code == 0
    answer("field", "8x8", "--exponent", "2")
    np.save("mine.npy", field)
    assert "holds something else" in refusal("field", "8x8", "--exponent", "2", "--out", "mine.npy")
    assert "SHAPE '8,8'" in refusal("field", "8,8", "--exponent", "2")
    assert "exponent = -1.0" in refusal("field", "8x8", "--exponent", "-1", "--out", "new.npy")
