"""Data about each kind of study for figures and reports.

A new kind has a line in :data:`OF_KIND`.
"""

from dataclasses import dataclass

from percolab.analysis.roots import NO_CURVES, asks_for_roots
from percolab.analysis.wrapping_fit import asks_for_wrapping
from percolab.lattices.removal import RANDOM, describe_removal
from percolab.store.results import StoredResults
from percolab.tasks.study import Study, Task

_SAMPLE = (
    "A sample is a field of independent uniform numbers, one a bond or site, which is open or "
    "occupied where its number is below p; so one sample holds all p. By method grid it is "
    "measured at every p of its task. By method threshold the exact p at which it begins to "
    "span, T, is found along every open axis, and the spanning probability at p is the part of "
    "the samples with T at or below p."
)
_TREES = (
    "A sample is a field of independent uniform numbers, one a bond: the bond's weight. What is "
    "measured is the minimum spanning tree of these weights, which is unique. Its bonds with "
    "weights below p join the clusters that the sample has at p."
)
_ANY_SWEEP = (
    "A sample is one sweep of a Markov chain of spins. Its clusters are those of the bonds that "
    "are open: each bond between equal spins, with probability p. "
)
_STARTS = (
    "Every chain begins with sweeps that are not measured; those of even number start ordered, "
    "those of odd number at random. A block is a chain, and chains at different p are independent."
)
_SWEEP = _ANY_SWEEP + _STARTS
_SWEEP_OF_CLUSTERS = (
    "A sample is one sweep of a Markov chain of open bonds, by the algorithm of Chayes and Machta. "
    + _STARTS
)
_SWEEP_OF_ONE_CHAIN = _ANY_SWEEP + (
    "At every size and p there is one long chain, which starts ordered with sweeps that are not "
    "measured; blocks are its parts, one after the other, and chains at different p are "
    "independent."
)
_OPENINGS = (
    "A sample is a field of independent uniform numbers, one a bond or site, which opens in the "
    "order of these numbers. Every observable is summed after every opening. Its mean at p is that "
    "over the binomial distribution of the number of openings (M. E. J. Newman and R. M. Ziff, "
    "Phys. Rev. E 64, 016706 (2001))."
)
_REMOVED = (
    "A sample is the graph with ever fewer sites or bonds, one at a time{removed}. Uniform numbers "
    "decide between equal ones. Every observable is summed after every removal, and p is the share "
    "that is left."
)
_ERRORS_OF_OPENINGS = (
    "By method microcanonical a probability at p scatters less than a count of samples, as which "
    "the fit takes it, so its statistical error is slightly too large."
)
_PUBLISHED = "The published threshold is drawn and compared with, and enters no number."
#: How errors are found, for every page whatever figures it has.
_ERRORS = (
    "Errors are one sigma. Samples are independent, and so are the blocks "
    "into which their numbers are summed; values at different p are of the same samples and "
    "strongly correlated, which every fit takes into account.",
    "p_c and 1/nu are fitted to all sizes at once by the exact multinomial likelihood of the "
    "spanning counts, with every known correction to scaling under natural priors, and averaged "
    "over degrees and smallest sizes. Their errors have a statistical part (other samples) and a "
    "systematic one (the priors, and the spread of the fits that are averaged), added in squares.",
    _PUBLISHED,
)
_ERRORS_OF_SPINS = (
    "Errors are one sigma and statistical alone, from the scatter of chains, which are "
    "independent; sweeps of one chain are correlated, and no error takes them to be independent.",
    "The published critical point is drawn and compared with, and enters no number but the choice "
    "of the p that is called nearest to the transition.",
)


_ERRORS_OF_ROOTS = (
    "Errors are one sigma. In every sample D is 1 if a cluster wraps in two independent "
    "directions, -1 if none wraps (with spins of q states -q), and 0 otherwise. The root of its "
    "mean is found from samples at one p next to it, and its slope from the covariance with the "
    "number of open bonds, or from further p of the same random numbers, with their correlations. "
    "Of spins errors come from the scatter of chains, which are independent.",
    "p_c is the mean of the roots of all sizes, each of which may be off by a drift whose "
    "amplitude has a prior. The error has a statistical part (other samples) and a systematic one "
    "(the drift), added in squares.",
    _PUBLISHED,
)


@dataclass(frozen=True)
class KindInFigures:
    """Data about a kind of study for figures and reports.

    overview:  the figure of all sizes; "" for that of spanning curves or maxima
    no_curve:  why there is no curve of independent samples, "" if there is one
    sample:    the definition of a sample
    errors:    how errors are found, a paragraph each
    has_means: whether means over samples are drawn at every p
    grid:      the entry of a table of samples in place of p, if tasks have no p
    """

    overview: str = ""
    no_curve: str = ""
    sample: str = _SAMPLE
    errors: tuple[str, ...] = _ERRORS
    has_means: bool = True
    grid: str = ""

    def describe_sample(self, study: Study) -> str:
        if study.order != RANDOM:
            return _REMOVED.format(removed=describe_removal(study.order))
        text = _SWEEP_OF_ONE_CHAIN if study.is_serial else self.sample
        if study.every > 1:
            text += f" Of every {study.every} sweeps one is measured, a sample."
        return text


def find_in_figures(source: StoredResults | Task) -> KindInFigures:
    """Return the data for figures and reports about the kind of results, or of a task."""
    if isinstance(source, StoredResults):
        if asks_for_roots(source):
            return _ROOTS
        return _CROSSINGS if asks_for_wrapping(source) else OF_KIND[source.study.kind.name]
    return OF_KIND[source.kind.name]


_ROOTS = KindInFigures("roots", NO_CURVES, errors=_ERRORS_OF_ROOTS)


_ERRORS_OF_CROSSINGS = (
    "Errors are one sigma. p_c is fitted to the probabilities that clusters wrap around any axis, "
    "one, and all, of all sizes at once, with their covariance and with every known correction to "
    "scaling under natural priors. Its error has a statistical part (other samples) and a "
    "systematic one (the priors, and the spread of the fits that are averaged), added in squares.",
    _PUBLISHED,
)


_CROSSINGS = KindInFigures(
    "crossings",
    "percolab threshold samples only a few p near p_c, for the fit of wrapping probabilities; for "
    "a curve use percolab sweep",
    errors=_ERRORS_OF_CROSSINGS,
)


#: By the name of the kind.
OF_KIND = {
    "grid": KindInFigures(),
    "threshold": KindInFigures(has_means=False, grid="every sample's T"),
    "microcanonical": KindInFigures(
        sample=_OPENINGS, errors=(*_ERRORS, _ERRORS_OF_OPENINGS), has_means=False, grid="any"
    ),
    "chains": KindInFigures(
        "binder",
        "it needs independent samples, which sweeps are not: draw binder or wrapping",
        _SWEEP,
        _ERRORS_OF_SPINS,
    ),
    "clusters": KindInFigures(
        "wrapping",
        "it needs independent samples, which sweeps are not: draw wrapping or clusters",
        _SWEEP_OF_CLUSTERS,
        _ERRORS_OF_SPINS,
    ),
    "trees": KindInFigures(
        "tree",
        "trees have no spanning probability at p: sweep with --method grid or threshold",
        _TREES,
        has_means=False,
    ),
}
