"""percolab invade: invasion percolation of samples, their means, arrays and picture."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from percolab.cli import options as shared
from percolab.cli.groups import GroupedCommand, grouped
from percolab.cli.sample_options import with_usual
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.tasks.setting_groups import HOW_MUCH, LATTICE, MEASURED, OUTPUT, WHAT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from percolab.analysis.trees import InvasionMeans
    from percolab.analysis.value import Value
    from percolab.configurations.invade import Invader
    from percolab.trees.invasion import Invasion

#: Radii within which sites are counted grow by this factor, from here on.
_FIRST_RADIUS, _FACTOR = 4.0, 2**0.5


@click.command(cls=GroupedCommand)
@setting_option("lattice", shown_default="")
@setting_option("graph")
@setting_option(
    "L",
    help="Linear sizes or shapes: 64,128,256 or 32x64,64x128; for a Bethe lattice, shells.",
    shown_default="",
)
@setting_option("boundary")
@grouped(
    LATTICE,
    "--source",
    help="Where the invasion begins: a side (x-, x+, y- ... or left, right, bottom, "
    "top), centre, sites 0,5,17 or a file with one per line.  [default: the first side of "
    "the last open axis, else the centre]",
)
@grouped(
    LATTICE,
    "--target",
    help="Where it should arrive, like --source.  [default: the side opposite to the source, or "
    "all sides]",
)
@grouped(
    HOW_MUCH,
    "--stop",
    help="Stop at: spanning (target reached), all, or a number of sites.  [default: spanning]",
)
@grouped(WHAT, "--trapping", is_flag=True, help="Regions cut off from the target are not invaded.")
@setting_option("multi", help="Keep parallel edges of the graph file.")
@setting_option("columns")
@setting_option("model", help="bond or site.")
@grouped(
    WHAT,
    "--weights",
    type=click.Path(),
    help="Your own weights: the word file (those in the graph's file); or .npy or file.h5:/dataset "
    "for bonds (classes, ..., y, x), a graph's bonds (one each), or sites (..., y, x).",
)
@setting_option("samples", kind=int, help="Invasions per size.", shown_default="1")
@grouped(WHAT, "--sample", type=int, help="Number of the first sample.  [default: 0]")
@setting_option("seed", help="Seed of the sweep.")
@setting_option("rng")
@grouped(
    MEASURED,
    "--p0",
    type=float,
    help="A burst begins with a weight of at least this.  [default: "
    "with a weight larger than all before]",
)
@grouped(
    OUTPUT, "-o", "--out", type=click.Path(), help="The steps of one invasion: .csv, .npz or .h5."
)
@grouped(OUTPUT, "--plot", type=click.Path(), help="Figure: .png, .pdf or .svg.")
@shared.as_json
def command(**given: Any) -> None:
    """Invade a lattice or a graph from a source, always by the easiest bond or site.

    The weights are the uniform numbers of a sample of a sweep.  They are drawn only where needed,
    so that the cost depends on the number of invaded sites, not on the size of the lattice.  From a
    side to the opposite one, the largest invaded weight is T, the p at which the sample begins to
    span (percolab sweep --method threshold).

    With --samples, print means with their errors, and for several sizes -L the fractal dimension:
    from the sites invaded at breakthrough, or, from a single site, from those within a distance of
    it.  --out and --plot write the first sample.
    """  # fmt: skip
    from percolab.analysis.trees import INNER, InvasionMeans, fit_size_dimension
    from percolab.configurations.invade import make_invaders
    from percolab.configurations.invasion_files import check_invasion_target, write_invasion
    from percolab.configurations.picture import draw_invasion, name_invasion
    from percolab.figures.invasion import Curves
    from percolab.tasks.values import parse_sizes

    given = _with_defaults(given)
    sizes = None if given["L"] is None else parse_sizes(given["L"])
    if given["out"]:
        check_invasion_target(given["out"], shared.input_files())
    if given["plot"]:
        shared.check_target(given["plot"])
    for name in ("out", "plot"):
        if given[name] and len(sizes or ()) > 1:
            raise InputError(f"--{name}: an invasion has one size; give one -L")
    invaders = make_invaders(given, sizes)
    means, sites, first, curves, fit = [], [], None, None, None
    for invader in invaders:
        rows, masses, radii = [], [], _choose_radii(invader)
        for number in range(given["sample"], given["sample"] + (given["samples"] or 1)):
            invasion = invader.run(number)
            first = first or invasion
            rows.append({
                "invaded": invasion.num_invaded,
                "threshold": invasion.threshold,
                "front": int(invasion.fronts[-1]) if invasion.num_invaded else 0,
                "largest_burst": int(invasion.bursts(given["p0"]).max(initial=0)),
                "reached": invasion.breakthrough is not None or not invasion.has_target,
            })  # fmt: skip
            if radii is not None:
                # Beyond what is invaded there are none.
                apart = invader.field.distances(invasion.sites, int(invasion.sites[0]))
                within = invasion.mass_within(apart, radii)
                masses.append(within * (radii <= INNER * apart.max()))
            if given["plot"]:
                one = Curves.of(invasion, given["p0"])
                curves = one if curves is None else curves.plus(one)
        means.append(InvasionMeans.of(invader.field.size, rows))
        sites.append(invasion.num_sites)
        if radii is not None and len(invaders) == 1:
            fit = _fit_masses(radii, masses)
    assert first is not None
    record = _record(invaders, given)
    if given["out"]:
        names = getattr(invaders[0].field.structure, "names", None)
        write_invasion(given["out"], first, record, names)
    if curves is not None:
        figure, numbers = draw_invasion(invaders[0], first, curves, record)
        shared.write_figure(figure, given["plot"], quiet=given["as_json"])
        record |= {"figure": {"file": given["plot"], **numbers}}
    # Where several sizes are invaded to breakthrough.
    scales = invaders[0].field.structure.is_scalable and invaders[0].stop == "spanning"
    fit = fit if len(invaders) == 1 else fit_size_dimension(means) if scales else None
    if given["as_json"]:
        shared.echo_json(_complete_record(record, means, sites, first, fit))
        return
    echo(name_invasion(invaders[0], record).replace("$", ""))
    _echo_means(invaders[0], means, first)
    if fit is not None:
        _echo_dimension(invaders[0], fit)
    if given["out"]:
        echo(f"steps in {given['out']}")


def _with_defaults(given: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of a sample at their defaults; InputError for what does not go."""
    from percolab.tasks.values import expand_power

    if given["weights"] is not None:
        shared.refuse(given, "given weights have no samples", "samples")
    p0, stop = given["p0"], given["stop"] and expand_power(given["stop"])
    if p0 is not None and not math.isfinite(p0):
        raise InputError(f"--p0 {p0}, but it must be a finite number")
    if p0 is not None and given["weights"] is None and not 0 <= p0 <= 1:
        raise InputError(f"--p0 {p0}, but the weights of a sample are from 0 to 1")
    is_number = stop is not None and re.fullmatch(r"-?\d{1,18}", stop)
    return with_usual(given) | {"stop": int(stop) if is_number else stop}


def _choose_radii(invader: Invader) -> np.ndarray | None:
    """Return radii to count sites within; None without places or from several sites."""
    from percolab.analysis.trees import INNER
    from percolab.figures.invasion import can_draw_places
    from percolab.lattices.lattice import Lattice

    structure = invader.field.structure
    if invader.sources.size > 1 or not can_draw_places(structure) or invader.stop == "all":
        return None
    assert isinstance(structure, Lattice)
    steps = np.linalg.norm(np.array(structure.vectors), axis=1)
    most = INNER * float((steps * invader.field.shape).max())
    radii = _FIRST_RADIUS * _FACTOR ** np.arange(64)
    return radii[radii <= most]


def _fit_masses(radii: np.ndarray, masses: list[np.ndarray]) -> Value | None:
    """Return the dimension by the mass within r, as far as every sample's invasion reaches."""
    from percolab.analysis.trees import fit_mass_dimension

    table = np.array(masses, np.float64)
    reached = (table > 0).all(axis=0)
    return fit_mass_dimension(radii[reached], table[:, reached])


def _record(invaders: Sequence[Invader], given: dict[str, Any]) -> dict[str, Any]:
    invader, sizes = invaders[0], [each.field.size for each in invaders]
    field, task = invader.field, invader.task
    return {
        "kind": "invasion",
        "lattice": field.structure.name,
        "boundary": list(field.boundary),
        "L": sizes[0] if len(sizes) == 1 else sizes,
        "model": invader.model,
        "source": given["source"],
        "target": given["target"],
        "stop": invader.stop,
        "trapping": invader.trapping,
        "seed": task.seed,
        "sample": given["sample"],
        "rng": task.rng,
        "weights": given["weights"],
    }


def _complete_record(
    record: dict[str, Any],
    means: list[InvasionMeans],
    sites: list[int],
    first: Invasion,
    fit: Value | None,
) -> dict[str, Any]:
    """Return the record of an invasion with its means, and the dimension if there is one.

    sites: of the lattice, at every size.
    """
    from percolab.analysis.json_values import plain

    sizes = []
    for each, count in zip(means, sites, strict=True):
        values = zip(each.means.items(), each.errors.values(), strict=True)
        numbers = {name: plain({"mean": mean, "error": error}) for (name, mean), error in values}
        counted = {"sites": count, "samples": each.samples, "reached": each.reached}
        sizes.append({"L": each.L, **counted, **numbers})
    record |= {"sites": sites[0] if len(sites) == 1 else sites, "sizes": sizes}
    if means[0].notes:
        record["notes"] = means[0].notes
    if len(sizes) == 1:
        record["breakthrough"] = first.breakthrough
    if fit is not None:
        record["dimension"] = {"value": fit.value, "error": fit.error}
        if fit.chi_square is not None:
            record["dimension"] |= {"chi2": fit.chi_square.value, "dof": fit.chi_square.dof}
    return record


def _echo_means(invader: Invader, means: list[InvasionMeans], first: Invasion) -> None:
    """Write the numbers of a single invasion in lines, or means of several in a table."""
    from percolab.analysis.text import format_with_error
    from percolab.lattices.shown import Table

    # From end to end it is the threshold of the sample.
    taken = "T" if invader.enters and invader.stop == "spanning" else "largest weight"
    if len(means) > 1 or means[0].samples > 1:
        rows: list[tuple[Any, ...]] = []
        for each in means:
            texts = [
                format_with_error(mean, error) if error > 0 else f"{mean:.6g}"
                for mean, error in zip(each.means.values(), each.errors.values(), strict=True)
            ]
            rows.append((each.L, each.samples, each.reached, *texts))
        head = ("L", "samples", "reached", "invaded", taken, "front", "largest burst")
        echo(Table(head, rows).to_text())
        for note in means[0].notes:
            echo(f"note: {note}")
        return
    numbers = means[0].means
    share = 100 * first.num_invaded / first.num_sites
    invaded = f"invaded {first.num_invaded} of {shared.counted(first.num_sites, 'site')}"
    echo(f"{invaded} ({share:.3g} %), front {numbers['front']:.0f}")
    if first.breakthrough is not None:
        echo(f"breakthrough at step {first.breakthrough}, {taken} = {first.threshold:.12g}")
    elif invader.has_target:
        echo("the target was not reached")
    echo(f"largest burst {numbers['largest_burst']:.0f}")


def _echo_dimension(invader: Invader, fit: Value) -> None:
    """Write the fractal dimension, next to that of percolation where it is the same."""
    from percolab.analysis.theory.known_exponents import known_exponents

    line = f"D = {fit}"
    if fit.chi_square is not None:
        line += f"  (chi2/dof {fit.chi_square.value:.3g}/{fit.chi_square.dof})"
    dimension = invader.field.structure.dimension
    known = known_exponents(dimension).get("d_f")
    differs = invader.given is not None or (invader.trapping and dimension == 2)
    if known is not None and not differs:
        line += f"; percolation has {known.value:.6g}  ({known.expression or known.reference})"
    echo(line)
