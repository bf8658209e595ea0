"""percolab invade: invasion percolation of samples, their means, arrays and picture."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import GroupedCommand, grouped
from percolab.cli.options import (
    as_json,
    counted,
    echo_json,
    input_files,
    output_file,
    refuse,
    write_figure,
)
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.tasks.setting_groups import HOW_MUCH, LATTICE, MEASURED, OUTPUT, WHAT

if TYPE_CHECKING:
    import numpy as np

    from percolab.analysis import Known
    from percolab.analysis.invasions import InvasionMeans
    from percolab.analysis.value import Value
    from percolab.configurations.invade import Field, Invader
    from percolab.lattices.structure import Structure
    from percolab.trees.invasion import Invasion

#: Radii within which sites are counted grow by this factor, from here on, up to this part of how
#: far every invasion reaches: further out sites are still being invaded.
_FIRST_RADIUS, _FACTOR, _INNER = 4.0, 2**0.5, 1 / 16


@click.command(cls=GroupedCommand)
@setting_option("lattice", shown_default="")
@setting_option("graph")
@setting_option(
    "L",
    help="Linear size or shape, or several: 64,128,256, 32x64,64x128; shells of a Bethe lattice.",
    shown_default="",
)
@setting_option("boundary")
@grouped(
    LATTICE,
    "--source",
    help="Where it begins: a side (x-, x+, y- ... or left, right, bottom, "
    "top), centre, sites 0,5,17 or a file with one a line.  [default: the first side of "
    "the last open axis, else the centre]",
)
@grouped(
    LATTICE,
    "--target",
    help="Where it is to get: the same.  [default: the side opposite to the source, or all sides]",
)
@grouped(
    HOW_MUCH,
    "--stop",
    help="spanning, when the target is reached; all; or a number of sites.  [default: spanning]",
)
@grouped(WHAT, "--trapping", is_flag=True, help="What is cut off from the target is not invaded.")
@setting_option("multi", help="Keep parallel edges of the graph file.")
@setting_option("columns")
@setting_option("model", help="bond or site.")
@grouped(
    WHAT,
    "--weights",
    type=click.Path(),
    help="Weights of your own: file, those of the bonds in the graph's file; or .npy or "
    "file.h5:/dataset, of bonds (classes, ..., y, x), of a graph one a bond, of sites (..., y, x).",
)
@setting_option("samples", help="Invasions a size.", shown_default="1")
@grouped(WHAT, "--sample", type=int, help="Number of the first sample.  [default: 0]")
@setting_option("seed", help="Seed of the sweep.")
@setting_option("rng")
@grouped(
    MEASURED,
    "--p0",
    type=float,
    help="Bursts begin with weights of at least this.  [default: "
    "with a weight larger than all before]",
)
@grouped(OUTPUT, "--out", type=click.Path(), help="The steps of one invasion: .csv, .npz or .h5.")
@grouped(OUTPUT, "--plot", type=click.Path(), help="Figure: .png, .pdf or .svg.")
@as_json
def command(**given: Any) -> None:
    """Invade a lattice or a graph from a source, always by the easiest bond or site.

    The weights are the uniform numbers of a sample of a sweep, drawn when they are first looked at:
    an invasion of a million sites costs a million sites, however large the lattice is.  From a side
    to the opposite one the largest weight that is taken is T, the p at which the sample begins to
    span (percolab sweep --method threshold).

    With --samples the means are told with their errors; of several sizes -L also the fractal
    dimension, by the sites invaded at breakthrough, or, from a single site, by those within a
    distance of it.  --out and --plot have the first sample.
    """  # fmt: skip
    from percolab.analysis.invasions import InvasionMeans
    from percolab.configurations.invasion_files import check_invasion_target, write_invasion
    from percolab.figures import FORMATS
    from percolab.figures.invasion import Curves, plot_invasion
    from percolab.store.output_files import check_suffix

    _check_samples(given)
    structure, sizes, request = _read_request(given)
    samples = given["samples"] or 1
    if given["out"]:
        check_invasion_target(given["out"], input_files())
    if given["plot"]:
        check_suffix(given["plot"], FORMATS, "a figure")
        output_file(given["plot"], "")
    for name in ("out", "plot"):
        if given[name] and len(sizes) > 1:
            raise InputError(f"--{name}: an invasion has one size; give one -L")
    invaders = [_invader(structure, size, request) for size in sizes]
    means, first, curves, fit = [], None, None, None
    for size, invader in zip(sizes, invaders):
        rows, masses, radii = [], [], _radii(invader)
        for number in range(given["sample"], given["sample"] + samples):
            found = invader.run(number)
            rows.append(_row(found, given["p0"]))
            if radii is not None:
                masses.append(_masses(invader.field, found, radii))
            if given["plot"]:
                one = Curves.of(found, given["p0"])
                curves = one if curves is None else curves.plus(one)
            first = first or found
        means.append(InvasionMeans.of(size, rows))
        if radii is not None and len(sizes) == 1:
            fit = _fit_masses(radii, masses)
    assert first is not None
    record = _record(invaders[0], given)
    if given["out"]:
        write_invasion(given["out"], first, record)
    if given["plot"]:
        assert curves is not None
        figure, numbers = plot_invasion(
            first,
            curves,
            structure,
            title=_title(invaders[0], record),
            threshold=_published(structure, given),
        )
        write_figure(figure, given["plot"], quiet=given["as_json"])
        record |= {"figure": {"file": given["plot"], **numbers}}
    fit = _fit_sizes(invaders, means) if len(sizes) > 1 else fit
    if given["as_json"]:
        echo_json(_json(record, means, first, fit))
        return
    _echo(invaders, means, first, fit, given)


def _check_samples(given: dict[str, Any]) -> None:
    """Give the first sample its number; InputError for what given weights do not have."""
    if given["weights"] is not None:
        reason = "given weights (--weights) have no samples"
        refuse(given, reason, "samples", "sample", "seed", "rng")
    given["sample"] = given["sample"] or 0
    p0 = given["p0"]
    if p0 is None:
        return
    if not math.isfinite(p0):
        raise InputError(f"--p0 {p0}, but it must be a finite number")
    if given["weights"] is None and not 0 <= p0 <= 1:
        raise InputError(f"--p0 {p0}, but the weights of a sample are from 0 to 1")


def _read_request(given: dict[str, Any]) -> tuple[Structure, list[int], dict[str, Any]]:
    """Return the structure, its sizes and the settings of an invasion that options name."""
    from percolab.lattices.graph import load_graph, load_weighted_graph
    from percolab.lattices.structure import load_structure
    from percolab.tasks.settings import SETTINGS
    from percolab.tasks.shapes import take_shapes
    from percolab.tasks.values import parse_sizes

    request = {name: given[name] for name in ("source", "target", "trapping")}
    request |= {
        name: given[name] if given[name] is not None else SETTINGS[name].default
        for name in ("model", "seed", "rng")
    }
    request |= {"stop": _stop(given["stop"]), "boundary": given["boundary"]}
    in_file = given["weights"] == "file"
    if in_file and given["graph"] is None:
        raise InputError("--weights file: only a graph's file (--graph) has weights in it")
    request["weights"] = None if given["weights"] is None or in_file else _weights(given["weights"])
    if given["graph"] is not None:
        refuse(given, "a graph (--graph) has one size and no axes", "lattice", "L", "boundary")
        if given["source"] is None:
            raise InputError("an invasion of a graph needs --source")
        options = {name: given[name] for name in ("multi", "columns")}
        if given["target"] is not None:
            # The sample of a sweep with this source and target.
            options |= {name: request.pop(name) for name in ("source", "target")}
            request |= {"source": None, "target": None}
        if in_file:
            graph, data = load_weighted_graph(given["graph"], **options)
            request["weights"] = data.weights
        else:
            graph = load_graph(given["graph"], **options)
        return graph, [graph.num_sites], request
    refuse(given, "only a graph (--graph) has it", "multi", "columns")
    missing = [flag for flag, name in (("--lattice", "lattice"), ("-L", "L")) if not given[name]]
    if missing:
        raise InputError(f"an invasion needs {' and '.join(missing)}, or --graph")
    structure, chosen = take_shapes(load_structure(given["lattice"]), parse_sizes(given["L"]))
    return structure, sorted(set(chosen)), request


def _stop(text: str | None) -> Any:
    """Return a number of sites as one, other words as they are."""
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else text


def _weights(name: str) -> np.ndarray:
    from percolab.configurations.tree import read_numbers

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        return "" if dtype.kind in "iuf" else f"holds {dtype}; weights are floats or integers"

    return read_numbers(name, wrong)


def _invader(structure: Structure, size: int, request: dict[str, Any]) -> Invader:
    from percolab.configurations.invade import Invader, make_field

    settings = {name: request[name] for name in request if name != "boundary"}
    return Invader(make_field(structure, size, request["boundary"]), **settings)


def _row(found: Invasion, p0: float | None) -> dict[str, Any]:
    """Return what is averaged of an invasion."""
    return {
        "invaded": found.num_invaded,
        "threshold": found.threshold,
        "front": int(found.fronts[-1]) if found.num_invaded else 0,
        "largest_burst": int(found.bursts(p0).max(initial=0)),
        "reached": found.breakthrough is not None or not found.has_target,
    }


def _published(structure: Structure, given: dict[str, Any]) -> float | None:
    """Return the published threshold, where the weights are those of a sample."""
    known = structure.threshold(given["model"] or "bond")
    return None if known is None or given["weights"] is not None else known.value


def stored_figure(file: str) -> tuple[Any, dict[str, Any]]:
    """Return the figure of an invasion that --out stored, and its numbers.

    InputError: as for :func:`stored_invasion`.
    """
    from percolab.figures.invasion import Curves, plot_invasion

    invader, found, record = stored_invasion(file)
    structure = invader.field.structure
    title, threshold = _title(invader, record), _published(structure, record)
    figure, numbers = plot_invasion(
        found, Curves.of(found), structure, title=title, threshold=threshold
    )
    return figure, {"kind": "invasion"} | numbers | {"notes": []}


def stored_invasion(file: str) -> tuple[Invader, Invasion, dict[str, Any]]:
    """Return an invasion that --out stored, made again, with what makes it and its record.

    The file tells the sample; it is invaded again, and the steps must be those of the file.
    InputError: they are not, or the file alone does not tell what was invaded.
    """
    import numpy as np

    from percolab.configurations.invasion_files import read_invasion
    from percolab.lattices.structure import load_structure

    record, sites = read_invasion(file)
    if record["weights"] is not None:
        raise InputError(f"{file}: its weights were given and are not in the file; draw such an "
                         "invasion when it is made (percolab invade --plot)")  # fmt: skip
    structure = load_structure(record["lattice"])
    names = ("source", "target", "stop", "trapping", "model", "seed", "rng", "boundary")
    request = {name: record[name] for name in names} | {"weights": None}
    invader = _invader(structure, record["L"], request)
    found = invader.run(record["sample"])
    if not np.array_equal(found.sites, sites):
        raise InputError(f"{file}: its steps are not those of lattice {record['lattice']}")
    return invader, found, record


def _radii(invader: Invader) -> np.ndarray | None:
    """Return radii to count sites within; None without places or from several sites."""
    import numpy as np

    from percolab.figures.invasion import can_draw_places
    from percolab.lattices.lattice import Lattice

    structure = invader.field.structure
    if invader.sources.size > 1 or not can_draw_places(structure) or invader.stop == "all":
        return None
    assert isinstance(structure, Lattice)
    steps = np.linalg.norm(np.array(structure.vectors), axis=1)
    most = _INNER * float((steps * invader.field.shape).max())
    radii = _FIRST_RADIUS * _FACTOR ** np.arange(64)
    return radii[radii <= most]


def _masses(field: Field, found: Invasion, radii: np.ndarray) -> np.ndarray:
    """Return how many invaded sites are within each radius of the source; 0 beyond the invaded."""
    import numpy as np

    apart = field.distances(found.sites, int(found.sites[0]))
    return np.where(radii <= _INNER * apart.max(), found.mass_within(apart, radii), 0)


def _fit_masses(radii: np.ndarray, masses: list[np.ndarray]) -> Value | None:
    """Return the dimension by the mass within r, as far as every sample's invasion reaches."""
    import numpy as np

    from percolab.analysis.invasions import fit_mass_dimension

    table = np.array(masses, np.float64)
    reached = (table > 0).all(axis=0)
    return fit_mass_dimension(radii[reached], table[:, reached])


def _fit_sizes(invaders: list[Invader], means: list[InvasionMeans]) -> Value | None:
    """Return the dimension by the sites at breakthrough, where that is where invasions end."""
    from percolab.analysis.invasions import fit_size_dimension

    if not invaders[0].field.structure.is_scalable or invaders[0].stop != "spanning":
        return None
    return fit_size_dimension(means)


def _known_dimension(invader: Invader) -> Known | None:
    """Return d_f where an invaded cluster is known to have it."""
    from percolab.analysis.theory.known_exponents import known_exponents

    dimension = invader.field.structure.dimension
    known = known_exponents(dimension).get("d_f")
    differs = invader.given is not None or (invader.trapping and dimension == 2)
    return None if differs else known


def _record(invader: Invader, given: dict[str, Any]) -> dict[str, Any]:
    """Return what an invasion is of, as plain JSON values."""
    field, task = invader.field, invader.task
    return {
        "kind": "invasion",
        "lattice": field.structure.name,
        "boundary": list(field.boundary),
        "L": field.size,
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


def _title(invader: Invader, record: dict[str, Any]) -> str:
    from percolab.lattices.graph import Graph

    structure = invader.field.structure
    name = structure.title.replace("$", r"\$")
    parts = [f"{record['model'].capitalize()} invasion", name]
    parts += [f"$L = {record['L']}$"] if not isinstance(structure, Graph) else []
    parts += ["with trapping"] if record["trapping"] else []
    periodic = [a for a, kind in zip(invader.field.axes, record["boundary"]) if kind == "periodic"]
    parts += [f"periodic along {' and '.join(periodic)}"] if periodic else []
    if record["weights"] is None:
        parts.append(f"seed {record['seed']}")
        parts += [f"sample {record['sample']}"] if record["sample"] else []
    return ", ".join(parts)


def _json(
    record: dict[str, Any],
    means: list[InvasionMeans],
    first: Invasion,
    fit: Value | None,
) -> dict[str, Any]:
    from percolab.analysis.json_values import plain

    sizes = [
        {
            "L": item.L,
            "samples": item.samples,
            "reached": item.reached,
            **{
                name: plain({"mean": item.means[name], "error": item.errors[name]})
                for name in item.means
            },
        }
        for item in means
    ]
    found: dict[str, Any] = {**record, "sites": first.num_sites, "sizes": sizes}
    found["breakthrough"] = first.breakthrough
    if fit is not None:
        found["dimension"] = {"value": fit.value, "error": fit.error}
        if fit.chi_square is not None:
            found["dimension"] |= {"chi2": fit.chi_square.value, "dof": fit.chi_square.dof}
    return found


def _echo(
    invaders: list[Invader],
    means: list[InvasionMeans],
    first: Invasion,
    fit: Value | None,
    given: dict[str, Any],
) -> None:
    from percolab.analysis.text import format_with_error
    from percolab.lattices.shown import Table

    invader, item = invaders[0], means[0]
    echo(_title(invader, _record(invader, given)).replace("$", ""))
    # From end to end it is the threshold of the sample.
    taken = "T" if invader.enters and invader.stop == "spanning" else "largest weight"
    if len(means) == 1 and item.samples == 1:
        share = 100 * first.num_invaded / first.num_sites
        invaded = f"invaded {first.num_invaded} of {counted(first.num_sites, 'site')}"
        echo(f"{invaded} ({share:.3g} %), front {item.means['front']:.0f}")
        if first.breakthrough is not None:
            echo(f"breakthrough at step {first.breakthrough}, {taken} = {first.threshold:.12g}")
        elif invader.has_target:
            echo("the target was not reached")
        echo(f"largest burst {item.means['largest_burst']:.0f}")
    else:
        head = ("L", "samples", "reached", "invaded", taken, "front", "largest burst")
        rows: list[tuple[Any, ...]] = []
        for item in means:
            texts = [
                format_with_error(item.means[name], item.errors[name])
                if item.errors[name] > 0 else f"{item.means[name]:.6g}"
                for name in ("invaded", "threshold", "front", "largest_burst")
            ]  # fmt: skip
            rows.append((item.L, item.samples, item.reached, *texts))
        echo(Table(head, rows).to_text())
    if fit is not None:
        line = f"D = {fit}"
        if fit.chi_square is not None:
            line += f"  (chi2/dof {fit.chi_square.value:.3g}/{fit.chi_square.dof})"
        known = _known_dimension(invader)
        if known is not None:
            line += f"; percolation has {known.value:.6g}  ({known.expression or known.reference})"
        echo(line)
    if given["out"]:
        echo(f"steps in {given['out']}")
