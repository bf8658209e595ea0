"""Checks of an installation against what is known exactly: ``percolab validate``.

check          what a check, its conditions and its outcome are
enumeration    all configurations of tiny graphs, by deletion and contraction
spin_enumeration  Potts models on tiny graphs, from all spins and from all sets of open bonds
vectors        known outputs of the generators
deviates       statistics as normal deviates
version_1      words as they were made once, which must fail
sampling       rows of samples on any device, means with errors
generator ...  one file a group of checks, in the order below
"""

from __future__ import annotations

from percolab.validation import (
    clusters,
    exact,
    generator,
    lanes,
    parity,
    spanning,
    spins,
    sweeps,
    thresholds,
    wrapping,
)
from percolab.validation.check import LIMIT, Check, Conditions, Outcome, run_check

__all__ = ["LIMIT", "Check", "Conditions", "Outcome", "list_checks", "run_check"]


def list_checks(conditions: Conditions) -> tuple[Check, ...]:
    """Return all checks under conditions, those of the cause before those of the effect."""
    return (
        *generator.CHECKS,
        *lanes.CHECKS,
        *(parity.full_checks() if conditions.full else parity.checks()),
        *exact.CHECKS,
        *clusters.CHECKS,
        *spanning.CHECKS,
        *wrapping.CHECKS,
        *thresholds.CHECKS,
        *sweeps.CHECKS,
        *spins.CHECKS,
    )
