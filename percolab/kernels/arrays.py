"""Where the large arrays of a batch and its labeler lie in the memory of a device."""

from typing import Any

from percolab.kernels.cuda import cuda


class Arrays:
    """Memory of its own for every caller."""

    def reserve(self, name: str, size: int, dtype: Any) -> Any:
        """Return an array of so many numbers, whatever is in it."""
        return cuda.device_array(size, dtype)


class SharedArrays(Arrays):
    """The same memory for all callers with one name, of whom one works at a time.

    It is as large as the largest request.  ``replaced`` counts how often memory was too
    small and another took its place: whoever had it keeps it, and should let go.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}
        self.replaced = 0

    def reserve(self, name: str, size: int, dtype: Any) -> Any:
        """Return an array of so many numbers, whatever is in it."""
        array = self._arrays.get(name)
        if array is None or array.size < size:
            self.replaced += array is not None
            array = self._arrays[name] = cuda.device_array(size, dtype)
        return array[:size]
