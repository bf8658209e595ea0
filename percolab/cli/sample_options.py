"""Options that name one sample, as `percolab label` and `percolab show` take them."""

from __future__ import annotations

from typing import Any

import click

from percolab.bonds.model import Model
from percolab.cli.groups import grouped
from percolab.cli.options import F, WholeNumber, flag, refuse
from percolab.cli.setting_options import setting_option
from percolab.errors import InputError
from percolab.lattices.bethe import NUMBERINGS, BetheLattice
from percolab.lattices.lattice import Lattice
from percolab.tasks.setting_groups import LATTICE, WHAT
from percolab.tasks.settings import SETTINGS, SHOWN_SWEEPS

#: What may be given in place of p where sites have spins.
COUPLINGS = ("T", "K", "beta")
#: All that only a sample of spins has.
OF_SPINS = (*COUPLINGS, "sweeps", "update")
#: What the options stand for when they are left out.
DEFAULTS = {"sample": 0} | {name: SETTINGS[name].default for name in ("seed", "rng", "model")}


def sample_options(function: F) -> F:
    """Add the options that name a lattice, its size, and a sample on it; None where not given."""
    for option in (
        grouped(LATTICE, "--numbering", help=f"Of the Bethe lattice: {' or '.join(NUMBERINGS)}.  "
                f"[default: {NUMBERINGS[0]}]"),
        grouped(LATTICE, "--shells", type=int,
                help="Shells of the Bethe lattice around its centre."),
        grouped(LATTICE, "--bethe", type=int, metavar="Z",
                help="Bethe lattice of this coordination number."),
        setting_option("boundary"),
        setting_option("update"),
        setting_option("sweeps", low=0, shown_default=str(SHOWN_SWEEPS),
                       help="Of spins: updates since the start of the chain."),
        *(setting_option(name, kind=float) for name in reversed(COUPLINGS)),
        setting_option("model"),
        setting_option("rng"),
        grouped(WHAT, "--sample", type=WholeNumber(min=0, max=2**64 - 1),
                help="Number of the sample, of spins that of the chain.  [default: 0]"),
        setting_option("seed", help="Seed of the sweep."),
        grouped(WHAT, "-p", "p", type=float, help="Probability of a bond, or as --model says."),
        grouped(LATTICE, "-L", "--size", "size", type=SizeOrShape(),
                help="Linear size, or a shape as 64x128; of bethe:Z the shells."),
        setting_option("lattice", shown_default="",
                       help="Name (percolab lattices), .toml file, or bethe:Z."),
    ):  # fmt: skip
        function = option(function)
    return function


class SizeOrShape(click.ParamType[Any]):
    """A linear size, or the sides of a shape with x between them."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from percolab.tasks.values import parse_sizes

        if isinstance(value, str) and "x" in value and "," not in value:
            return parse_sizes(value)[0]
        return click.INT.convert(value, param, ctx)


def shaped(structure: Any, size: Any) -> tuple[Any, Any]:
    """Return a lattice and its size as -L gives it, of a shape the lattice with such sides."""
    from percolab.tasks.shapes import take_shape

    return take_shape(structure, size) if isinstance(size, tuple) else (structure, size)


def lattice_and_size(given: dict[str, Any], what: str) -> tuple[Lattice | BetheLattice, int]:
    """Return the lattice that options name, and its size L; InputError if they name none.

    --bethe Z, --shells K and --numbering say what --lattice bethe:Z:NUMBERING and -L K do.
    """
    from percolab.lattices.structure import load_structure

    if given["bethe"] is not None:
        refuse(given, "a Bethe lattice (--bethe) has its own size", "lattice", "size", "boundary")
        need(given, "a Bethe lattice", "shells", *_point(given))
        return BetheLattice(given["bethe"], given["numbering"] or NUMBERINGS[0]), given["shells"]
    refuse(given, "only a Bethe lattice (--bethe) has it", "shells", "numbering")
    need(given, what, "lattice", "size", *_point(given))
    return shaped(load_structure(given["lattice"]), given["size"])


def has_point(given: dict[str, Any]) -> bool:
    """Return whether p is given, or what it follows from."""
    return any(given[name] is not None for name in ("p", *COUPLINGS))


def _point(given: dict[str, Any]) -> tuple[str, ...]:
    """Return what is needed to know p: nothing where it, or a coupling, is given."""
    return () if has_point(given) else ("p",)


def sample_keys(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a sample other than lattice and size, those left out at defaults."""
    keys = with_defaults(given, *DEFAULTS)
    if Model.parse(keys["model"]).chains:
        keys["sweeps"] = SHOWN_SWEEPS
    return keys | {name: given[name] for name in ("p", *OF_SPINS) if given[name] is not None}


def with_defaults(given: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: DEFAULTS[key] if given[key] is None else given[key] for key in keys}


def need(given: dict[str, Any], what: str, *keys: str) -> None:
    missing = [flag(key) for key in keys if given[key] is None]
    if missing:
        raise InputError(f"{what} needs {' and '.join(missing)}")


def describe_directions(cluster: dict[str, Any]) -> str:
    """Return along which axes a cluster spans, and around which it wraps."""
    if cluster["spanning"] == ["source-target"]:
        return "connects source and target"
    ways = [("spans along", cluster["spanning"]), ("wraps around", cluster.get("wrapping", []))]
    return ", ".join(f"{verb} {' and '.join(axes)}" for verb, axes in ways if axes)
