"""Labels of an array that is already on a GPU; the labels stay there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from percolab.bonds.model import BOND
from percolab.bonds.sites_cuda import mark_empty_kernel, open_between_kernel
from percolab.configurations.configuration import image_lattice, lattice_problem
from percolab.errors import InputError
from percolab.kernels.cuda import cuda
from percolab.kernels.device import cuda_problem, memory_gpu
from percolab.labelers import fitting_labeler, new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice
from percolab.tasks.study import axis_boundaries


def label_device_array(
    image: Any,
    lattice: Lattice | None = None,
    boundary: str | Sequence[str] = "open",
    *,
    connectivity: int | None = None,
    labeler: str | None = None,
) -> Any:
    """Return the labels of an image on a GPU as a device array, int32, in the image's shape.

    image: integers or booleans, contiguous, in the memory of any GPU; sites are where it is not 0,
    and neighbours with equal values are joined.  A label is the smallest site index of the
    cluster, -1 where there is no site.  The labels are on the same GPU and have
    ``__cuda_array_interface__``: ``cupy.asarray`` and ``torch.as_tensor`` take them without a copy.
    They are complete on return.  Memory is kept for the next image of the same shape.

    InputError: other values, an array with gaps, or one that lattice or labeler does not allow.
    """
    with _viewed(image) as (given, gpu):
        return _label(given, gpu, lattice, boundary, connectivity, labeler)


def _label(
    given: Any,
    gpu: int,
    lattice: Lattice | None,
    boundary: str | Sequence[str],
    connectivity: int | None,
    labeler: str | None,
) -> Any:
    """Return the labels of an array of this GPU, which is the current one."""
    if np.dtype(given.dtype).kind not in "biu":
        raise InputError(
            f"label: an array of {np.dtype(given.dtype)} on a GPU, but it must hold integers or "
            "booleans; compare it on the GPU first, as image > 0.5"
        )
    if not given.is_c_contiguous():
        raise InputError("label: an array on a GPU must be contiguous (torch: image.contiguous())")
    if problem := lattice_problem(lattice, connectivity, len(given.shape)):
        raise InputError(f"label: {problem}")
    lattice = lattice or image_lattice(connectivity, len(given.shape))
    if not given.size:
        raise InputError("label: the array has no sites")
    kinds = axis_boundaries(lattice, boundary)
    name, _ = fitting_labeler(labeler, "cuda", lattice)
    chosen = _labeler(gpu, lattice, given.shape[::-1], kinds, name)
    batch, points = chosen.batch, chosen.batch.topology.num_points
    values = given.reshape(points)
    bonds = batch.exists, batch.adjacency, values, batch.opened
    batch.launches.one(open_between_kernel, batch.exists.size, 1, *bonds)
    chosen.join(1, Reading.LABELS).make_labels()
    labels = cuda.device_array(points, np.int32)
    sites = batch.existing_sites, values, chosen.labels, labels
    batch.launches.one(mark_empty_kernel, points, 1, *sites)
    batch.launches.wait()
    return labels.reshape(given.shape)


@lru_cache(maxsize=1)
def _labeler(
    gpu: int, lattice: Lattice, shape: tuple[int, ...], boundary: tuple[str, ...], name: str
) -> Any:
    """Return a labeler for single images; the last one is cached, as shapes often repeat."""
    topology = lattice.topology(shape, boundary)
    try:
        return new_labeler(name, "cuda", topology, BOND)
    except ValueError as error:
        raise InputError(f"{topology.num_points} sites on a GPU: {error}") from error


@contextmanager
def _viewed(image: Any) -> Iterator[tuple[Any, int]]:
    """Yield a Numba view of a device array, when pending work is done, and its GPU made current."""
    if problem := cuda_problem():
        raise InputError(f"label: {problem}")
    gpu = memory_gpu(image.__cuda_array_interface__["data"][0])
    with cuda.gpus[gpu]:
        view = cuda.as_cuda_array(image)
        cuda.synchronize()
        yield view, gpu
