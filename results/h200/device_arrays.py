"""Times labels of images that are on a GPU already, beside those of CuPy, and compares them.

    python results/h200/device_arrays.py > results/h200/device-arrays.txt     # needs torch and cupy

Milliseconds of whole calls by the host's clock, after one that compiles.
"""

from __future__ import annotations

import time
from typing import Any

import cupy
import torch
from cupyx.scipy import ndimage

import percolab

CASES = (
    ((4096, 4096), 4, 0.593),
    ((16384, 16384), 4, 0.593),
    ((512, 512, 512), 6, 0.3116),
    ((512, 512, 512), 26, 0.3116),
)


def time_calls(call: Any) -> tuple[list[float], Any]:
    """Return the milliseconds of four calls after a first, and what the last returned."""
    times, result = [], call()
    for _ in range(4):
        torch.cuda.synchronize()
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        cupy.cuda.Device().synchronize()
        times.append(round(1e3 * (time.perf_counter() - start), 2))
    return times, result


def are_equal(labels: Any, others: Any) -> bool:
    """Return whether clusters are the same: labels are the smallest sites of the others."""
    first = cupy.full(int(others.max()) + 1, labels.size, dtype=cupy.int64)
    cupy.minimum.at(first, others.astype(cupy.int64), cupy.arange(labels.size, dtype=cupy.int64))
    first[0] = -1
    return bool((first[others] == labels).all())


def main() -> None:
    """Time and compare all cases."""
    for shape, connectivity, p in CASES:
        generator = torch.Generator(device="cuda").manual_seed(1)
        image = torch.rand(shape, device="cuda", generator=generator) < p
        reach = len(shape) if connectivity in (8, 26) else 1
        structure = ndimage.generate_binary_structure(len(shape), reach)
        own, labels = time_calls(lambda: percolab.label(image, connectivity=connectivity))  # noqa: B023
        peer, others = time_calls(lambda: ndimage.label(cupy.asarray(image), structure)[0])  # noqa: B023
        equal = are_equal(cupy.asarray(labels).ravel(), others.ravel())
        print(f"{shape} {connectivity}: percolab {own} ms, cupyx {peer} ms, equal: {equal}")


if __name__ == "__main__":
    main()
