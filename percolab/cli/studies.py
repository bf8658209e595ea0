"""percolab studies: the studies that come with percolab, or one of them as a file."""

import click

from percolab.cli.groups import Command
from percolab.cli.options import as_json, complete_study, write_answer
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.lattices.shown import Table
from percolab.lattices.toml_table import read_text
from percolab.tasks.study_library import find_study, study_names, study_summary


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=complete_study)
@as_json
def command(name: str | None, as_json: bool) -> None:
    """List the studies and what each is for; percolab sweep NAME runs one.

    With a NAME, print its file: percolab studies quick > own.toml gives you a copy to edit.
    """
    if name is None:
        rows = [(each, study_summary(each)) for each in study_names()]
        table = Table(("name", "summary"), rows)
        write_answer(table.to_json(), table.to_text(), as_json=as_json)
        return
    if as_json:
        raise InputError("--json: only for the list of studies; leave out the name")
    echo(read_text(find_study(name)), nl=False)
