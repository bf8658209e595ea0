"""What each word of ``--measure`` adds, as quantities with symbol, definition, unit and source."""

from __future__ import annotations

from dataclasses import dataclass

from percolab.measure.observables import EXTRAS

_BOOK = "Stauffer and Aharony, Introduction to Percolation Theory (1994)"


@dataclass(frozen=True)
class ExtraQuantity:
    """A quantity of the dataset `dataset`: its column, or None for one of every bin of sizes."""

    name: str
    symbol: str
    meaning: str
    unit: str
    dataset: str
    column: int | None
    source: str = _BOOK

    @property
    def measure(self) -> str:
        """The word that asks for it."""
        return next(extra.measure for extra in EXTRAS if extra.name == self.dataset)


_BINS = "over clusters of a bin of sizes that neither wrap nor span"
#: In the order of the datasets and their columns.
EXTRA_QUANTITIES = (
    ExtraQuantity(
        "n_s",
        "n_s",
        "clusters of s sites per site: those in a bin of sizes, per site and integer size in it",
        "1/site",
        "size_counts",
        None,
    ),
    ExtraQuantity("sum_cubes", "sum s^3", "sum of s^3 over all clusters", "site^3", "powers", 0),
    ExtraQuantity("sum_fourths", "sum s^4", "sum of s^4 over all clusters", "site^4", "powers", 1),
    ExtraQuantity("largest_cubes", "s_1^3", "s^3 of the largest cluster", "site^3", "powers", 2),
    ExtraQuantity("largest_fourths", "s_1^4", "s^4 of the largest cluster", "site^4", "powers", 3),
    ExtraQuantity("bin_squares", "sum s^2", f"sum of s^2 {_BINS}", "site^2", "gyration", None),
    ExtraQuantity(
        "bin_spreads",
        "sum s^2 R_s^2",
        f"sum of s^2 R_s^2 {_BINS}, R_s being the radius of gyration",
        "site^2 length^2",
        "gyration",
        None,
    ),
)
#: Those that are one number for each p.
POWERS = tuple(item for item in EXTRA_QUANTITIES if item.dataset == "powers")
