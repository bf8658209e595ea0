"""percolab field: a Gaussian field with power-law correlations, as a .npy file."""

import click

from percolab.cli.groups import Command
from percolab.cli.options import check_target
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError


@click.command(cls=Command)
@click.argument("shape", metavar="SHAPE")
@click.option(
    "--exponent", type=float, required=True, help="a in the correlations (1 + r^2)^(-a/2)."
)
@setting_option("seed", help="Seed of the field.")
@click.option(
    "-o", "--out", type=click.Path(), default="field.npy", show_default=True, help=".npy file."
)
def command(shape: str, exponent: float, seed: int | None, out: str) -> None:
    """Make a periodic Gaussian field of mean 0 and variance 1, with power-law correlations.

    SHAPE is 512x256 (x by y) or 128x128x128, like -L of other commands.  The file contains site
    weights for percolab threshold --weights (docs/fields.md).
    """
    from percolab.configurations.fields import gaussian_field
    from percolab.store import output_files as files

    kind = files.array("a field")
    check_target(out, "a field", (".npy",), kind)
    try:
        sizes = tuple(map(int, shape.split("x")))
    except ValueError as error:
        raise InputError(f"SHAPE {shape!r}, but it must be integers as in 128x128") from error
    field = gaussian_field(sizes[::-1], exponent, seed=1 if seed is None else seed)
    files.write_output(out, files.encode_array(field, kind), kind)
    echo(f"field in {out}")
