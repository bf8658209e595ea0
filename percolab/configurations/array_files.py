"""Arrays in NPY files, PNG and TIFF images and HDF5 datasets, each checked before it is read.

Shape and dtype come from the file's header; a file with fewer data than they claim is rejected
before memory is taken for them.
"""

import glob
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import h5py
import numpy as np

from percolab.errors import InputError, one_line, refuse_mask, unreadable
from percolab.lattices.shown import few
from percolab.store.tree import check_dataset

#: Returns what is wrong with an array of this shape and dtype, or "".
Check = Callable[[tuple[int, ...], np.dtype], str]

#: Images by their suffix, as Pillow calls what they are.
IMAGES = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF"}
#: What a folder of slices is looked through for.
SLICES = (".npy", *IMAGES)
#: Suffixes of files that list the bonds of a network, or rows of a table.
_TEXTS = (".csv", ".tsv", ".txt", ".dat", ".edges", ".mtx", ".graphml")
HDF5_SUFFIXES = (".h5", ".hdf5", ".hdf")
_HDF5_DATASET = re.compile(r"(?P<file>.+\.(?:h5|hdf5|hdf)):(?P<dataset>.*)", re.I | re.S)
#: How the grey images of Pillow are called: 1 bit, up to 8 bits, 16 bits, 32 bits, floats.
_GREY_MODES = {
    "1": bool,
    "L": np.uint8,
    "I;16": np.uint16,
    "I;16B": np.uint16,
    "I": np.int32,
    "F": np.float32,
}
#: Images with colours, and those with an alpha that may be opaque.
_COLOUR_MODES, _ALPHA_MODES = ("P", "RGB", "CMYK", "YCbCr", "LAB", "HSV"), ("RGBA", "LA", "PA")


def read_array(name: str | Path, check: Check, *, as_grey: bool = False) -> np.ndarray:
    """Return the array in a .png, .tif or .npy file, or in an HDF5 dataset as FILE.h5:/DATASET.

    An image is an array (height, width) of grey values, its upper left pixel first; a TIFF file of
    several images is (images, height, width).  as_grey: one with colours is made grey, by the
    luma 0.299 R + 0.587 G + 0.114 B; without it, it is refused.

    InputError: what ``check`` finds; an unknown kind of file; no file, or one that cannot be read;
    a pickle; an image with transparent pixels; a dataset that is not there, or lies behind a link.
    """
    name = str(name)
    path, dataset = split_name(name)
    suffix = path.suffix.lower()
    if dataset is None and suffix in HDF5_SUFFIXES:
        raise InputError(
            f"{name}: name the dataset as well, as in {name}:/path/to/dataset; "
            "percolab status shows what a file of percolab's own holds"
        )
    if suffix not in (".npy", *IMAGES, *HDF5_SUFFIXES):
        network = "; a network is given as --graph FILE" if suffix in _TEXTS else ""
        kinds = "not .npy, .png, .tif, or an HDF5 dataset (file.h5:/path/to/dataset)"
        other = "" if network else "; save other data as .npy: numpy.fromfile reads raw files"
        raise InputError(f"{name}: {kinds}{network}{other}")
    check_file(path)
    check_header = _refuse_by(name, check)
    try:
        if dataset is not None:
            return _read_dataset(path, dataset, check_header)
        if suffix in IMAGES:
            return _read_image(path, IMAGES[suffix], check_header, as_grey)
        return _read_npy(path, check_header)
    except InputError:
        raise
    except OSError as error:
        raise unreadable(name, error) from error


class Slices:
    """Images of the same size in files, one above the other: an array that is read in parts.

    files: in this order.  as_grey: as :func:`read_array`.
    InputError: as :func:`read_array`; a slice that is no image of two axes, or differs from the
    first in shape.
    """

    def __init__(self, files: Sequence[str], check: Check, *, as_grey: bool = False) -> None:
        self._files, self._as_grey = files, as_grey
        first = self._read(files[0], lambda shape, dtype: check((len(files), *shape), dtype))
        self.shape, self.dtype = (len(files), *first.shape), first.dtype

    def __getitem__(self, part: slice) -> np.ndarray:
        """Return the slices of a range of the first axis, (slices, height, width)."""
        files = self._files[part]
        slices = np.empty((len(files), *self.shape[1:]), self.dtype)
        for layer, name in zip(slices, files):
            layer[:] = self._read(name, self._differs)
        return slices

    def _read(self, name: str, check: Check) -> np.ndarray:
        def is_flat(shape: tuple[int, ...], dtype: np.dtype) -> str:
            if len(shape) != 2:
                return f"{len(shape)} axes, but each slice of a stack is an image of two"
            return check(shape, dtype)

        return read_array(name, is_flat, as_grey=self._as_grey)

    def _differs(self, shape: tuple[int, ...], dtype: np.dtype) -> str:
        if (shape, dtype) == (self.shape[1:], self.dtype):
            return ""
        first = f"{' x '.join(map(str, self.shape[1:]))} {self.dtype}"
        return f"{' x '.join(map(str, shape))} {dtype}, but {self._files[0]} is {first}"


def find_slices(name: str | Path | Sequence[str | Path]) -> list[str] | None:
    """Return the files that are the slices of one stack, slice2 before slice10; None of one file.

    name: a folder of images, a pattern such as slices/*.png, or several files.
    InputError: nothing is there, or a folder has images of several kinds.
    """
    if not isinstance(name, str | Path):
        if not len(name):
            raise InputError("an image is an array, a file or a list of files: the list is empty")
        return sorted(map(str, name), key=_natural_order)
    path, text = Path(name), str(name)
    if os.path.isdir(path) and path.suffix.lower() not in (*SLICES, *HDF5_SUFFIXES):
        files = [each for each in path.iterdir() if each.suffix.lower() in SLICES]
        files = [each for each in files if each.is_file() and not each.name.startswith(".")]
        kinds = sorted({each.suffix for each in files})
        if len(kinds) != 1:
            what = f"holds {' and '.join(kinds)}" if kinds else f"a folder without {few(SLICES)}"
            advice = f"; name those of one kind, as in {path}/*{kinds[0]}" if kinds else ""
            raise InputError(f"{name}: {what}{advice}")
        return sorted(map(str, files), key=_natural_order)
    if path.exists() or not glob.has_magic(text) or split_name(text)[1] is not None:
        return None
    slices = sorted(glob.glob(text), key=_natural_order)
    if not slices:
        raise InputError(f"{name}: no file has such a name")
    return slices


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Return what sorts names by the numbers in them.

    >>> sorted(["s10.png", "s9.png"], key=_natural_order)
    ['s9.png', 's10.png']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts]


class _Dataset:
    """A dataset of an HDF5 file that is read in parts."""

    def __init__(self, path: Path, name: str, check: Check) -> None:
        self._path, self._name = path, name

        def check_header(shape: tuple[int, ...], dtype: np.dtype) -> None:
            self.shape, self.dtype = shape, dtype
            _refuse_by(f"{path}:{name}", check)(shape, dtype)

        _read_dataset(path, name, check_header, np.s_[:0])

    def __getitem__(self, part: slice) -> np.ndarray:
        return _read_dataset(self._path, self._name, lambda shape, dtype: None, part)


def open_array(name: str | Path, check: Check, *, as_grey: bool = False) -> Any:
    """Return an array of which parts are read: .shape, .dtype, and [start:stop] of its first axis.

    An image is read at once.  Arguments and errors are those of :func:`read_array`.
    """
    path, dataset = split_name(str(name))
    if dataset is not None:
        check_file(path)
        return _Dataset(path, dataset, check)
    if path.suffix.lower() != ".npy":
        return read_array(name, check, as_grey=as_grey)
    check_file(path)
    return _read_npy(path, _refuse_by(str(name), check), in_parts=True)


def split_name(name: str) -> tuple[Path, str | None]:
    """Return the file that a name means, and the dataset in it or None.

    >>> split_name("cracks.h5:/run/3")
    (PosixPath('cracks.h5'), '/run/3')
    """
    named = _HDF5_DATASET.fullmatch(name)
    return (Path(named["file"]), named["dataset"]) if named else (Path(name), None)


def check_file(path: Path) -> None:
    """Raise InputError unless there is a regular file."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: is not a regular file")


HeaderCheck = Callable[[tuple[int, ...], np.dtype], None]


def _refuse_by(name: str, check: Check) -> HeaderCheck:
    def check_header(shape: tuple[int, ...], dtype: np.dtype) -> None:
        if problem := check(shape, dtype):
            raise InputError(f"{name}: {problem}")

    return check_header


def _read_npy(path: Path, check_header: HeaderCheck, *, in_parts: bool = False) -> np.ndarray:
    with open(path, "rb") as file:
        shape, fortran, dtype = _npy_header(file, path)
        if dtype.hasobject:
            raise InputError(f"{path}: holds Python objects (a pickle), which are not read")
        if any(length < 0 for length in shape):
            raise InputError(f"{path}: the header gives the shape {shape}")
        check_header(shape, dtype)
        count = prod(shape)
        there = path.stat().st_size - file.tell()
        if there < count * dtype.itemsize:
            raise InputError(
                f"{path}: truncated: {there} bytes of data, but {shape} of {dtype} are "
                f"{count * dtype.itemsize}"
            )
        if in_parts:
            order: Any = "F" if fortran else "C"
            return np.memmap(path, dtype, "r", file.tell(), shape, order)
        flat = np.fromfile(file, dtype, count)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _npy_header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], bool, np.dtype]:
    form = np.lib.format
    try:
        # NumPy warns of headers that Python 2 wrote, and takes damaged ones for such.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = form.read_magic(file)
            if version == (1, 0):
                return form.read_array_header_1_0(file)
            if version == (2, 0):
                return form.read_array_header_2_0(file)
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: is not an NPY file, or its header is damaged") from error
    raise InputError(f"{path}: NPY version {version[0]}.{version[1]}; 1.0 and 2.0 are read")


def _read_image(path: Path, kind: str, check_header: HeaderCheck, as_grey: bool) -> np.ndarray:
    from PIL import Image

    try:
        with open(path, "rb") as file, warnings.catch_warnings(), _quiet_decoder(kind):
            # Errors are reported below.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            # This checks the checksum of every part, after which the image cannot be read.
            Image.open(file, formats=[kind]).verify()
            file.seek(0)
            return _grey_values(Image.open(file, formats=[kind]), path, check_header, as_grey)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        most = Image.MAX_IMAGE_PIXELS
        raise InputError(f"{path}: more than {most} pixels; save it as NPY") from error
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError) as error:
        if isinstance(error, InputError) or getattr(error, "errno", None) is not None:
            raise
        problem = f"is not a {kind} image, or is truncated or damaged, or has 64 bits a value"
        raise InputError(f"{path}: {problem}") from error


@contextmanager
def _quiet_decoder(kind: str) -> Iterator[None]:
    """Keep off stderr what libtiff itself writes there of a damaged image."""
    try:
        stderr = os.dup(2) if kind == "TIFF" else -1
    except OSError:  # closed
        stderr = -1
    if stderr < 0:
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _grey_values(image: Any, path: Path, check_header: HeaderCheck, as_grey: bool) -> np.ndarray:
    """Return the grey values of an image, or of all images of a TIFF file, one above the other."""
    count = getattr(image, "n_frames", 1)
    if count > 1 and image.format != "TIFF":
        raise InputError(f"{path}: an animated image; save one of its frames")
    shape, mode = (image.height, image.width), image.mode
    kind = np.dtype(_GREY_MODES.get(mode, np.uint8))
    check_header((count, *shape) if count > 1 else shape, kind)
    values = np.empty((count, *shape), kind)
    for n in range(count):
        image.seek(n)
        if (image.height, image.width) != shape or image.mode != mode:
            raise InputError(f"{path}: image {n + 1} of {count} is of another size or kind")
        values[n] = np.asarray(_grey(image, path, as_grey))
    # Where 0 is white, by tag 262, Pillow inverts what is stored, though not of every kind.
    if image.format == "TIFF" and mode in ("1", "L") and image.tag_v2.get(262) == 0:
        values = ~values
    return values if count > 1 else values[0]


def _grey(image: Any, path: Path, as_grey: bool) -> Any:
    """Return an image as a grey one; InputError for colours, unless ``as_grey``, or alpha."""
    if image.mode in _GREY_MODES and "transparency" not in image.info:
        return image
    with_alpha = image.mode in _ALPHA_MODES or "transparency" in image.info
    if with_alpha:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema() != (255, 255):
            raise InputError(
                f"{path}: an image with transparent pixels; save it without alpha (a background "
                "behind it), as grey or black and white"
            )
    elif image.mode not in _COLOUR_MODES:
        raise InputError(f"{path}: an image of mode {image.mode}; save it as grey")
    image = image.convert("RGB")
    red, *others = image.split()
    if all(band.tobytes() == red.tobytes() for band in others):
        return red  # grey, for all its channels
    grey = image.convert("L")
    if not as_grey:
        raise InputError(
            f"{path}: an image with colours; --threshold makes it grey and takes what is above "
            f"({otsu_threshold(np.asarray(grey)):g} is Otsu's value), or save it as black and white"
        )
    return grey


def to_array(name: str, given: Any) -> np.ndarray:
    """Return an array of what is given, lists among it; InputError for a mask or ragged lists."""
    refuse_mask(name, given)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"{name}: {one_line(error)}") from error


def otsu_threshold(values: np.ndarray) -> float:
    """Return Otsu's threshold: what is above it and what is not differ most for their scatter.

    values: finite numbers of any shape; floats and integers of more than 4096 values are counted in
    256 bins.  N. Otsu, IEEE Trans. Syst. Man Cybern. 9, 62 (1979).

    >>> otsu_threshold(np.array([10, 11, 12, 200, 201]))
    12.0
    """
    flat = np.asarray(values).ravel()
    if flat.dtype.kind in "bf":
        flat = flat.astype(np.float64)
        _, exponent = np.frexp(np.abs(flat).max(initial=0.0))
        if abs(int(exponent)) > 256:
            # Squares would overflow; powers of two change no digit.
            scaled = otsu_threshold(np.ldexp(flat, -exponent - 1))
            return float(np.ldexp(scaled, exponent + 1))
    levels, counts = np.unique(flat, return_counts=True)
    if levels.size > 4096:
        counts, edges = np.histogram(flat, 256)
        # What is above a threshold is above the upper edge of its bin.
        levels = edges[1:]
    weights = np.cumsum(counts)
    sums = np.cumsum(counts * levels.astype(np.float64))
    below, above = weights[:-1], weights[-1] - weights[:-1]
    if not below.size:
        return float(levels[0])
    means = sums[:-1] / np.maximum(below, 1), (sums[-1] - sums[:-1]) / np.maximum(above, 1)
    return float(levels[int(np.argmax(below * above * (means[0] - means[1]) ** 2))])


def _read_dataset(path: Path, name: str, check_header: HeaderCheck, part: Any = ...) -> np.ndarray:
    """Return a dataset of numbers, or a part, in a file that any program may have written.

    Damage can make the HDF5 library loop for ever in the heaps of text of variable length, which is
    not read, here or on the way to the dataset.
    """
    try:
        # The file is only read; and HDF5's own locks fail on some networks.
        with h5py.File(path, "r", locking=False) as file:
            dataset = _followed(file, name, path)
            if dataset.shape is None or dataset.dtype.hasobject:
                raise InputError(f"{path}:{dataset.name}: holds no plain numbers")
            check_header(dataset.shape, dataset.dtype)
            try:
                check_dataset(dataset)
            except ValueError as error:
                raise InputError(f"{path}:{error}") from error
            values: np.ndarray = dataset[part]
            return values
    except (InputError, PermissionError):
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: is not a readable HDF5 file (truncated, or another format)"
        ) from error


def _followed(file: Any, name: str, path: Path) -> Any:
    """Return a dataset of an HDF5 file, reached without following a link to elsewhere."""
    here, parts = file, [part for part in name.split("/") if part]
    for part in parts:
        members = here if isinstance(here, h5py.Group) else {}
        if part not in members:
            raise InputError(
                f"{path}: no dataset {name!r}: {here.name} holds {_few_names(members)}, and no "
                f"{part!r}"
            )
        link = here.get(part, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{path}: {name!r}: {part!r} is a link, and links are not followed")
        here = here[part]
    if not isinstance(here, h5py.Dataset):
        raise InputError(f"{path}: {here.name} is a group, no dataset; it holds {_few_names(here)}")
    return here


def _few_names(members: Iterable[str]) -> str:
    return ", ".join(sorted(members)[:8]) or "nothing"
