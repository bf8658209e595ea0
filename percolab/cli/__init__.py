"""The command line: one file a command, each loaded when it is called."""

import atexit
import gc
import importlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from percolab.cli.groups import VERBOSE, quiet_option
from percolab.cli.terminal import echo
from percolab.errors import InputError, UserError, nearest
from percolab.store.interrupts import choose_exit_code, handle_signals

COMMANDS = {
    "sweep": "Sample a lattice or a graph and estimate its threshold.",
    "threshold": "Find p_c of a lattice, or where given values percolate.",
    "field": "Make a Gaussian field with power-law correlations.",
    "tree": "Find the minimum spanning trees of samples.",
    "plot": "Draw stored results: curves, crossings, collapse, clusters ...",
    "report": "Write a page with figures, fits and provenance.",
    "fit": "Estimate the threshold from stored results.",
    "status": "Show what a results file contains.",
    "merge": "Merge several results files into one.",
    "export": "Write stored results as CSV, Parquet, netCDF or NumPy.",
    "label": "Label the clusters of an image, a graph or a sample.",
    "invade": "Invade a lattice or graph, always by the easiest bond or site.",
    "exact": "Find the exact probability that sites of a graph are connected.",
    "removals": "Show what is left of a graph without each single site or bond.",
    "show": "Draw the clusters of a sample or of a file of labels.",
    "studies": "List the studies that come with percolab, or show one.",
    "lattices": "List the lattices that come with percolab, or describe one.",
    "observables": "List what is measured, with definitions and units.",
    "validate": "Check this installation against exact results.",
    "bench": "Time percolab on this machine.",
    "info": "Show versions, labelers and devices.",
}

# Python looks for garbage as it ends, in all that was imported: a tenth of a second, for nothing.
atexit.register(gc.freeze)


class Commands(click.Group):
    """Loads a command when it is called, so that ``percolab --help`` imports none of them.

    What a user did wrong becomes one line on stderr and exit code 2.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return _load(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where an unknown one was given."""
        # While a line is completed, its words are not checked.
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise InputError(f"unknown command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing them, and options."""
        named = [
            CompletionItem(name, help=summary)
            for name, summary in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    @UserError.read_in_shell()
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and turn errors a user can mend into one line and exit code 2."""
        kwargs["standalone_mode"] = False
        _prepare_environment()
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            # Letters that the output's encoding lacks are escapes, where Python would fail.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with handle_signals(), _warnings_on_stderr():
                status = super().main(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:
            echo(error.format_message())
            sys.exit(2)
        except click.NoSuchOption as error:
            _fail(_describe_unknown(error))
        except click.ClickException as error:
            _fail(error.format_message().replace("is not a valid float", "is not a number"))
        except UserError as error:
            _fail(str(error))
        except MemoryError:
            _fail("not enough memory")
        except (click.Abort, KeyboardInterrupt) as error:
            echo("interrupted", err=True)
            sys.exit(choose_exit_code(error))
        except OSError as error:
            _fail(f"{error.filename or 'output'}: {error.strerror or error}")
        sys.exit(status if isinstance(status, int) else 0)


def _describe_unknown(error: click.NoSuchOption) -> str:
    """Return which commands have an option that the one at hand lacks, and how that is used."""
    import difflib

    name, context = error.option_name, error.ctx
    if context is None:
        return error.format_message()
    own = [flag.lstrip("-") for flag in _flags(context.command)]
    word = name.lstrip("-")
    longer = [each for each in own if each.endswith(f"-{word}")]
    close = longer or difflib.get_close_matches(word, own, n=1, cutoff=0.65)
    hint = f" (did you mean --{close[0]}?)" if close and len(close[0]) > 1 else ""
    texts = [f"No such option {name!r}{hint}"]
    others = [each for each in COMMANDS if name in _flags(_load(each))]
    if others:
        usage = " ".join(context.command.collect_usage_pieces(context))
        texts += [f"it is an option of {', '.join(others)}", f"use {context.command_path} {usage}"]
    return "; ".join(texts)


def _flags(command: click.Command) -> list[str]:
    """Return all names of a command's options, with their dashes."""
    return [
        flag
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    ]


def _load(name: str) -> click.Command:
    """Return a command, with -v."""
    command: click.Command = importlib.import_module(f"percolab.cli.{name}").command
    if VERBOSE not in command.params:
        command.params.append(VERBOSE)
    return command


def _prepare_environment() -> None:
    """Let BLAS have one thread: on the small matrices of fits others take more time than they save.

    Ends with one line where Numba's number of threads is none: Numba would report it at length.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "numba" not in sys.modules:  # It would read all its settings anew, those of percolab too.
        # It colours many messages that nobody reads while it compiles: a thirtieth of the time.
        os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not (threads.isdecimal() and int(threads) >= 1):
        _fail(f"NUMBA_NUM_THREADS={threads}, but it must be an integer of at least 1, or not set")


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Write warnings that the library logs to stderr, a line each."""
    logger, handler = logging.getLogger("percolab"), logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _fail(message: str) -> None:
    echo(f"percolab: error: {' '.join(message.split())}", err=True)
    sys.exit(2)


def _show_version(context: click.Context) -> None:
    from percolab.store.provenance import own_version

    echo(f"percolab, version {own_version()}")
    context.exit()


@click.command(
    cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, given: _show_version(context) if given else None,
    help="Show the version and exit.",
)
@quiet_option(expose_value=False)
def main() -> None:
    """Percolation thresholds with honest error bars, on any lattice, on CPU and GPU.

    To begin: percolab sweep --lattice honeycomb, then percolab plot results.h5.
    """


main.params.append(VERBOSE)
