"""The columns: measured quantities, each declared here once; all other code uses the declarations.

Every sample has a row (:mod:`percolab.measure.rows`).  An *observable* is one integer for each
sample, read off its row; blocks store its sum over their samples, and that of its square unless it
is a probability.  Of other columns, which need a word of ``--measure``, only the sums are stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, nearest
from percolab.lattices.graph import TERMINALS
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.rows import COUNTED_ROW, COUNTS, OPENINGS, SPANNING
from percolab.measure.spins import CLUSTER_SERIES, LAGS, MOST_AXES, SERIES, SPIN_ROW
from percolab.measure.sums import ROW
from percolab.measure.tallies import CURRENT_BINS, num_bins
from percolab.measure.trees import DEGREE_BINS, TREE_ROW, WEIGHT_BINS, WEIGHT_BITS
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: Rules for the flags of a mask that a sample must have.
ANY, ALL, SOME, NONE = range(4)


@dataclass(frozen=True)
class RowInteger:
    """An integer of a sample's row, by its name there.

    layout: the names of all numbers of the row; TypeError if the name is not among them, so that a
    column that is never measured is found when it is declared.
    """

    name: str
    layout: tuple[str, ...] = ROW

    def __post_init__(self) -> None:
        if self.name not in self.layout:
            raise TypeError(f"a row has no {self.name!r}, but {', '.join(self.layout[:12])}")

    @property
    def place(self) -> int:
        return self.layout.index(self.name)


@dataclass(frozen=True)
class FlagRule:
    """1 if a sample has ANY of the flags of ``mask``, ALL, SOME but not all, or NONE; else 0.

    rule: one of these four.  It is also 0 if the sample has one of the flags in ``without``.
    counts: the integer of the row that replaces 1
    """

    mask: int
    rule: int = ALL
    without: int = 0
    counts: RowInteger | None = None


#: The sources of sums over the samples of a block: tallies, radii of clusters, the order of the
#: sweeps of a chain, trees, sums of squares beyond an int64, a user's function,
TALLY, RADII, CHAIN, TREE, WIDE, FUNCTION = "tally", "radii", "chain", "tree", "wide", "function"
#: ... or flows through open bonds.
FLOW = "flow"


@dataclass(frozen=True)
class Dataset:
    """A dataset in which sums are stored one after the other: name, meaning and units."""

    name: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class SumColumn:
    """Sums over the samples of a block that are not those of an observable.

    source: TALLY, RADII, CHAIN, TREE, WIDE, FUNCTION or FLOW; "" for a column that this version
    does not know.  kind: int64, exact, or float64, added sample after sample.  count: numbers at
    each p; with ``per_bin`` in every bin of sizes (:func:`percolab.measure.tallies.bin_edges`);
    with ``per_sweep`` for every sweep of a chain.  dataset: the one shared with other columns, or
    None for a separate one.
    """

    source: str
    kind: type
    count: int = 1
    per_bin: bool = False
    per_sweep: bool = False
    dataset: Dataset | None = None


_BOOK = "Stauffer and Aharony, Introduction to Percolation Theory (1994)"


@dataclass(frozen=True)
class Column:
    """A measured quantity: name, symbol, meaning, unit, how it is gathered, and its source.

    gathered: None for an observable in a file of a later version, of which only the name, the texts
    and ``is_flag``, whether it is 0 or 1, are known.  measure: the word that requests it; "" if it
    is always measured.
    """

    name: str
    symbol: str
    meaning: str
    unit: str
    gathered: RowInteger | FlagRule | SumColumn | None
    measure: str = ""
    source: str = _BOOK
    is_flag: bool = False

    @property
    def is_observable(self) -> bool:
        """Whether it is one integer for each sample."""
        return not isinstance(self.gathered, SumColumn)

    @property
    def is_probability(self) -> bool:
        """Whether it is 0 or 1 in each sample."""
        how = self.gathered
        return self.is_flag or (isinstance(how, FlagRule) and how.counts is None)

    @property
    def rises_with_p(self) -> bool:
        """Whether it is a probability that never falls when p rises."""
        how = self.gathered
        rises = isinstance(how, FlagRule) and how.rule in (ANY, ALL) and not how.without
        return rises and self.is_probability

    @property
    def is_single_sum(self) -> bool:
        """Whether it is one sum for each p, but not an observable."""
        how = self.gathered
        return (
            isinstance(how, SumColumn) and how.count == 1 and not how.per_bin and not how.per_sweep
        )

    @property
    def dataset(self) -> Dataset | None:
        """The dataset of its sums; None for an observable."""
        if not isinstance(self.gathered, SumColumn):
            return None
        return self.gathered.dataset or Dataset(self.name, self.meaning, self.unit)

    @property
    def is_known(self) -> bool:
        how = self.gathered
        return how is not None and not (isinstance(how, SumColumn) and not how.source)

    @property
    def of_row(self) -> tuple[int, int, int, int]:
        """Return (place, mask, rule, without), as `percolab.measure.block_sums` takes it."""
        if isinstance(self.gathered, RowInteger):
            return self.gathered.place, 0, ALL, 0
        if isinstance(self.gathered, FlagRule):
            how = self.gathered
            if how.counts is not None:
                return how.counts.place, how.mask, how.rule + COUNTS, how.without
            return SPANNING, how.mask, how.rule, how.without
        raise ValueError(f"{self.name} is not read off a row")

    def of_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return an observable of rows, int64 (..., ROW_WIDTH)."""
        place, mask, rule, without = self.of_row
        if not mask:
            own: NDArray[np.int64] = rows[..., place]
            return own
        bits = rows[..., SPANNING] & mask
        has = (bits != 0, bits == mask, (bits != 0) & (bits != mask), bits == 0)[rule % COUNTS]
        has &= rows[..., SPANNING] & without == 0
        return np.asarray(has * (rows[..., place] if rule >= COUNTS else 1), np.int64)


def _row_column(
    name: str,
    symbol: str,
    meaning: str,
    unit: str = "1",
    source: str = _BOOK,
    layout: tuple[str, ...] = ROW,
    measure: str = "",
) -> Column:
    """Return the column of the integer of the same name in a row."""
    return Column(name, symbol, meaning, unit, RowInteger(name, layout), measure, source)


def _summed_columns(how: SumColumn, measure: str, *texts: tuple[str, ...]) -> tuple[Column, ...]:
    """Return columns of sums of one kind; texts: name, symbol, meaning, unit, source (_BOOK)."""
    return tuple(
        Column(name, symbol, meaning, unit, how, measure, source[0] if source else _BOOK)
        for name, symbol, meaning, unit, *source in texts
    )


_SIZES = (
    _row_column("clusters", "n_c", "number of clusters, single sites included"),
    _row_column("largest", "s_1", "sites of the largest cluster", "site"),
    _row_column("second_largest", "s_2", "sites of the second largest cluster", "site"),
    _row_column(
        "sum_squares", "sum s^2", "sum of squared cluster sizes, the largest included", "site^2"
    ),
    _row_column("isolated", "n_1", "number of clusters of one site"),
)

#: For samples of 2^31.5 sites or more, ``sum_squares`` is stored in two parts: this many low bits,
#: and the rest.
LOW_BITS = 48
_WIDE_SQUARES = Dataset(
    "wide_squares", "sum of squared cluster sizes modulo 2^48, and the rest", "site^2, 2^48 site^2"
)
WIDE_COLUMNS = _summed_columns(
    SumColumn(WIDE, np.int64, dataset=_WIDE_SQUARES),
    "",
    ("sum_squares_low", "sum s^2", "sum of squared cluster sizes, its lowest 48 bits", "site^2"),
    (
        "sum_squares_high",
        "sum s^2",
        "sum of squared cluster sizes, what is above its lowest 48 bits",
        "2^48 site^2",
    ),
)

_EDWARDS = "Edwards and Sokal, Phys. Rev. D 38, 2009 (1988)"
#: The columns in addition to those of clusters if sites have spins.
_SPINS = (
    _row_column(
        "satisfied",
        "n_sat",
        "number of bonds between equal spins; the energy is -J of them in a Potts model, "
        "J (bonds - 2 of them) in the Ising model",
        source=_EDWARDS,
        layout=SPIN_ROW,
    ),
    _row_column(
        "open_bonds",
        "n_b",
        "number of open bonds, p times the satisfied ones on average",
        source=_EDWARDS,
        layout=SPIN_ROW,
    ),
    _row_column(
        "largest_state",
        "N_max",
        "sites with the commonest spin; the order parameter is (q N_max - N) / (q - 1)",
        "site",
        "Binder, J. Stat. Phys. 24, 69 (1981)",
        SPIN_ROW,
    ),
    _row_column(
        "state_squares",
        "sum N_a^2",
        "sum over the q states of the squared number of sites in them; "
        "M^2 = (q sum N_a^2 - N^2) / (q - 1)",
        "site^2",
        "Wu, Rev. Mod. Phys. 54, 235 (1982)",
        SPIN_ROW,
    ),
)
#: Additional columns for each kind of chain: random clusters have no spins.
_MORE_OF_CHAINS = {
    "": (),
    "spins": _SPINS,
    "clusters": tuple(column for column in _SPINS if column.name == "open_bonds"),
}

_COUNTS = Dataset(
    "size_counts", "number of clusters in every bin of sizes, single sites included", "1"
)
_POWERS = Dataset(
    "powers",
    "sum of s^3, sum of s^4 over all clusters; s_1^3, s_1^4 of the largest",
    "site^3, site^4, site^3, site^4",
)
_GYRATION = Dataset(
    "gyration",
    "sum of s^2 and of s^2 R_s^2 in every bin of sizes, over clusters that neither wrap nor "
    "span; R_s is the radius of gyration",
    "site^2, site^2 length^2",
)
_BINS = "over clusters of a bin of sizes that neither wrap nor span"
_BETWEEN = "between the two sides of the last open axis, or the source and the target"
_CONIGLIO = "Coniglio, J. Phys. A 15, 3829 (1982)"
_BACKBONE = "Herrmann and Stanley, Phys. Rev. Lett. 53, 1121 (1984)"
_ELASTIC = "Herrmann, Hong and Stanley, J. Phys. A 17, L261 (1984)"
_LOBB = "Frank and Lobb, Phys. Rev. B 37, 302 (1988)"
_MOMENTS = "de Arcangelis, Redner and Coniglio, Phys. Rev. B 31, 4725 (1985)"
_EPIDEMIC = "Newman, Phys. Rev. E 66, 016128 (2002)"
_CYCLES = "Pritchard and Thurimella, ACM Trans. Algorithms 7, 46 (2011)"


def _flow_columns(
    word: str,
    meaning: str,
    *texts: tuple[str, str, str, str],
    unit: str = "1",
    kind: type = np.int64,
) -> tuple[Column, ...]:
    """Return the columns of a word in one dataset.  texts: name, symbol, meaning and source."""
    how = SumColumn(FLOW, kind, dataset=Dataset(word, meaning, unit))
    rows = ((name, symbol, text, unit, source) for name, symbol, text, source in texts)
    return _summed_columns(how, word, *rows)


_FREE = "Xu, Wang, Zhou, Garoni and Deng, Phys. Rev. E 89, 012120 (2014)"
_COUNT_OF_CURRENTS = Dataset(
    "currents",
    f"number of bonds by their share of the current {_BETWEEN}, four bins an octave",
    "1",
)
#: The column that counts the samples over which means of flows are taken if terminals are given.
CONNECTED = "connected"
_FLOWS = (
    *_flow_columns(
        CONNECTED,
        f"number of samples with a path {_BETWEEN}",
        (CONNECTED, "R", "1 if open bonds connect the two sides, or source and target", _ELASTIC),
    ),
    *_flow_columns(
        "bridges",
        "number of bridges",
        ("bridges", "n_br", "open bonds without which their cluster falls into two", _CYCLES),
    ),
    *_flow_columns(
        "backbone",
        f"red bonds, bonds on trails, bonds and sites of the backbone {_BETWEEN}",
        ("red_bonds", "n_red", "open bonds each of which alone connects the two sides", _CONIGLIO),
        ("trail_bonds", "n_tr", "open bonds on ways that use no bond twice", _CYCLES),
        ("backbone_bonds", "n_bb", "open bonds on ways that visit no site twice", _BACKBONE),
        ("backbone_sites", "M_bb", "sites on ways that visit no site twice", _BACKBONE),
    ),
    *_flow_columns(
        "path",
        f"length of the shortest path, bonds and sites of all shortest paths {_BETWEEN}",
        ("path_length", "l_min", "bonds of the shortest path between the sides", _ELASTIC),
        ("elastic_bonds", "n_el", "open bonds on the shortest paths between the sides", _ELASTIC),
        ("elastic_sites", "M_el", "sites on the shortest paths between the sides", _ELASTIC),
    ),
    *_flow_columns(
        "conductance",
        f"conductance, resistance and fourth moment of the currents {_BETWEEN}, in multiples of "
        "2^-30",
        ("conductance", "G", "conductance between the sides, of a bond 1; 0 if none", _LOBB),
        (
            "resistance",
            "M_2",
            "1 / G, the sum of squared shares of the current; 0 if none",
            _MOMENTS,
        ),
        (
            "current_fourths",
            "M_4",
            "sum of fourth powers of the bonds' shares of the current",
            _MOMENTS,
        ),
        kind=np.float64,
    ),
    *_flow_columns(
        "bridge_free",
        "sites of the largest cluster without bridges",
        ("bridge_free_largest", "s_bf", "sites of the largest cluster without bridges", _FREE),
        unit="site",
    ),
    Column(
        "path_lengths",
        "n_l",
        "samples by the length of their shortest path, in quarters of the bins of sizes",
        "1",
        SumColumn(
            FLOW,
            np.int64,
            4,
            per_bin=True,
            dataset=Dataset("path_lengths", f"number of shortest paths {_BETWEEN} by length", "1"),
        ),
        "path_lengths",
        source=_ELASTIC,
    ),
    Column(
        "currents",
        "n_i",
        "bonds of the backbone by their share of the current, in bins of a quarter octave",
        "1",
        SumColumn(FLOW, np.int64, CURRENT_BINS, dataset=_COUNT_OF_CURRENTS),
        "currents",
        source=_MOMENTS,
    ),
    *_summed_columns(
        SumColumn(
            FLOW,
            np.float64,
            dataset=Dataset(
                "current_moments",
                "largest share of the current, and the sums of their first, third and sixth powers",
                "1",
            ),
        ),
        "currents",
        ("largest_current", "i_max", "largest share of the current in a bond", "1", _MOMENTS),
        *(
            (f"current_{name}", f"M_{q}", f"sum over the bonds of |i|^{q}", "1", _MOMENTS)
            for name, q in (("firsts", 1), ("cubes", 3), ("sixths", 6))
        ),
    ),
)
_OUTBREAK = "sites of the clusters that have a site of the source: of an outbreak that begins there"
_SOURCES = _summed_columns(
    SumColumn(
        FLOW,
        np.int64,
        dataset=Dataset(
            "source", "sites of the source's clusters, and their square", "site, site^2"
        ),
    ),
    "source",
    ("source_sites", "s_src", _OUTBREAK, "site", _EPIDEMIC),
    ("source_squares", "s_src^2", "square of the sites of these clusters", "site^2", _EPIDEMIC),
)
#: The columns of the words of ``--measure``, in the order of datasets and of their numbers.
EXTRA_COLUMNS = (
    Column(
        "n_s",
        "n_s",
        "clusters of s sites per site: those in a bin of sizes, per site and integer size in it",
        "1/site",
        SumColumn(TALLY, np.int64, per_bin=True, dataset=_COUNTS),
        "sizes",
    ),
    *_summed_columns(
        SumColumn(TALLY, np.float64, dataset=_POWERS),
        "sizes",
        ("sum_cubes", "sum s^3", "sum of s^3 over all clusters", "site^3"),
        ("sum_fourths", "sum s^4", "sum of s^4 over all clusters", "site^4"),
        ("largest_cubes", "s_1^3", "s^3 of the largest cluster", "site^3"),
        ("largest_fourths", "s_1^4", "s^4 of the largest cluster", "site^4"),
    ),
    *_summed_columns(
        SumColumn(RADII, np.float64, per_bin=True, dataset=_GYRATION),
        "gyration",
        ("bin_squares", "sum s^2", f"sum of s^2 {_BINS}", "site^2"),
        (
            "bin_spreads",
            "sum s^2 R_s^2",
            f"sum of s^2 R_s^2 {_BINS}, R_s being the radius of gyration",
            "site^2 length^2",
        ),
    ),
    _row_column(
        OPENINGS,
        "N_open",
        "number of open bonds, or of occupied sites where sites are drawn",
        layout=COUNTED_ROW,
        measure=OPENINGS,
    ),
    *_FLOWS,
    *_SOURCES,
)
_GAMMA = "Wolff, Comput. Phys. Commun. 156, 143 (2004)"


def _columns_of_series(*names: str) -> tuple[Column, ...]:
    """Return the columns that depend on the order of sweeps, for three series named in a row."""
    all_of = "{}, {} and {}".format(*names)
    lagged = Dataset(
        "lagged",
        f"of {all_of}, each: sums of x_t x_(t+l) over the sweeps of the chain, l = 0 ... 64, then "
        "sums of x_t + x_(t+l)",
        "mixed",
    )
    every = Dataset("series", f"{all_of} of every sweep of the chain", "mixed")
    texts = [
        (f"{name}_{word}", f"{name}_{word}", meaning.format(name), "mixed", _GAMMA)
        for name in names
        for word, meaning in (
            ("lagged", "sums of products of {} so many sweeps apart"),
            ("edges", "sums of {} that the means of these products take"),
        )
    ]
    series = [
        (f"{name}_series", f"{name}_series", f"{name} of every sweep", "mixed", "")
        for name in names
    ]
    sweeps = SumColumn(CHAIN, np.int64, per_sweep=True, dataset=every)
    return (
        *_summed_columns(SumColumn(CHAIN, np.float64, LAGS + 1, dataset=lagged), "", *texts),
        *_summed_columns(sweeps, "series", *series),
    )


#: The columns of chains of spins, without observables: always, and by words of ``--measure``.
CHAIN_COLUMNS = (
    *_columns_of_series(*(SPIN_ROW[place] for place in SERIES)),
    Column(
        "structure_factor",
        "F_a",
        "sum over states of |sum of exp(2 pi i x_a / L_a) over their sites|^2, along every "
        "periodic axis a; the correlation length follows from it",
        "site^2",
        SumColumn(CHAIN, np.float64, MOST_AXES),
        "correlation",
        source="Cooper, Freedman and Preston, Nucl. Phys. B 210, 210 (1982)",
    ),
)
_OF_CHAINS = {
    "": (),
    "spins": CHAIN_COLUMNS,
    "clusters": _columns_of_series(*(SPIN_ROW[place] for place in CLUSTER_SERIES)),
}
#: The words of flows.
FLOW_WORDS = tuple(dict.fromkeys(column.measure for column in _FLOWS))
#: The word, for tori, that leaves out sums over clusters.
WRAPPING = "wrapping"
#: The words that have columns of their own, and all words.
WORDS_WITH_COLUMNS = tuple(
    dict.fromkeys(c.measure for c in (*EXTRA_COLUMNS, *CHAIN_COLUMNS) if c.measure)
)
MEASURES = (*WORDS_WITH_COLUMNS, WRAPPING)


def list_columns(
    boundary: Sequence[str],
    measure: Sequence[str] = (),
    *,
    chains: str = "",
    trees: bool = False,
    wide: bool = False,
) -> tuple[Column, ...]:
    """Return the columns of a task with this boundary and these words, in the order of storage.

    chains: "spins" or "clusters" if samples are the sweeps of chains of them.  trees: whether the
    minimum spanning trees of samples are measured.  wide: whether the sum of squared sizes of one
    sample may exceed an int64.
    """
    if trees:
        return (*list_observables(boundary, trees=True), *_TREE_SUMS)
    declared = (*EXTRA_COLUMNS, *_OF_CHAINS[chains])
    own = [word for word in measure if not (chains and word == OPENINGS)]
    extra = (column for column in declared if not column.measure or column.measure in own)
    wide_columns = WIDE_COLUMNS if wide else ()
    counted = _columns_of_openings(boundary, chains) if OPENINGS in measure else ()
    if WRAPPING in measure:
        return (*_wrapping_columns(boundary), *extra, *counted)
    return (*list_observables(boundary, chains=chains, wide=wide), *wide_columns, *extra, *counted)


@dataclass(frozen=True)
class Stored:
    """A dataset of sums in storage: its description, its dtype, and its number of numbers."""

    dataset: Dataset
    kind: type
    width: int


def list_datasets(columns: Iterable[Column], num_points: int, sweeps: int = 1) -> dict[str, Stored]:
    """Return the datasets of sums by name; num_points: grid points; sweeps: those of a block."""
    datasets: dict[str, Stored] = {}
    for column in columns:
        dataset, how = column.dataset, column.gathered
        if dataset is None or not isinstance(how, SumColumn):
            continue
        own = how.count * (num_bins(num_points) if how.per_bin else 1)
        own *= sweeps if how.per_sweep else 1
        before = datasets[dataset.name].width if dataset.name in datasets else 0
        datasets[dataset.name] = Stored(dataset, how.kind, before + own)
    return datasets


def is_gathered_from(source: str, columns: Iterable[Column]) -> bool:
    """Return whether any of these columns is made from this source, such as TALLY or RADII."""
    return any(
        isinstance(column.gathered, SumColumn) and column.gathered.source == source
        for column in columns
    )


def check_measure(measure: Sequence[str]) -> tuple[str, ...]:
    """Return the words of ``measure`` in their order; InputError if one is unknown."""
    for word in measure:
        if word not in MEASURES:
            raise InputError(f"unknown measure {word!r}; {nearest(word, list(MEASURES))}")
    return tuple(word for word in MEASURES if word in measure)


def open_axes(boundary: Sequence[str]) -> list[int]:
    return [axis for axis, kind in enumerate(boundary) if kind != "periodic"]


def axis_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the open axes: x, y, ..., or that of a source and a target."""
    return [
        TERMINALS if boundary[axis] == TERMINALS else AXIS_NAMES[axis]
        for axis in open_axes(boundary)
    ]


def axis_observables(boundary: Sequence[str]) -> list[str]:
    """Return the names of the spanning observables of single open axes, in order.

    >>> axis_observables(["open", "periodic", "open"])
    ['spanning_x', 'spanning_z']
    """
    names = axis_names(boundary)
    return ["spanning" if name == TERMINALS else f"spanning_{name}" for name in names]


def list_observables(
    boundary: Sequence[str], *, chains: str = "", trees: bool = False, wide: bool = False
) -> tuple[Column, ...]:
    """Return the observables in the order of storage; options as for :func:`list_columns`."""
    if trees:
        return _describe_trees(boundary)
    axes = open_axes(boundary)
    columns = [column for column in _SIZES if not (wide and column.name == "sum_squares")]
    for axis, letter, name in zip(axes, axis_names(boundary), axis_observables(boundary)):
        meaning = f"1 if one cluster touches both end layers of the {letter} axis"
        if letter == TERMINALS:
            meaning = "1 if one cluster has a site of the source and one of the target"
        symbol = name.replace("spanning", "R")
        columns.append(Column(name, symbol, meaning, "1", FlagRule(1 << axis)))
    if len(axes) > 1:
        mask = sum(1 << axis for axis in axes)
        any_axis = "1 if the sample spans along at least one axis"
        all_axes = "1 if the sample spans along every open axis, be it by different clusters"
        columns += [
            Column("spanning_any", "R_any", any_axis, "1", FlagRule(mask, ANY)),
            Column("spanning_all", "R_all", all_axes, "1", FlagRule(mask)),
        ]
    return (*columns, *_wrapping_columns(boundary), *_MORE_OF_CHAINS[chains])


_KRUSKAL = "Kruskal, Proc. Am. Math. Soc. 7, 48 (1956)"
_TREE_SUMS = (
    Column(
        "tree_degrees",
        "n_k",
        f"sites with k bonds of the tree, k = 0 ... {DEGREE_BINS - 2}, and with more",
        "1",
        SumColumn(TREE, np.int64, DEGREE_BINS),
        source=_KRUSKAL,
    ),
    Column(
        "tree_weights",
        "n_w",
        f"bonds of the tree in {WEIGHT_BINS} equally wide bins of their weights from 0 to 1",
        "1",
        SumColumn(TREE, np.int64, WEIGHT_BINS),
        source=_KRUSKAL,
    ),
)


def _describe_trees(boundary: Sequence[str]) -> tuple[Column, ...]:
    """Return the observables of minimum spanning trees, in the order of storage."""
    unit = f"2^-{WEIGHT_BITS}"
    bonds = "bonds of the minimum spanning tree: sites less its parts"
    weight = "sum of the uniform numbers u of the tree's bonds"
    columns = [
        _row_column("tree_bonds", "n_t", bonds, "1", _KRUSKAL, TREE_ROW),
        _row_column("tree_weight", "W_t", weight, unit, _KRUSKAL, TREE_ROW),
    ]
    for axis, letter in zip(open_axes(boundary), axis_names(boundary)):
        ends = f"the two end layers of the {letter} axis"
        if letter == TERMINALS:
            ends = "source and target"
        columns += [
            Column(
                f"tree_threshold_{letter}",
                f"T_{letter}",
                f"largest u on the way through the tree between {ends}: there the sample begins "
                "to span",
                unit,
                RowInteger(f"tree_threshold_{axis}", TREE_ROW),
                source="Wilkinson and Willemsen, J. Phys. A 16, 3365 (1983)",
            ),
            Column(
                f"tree_path_{letter}",
                f"l_{letter}",
                f"bonds on that way, {ends} being one site each",
                "1",
                RowInteger(f"tree_path_{axis}", TREE_ROW),
                source="Cieplak, Maritan and Banavar, Phys. Rev. Lett. 72, 2320 (1994)",
            ),
        ]
    return tuple(columns)


_TORUS = "Newman and Ziff, Phys. Rev. E 64, 016706 (2001)"
_POLYNOMIALS = "Jacobsen and Scullard, J. Phys. A 46, 075001 (2013)"
_PINSON = "Pinson, J. Stat. Phys. 75, 1167 (1994)"


def _wrapping_columns(boundary: Sequence[str]) -> list[Column]:
    """Return the wrapping observables of the periodic axes, in the order of storage."""
    axes = [axis for axis, kind in enumerate(boundary) if kind == "periodic"]
    flags = {axis: 1 << (FIRST_WRAPPING + axis) for axis in axes}
    mask, two = sum(flags.values()), 1 << TWO_DIRECTIONS
    texts = [
        (
            AXIS_NAMES[axis],
            f"one cluster closes on itself around the {AXIS_NAMES[axis]} axis",
            FlagRule(flag),
            _TORUS,
        )
        for axis, flag in flags.items()
    ]
    if len(axes) > 1:
        loops = "loops wind in two independent directions; in two dimensions one cluster has both"
        every = "the sample wraps around every periodic axis, be it by one loop"
        texts += [
            ("any", "the sample wraps around at least one axis", FlagRule(mask, ANY), _TORUS),
            ("all", every, FlagRule(mask), _TORUS),
            (
                "some",
                "the sample wraps around some, but not all periodic axes",
                FlagRule(mask, SOME),
                _TORUS,
            ),
            ("none", "the sample wraps around no axis", FlagRule(mask, NONE), _POLYNOMIALS),
            ("two", loops, FlagRule(two), _POLYNOMIALS),
        ]
    if len(axes) == len(boundary) == 2:
        both = "the sample wraps around both axes at once and in no other direction"
        texts.append(("diagonal", both, FlagRule(mask, without=two), _PINSON))
    return [
        Column(f"wrapping_{end}", f"W_{end}", f"1 if {meaning}", "1", rule, source=source)
        for end, meaning, rule, source in texts
    ]


def spanning_names(boundary: Sequence[str]) -> list[str]:
    return [
        column.name for column in list_observables(boundary) if column.name.startswith("spanning")
    ]


def _columns_of_openings(boundary: Sequence[str], chains: str) -> list[Column]:
    """Return the openings of samples that wrap in two directions, and of those that do not wrap.

    The covariance of a probability with the openings is p (1 - p) times its derivative.  Chains
    always have the number of their open bonds.
    """
    counts = RowInteger("open_bonds", SPIN_ROW) if chains else RowInteger(OPENINGS, COUNTED_ROW)
    return [
        Column(
            column.name.replace("wrapping", OPENINGS),
            f"N_open {column.symbol}",
            f"openings of the sample where {column.name} is 1, else 0",
            "1",
            replace(column.gathered, counts=counts),
            OPENINGS,
            _TORUS,
        )
        for column in _wrapping_columns(boundary)
        if column.name in ("wrapping_two", "wrapping_none")
        and isinstance(column.gathered, FlagRule)
    ]


def wrapping_names(boundary: Sequence[str]) -> list[str]:
    """Return the names of the wrapping observables that a lattice with this boundary has.

    >>> wrapping_names(["periodic", "open"])
    ['wrapping_x']
    """
    return [column.name for column in _wrapping_columns(boundary)]
