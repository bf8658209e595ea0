"""Where the large arrays of a batch and its labeler lie in the memory of a device."""

from __future__ import annotations

from typing import Any

from percolab.kernels.device import load_cuda

cuda = load_cuda()


class Arrays:
    """Memory of its own for everyone who asks."""

    def array(self, name: str, size: int, dtype: Any) -> Any:
        """Return an array of so many numbers, whatever is in it."""
        return cuda.device_array(size, dtype)


class SharedArrays(Arrays):
    """The same memory for all who ask by one name, of whom one works at a time.

    It is as large as the largest that was asked for.  ``replaced`` counts how often memory was too
    small and another took its place: whoever had it keeps it, and should let go.
    """

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}
        self.replaced = 0

    def array(self, name: str, size: int, dtype: Any) -> Any:
        """Return an array of so many numbers, whatever is in it."""
        held = self._held.get(name)
        if held is None or held.size < size:
            self.replaced += held is not None
            held = self._held[name] = cuda.device_array(size, dtype)
        return held[:size]
