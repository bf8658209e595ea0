"""percolab merge: several results files into one."""

import click

from percolab.cli.groups import Command
from percolab.cli.options import counted
from percolab.cli.terminal import echo
from percolab.errors import InputError


@click.command(cls=Command)
@click.argument("parts", nargs=-1, required=True, type=click.Path(), metavar="PART.h5...")
@click.option(
    "-o", "--out", required=True, type=click.Path(), help="The file to write; it must not exist."
)
def command(parts: tuple[str, ...], out: str) -> None:
    """Merge results of one lattice with different sizes, seeds or blocks.

    Files with the same samples are refused: independent runs need different seeds.  For one long
    chain (sweep --chains 1) the longest part is taken, if the parts agree.
    """
    from percolab.store.merging import merge
    from percolab.store.results import ResultsWriter, read_results
    from percolab.tasks.values import take_results_path

    with ResultsWriter(take_results_path("--out", out)) as writer:
        if writer.path.exists():
            raise InputError(f"{out}: exists already; merge writes a new file")
        read = ((part, read_results(part)) for part in parts)
        merged = merge(read, report=lambda line: echo(line, err=True))
        writer.save(merged)
    samples = sum(result.num_samples for result in merged.tasks.values())
    counts = (counted(len(parts), "file"), counted(len(merged.tasks), "task"))
    echo(f"{', '.join(counts)}, {counted(samples, 'sample')} in {out}")
