"""Numba's cache of kernels, which must be invalidated by an edit of the sums over clusters.

Numba keeps a compiled kernel while the kernel's own file is unchanged, even if functions that it
calls from other files have changed.  The stamp of the kernels of later rooms includes the content
of ``measure/sums.py``, so that no study is measured with outdated arithmetic.
"""

import hashlib
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_SUMS = _PACKAGE / "measure" / "sums.py"
#: Rooms before that of the sums, whose functions cannot call them.
_EARLIER = ("lattices", "kernels", "bonds")


def stamp_kernels(caching: Any) -> None:
    """Make the cache of kernels declared from now on depend on the content of the sums, too.

    caching: Numba's module of that name, or numba-cuda's.  If the environment variable
    NUMBA_CACHE_LOCATOR_CLASSES sets how caches are found, nothing is changed.
    """
    locators = caching.CacheImpl._locator_classes
    if any(issubclass(locator, _Stamped) for locator in locators):
        return
    stamp = hashlib.sha256(_SUMS.read_bytes()).hexdigest()
    locators[:0] = [
        type(f"Stamped{locator.__name__}", (_Stamped, locator), {"stamp": stamp})
        for locator in locators
    ]


class _Stamped:
    """The cache locator of functions that may call the sums; other functions get another one."""

    stamp: str

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the locator of a function in a file, or None."""
        path = Path(py_file).resolve()
        if _PACKAGE not in path.parents or path.relative_to(_PACKAGE).parts[0] in _EARLIER:
            return None
        return super().from_function(py_func, py_file)  # type: ignore[misc]

    def get_source_stamp(self) -> Any:
        """Return the stamp that a cached function must have to be valid."""
        return super().get_source_stamp(), self.stamp  # type: ignore[misc]
