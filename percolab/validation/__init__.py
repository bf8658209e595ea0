"""Checks of an installation against exact results: ``percolab validate``."""

from percolab.lattices.lattice import lattice_names
from percolab.validation import critical, duals, exact, generator, parity, spins, sweeps
from percolab.validation.check import LIMIT, Check, Conditions, Outcome, run_check

__all__ = ["LIMIT", "Check", "Conditions", "Outcome", "list_checks", "run_check"]


def list_checks(conditions: Conditions) -> tuple[Check, ...]:
    """Return all checks under these conditions, those of causes before those of effects."""
    return (
        *generator.CHECKS,
        *parity.checks(lattice_names() if conditions.full else parity.QUICK),
        *exact.CHECKS,
        *duals.CHECKS,
        *critical.CHECKS,
        *sweeps.THRESHOLD_CHECKS,
        *sweeps.CHECKS,
        *spins.CHECKS,
    )
