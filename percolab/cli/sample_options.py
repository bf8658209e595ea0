"""Options that name one sample, as `percolab label` and `percolab show` take them."""

from __future__ import annotations

from typing import Any

import click

from percolab.toml_input import InputError

#: What the options stand for when they are left out.
DEFAULTS = {"seed": 1, "sample": 0, "rng": "xorwow", "boundary": "open"}


def sample_options(function):
    """Add --lattice, -L, -p, --seed, --sample, --rng and --boundary; None where not given."""
    for option in (
        click.option("--boundary", help="open, periodic, or one per axis: open,periodic.  "
                     "[default: open]"),
        click.option("--rng", help="xorwow or philox.  [default: xorwow]"),
        click.option("--sample", type=click.IntRange(min=0, max=2**64 - 1),
                     help="Number of the sample.  [default: 0]"),
        click.option("--seed", type=click.IntRange(min=0, max=2**63 - 1),
                     help="Seed of the sweep.  [default: 1]"),
        click.option("-p", "p", type=float, help="Probability that a bond is open."),
        click.option("-L", "--size", "size", type=int, help="Linear size."),
        click.option("--lattice", help="Name (percolab lattices) or .toml file."),
    ):  # fmt: skip
        function = option(function)
    return function


def with_defaults(given: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return these options, those left out at their defaults."""
    return {key: DEFAULTS[key] if given[key] is None else given[key] for key in keys}


def refuse(given: dict[str, Any], reason: str, *keys: str) -> None:
    """Raise InputError if one of these options is given."""
    names = {"size": "-L", "p": "-p"}
    for key in keys:
        if given[key] is not None:
            raise InputError(f"{names.get(key, f'--{key}')}: {reason}; leave it out")


def need(given: dict[str, Any], what: str, *keys: str) -> None:
    """Raise InputError unless all of these options are given."""
    names = {"size": "-L", "p": "-p"}
    missing = [names.get(key, f"--{key}") for key in keys if given[key] is None]
    if missing:
        raise InputError(f"{what} needs {' and '.join(missing)}")
