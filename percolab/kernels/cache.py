"""Numba's cache of kernels, which an edit of the sums over clusters makes stale.

Numba keeps a compiled kernel as long as the kernel's own file stays as it is, whatever becomes of
the functions that it calls from other files.  The stamp of the kernels of later rooms has the
content of ``measure/sums.py`` as well, so that no study is measured by yesterday's arithmetic.
"""

import hashlib
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_SUMS = _PACKAGE / "measure" / "sums.py"
#: Rooms before that of the sums, whose functions cannot call them.
_EARLIER = ("lattices", "kernels", "bonds")


def stamp_kernels(caching: Any) -> None:
    """Let kernels that are declared from now on be cached by the content of the sums, too.

    caching: Numba's module of that name, or numba-cuda's.  Where its environment tells Numba
    how to find caches (NUMBA_CACHE_LOCATOR_CLASSES), that is left alone.
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
    """A locator of the cache of a function that may call the sums; others get another locator."""

    stamp: str

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the locator of a function in a file, or None."""
        path = Path(py_file).resolve()
        if _PACKAGE not in path.parents or path.relative_to(_PACKAGE).parts[0] in _EARLIER:
            return None
        return super().from_function(py_func, py_file)  # type: ignore[misc]

    def get_source_stamp(self) -> Any:
        """Return what a cached function must have been compiled from."""
        return super().get_source_stamp(), self.stamp  # type: ignore[misc]
