"""``percolab label`` refuses what it cannot label, in one line, and takes no memory for it."""

import io
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import SAMPLE, answer, png, put_text, refusal, run, stored
from helpers import TEXTS, slow, traced_peak
from PIL import Image

from percolab.configurations import read_labels
from percolab.lattices.lattice import load_lattice


def npy_with(header):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def prepared():
    np.save("good.npy", np.ones((3, 3), bool))
    np.save("labels_like.npy", np.array([[-1, 0], [1, 1]]))
    np.save("three.npy", np.array([[0, 1], [2, 1]], np.uint8))
    np.save("nan.npy", np.array([[0.0, 1.0], [np.nan, 1.0]]))
    np.save("infinite.npy", np.array([[0.0, np.inf]]))
    np.save("complex.npy", np.zeros((2, 2), complex))
    np.save("text.npy", np.array([["a", "b"]]))
    np.save("row.npy", np.ones(4, bool))
    np.save("four.npy", np.ones((2, 2, 2, 2), bool))
    np.save("empty.npy", np.ones((0, 3), bool))
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("archive.npz", np.ones((2, 2)))
    whole = Path("good.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-2])
    Path("stub.npy").write_bytes(whole[:30])
    Path("renamed.npy").write_bytes(b"not numpy at all")
    shapes = {"huge": (65536, 65536), "claims": (20000, 1000), "negative": (-3, -3)}
    for name, shape in shapes.items():
        header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': {shape}}}"
        Path(f"{name}.npy").write_bytes(npy_with(header))
    Path("code.npy").write_bytes(npy_with("__import__('os').abort()"))
    pixels = np.zeros((40, 40), np.uint8)
    pixels[::2, 1::3] = 255
    colour = np.stack([pixels, pixels, pixels // 2], axis=-1)
    Image.fromarray(colour).save("colour.png")
    alpha = np.concatenate([colour, pixels[..., None]], axis=-1)
    Image.fromarray(alpha).save("alpha.png")
    one, other = Image.fromarray(pixels), Image.fromarray(pixels[1:])
    one.save("stack.tif", save_all=True, append_images=[other])
    Path("cut.tif").write_bytes(Path("stack.tif").read_bytes()[:700])
    png("transparent.png", pixels, "L", transparency=0)
    png("grey.png", np.arange(1600, dtype=np.uint8).reshape(40, 40))
    Path("cut.png").write_bytes(png(Path("whole.png"), pixels).read_bytes()[:70])
    jpeg = io.BytesIO()
    Image.fromarray(pixels).save(jpeg, "JPEG")
    Path("photo.png").write_bytes(jpeg.getvalue())
    with h5py.File("data.h5", "w") as file:
        file["mask"] = np.ones((3, 3), np.uint8)
        file["text"] = "words"
        file["table"] = np.zeros(3, dtype=[("x", int)])
        file["group/inner"] = np.ones((2, 2))
        file["soft"] = h5py.SoftLink("/mask")
        file["away"] = h5py.ExternalLink("other.h5", "/mask")
        file["nothing"] = h5py.Empty("f8")
        file.create_dataset("claims", (40000, 1000), np.uint8, chunks=(1000, 1000))
        layout = h5py.VirtualLayout((2, 2), np.uint8)
        layout[:] = h5py.VirtualSource("other.h5", "mask", (2, 2))
        file.create_virtual_dataset("virtual", layout)
    Path("broken.h5").write_bytes(Path("data.h5").read_bytes()[:900])
    np.save("bonds.npy", np.zeros((2, 1), np.uint32))
    np.save("wide.npy", np.zeros((2, 1), np.int64))
    np.save("outside.npy", np.full((2, 1), 2**32 - 1, np.uint32))
    Path("folder.npy").mkdir()


KINDS = "not .npy, .png, .tif, or an HDF5 dataset (file.h5:/path/to/dataset)"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nowhere.npy", "nowhere.npy: no such file"),
        ("folder.npy", "folder.npy: is not a regular file"),
        ("labels_like.npy", "labels_like.npy: holds -1, but a site configuration holds 0"),
        ("three.npy", "three.npy: holds 1 and 2, but a site configuration holds 0 (vacant)"),
        ("nan.npy", "nan.npy: holds nan, but"),
        ("infinite.npy", "infinite.npy: holds inf, but"),
        ("complex.npy", "complex.npy: holds complex128; a site configuration holds booleans"),
        ("text.npy", "text.npy: holds <U1; a"),
        ("row.npy", "row.npy: an array of 1 dimensions; name its lattice with --lattice"),
        ("four.npy", "four.npy: an array of 4 dimensions; name its lattice"),
        ("four.npy --lattice cubic", "four.npy: 4 dimensions, but cubic has 3"),
        ("good.npy --lattice cubic", "good.npy: 2 dimensions, but cubic has 3"),
        ("empty.npy", "empty.npy: 0 sites, but 1 to 2147483584 can be labeled"),
        ("objects.npy", "objects.npy: holds Python objects (a pickle), which are not read"),
        ("archive.npz", "archive.npz: not .npy, .png, .tif, or an HDF5 dataset"),
        ("stack.raw", f"stack.raw: {KINDS}; save other data as .npy: numpy.fromfile reads"),
        ("links.csv", f"links.csv: {KINDS}; a network is given as --graph FILE"),
        ("short.npy", "short.npy: truncated: 7 bytes of data, but (3, 3) of bool are 9"),
        ("stub.npy", "stub.npy: is not an NPY file, or its header is damaged"),
        ("renamed.npy", "renamed.npy: is not an NPY file"),
        ("huge.npy", "huge.npy: 4294967296 sites, but 1 to"),
        ("claims.npy", "claims.npy: truncated: 0 bytes of data"),
        ("negative.npy", "negative.npy: the header gives the shape (-3, -3)"),
        ("code.npy", "code.npy: is not an NPY file, or its header is damaged"),
        ("colour.png", "colour.png: an image with colours; --threshold makes it grey and takes "),
        ("alpha.png", "alpha.png: an image with transparent pixels; save it without alpha"),
        ("transparent.png", "transparent.png: an image with transparent pixels; save it without"),
        ("stack.tif", "stack.tif: image 2 of 2 is of another size or kind"),
        ("cut.tif", "cut.tif: is not a TIFF image, or is truncated or damaged, or has 64 bits"),
        ("three.npy --threshold high", 'threshold = \'high\', but it must be a number or "otsu"'),
        ("nan.npy --threshold 0.5", "nan.npy: holds nan, which is neither above nor below"),
        ("good.npy --below", "good.npy: below says which side of a threshold is"),
        ("bonds.npy -L 4 --threshold 1", "--threshold: only an image has it; leave it out"),
        (
            "grey.png",
            "grey.png: holds 1 and 255, but a site configuration holds 0 (vacant) and one positive "
            "value (occupied); --threshold 125 (Otsu's value) takes what is above it",
        ),
        ("cut.png", "cut.png: is not a PNG image, or is truncated or damaged"),
        ("photo.png", "photo.png: is not a PNG image"),
        (
            "data.h5",
            "data.h5: name the dataset as well, as in data.h5:/path/to/dataset; "
            "percolab status shows what a file of percolab holds",
        ),
        ("data.h5:/absent", "data.h5: no dataset '/absent': / has no 'absent'; it holds away"),
        ("data.h5:/mask/deep", "data.h5: no dataset '/mask/deep': /mask has no 'deep'; it holds"),
        ("data.h5:/group", "data.h5: /group is a group, not a dataset; it holds inner"),
        ("data.h5:/soft", "data.h5: '/soft': 'soft' is a link, and links are not followed"),
        ("data.h5:/away", "data.h5: '/away': 'away' is a link, and links are not followed"),
        ("data.h5:/virtual", "data.h5:/virtual takes its data from another file"),
        ("data.h5:/claims", "data.h5:/claims claims more data than its file can hold"),
        ("data.h5:/text", "data.h5:/text: holds no plain numbers"),
        ("data.h5:/table", "data.h5:/table: holds [('x', '<i8')]; a"),
        ("data.h5:/nothing", "data.h5:/nothing: holds no plain numbers"),
        ("broken.h5:/mask", "broken.h5: is not a readable HDF5 file"),
        ("good.npy --lattice squar", "unknown lattice 'squar'; did you mean 'square'?"),
        ("good.npy --boundary perodic", "unknown boundary 'perodic'; did you mean 'periodic'?"),
        ("good.npy --boundary open,open,open", "boundary: 3 given, but square has 2 axes"),
        ("good.npy --labeler rastre", "unknown labeler 'rastre'; did you mean 'raster'?"),
        ("good.npy --device quick", "--device quick: must be auto, cpu, cuda or cuda:n"),
        ("good.npy -p 0.5", "-p: an image is a configuration already; leave it out"),
        ("good.npy --seed 3", "--seed: an image is a configuration already; leave it out"),
        ("good.npy --lattice kagome --boundary periodic", "kagome: 3 grid points along the"),
        ("bonds.npy -L 4", "a sample needs --lattice"),
        ("bonds.npy -L 7 --lattice square", "bonds.npy: uint32 (2, 1), but the open bonds of squ"),
        ("wide.npy -L 4 --lattice square", "wide.npy: int64 (2, 1), but the open bonds of square"),
        ("good.npy -L 3 --lattice square", "good.npy: bool (3, 3), but the open bonds of square"),
        ("outside.npy -L 4 --lattice square", "outside.npy: word 0 of class 0 opens a bond that"),
        ("--lattice square -L 4", "a sample (without INPUT) needs -p"),
        ("", "a sample (without INPUT) needs --lattice and -L and -p"),
        ("--lattice square -L 0 -p 0.5", "L = '0', but it must be an integer of at least 1"),
        ("--lattice square -L 99999 -p 0.5", "L = 99999: 9999800001 sites, but at most"),
        ("--lattice square -L 4 -p nan", "p = nan, but it must be a number from 0 to 1"),
        ("--lattice square -L 4 -p 1.5", "p = 1.5, but it must be a number from 0 to 1"),
        ("--lattice square -L 4 -p 0.5 --rng xorwov", "unknown rng 'xorwov'; did you mean"),
        ("--lattice bethe:3 -L 4", "a sample (without INPUT) needs -p"),
        ("--lattice bethe:2 -L 4 -p 0.5", "coordination number 2: a Bethe lattice needs at"),
        ("--lattice bethe:3:randm -L 4 -p 0.5", "unknown numbering 'randm'; did you"),
        ("--lattice bethe:3 -L 4 -p 0.5 --boundary open", "boundary = open, but bethe:3 has none"),
        ("good.npy --out a.txt", "a.txt: labels are written as .npy or .h5, a table of clusters"),
        ("good.npy --out no/labels.h5", "no/labels.h5: the directory no does not exist"),
        ("good.npy --out folder.npy", "folder.npy: is a directory"),
        ("good.npy --out good.npy", "good.npy: is the input itself; give another name"),
        ("data.h5:/mask --out data.h5", "data.h5: is the input itself; give another name"),
        ("good.npy --out data.h5", "data.h5: holds something else than labels; give another name"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(arguments, told):
    prepared()
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
    assert refusal("label", *arguments.split()).startswith(told)
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before


def test_results_of_a_sweep_are_never_replaced_but_labels_are():
    stored(Path("results.h5"))
    before = Path("results.h5").read_bytes()
    assert "holds something else" in refusal("label", *SAMPLE, "--out", "results.h5")
    assert Path("results.h5").read_bytes() == before
    for _ in range(2):
        answer("label", *SAMPLE, "--out", "labels.h5")


@pytest.mark.parametrize("name", ["claims.npy", "huge.npy", "data.h5:/claims", "short.npy"])
def test_no_memory_is_taken_for_what_is_not_there(name):
    prepared()
    run("label", "good.npy")
    assert traced_peak(lambda: refusal("label", name)) < 4e6


def test_large_image_is_refused_before_it_is_unpacked(monkeypatch):
    png("image.png", np.zeros((100, 100), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 9000)
    assert refusal("label", "image.png") == "image.png: more than 9000 pixels; save it as NPY"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert refusal("label", "image.png") == "image.png: more than 1000 pixels; save it as NPY"


def test_more_sites_than_fit_into_memory_are_refused(free_memory):
    np.save("image.npy", np.ones((100, 100), bool))
    free_memory(10**5)
    told = refusal("label", "image.npy")
    assert "10000 sites need 0.0 GB of memory" in told
    assert told.endswith("percolab label --slabs auto labels it in parts")
    answer("label", "image.npy", "--slabs", "auto", "--out", "a.npy")
    assert "L = 99 needs" in refusal("label", "--lattice", "square", "-L", 99, "-p", 0.5)
    told = refusal("label", "--lattice", "bethe:3", "-L", 10, "-p", 0.5)
    assert told.startswith("10 shells: 3070 sites need 0.0 GB of memory")


@pytest.mark.parametrize("name", ["image.npy", "image.png", slow("image.h5")])
def test_damage_anywhere_in_a_file_is_told_in_one_line(name):
    """Flip and cut bytes: a file is labeled or refused, and nothing else happens."""
    pixels = (np.random.default_rng(1).random((16, 16)) < 0.5).astype(np.uint8)
    np.save("image.npy", pixels)
    png("image.png", pixels * 255)
    # Without the checksums of this format HDF5 itself may loop forever.
    with h5py.File("image.h5", "w", libver=("v108", "v108")) as file:
        file.create_dataset("mask", data=pixels, chunks=(8, 8), compression="gzip")
    whole = Path(name).read_bytes()
    random = np.random.default_rng(4)
    # Every HDF5 file is read by a process of its own first; scripts/fuzz_files.py tries thousands.
    for turn in range(40 if name.endswith("h5") else 100):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= int(random.integers(1, 256))
        Path(name).write_bytes(damaged[: random.integers(len(whole))] if turn % 3 == 0 else damaged)
        result = run("label", f"{name}:/mask" if name.endswith("h5") else name, "--out", "l.npy")
        assert result.exit_code in (0, 2), (turn, result.exception)
        assert result.exit_code == 0 or len(result.stderr.splitlines()) == 1
        if name == "image.png" and result.exit_code == 0:
            # Every part of a PNG has a checksum.
            np.testing.assert_array_equal(np.load("l.npy") >= 0, pixels)


def test_lattice_of_a_users_file_is_kept_in_the_labels():
    Path("mine.toml").write_text(TEXTS["honeycomb_unit_cell"])
    np.save("image.npy", np.ones((3, 8), bool))
    answer("label", "image.npy", "--lattice", "mine.toml")
    found = read_labels("labels.h5")
    assert found.lattice.name == "honeycomb_unit_cell"
    assert found.lattice.digest == load_lattice("mine.toml").digest


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file["labels"].__setitem__((0, 0), 63),
        lambda file: put_text(file, "record", "{}"),
        lambda file: file["sizes"].__setitem__(0, 2),
        lambda file: file.__delitem__("roots"),
    ],
)
def test_labels_that_were_changed_are_refused(change):
    answer("label", *SAMPLE, "--out", "labels.h5")
    with h5py.File("labels.h5", "r+") as file:
        change(file)
    assert "does not match its checksum" in refusal("show", "labels.h5", "--out", "a.png")
