"""percolab fit --quantities: the joint fit of dimensionless quantities, as tables or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from percolab.cli.options import echo_json, is_given
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.store.results import Results


def joint_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a joint fit, taken out of those given; it chooses what is "auto"."""
    names = ("omega", "min_size", "degree", "corrections")
    found = {name: given.pop(name, None) for name in names}
    return {name: None if value == "auto" else value for name, value in found.items()}


def write_quantity_fit(
    stored: Results,
    quantities: str,
    *,
    as_json: bool,
    fits: bool,
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
    texts = [quantity_table(found, every=fits)]
    known = stored.study.structure.threshold(stored.study.model)
    if known is not None:
        away = (found.threshold - known.value) / found.threshold_error
        texts.append(
            f"published {known.value:.12g}  {known.expression}  ({known.reference}): "
            f"{away:+.1f} sigma"
        )
    echo("\n\n".join(texts))
