"""The surface for a figure: a new figure, or one panel of a figure that the caller has made.

Both have the same methods, so drawing functions need not distinguish them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.figures.elements import add_legend, set_title, sizes_first
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH, STYLE, Axes, new_figure

#: How far below the axes a second legend is, in points.
_BELOW = 32
_ALONE = "but ax is a single one: leave out ax to get a new figure"

Entry = tuple[Any, str]


class Sheet:
    """A new figure; figure: matplotlib's Figure."""

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    @property
    def panels(self) -> Sequence[Axes]:
        return list(self.figure.axes)

    def subplots(self, *shape: int, **options: Any) -> Any:
        """Return axes side by side, as matplotlib's ``Figure.subplots``."""
        return self.figure.subplots(*shape, **options)

    def grid(self, rows: int, columns: int, **options: Any) -> Any:
        """Return the places of panels of several sizes, for ``figure.add_subplot``."""
        return self.figure.add_gridspec(rows, columns, **options)

    def set_title(self, title: str) -> None:
        set_title(self.figure, title)

    def add_legend(self, entries: Iterable[Entry], *, ncols: int = 1, **options: Any) -> None:
        add_legend(self.figure, entries, loc="outside lower center", ncols=ncols, **options)

    def remove_legends(self) -> None:
        for legend in list(self.figure.legends):
            legend.remove()


class GivenAxes(Sheet):
    """One panel of a caller's figure, whose other parts are not changed; name: of the drawing."""

    def __init__(self, axes: Axes, name: str) -> None:
        super().__init__(axes.figure)
        self.axes, self.name = axes, name
        self.legends: list[tuple[list[Entry], str | None]] = []

    @property
    def panels(self) -> Sequence[Axes]:
        return [self.axes]

    def subplots(self, *shape: int, squeeze: bool = True, **_: Any) -> Any:
        """Return the axes; InputError if more than one panel is requested."""
        count = int(np.prod(shape))
        if count != 1:
            raise InputError(f"{self.name} has {count} panels, {_ALONE}")
        return self.axes if squeeze else np.array([[self.axes]], object)

    def grid(self, rows: int, columns: int, **_: Any) -> Any:
        """Raise InputError, since a figure with a grid has several panels."""
        raise InputError(f"{self.name} has several panels, {_ALONE}")

    def set_title(self, title: str) -> None:
        self.axes.set_title(title)

    def add_legend(
        self, entries: Iterable[Entry], *, ncols: int = 1, title: str | None = None, **_: Any
    ) -> None:
        """Collect entries for the legend, which is placed when everything is drawn."""
        self.legends.append((sizes_first(entries), title))

    def remove_legends(self) -> None:
        self.legends.clear()

    def place_legends(self) -> None:
        """Add the entries as one legend: in the axes, or below them if they have a legend."""
        from matplotlib.legend import Legend
        from matplotlib.transforms import ScaledTranslation

        entries = [entry for listed, _ in self.legends for entry in listed]
        if not entries:
            return
        handles, labels = map(list, zip(*entries, strict=True))
        title = next((title for _, title in self.legends if title), None)
        if self.axes.get_legend() is None:
            self.axes.legend(handles, labels, loc="best", title=title)
            return
        # Below the ticks and the label of the axis.
        below = ScaledTranslation(0, -_BELOW / 72, self.figure.dpi_scale_trans)
        place: dict[str, Any] = {"bbox_transform": self.axes.transAxes + below}
        place |= {"bbox_to_anchor": (0.5, 0.0), "loc": "upper center"}
        second = Legend(self.axes, handles, labels, title=title, **place)
        self.axes.add_artist(second)
        # The layout makes room only for artists that are not clipped.
        second.set_clip_on(False)


@dataclass(frozen=True)
class Target:
    """Where a figure is drawn: into given axes, or without axes on a new figure.

    name: the figure's name in error messages.
    """

    axes: Axes | None = None
    name: str = "this figure"

    def __post_init__(self) -> None:
        if self.axes is None:
            return
        from matplotlib.axes import Axes as AnyAxes

        kind = type(self.axes).__name__
        if not isinstance(self.axes, AnyAxes):
            raise InputError(f"ax is {kind}, but it must be one panel's matplotlib Axes")
        if self.axes.name != "rectilinear":
            raise InputError(
                f"ax has the projection {self.axes.name}, but it must have plain x and y axes"
            )

    @contextmanager
    def sheet(self, width: float, height: float, *, style: Any = STYLE) -> Iterator[Sheet]:
        """Yield the sheet: the given axes, or a new figure of this width and height in inches.

        The style applies to a new figure while panels are drawn into it.
        """
        if self.axes is None:
            with new_figure(width, height, style=style) as figure:
                yield Sheet(figure)
            return
        given = GivenAxes(self.axes, self.name)
        yield given
        given.place_legends()

    @contextmanager
    def column(self, height: float) -> Iterator[tuple[Sheet, Any]]:
        """Yield a sheet as wide as a column of a journal, and its only axes."""
        with self.sheet(COLUMN_WIDTH, height, style=COLUMN_STYLE) as sheet:
            yield sheet, sheet.subplots()


NEW_FIGURE = Target()
