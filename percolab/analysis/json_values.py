"""Results as plain values that JSON can store."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

T = TypeVar("T")


def plain(value: object) -> Any:
    """Return `value` made of dict, list, str, int, float, bool and None only.

    Objects with a to_dict become what it returns, other dataclasses dicts of their fields, arrays
    and tuples lists, and numbers that are not finite None, because JSON has no NaN.

    >>> plain((1.5, float("nan"), np.int64(3)))
    [1.5, None, 3]
    """
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_dict"):
            return value.to_dict()
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Record:
    """A dataclass of results, whose to_dict has its fields and the properties that are added.

    renamed: keys of fields that have another name there, "" for fields that are left out.
    added: properties that to_dict contains too.
    result_keys: keys of the value and error of a field `result`, whose dict is part of this one.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    added: ClassVar[tuple[str, ...]] = ()
    result_keys: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return every number as plain JSON values."""
        record: dict[str, Any] = {}
        for name in (*(field.name for field in fields(self)), *self.added):  # type: ignore[arg-type]
            value, key = getattr(self, name), self.renamed.get(name, name)
            if name == "result":
                record |= value.to_dict(*self.result_keys)
            elif key:
                record[key] = plain(value)
        return record


class Part(Generic[T]):
    """A property that is found by its path in the fields of a record: Part[float]("p_c.value")."""

    def __init__(self, path: str) -> None:
        self._get = attrgetter(path)
        self.__doc__ = f"Short for ``{path}``."

    def __get__(self, record: object, owner: object = None) -> T:
        return cast(T, self if record is None else self._get(record))
