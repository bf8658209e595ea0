"""Labels of arrays that lie on a GPU already stay there and equal those of the CPU."""

from typing import ClassVar

import numpy as np
import pytest
from device_array_support import CASES, image

import percolab
from percolab.errors import InputError
from percolab.kernels.device import memory_gpu


class OnDevice:
    """An array whose memory nobody may read."""

    shape, dtype = (4, 4), np.dtype(np.uint8)
    __cuda_array_interface__: ClassVar = {"shape": (4, 4), "typestr": "|u1", "data": (0, True)}


@pytest.mark.parametrize(
    "options", [{"p": 0.5}, {"L": 4}, {"phase": "all"}, {"serial": True}, {"threshold": 0.5}]
)
def test_options_that_device_arrays_do_not_have_are_refused(options):
    (name,) = options
    with pytest.raises(InputError, match=f"^{name}: .*GPU.*; leave it out$"):
        percolab.label(OnDevice(), **options)


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "values", "options"), CASES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_labels_of_device_arrays_equal_those_of_the_cpu(shape, values, options, dtype):
    from numba import cuda

    given = image(tuple(17 * side for side in shape[:2]) + shape[2:], values, dtype)
    found = percolab.label(cuda.to_device(given), **options)
    assert found.shape == given.shape
    expected = percolab.label(given, phase=list(range(1, values + 1)), **options)
    np.testing.assert_array_equal(found.copy_to_host(), expected)


@pytest.mark.gpu
def test_labels_of_torch_and_cupy_arrays_are_taken_without_a_copy():
    cupy, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    given = image((300, 517), 1)
    expected = percolab.label(given)
    of_torch = torch.as_tensor(given, device="cuda") != 0
    labels = torch.as_tensor(percolab.label(of_torch), device="cuda")
    np.testing.assert_array_equal(labels.cpu().numpy(), expected)
    found = percolab.label(cupy.asarray(given))
    labels = cupy.asarray(found)
    assert labels.data.ptr == found.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(labels.get(), expected)
    with pytest.raises(InputError, match=r"image > 0\.5"):
        percolab.label(cupy.asarray(given, dtype=cupy.float32))
    with pytest.raises(InputError, match="contiguous"):
        percolab.label(cupy.asarray(given)[:, ::2])


@pytest.mark.gpu
def test_an_array_on_another_gpu_is_labeled_there():
    from numba import cuda

    if not cuda.is_available() or len(cuda.gpus) < 2:
        pytest.skip("one CUDA device at most")
    given = image((300, 517), 1)
    with cuda.gpus[1]:
        on_second = cuda.to_device(given)
    with cuda.gpus[0]:
        labels = percolab.label(on_second)
        assert cuda.get_current_device().id == 0
    address = labels.__cuda_array_interface__["data"][0]
    assert memory_gpu(address) == 1
    np.testing.assert_array_equal(labels.copy_to_host(), percolab.label(given))
