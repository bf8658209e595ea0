"""Of several fits the first that chi^2 does not reject is taken."""

from dataclasses import dataclass

import pytest
from scipy.stats import chi2

from percolab.analysis.fit_quality import (
    POOR_FIT,
    ChiSquare,
    cutoffs_of,
    first_accepted,
    fit_each,
    is_poor,
)
from percolab.errors import AnalysisError


@dataclass
class Candidate:
    name: str
    accepted: bool


def test_the_p_value_is_that_of_the_chi_square_distribution():
    quality = ChiSquare.of(12.5, 7)
    assert (quality.value, quality.dof) == (12.5, 7)
    assert quality.p_value == pytest.approx(chi2.sf(12.5, 7))


def test_a_fit_without_degrees_of_freedom_is_never_poor():
    assert not is_poor(ChiSquare.of(0.0, 0))
    limit = chi2.isf(POOR_FIT, 4)
    assert is_poor(ChiSquare.of(limit + 1e-6, 4))
    assert not is_poor(ChiSquare.of(limit - 1e-6, 4))


def test_the_first_accepted_fit_is_taken_or_the_last_of_rejected_ones():
    poor, good, better = Candidate("a", False), Candidate("b", True), Candidate("c", True)
    assert first_accepted([poor, good, better]) is good
    assert first_accepted([poor, Candidate("d", False)]).name == "d"


def test_no_fit_is_made_after_the_first_accepted_one():
    made = []

    def fits():
        for name, accepted in (("a", False), ("b", True), ("c", True)):
            made.append(name)
            yield Candidate(name, accepted)

    assert first_accepted(fits()).name == "b"
    assert made == ["a", "b"]


def test_fits_that_cannot_be_made_are_left_out_and_the_first_reason_is_kept():
    def make(number):
        if number < 3:
            raise AnalysisError(f"{number} is too small")
        return number

    fits, failure = fit_each([5, 1, 2, 4, 3], make)
    assert fits == [5, 4, 3]
    assert str(failure) == "1 is too small"
    fits, failure = fit_each([5, 4, 1], make, until=lambda number: number == 4)
    assert (fits, failure) == ([5, 4], None)


@pytest.mark.parametrize(
    ("count", "least", "expected"), [(6, 4, 3), (4, 4, 1), (3, 4, 1), (1, 4, 1), (5, 3, 3)]
)
def test_cut_offs_leave_the_least_number_of_sizes(count, least, expected):
    sizes = [2**n for n in range(count)]
    assert cutoffs_of(sizes, least) == sizes[:expected]
