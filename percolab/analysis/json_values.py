"""Results as plain values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@overload
def plain(value: DataclassInstance | Mapping[Any, object]) -> dict[str, object]: ...
@overload
def plain(value: object) -> Any: ...
def plain(value: object) -> Any:
    """Return `value` made of dict, list, str, int, float, bool and None only.

    Dataclasses become dicts of their fields, arrays and tuples become lists, and numbers that are
    not finite become None, because JSON has no NaN.

    >>> plain((1.5, float("nan"), np.int64(3)))
    [1.5, None, 3]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
