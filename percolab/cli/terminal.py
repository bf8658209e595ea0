"""What the command line prints, with control characters of names and files made visible.

A terminal obeys escape sequences, wherever they come from; a file may hold any text.  Colours are
written to a terminal alone, and not where NO_COLOR is set.
"""

import logging
import os
import re
import sys
from typing import Any, TextIO

import click

# All but tab and line feed: C0, DEL and C1, and the marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


# What is coloured: how a message of an error begins, and the value of p_c.
_ERROR = re.compile(r"^percolab: error:")
_THRESHOLD = re.compile(r"(?<![\w\"'])(p_c(?: = |  +))(\d[\d.]*(?:\(\d+\))?(?:e-?\d+)?)")
#: The colour of p_c and of progress.
COLOUR = "green"


def has_colour(stream: TextIO | None) -> bool:
    """Return whether colours are written to a stream: to a terminal, unless NO_COLOR is set.

    A stream that was closed before Python began is None.
    """
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not is_plain


def colour(text: str) -> str:
    r"""Return a text in which an error and the value of p_c have colours.

    >>> colour("p_c = 0.5001(3), L = 16")
    'p_c = \x1b[32m\x1b[1m0.5001(3)\x1b[0m, L = 16'
    """
    text = _ERROR.sub(click.style(r"\g<0>", fg="red", bold=True), text)
    return _THRESHOLD.sub(r"\1" + click.style(r"\2", fg=COLOUR, bold=True), text)


def visible(text: str) -> str:
    r"""Return a text with its control characters written as Python writes them.

    >>> print(visible("site \x1b[31m9"))
    site \x1b[31m9
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def echo(text: Any = "", *, err: bool = False, nl: bool = True) -> None:
    shown = visible(str(text))
    if has_colour(sys.stderr if err else sys.stdout):
        shown = colour(shown)
    click.echo(shown, err=err, nl=nl)


class Visible(logging.Formatter):
    """Formats what is logged as :func:`visible` text."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
