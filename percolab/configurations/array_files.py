"""Arrays in NPY files, PNG and TIFF images and HDF5 datasets, each checked before it is read.

Shape and dtype come from the file's header; a file with less data than the header claims is
rejected before memory is allocated.
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

#: Pillow's name of an image format, by the file's suffix.
IMAGES = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF"}
#: Suffixes of the files that are searched for in a folder of slices.
SLICES = (".npy", *IMAGES)
#: Suffixes of files that list the bonds of a network, or rows of a table.
_TEXTS = (".csv", ".tsv", ".txt", ".dat", ".edges", ".mtx", ".graphml")
HDF5_SUFFIXES = (".h5", ".hdf5", ".hdf")
_HDF5_DATASET = re.compile(r"(?P<file>.+\.(?:h5|hdf5|hdf)):(?P<dataset>.*)", re.I | re.S)
#: Pillow's modes of grey images: 1 bit, up to 8 bits, 16 bits, 32 bits, floats.
_GREY_MODES = {
    "1": bool,
    "L": np.uint8,
    "I;16": np.uint16,
    "I;16B": np.uint16,
    "I": np.int32,
    "F": np.float32,
}
#: Modes of images with colours, and of images with an alpha channel, which may be opaque.
_COLOUR_MODES, _ALPHA_MODES = ("P", "RGB", "CMYK", "YCbCr", "LAB", "HSV"), ("RGBA", "LA", "PA")


def read_array(name: str | Path, check: Check, *, as_grey: bool = False) -> np.ndarray:
    """Return the array in a .png, .tif or .npy file, or in an HDF5 dataset as FILE.h5:/DATASET.

    An image is an array (height, width) of grey values, its upper left pixel first; a TIFF file of
    several images is (images, height, width).  as_grey: convert an image with colours to grey by
    the luma 0.299 R + 0.587 G + 0.114 B; without ``as_grey`` such an image is refused.

    InputError: a problem that ``check`` finds; an unknown kind of file; a missing or unreadable
    file; a pickle; an image with transparent pixels; a dataset that is missing or behind a link.
    """
    name = str(name)
    path, dataset = split_name(name)
    suffix = path.suffix.lower()
    if dataset is None and suffix in HDF5_SUFFIXES:
        raise InputError(
            f"{name}: name the dataset as well, as in {name}:/path/to/dataset; "
            "percolab status shows what a file of percolab holds"
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
    """A stack of images of the same size, one per file: an array that is read in parts.

    files: the slices, in this order.  as_grey: as for :func:`read_array`.
    InputError: as for :func:`read_array`; a slice that is not an image with two axes, or that
    differs from the first in shape or dtype.
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
                return f"{len(shape)} axes, but each slice of a stack must be an image with two"
            return check(shape, dtype)

        return read_array(name, is_flat, as_grey=self._as_grey)

    def _differs(self, shape: tuple[int, ...], dtype: np.dtype) -> str:
        if (shape, dtype) == (self.shape[1:], self.dtype):
            return ""
        first = f"{' x '.join(map(str, self.shape[1:]))} {self.dtype}"
        return f"{' x '.join(map(str, shape))} {dtype}, but {self._files[0]} is {first}"


def find_slices(name: str | Path | Sequence[str | Path]) -> list[str] | None:
    """Return the files of a stack's slices, slice2 before slice10; None if the name is one file.

    name: a folder of images, a pattern such as slices/*.png, or several files.
    InputError: no files are found, or a folder has images of several kinds.
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
            advice = f"; give those of one kind, as in {path}/*{kinds[0]}" if kinds else ""
            raise InputError(f"{name}: {what}{advice}")
        return sorted(map(str, files), key=_natural_order)
    if path.exists() or not glob.has_magic(text) or split_name(text)[1] is not None:
        return None
    slices = sorted(glob.glob(text), key=_natural_order)
    if not slices:
        raise InputError(f"{name}: no file matches this pattern")
    return slices


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them.

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
    """Return an array that is read in parts: it has .shape, .dtype and [start:stop] on axis 0.

    An image is read as a whole.  Arguments and errors are those of :func:`read_array`.
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
    """Raise InputError unless the path is a regular file."""
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
        # NumPy warns of headers that Python 2 wrote, and mistakes damaged headers for them.
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
            # verify() checks the checksum of every part; the image cannot be read afterwards.
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
    """Suppress what libtiff itself writes to stderr about a damaged image."""
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
    """Return the grey values of an image, or of all images of a TIFF file, stacked."""
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
    # Where tag 262 says that 0 is white, Pillow inverts the stored values of some modes only.
    if image.format == "TIFF" and mode in ("1", "L") and image.tag_v2.get(262) == 0:
        values = ~values
    return values if count > 1 else values[0]


def _grey(image: Any, path: Path, as_grey: bool) -> Any:
    """Return a grey image; InputError for transparency, or for colours unless ``as_grey``."""
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
        return red  # grey: all channels are equal
    grey = image.convert("L")
    if not as_grey:
        raise InputError(
            f"{path}: an image with colours; --threshold makes it grey and takes what is above "
            f"({otsu_threshold(np.asarray(grey)):g} is Otsu's value), or save it as black and white"
        )
    return grey


def to_array(name: str, given: Any) -> np.ndarray:
    """Convert an array or lists to an array; InputError for a masked array or ragged lists."""
    refuse_mask(name, given)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"{name}: {one_line(error)}") from error


def otsu_threshold(values: np.ndarray) -> float:
    """Return Otsu's threshold, which separates the values into the two most distinct classes.

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
            # Squares would overflow; scaling by a power of two is exact.
            scaled = otsu_threshold(np.ldexp(flat, -exponent - 1))
            return float(np.ldexp(scaled, exponent + 1))
    levels, counts = np.unique(flat, return_counts=True)
    if levels.size > 4096:
        counts, edges = np.histogram(flat, 256)
        # Values above a threshold are those above the upper edge of its bin.
        levels = edges[1:]
    weights = np.cumsum(counts)
    sums = np.cumsum(counts * levels.astype(np.float64))
    below, above = weights[:-1], weights[-1] - weights[:-1]
    if not below.size:
        return float(levels[0])
    means = sums[:-1] / np.maximum(below, 1), (sums[-1] - sums[:-1]) / np.maximum(above, 1)
    return float(levels[int(np.argmax(below * above * (means[0] - means[1]) ** 2))])


def _read_dataset(path: Path, name: str, check_header: HeaderCheck, part: Any = ...) -> np.ndarray:
    """Return a dataset of numbers, or a part of it; any program may have written the file.

    In a damaged file the HDF5 library can loop forever in the heaps of variable-length text, so no
    such text is read, neither here nor on the way to the dataset.
    """
    try:
        # The file is only read, and HDF5's own locks fail on some network file systems.
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
    """Return a dataset of an HDF5 file without following links to other places."""
    here, parts = file, [part for part in name.split("/") if part]
    for part in parts:
        members = here if isinstance(here, h5py.Group) else {}
        if part not in members:
            raise InputError(
                f"{path}: no dataset {name!r}: {here.name} has no {part!r}; it holds "
                f"{_few_names(members)}"
            )
        link = here.get(part, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{path}: {name!r}: {part!r} is a link, and links are not followed")
        here = here[part]
    if not isinstance(here, h5py.Dataset):
        raise InputError(
            f"{path}: {here.name} is a group, not a dataset; it holds {_few_names(here)}"
        )
    return here


def _few_names(members: Iterable[str]) -> str:
    return ", ".join(sorted(members)[:8]) or "nothing"
