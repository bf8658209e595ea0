"""Labels device arrays in CUDA's simulator, as the CPU labels host arrays."""

from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
from device_array_support import CASES, DeviceArray, image
from numba import cuda

import percolab


def main():
    """Compare the labels of every case."""
    view = "percolab.configurations.device_arrays._viewed"
    with patch(view, lambda given: nullcontext((cuda.to_device(given.array), 0))):
        for shape, values, options in CASES:
            given = image(shape, values)
            found = percolab.label(DeviceArray(given), **options).copy_to_host()
            expected = percolab.label(given, phase=list(range(1, values + 1)), **options)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected)
            assert (found == -1).any()
            assert np.unique(found).size > 3
