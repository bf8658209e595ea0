"""Tables as CSV, in which no name is taken for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV, an empty field where there is no number.

    A text that a spreadsheet would take for a formula, and that is no number, has an apostrophe
    before it.

    >>> print(csv_text(["name", "mean"], [["=1+1", -0.5], ["-3", None]]), end="")
    name,mean
    '=1+1,-0.5
    -3,
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_cell, header))
    writer.writerows(map(_cell, row) for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
