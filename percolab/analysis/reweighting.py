"""Series of a Potts model reweighted to other temperatures, and transitions of first order.

A state with E satisfied bonds has the weight exp(beta E), so that a sample drawn at beta_0 counts
as exp((beta - beta_0) E) at beta, as far as the two distributions of E overlap.  Series are float64
or integer (chains, updates); errors are those of a jackknife over chains, which are independent.

At a transition of first order the distribution of E has two peaks, the disordered phase below and
the q ordered ones above, each of the q + 1 phases with the same weight.  So, with E_cut between
both, W(E > E_cut) = q W(E < E_cut), up to corrections exponentially small in the size.  A change of
beta adds a straight line to the logarithm of the distribution.  So some beta has two equally high
peaks if and only if this logarithm is not concave, and its distance below its concave hull is the
depth of the valley between them.

Sources: A. M. Ferrenberg and R. H. Swendsen, Phys. Rev. Lett. 61, 2635 (1988); C. Borgs and W.
Janke, Phys. Rev. Lett. 68, 1738 (1992).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from percolab.analysis.statistics import Floats, jackknife_error, jackknife_value
from percolab.errors import AnalysisError

#: Below this overlap only few samples count, those in the tail of E, and more may be missing.
LEAST_OVERLAP = 0.1

#: Bins of a histogram of E, and the least number of different E for a search for two peaks.
_BINS, _LEAST_VALUES = 40, 80
#: The least width of bins in that search, in excitations of one spin from a ground state.
_EXCITATIONS = 2
#: The least depth of a valley, as a logarithm, and in standard errors below the hull.
_LEAST_DEPTH, _DEPTH_ERRORS = 0.2, 5.0
#: The least samples of the bin of a peak, and the least fraction of the samples in a phase.
_PEAK_SAMPLES, _PHASE_SHARE = 30, 0.01
#: The least changes of phase of all chains together that determine the weights of the phases.
_LEAST_CHANGES = 20
#: Changes of phase in each of the parts of one long chain that are taken to be independent.
_CHANGES_PER_PART = 4


@dataclass(frozen=True)
class Reweighted:
    """A function of means at other temperatures, and overlaps (sum w)^2 / (n sum w^2), (betas,)."""

    betas: Floats
    values: Floats
    errors: Floats
    overlap: Floats

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Where the overlap is at least LEAST_OVERLAP, bool (betas,)."""
        return np.asarray(self.overlap >= LEAST_OVERLAP)


def reweight(
    satisfied: ArrayLike,
    series: Sequence[ArrayLike],
    *,
    beta: float,
    betas: ArrayLike,
    function: Callable[..., Floats] = lambda mean: mean,
) -> Reweighted:
    """Return a function of the means of some series at other temperatures.

    satisfied: satisfied bonds E, (chains, updates), drawn at beta.  series: of the same shape, as
    many as the function has arguments.  betas: float64 (betas,).  function: of the means, float64
    (..., betas) each; a specific heat is lambda e, e2: betas**2 * (e2 - e**2) of E and E^2.
    Values are corrected for the bias of order 1 / samples.  AnalysisError where shapes differ or
    there are fewer than 2 chains.
    """
    energies = _checked(satisfied)
    columns = [np.asarray(values, np.float64) for values in series]
    if not columns or any(values.shape != energies.shape for values in columns):
        raise AnalysisError(f"every series must have the shape of satisfied, {energies.shape}")
    at = np.atleast_1d(np.asarray(betas, np.float64))
    # Sums of every chain: of the weights, and of each series times the weights.
    sums = np.zeros((1 + len(columns), len(energies), len(at)))
    overlap = np.zeros(len(at))
    for n, shift in enumerate(at - beta):
        weights = _weights(energies, float(shift))
        overlap[n] = _overlap(weights)
        for row, values in enumerate((np.ones(()), *columns)):
            sums[row, :, n] = (weights * values).sum(axis=1)
    total = sums.sum(axis=1)
    rest = total[:, None] - sums
    plain = np.asarray(function(*(total[1:] / total[0])), np.float64)
    without = np.asarray(function(*(rest[1:] / rest[0])), np.float64)
    return Reweighted(
        betas=at,
        values=jackknife_value(plain, without),
        errors=jackknife_error(without),
        overlap=overlap,
    )


@dataclass(frozen=True)
class EnergyHistogram:
    """The distribution of the satisfied bonds E at one temperature.

    edges: float64 (bins + 1,), E from edges[i] to below edges[i + 1].  density, errors: float64
    (bins,), probability per unit of E.
    """

    edges: Floats
    density: Floats
    errors: Floats


def energy_histogram(satisfied: ArrayLike) -> EnergyHistogram:
    """Return the distribution of the satisfied bonds (chains, updates), integers, in about 40 bins.

    All bins are equally wide, by a multiple of the smallest step of E.  AnalysisError with fewer
    than 2 chains, or where E does not vary.
    """
    energies = _checked(satisfied)
    edges = _edges(energies)
    parts = _binned(energies, edges)
    width = edges[1] - edges[0]
    total = parts.sum(axis=0)
    rest = total - parts
    without = rest / (rest.sum(axis=1, keepdims=True) * width)
    return EnergyHistogram(edges, total / (total.sum() * width), jackknife_error(without))


@dataclass(frozen=True)
class FirstOrder:
    """A transition of first order, from the two peaks of the energy histogram.

    beta, beta_error: where the ordered phases weigh q times as much as the other.  latent_heat,
    latent_heat_error: of the satisfied bonds per site there, ordered less disordered.  peaks:
    satisfied bonds at both peaks, at the beta where these are equally high.  cut: satisfied bonds
    that separate the phases.  depth: logarithm of the height of both peaks over that of the valley.
    changes: how often chains went all the way from one peak to the other.
    """

    beta: float
    beta_error: float
    latent_heat: float
    latent_heat_error: float
    peaks: tuple[float, float]
    cut: float
    depth: float
    changes: int

    @property
    def mixed(self) -> bool:
        """Whether the chains changed phase often enough to determine the weights of the phases.

        If not, beta depends on how many chains started in which phase; the latent heat does not.
        """
        return self.changes >= _LEAST_CHANGES


def find_first_order(
    satisfied: ArrayLike, *, beta: float, q: int, num_sites: int, one_chain: bool = False
) -> FirstOrder | None:
    """Return the transition of first order that the energy histogram shows, or None.

    satisfied: (chains, updates), integers, drawn at a beta at which both phases occur, the rarer in
    1 % of the samples at least.  Two peaks are accepted if, at the beta where they are equally
    high, the valley between them is a factor exp(0.2) and 5 standard errors (more with few chains)
    below.  On a small lattice a weak transition looks continuous and latent heats are too large, so
    compare sizes.  None also where E has fewer than 80 values.  AnalysisError: fewer than 2 chains.

    one_chain: whether the rows are consecutive blocks of one long chain.  Then a change of phase
    between two blocks counts too, and errors are those of a jackknife over longer parts, in each of
    which the chain changes phase _CHANGES_PER_PART times on average.
    """
    energies = _checked(satisfied)
    if len(np.unique(energies)) < _LEAST_VALUES:
        return None
    # Near the ground state E has gaps as wide as a coordination number, which are no valleys.
    edges = _edges(energies, _EXCITATIONS * 2 * float(energies.max()) / num_sites)
    valley = _deepest_valley(_binned(energies, edges))
    if valley is None:
        return None
    low, cut, high = ((edges[1:] + edges[:-1]) / 2)[list(valley[:3])].tolist()
    # How often chains went from E <= low to E >= high or back.
    changes, parts = 0, energies
    for chain in energies.reshape(1, -1) if one_chain else energies:
        ordered = chain[(chain <= low) | (chain >= high)] >= high
        changes += int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    if one_chain:
        # Parts with enough changes of phase each, at most as many as blocks; the rest at the end
        # is left out.
        count = min(max(changes // _CHANGES_PER_PART, 2), len(energies))
        parts = energies.ravel()[: energies.size // count * count].reshape(count, -1)
    shift, shift_error = _balance(parts, cut, q)
    if _overlap(_weights(energies, shift)) < LEAST_OVERLAP:
        return None
    gap, gap_error = _gap(parts, cut, shift)
    return FirstOrder(
        beta=beta + shift,
        beta_error=shift_error,
        latent_heat=gap / num_sites,
        latent_heat_error=gap_error / num_sites,
        peaks=(low, high),
        cut=cut,
        depth=valley[3],
        changes=changes,
    )


def _checked(satisfied: ArrayLike) -> Floats:
    """Return the satisfied bonds as float64 (chains, updates)."""
    energies = np.asarray(satisfied, np.float64)
    if energies.ndim != 2 or len(energies) < 2 or not energies.size:
        raise AnalysisError("reweighting needs series of at least 2 chains")
    return energies


def _weights(energies: Floats, shift: float) -> Floats:
    """Return exp(shift E) up to a factor, at most 1."""
    exponents = shift * energies
    return np.asarray(np.exp(exponents - exponents.max()))


def _overlap(weights: Floats) -> float:
    return float(weights.sum() ** 2 / (weights.size * (weights**2).sum()))


def _edges(energies: Floats, least: float = 0.0) -> Floats:
    """Return edges of bins of at least this width with the same number of possible E in each."""
    values = np.unique(energies)
    if len(values) < 2:
        raise AnalysisError("the energy does not vary")
    step = float(np.gcd.reduce(np.diff(values).astype(np.int64)))
    steps = (values[-1] - values[0]) / step + 1
    width = step * max(int(np.ceil(steps / _BINS)), int(np.ceil(least / step)), 1)
    count = int(np.ceil(steps * step / width))
    return np.asarray(values[0] - step / 2 + width * np.arange(count + 1))


def _binned(energies: Floats, edges: Floats) -> Floats:
    """Return the samples of every chain in every bin, float64 (chains, bins)."""
    chains, bins = len(energies), len(edges) - 1
    index = ((energies - edges[0]) / (edges[1] - edges[0])).astype(np.int64)
    index += bins * np.arange(chains)[:, None]
    counts = np.bincount(index.ravel(), minlength=chains * bins).reshape(chains, bins)
    return np.asarray(counts, np.float64)


def _deepest_valley(counts: Floats) -> tuple[int, int, int, float] | None:
    """Return the bins of a peak, the valley and the other peak, and the depth as a logarithm.

    The valley is where the logarithm of the histogram is farthest below its concave hull; None
    where it is concave.  counts: samples of every chain in every bin, (chains, bins), empty ones 1.
    """
    total = counts.sum(axis=0)
    heights = np.log(np.maximum(total, 1.0))
    valley, least = None, _LEAST_DEPTH
    for left, right in pairwise(_hull(np.flatnonzero(total >= _PEAK_SAMPLES), heights)):
        for n in range(left + 1, right):
            part = (n - left) / (right - left)
            depth = float((1 - part) * heights[left] + part * heights[right] - heights[n])
            share = min(total[: n + 1].sum(), total[n:].sum()) / total.sum()
            if depth >= least and share >= _PHASE_SHARE and _is_real(counts, left, right, n):
                valley, least = (left, n, right, depth), depth
    return valley


def _hull(bins: NDArray[np.int64], heights: Floats) -> list[int]:
    """Return the bins whose heights are corners of the concave hull, ascending."""
    corners: list[int] = []
    for n in bins.tolist():
        while len(corners) > 1:
            i, j = corners[-2:]
            if (heights[j] - heights[i]) * (n - i) > (heights[n] - heights[i]) * (j - i):
                break
            corners.pop()
        corners.append(n)
    return corners


def _is_real(counts: Floats, left: int, right: int, valley: int) -> bool:
    """Return whether a bin is _DEPTH_ERRORS errors below the line between its two peaks.

    Numbers of samples are compared, not logarithms, since the valley may be empty.  With few chains
    the error is uncertain, so the limit is that of Student's distribution.
    """
    from scipy.stats import norm, t

    part = (valley - left) / (right - left)
    total = counts.sum(axis=0)
    rows = np.concatenate([total[None], total - counts])
    logarithms = np.log(np.maximum(rows[:, [left, right]], 1.0))
    missing = np.exp(logarithms @ np.array([1 - part, part])) - rows[:, valley]
    # Without one chain there are fewer samples by that chain's.
    share = rows.sum(axis=1) / total.sum()
    errors = float(t.isf(norm.sf(_DEPTH_ERRORS), len(counts) - 1))
    return float(missing[0]) > errors * float(jackknife_error(missing[1:] / share[1:]))


def _balance(energies: Floats, cut: float, q: int) -> tuple[float, float]:
    """Return the shift of beta at which W(E > cut) = q W(E < cut), and its error."""
    from scipy.optimize import brentq

    above = energies > cut
    gap = float(energies[above].mean() - energies[~above].mean())

    def sums(shift: float) -> tuple[Floats, Floats]:
        weights = _weights(energies, shift)
        return (weights * above).sum(axis=1), (weights * ~above).sum(axis=1)

    def excess(shift: float) -> float:
        ordered, disordered = (own.sum() for own in sums(shift))
        return float(np.log(ordered / disordered / q))

    # The logarithm has a slope of about `gap`: bracket its root, in a wider range if need be.
    reach = (abs(excess(0.0)) + 1) / gap
    while excess(-reach) > 0 or excess(reach) < 0:
        reach *= 2
    shift = float(brentq(excess, -reach, reach, xtol=1e-12 / gap))
    ordered, disordered = sums(shift)
    rest = np.log((ordered.sum() - ordered) / (disordered.sum() - disordered))
    return shift, float(jackknife_error(rest)) / _gap(energies, cut, shift)[0]


def _gap(energies: Floats, cut: float, shift: float) -> tuple[float, float]:
    """Return the mean of E above the cut less that below, at a shift of beta, and its error."""
    weights, above = _weights(energies, shift), energies > cut
    means = []
    for phase in (above, ~above):
        part = weights * phase
        norms, sums = part.sum(axis=1), (part * energies).sum(axis=1)
        means.append((sums.sum() / norms.sum(), (sums.sum() - sums) / (norms.sum() - norms)))
    (ordered, ordered_rest), (disordered, disordered_rest) = means
    return float(ordered - disordered), float(jackknife_error(ordered_rest - disordered_rest))
