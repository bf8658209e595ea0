"""A user's axes in place of a new figure, for figures of one panel.

Kinds of figures draw into a figure that they ask for.  While :func:`drawing_into` is open they get
:class:`AxesAsFigure` instead, which has of a figure what figures of one panel use, and keeps its
hands off all other axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How far below the axes a second legend is, in points.
_BELOW = 32


class _Listed:
    """A legend that is not drawn yet: its entries, for the one legend of the axes."""

    def __init__(self, all_listed: list[_Listed], entries: Any, title: str | None) -> None:
        self.all_listed, self.entries, self.title = all_listed, entries, title
        all_listed.append(self)

    def remove(self) -> None:
        """Take the entries back."""
        self.all_listed.remove(self)

    def get_window_extent(self) -> Any:
        """Return that it takes no room."""
        return SimpleNamespace(width=0.0)


class AxesAsFigure:
    """Axes that take the place of a figure of one panel.

    name:    what the figure is called in errors
    axes:    the one panel
    legends: what would be listed beside the panel
    figure:  the figure that the axes are in
    """

    def __init__(self, axes: Axes, name: str) -> None:
        self.name = name
        self.axes = [axes]
        self.legends: list[_Listed] = []
        self.figure: Any = axes.figure

    def subplots(
        self, rows: int = 1, columns: int = 1, *, squeeze: bool = True, **_: Any
    ) -> Axes | np.ndarray:
        """Return the axes; InputError if there are to be more panels than one."""
        if rows * columns != 1:
            raise InputError(
                f"{self.name} has {rows * columns} panels, but ax is one: leave out ax, and it is "
                "a figure of its own"
            )
        panel = self.axes[0]
        return panel if squeeze else np.array([[panel]], object)

    def add_gridspec(self, *_: Any, **__: Any) -> None:
        """Raise InputError: what asks for this has several panels."""
        raise InputError(
            f"{self.name} has several panels, but ax is one: leave out ax, and it is a figure of "
            "its own"
        )

    def suptitle(self, title: str, **_: Any) -> None:
        """Make it the title of the axes."""
        self.axes[0].set_title(title)

    def legend(
        self, handles: Sequence[Any], labels: Sequence[str], title: str | None = None, **_: Any
    ) -> _Listed:
        """Keep entries for the legend of the axes."""
        return _Listed(self.legends, list(zip(handles, labels, strict=True)), title)

    def finish(self) -> None:
        """Add what would be listed beside the panel: into the axes, or below them."""
        from matplotlib.legend import Legend
        from matplotlib.transforms import ScaledTranslation

        axes = self.axes[0]
        entries = [entry for listed in self.legends for entry in listed.entries]
        if not entries:
            return
        handles, labels = map(list, zip(*entries, strict=True))
        title = next((listed.title for listed in self.legends if listed.title), None)
        if axes.get_legend() is None:
            axes.legend(handles, labels, loc="best", title=title)
            return
        # Below the ticks and the label of the axis.
        below = ScaledTranslation(0, -_BELOW / 72, self.figure.dpi_scale_trans)
        place: dict[str, Any] = {"bbox_transform": axes.transAxes + below, "loc": "upper center"}
        beside = Legend(axes, handles, labels, title=title, bbox_to_anchor=(0.5, 0.0), **place)
        axes.add_artist(beside)
        # Only what is not cut off at the axes is made room for.
        beside.set_clip_on(False)


_GIVEN: ContextVar[AxesAsFigure | None] = ContextVar("given axes", default=None)


def given_axes() -> AxesAsFigure | None:
    """Return what stands for a user's axes, or None where a figure is to be made."""
    return _GIVEN.get()


@contextmanager
def drawing_into(axes: Axes, name: str) -> Iterator[None]:
    """Let the figure that is drawn inside go into these axes; name: what errors call it.

    InputError: what is given is not one panel's axes of matplotlib.
    """
    from matplotlib.axes import Axes as AnyAxes

    if not isinstance(axes, AnyAxes):
        raise InputError(f"ax is {type(axes).__name__}, but it must be one panel's matplotlib Axes")
    if axes.name != "rectilinear":
        raise InputError(f"ax has the projection {axes.name}, but it must have plain x and y axes")
    given = AxesAsFigure(axes, name)
    token = _GIVEN.set(given)
    try:
        yield
        given.finish()
    finally:
        _GIVEN.reset(token)
