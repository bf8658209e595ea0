"""Arrays in NPY files, PNG images and HDF5 datasets, each looked at before it is read.

Shape and dtype come from the file's header; a file that holds less than they claim is refused
before memory is taken for them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from percolab.errors import InputError

#: Says what is wrong with an array of this shape and dtype, or "".
Check = Callable[[tuple[int, ...], np.dtype], str]

HDF5_SUFFIXES = (".h5", ".hdf5", ".hdf")
_HDF5_DATASET = re.compile(r"(?P<file>.+\.(?:h5|hdf5|hdf)):(?P<dataset>.*)", re.I | re.S)
#: How the grey images of Pillow are called: 1 bit, up to 8 bits, 16 bits.
_GREY_MODES = {"1": bool, "L": np.uint8, "I;16": np.uint16, "I;16B": np.uint16, "I": np.int32}


def read_array(name: str, check: Check) -> np.ndarray:
    """Return the array in a .png or .npy file, or in an HDF5 dataset named as FILE.h5:/DATASET.

    An image is an array (height, width) of grey values, its upper left pixel first.

    InputError: what ``check`` finds; an unknown kind of file; no file, or one that cannot be read;
    a pickle; an image with colours or alpha; a dataset that is not there, or lies behind a link.
    """
    path, dataset = split_name(name)
    suffix = path.suffix.lower()
    if dataset is None and suffix in HDF5_SUFFIXES:
        raise InputError(f"{name}: name the dataset as well, as in {name}:/path/to/dataset")
    if suffix not in (".png", ".npy", *HDF5_SUFFIXES):
        raise InputError(f"{name}: not .npy, .png, or an HDF5 dataset (file.h5:/path/to/dataset)")
    check_file(path)

    def told(shape: tuple[int, ...], dtype: np.dtype) -> None:
        wrong = check(shape, dtype)
        if wrong:
            raise InputError(f"{name}: {wrong}")

    try:
        if dataset is not None:
            return _read_dataset(path, dataset, told)
        return (_read_png if suffix == ".png" else _read_npy)(path, told)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error


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


Told = Callable[[tuple[int, ...], np.dtype], None]


def _read_npy(path: Path, told: Told) -> np.ndarray:
    with open(path, "rb") as file:
        shape, fortran, dtype = _npy_header(file, path)
        if dtype.hasobject:
            raise InputError(f"{path}: holds Python objects (a pickle), which are not read")
        if any(length < 0 for length in shape):
            raise InputError(f"{path}: the header gives the shape {shape}")
        told(shape, dtype)
        count = prod(shape)
        held = path.stat().st_size - file.tell()
        if held < count * dtype.itemsize:
            raise InputError(
                f"{path}: truncated: {held} bytes of data, but {shape} of {dtype} are "
                f"{count * dtype.itemsize}"
            )
        flat = np.fromfile(file, dtype, count)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _npy_header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], bool, np.dtype]:
    form = np.lib.format
    try:
        # NumPy tells at length of headers that Python 2 wrote, and tries damaged ones as such.
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


def _read_png(path: Path, told: Told) -> np.ndarray:
    from PIL import Image

    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            # This looks at the checksum of every part, and leaves an image that cannot be read.
            Image.open(file, formats=["PNG"]).verify()
            file.seek(0)
            return _grey_values(Image.open(file, formats=["PNG"]), path, told)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        most = Image.MAX_IMAGE_PIXELS
        raise InputError(f"{path}: more than {most} pixels; save it as NPY") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        if isinstance(error, InputError) or getattr(error, "errno", None) is not None:
            raise
        raise InputError(f"{path}: is not a PNG image, or is truncated or damaged") from error


def _grey_values(image: Any, path: Path, told: Told) -> np.ndarray:
    if image.mode not in _GREY_MODES or "transparency" in image.info:
        raise InputError(
            f"{path}: an image of mode {image.mode} with colours, palette or alpha; "
            "save it as grey or black and white"
        )
    if getattr(image, "is_animated", False):
        raise InputError(f"{path}: an animated image; save one of its frames")
    told((image.height, image.width), np.dtype(_GREY_MODES[image.mode]))
    return np.asarray(image)


def _read_dataset(path: Path, name: str, told: Told) -> np.ndarray:
    import h5py

    from percolab.store.reading import check_reading_ends

    check_reading_ends(path, name)
    try:
        # The file is only read; and HDF5's own locks fail on some networks.
        with h5py.File(path, "r", locking=False) as file:
            dataset = _followed(file, name, path)
            if dataset.shape is None or dataset.dtype.hasobject:
                raise InputError(f"{path}:{dataset.name}: holds no plain numbers")
            told(dataset.shape, dataset.dtype)
            _check_source(dataset, path)
            found: np.ndarray = dataset[...]
            return found
    except InputError:
        raise
    except PermissionError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: is not a readable HDF5 file (truncated, or another format)"
        ) from error


def _check_source(dataset: Any, path: Path) -> None:
    from percolab.store.guard import check_dataset

    try:
        check_dataset(dataset)
    except ValueError as error:
        raise InputError(f"{path}:{error}") from error


def _followed(file: Any, name: str, path: Path) -> Any:
    """Return a dataset of an HDF5 file, reached without following a link to elsewhere."""
    import h5py

    here, parts = file, [part for part in name.split("/") if part]
    for part in parts:
        members = here if isinstance(here, h5py.Group) else {}
        if part not in members:
            held = ", ".join(sorted(members)[:8]) or "nothing"
            raise InputError(
                f"{path}: no dataset {name!r}: {here.name} holds {held}, and no {part!r}"
            )
        link = here.get(part, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{path}: {name!r}: {part!r} is a link, and links are not followed")
        here = here[part]
    if not isinstance(here, h5py.Dataset):
        held = ", ".join(sorted(here)[:8]) or "nothing"
        raise InputError(f"{path}: {here.name} is no dataset but a group; it holds {held}")
    return here
