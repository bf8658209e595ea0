"""percolab plot: stored results as a figure, and the numbers drawn."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from percolab.cli import options as shared
from percolab.cli.groups import Command
from percolab.cli.terminal import echo
from percolab.errors import AnalysisError, InputError, nearest


class PlotCommand(Command):
    """Lists the kinds of figures in its help, with the line that each of them holds."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help and the kinds, which are imported for this alone."""
        from percolab.figures.kinds import KINDS

        super().format_help_text(ctx, formatter)
        rows = [(name, kind.help) for name, kind in KINDS.items()]
        with formatter.section("Kinds"):
            formatter.write_dl([*rows, ("invasion", "an .h5 file of percolab invade --out")])


@click.command(cls=PlotCommand)
@shared.results_file
@click.option(
    "--kind",
    help="One of the kinds above.  "
    "[default: curves and drift; graph or Bethe lattice: maxima; spins: binder; percolab "
    "threshold: roots]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    help="Figure: .png, .pdf or .svg.  [default: RESULTS.png, with --kind RESULTS-KIND.png]",
)
@shared.fit_options
@shared.table_options
@shared.as_json
def command(results: str, kind: str | None, out: str | None, as_json: bool, **options: Any) -> None:
    """Draw stored results: by default R_L(p) with the crossings, their drift, and p_c.

    The default for a graph or a Bethe lattice is s_1/N, s_2/N and chi against p, with their maxima;
    for spins, Binder's ratio; for trees, weights, degrees and paths; for percolab threshold, roots.

    --kind draws one of the figures below instead.

    A table of your own data (docs/tables.md) has the kinds curves, crossings and collapse.

    A file of labels (percolab label) is drawn as by percolab show.

    docs/plots.md and, for spins, docs/spins.md say what each kind needs.  With --json every number
    drawn goes to stdout.
    """
    from percolab.configurations import read_labels
    from percolab.configurations.invasion_files import holds_invasion
    from percolab.configurations.picture import draw_stored_invasion, draw_stored_labels
    from percolab.figures.kinds import KINDS, study_figure
    from percolab.store.output_files import is_labels

    if kind is not None and kind not in ("invasion", *KINDS):
        raise InputError(f"unknown kind {kind!r}; {nearest(kind, [*KINDS, 'invasion'])}")
    if out:
        shared.check_target(out)
    path = Path(results)
    named = path.parent / (f"{path.stem}-{kind}.png" if kind else f"{path.stem}.png")
    target = shared.output_file(out, named)
    of_table = shared.is_table(results)
    options = options if of_table else shared.without_table_options(options)
    if of_table:
        from percolab.figures.table import draw_table

        table, fits = shared.fit_table_file(results, options)
        table.choose(options["series"])
        fit = next(iter(fits.values()))
        assert not isinstance(fit, AnalysisError)
        figure, numbers = draw_table(fit, kind)
    elif is_labels(results):
        shared.refuse(options | {"kind": kind}, "labels have one figure", "kind", "observable")
        shared.refuse_scaling(options)
        figure, numbers = draw_stored_labels(read_labels(results), results)
    elif kind == "invasion" or (kind is None and holds_invasion(results)):
        shared.refuse(options, "an invasion has none", "observable")
        shared.refuse_scaling(options)
        figure, numbers = draw_stored_invasion(results)
    else:
        stored = shared.read_study(results, options)
        keys = {name: options[name] for name in ("observable", "bootstrap")}
        fitted = partial(shared.fit_from_options, stored, **options)
        figure, numbers = study_figure(stored, fitted=fitted, kind=kind, **keys)
    shared.write_figure(figure, target, quiet=as_json)
    for note in () if of_table else numbers.get("notes", ()):
        echo(f"note: {note}", err=as_json)
    if as_json:
        shared.echo_json(numbers)
