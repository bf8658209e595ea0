"""Options that name one sample, as `percolab label` and `percolab show` take them."""

from typing import Any

from percolab.cli.groups import grouped
from percolab.cli.options import F, WholeNumber
from percolab.cli.setting_options import setting_option
from percolab.errors import USUAL_SAMPLE
from percolab.tasks.setting_groups import WHAT
from percolab.tasks.settings import SHOWN_SWEEPS


def sample_options(function: F) -> F:
    """Add the options that name a lattice, its size, and a sample on it; None where not given."""
    for option in (
        setting_option("boundary"),
        setting_option("update"),
        setting_option("sweeps", low=0, shown_default=str(SHOWN_SWEEPS),
                       help="For spins: updates since the start of the chain."),
        *(setting_option(name, kind=float) for name in ("beta", "K", "T")),
        setting_option("model"),
        setting_option("rng"),
        grouped(WHAT, "--sample", type=WholeNumber(min=0, max=2**64 - 1),
                help="Number of the sample; for spins, of the chain.  [default: 0]"),
        setting_option("seed", help="Seed of the sweep."),
        grouped(WHAT, "-p", "p", type=float, help="Bond probability, or as --model defines it."),
        setting_option("L", shown_default="",
                       help="Linear size, or a shape: 64x128; for bethe:Z, shells."),
        setting_option("lattice", shown_default="",
                       help="A name (percolab lattices), a .toml file, or bethe:Z, with randomly "
                       "numbered sites bethe:Z:random."),
    ):  # fmt: skip
        function = option(function)
    return function


def with_usual(given: dict[str, Any]) -> dict[str, Any]:
    """Return options with what names a sample at its defaults where it is left out."""
    return given | {name: own for name, own in USUAL_SAMPLE.items() if given[name] is None}


def describe_directions(cluster: dict[str, Any]) -> str:
    """Return along which axes a cluster spans, and around which it wraps."""
    if cluster["spanning"] == ["source-target"]:
        return "connects source and target"
    ways = [("spans along", cluster["spanning"]), ("wraps around", cluster.get("wrapping", []))]
    return ", ".join(f"{verb} {' and '.join(axes)}" for verb, axes in ways if axes)
