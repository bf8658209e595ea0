"""percolab fit of spins: the transition, as a table or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from percolab.cli.fit_quantities import joint_options, without_defaults
from percolab.cli.options import echo_json, is_given
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.store.results import StoredResults


def write_spin_fit(
    stored: StoredResults, as_json: bool, quantities: str | None, options: dict[str, Any]
) -> None:
    """Fit and write; quantities: names with commas, None for the default ones.

    options: None or False where not given.  InputError if one is given that only fits of
    percolation take.
    """
    from percolab.analysis.spin_fit import fit_spins
    from percolab.analysis.text import spin_table
    from percolab.errors import InputError

    others = without_defaults(options)
    joint = joint_options(others)
    for name, value in others.items():
        if is_given(value):
            raise InputError(f"--{name}: the fit of spins does not take it; leave it out")
    found = fit_spins(
        stored,
        [name.strip() for name in (quantities or "all").split(",")],
        **joint,
    )
    if as_json:
        echo_json(found.to_dict())
        return
    echo(spin_table(found))
