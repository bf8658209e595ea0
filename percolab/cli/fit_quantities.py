"""percolab fit --quantities: the joint fit of dimensionless quantities, as tables or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from percolab.cli.options import echo_json, is_given, published_line
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.store.results import StoredResults


def joint_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a joint fit, taken out of those given."""
    names = ("omega", "min_size", "degree", "nu", "priors")
    return {name: given.pop(name) for name in names}


def without_defaults(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options of a command without ``bootstrap``, and these, where they have defaults.

    They have one because they were not given.
    """
    context = click.get_current_context()
    return {
        name: value
        for name, value in given.items()
        if name not in ("bootstrap", *names)
        or context.get_parameter_source(name) != ParameterSource.DEFAULT
    }


def write_quantity_fit(
    stored: StoredResults,
    quantities: str,
    *,
    as_json: bool,
    **others: Any,
) -> None:
    """Fit and write; quantities: names with commas.

    others: options of the other fit, None or False where not given.  InputError if one is.
    """
    from percolab.analysis.stored_fits import fit_quantities
    from percolab.analysis.text import quantity_table
    from percolab.errors import InputError

    options = joint_options(others)
    for name, value in others.items():
        if is_given(value):
            raise InputError(f"--{name}: not with --quantities; leave one of them out")
    found = fit_quantities(
        stored,
        [name.strip() for name in quantities.split(",")],
        **options,
    )
    if as_json:
        echo_json(found.to_dict())
        return
    texts = [quantity_table(found)]
    known = stored.study.structure.threshold(stored.study.model)
    if known is not None:
        texts.append(published_line(known, found.threshold, found.threshold_error))
    echo("\n\n".join(texts))
