"""Allocation of the large arrays of a batch and its labeler in the memory of a device."""

from typing import Any

from percolab.kernels.cuda import cuda


class Arrays:
    """Separate memory for every caller."""

    def reserve(self, name: str, size: int, dtype: Any) -> Any:
        """Return an uninitialized array of ``size`` numbers."""
        return cuda.device_array(size, dtype)


class SharedArrays(Arrays):
    """The same memory for all callers of one name, only one of which works at a time.

    It is as large as the largest request.  ``replaced`` counts how often memory was too small and
    was replaced by a larger array: callers still refer to the old one, and should release it.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}
        self.replaced = 0

    def reserve(self, name: str, size: int, dtype: Any) -> Any:
        """Return an uninitialized array of ``size`` numbers."""
        array = self._arrays.get(name)
        if array is None or array.size < size:
            self.replaced += array is not None
            array = self._arrays[name] = cuda.device_array(size, dtype)
        return array[:size]
