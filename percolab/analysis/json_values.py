"""Results as plain values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@overload
def plain(value: DataclassInstance | Mapping[Any, object]) -> dict[str, object]: ...
@overload
def plain(value: object) -> Any: ...
def plain(value: object) -> Any:
    """Return `value` made of dict, list, str, int, float, bool and None only.

    What has a to_dict is what that returns, other dataclasses become dicts of their fields, arrays
    and tuples become lists, and numbers that are not finite become None, because JSON has no NaN.

    >>> plain((1.5, float("nan"), np.int64(3)))
    [1.5, None, 3]
    """
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_dict"):
            return value.to_dict()
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Record:
    """A dataclass of results, whose to_dict has its fields and what its class says beside them.

    renamed: keys of fields that are called otherwise there, "" for those that are left out.
    added: properties that are there, too.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    added: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return every number as plain JSON values."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        keys = {name: self.renamed.get(name, name) for name in (*names, *self.added)}
        return {key: plain(getattr(self, name)) for name, key in keys.items() if key}
