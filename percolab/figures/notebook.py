"""A figure that a notebook shows, with or without pyplot, and that has its numbers."""

import io
from typing import Any

from matplotlib.figure import Figure

#: Dots per inch in a notebook.
_DPI = 144


class NotebookFigure(Figure):
    """A plain figure of matplotlib, which is shown as the last line of a notebook's cell.

    numbers: every number drawn, by name, as plain JSON values; empty where none are reported
    """

    numbers: dict[str, Any]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.numbers = {}

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()
