"""Options in groups: what the help of a long command lists under headings of their own."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from percolab.cli.terminal import Visible
from percolab.errors import InputError
from percolab.tasks.setting_groups import GROUPS, OUTPUT

F = TypeVar("F", bound=Callable[..., Any])
#: Where the contexts of one command line remember -q.
_QUIET = "percolab.quiet"


class GroupedOption(click.Option):
    """An option that the help lists under a heading, if the command is a GroupedCommand."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Command(click.Command):
    """A command that refuses empty values, and a second one where Click takes the last one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the line; InputError for an empty value or an option that is given twice."""
        if not ctx.resilient_parsing:
            values, _, given = self.make_parser(ctx).parse_args(list(args))
            _refuse_empty(values, given)
            _refuse_repeated(given)
        return super().parse_args(ctx, args)


def _refuse_empty(values: Mapping[str, Any], given: Sequence[click.Parameter]) -> None:
    """Raise InputError for an empty text, which as the name of a file means the current folder."""
    for each in given:
        value = values.get(each.name or "")
        if "" in (value if isinstance(value, list | tuple) else (value,)):
            is_option = isinstance(each, click.Option)
            name = "/".join(each.opts) if is_option else (each.metavar or "").strip("[.]")
            raise InputError(f"{name} is empty: give it a value, or leave it out")


def _refuse_repeated(given: Sequence[click.Parameter]) -> None:
    """Raise InputError if an option is there twice, but for flags and options with many values."""
    for option in given:
        is_single = isinstance(option, click.Option) and not (option.is_flag or option.multiple)
        if is_single and given.count(option) > 1:
            name = "/".join(option.opts)
            raise InputError(f"{name} is given twice: give it once (a list of values has commas)")


class GroupedCommand(Command):
    """A command whose help has a section for each group of options, and "Options" for the rest."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "Options")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections[getattr(parameter, "group", "Options")].append(record)
        # One width for all, so that the texts of all sections begin in one column.
        width = max(len(flags) for rows in sections.values() for flags, _ in rows)
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl([(flags.ljust(width), text) for flags, text in rows])


def grouped(group: str, *flags: str, **options: Any) -> Callable[[F], F]:
    return click.option(*flags, cls=GroupedOption, group=group, **options)


as_json = grouped(OUTPUT, "--json", "as_json", is_flag=True, help="Write JSON to stdout.")


def _note_quiet(context: click.Context, param: click.Parameter, given: bool) -> bool:
    """Return whether -q is given, to the command or before it."""
    context.meta[_QUIET] = given or context.meta.get(_QUIET, False)
    return bool(context.meta[_QUIET])


#: -q, which a command takes as its argument ``quiet``, wherever on the line it is given.
quiet_option = partial(
    grouped,
    OUTPUT,
    "-q",
    "--quiet",
    is_flag=True,
    callback=_note_quiet,
    help="No progress on stderr.",
)


def _start_log(context: click.Context, param: click.Parameter, given: bool) -> None:
    """Show what the library logs on stderr, with the time of each line."""
    if not given:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Visible("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("percolab")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG)


#: -v, which every command has (:class:`percolab.cli.Commands`).
VERBOSE = GroupedOption(
    ["-v", "--verbose"],
    group=OUTPUT,
    is_flag=True,
    expose_value=False,
    callback=_start_log,
    help="Log every step on stderr, with its time.",
)
