"""What the command line prints, with control characters of names and files made visible.

A terminal obeys escape sequences, wherever they come from; a file may hold any text.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import click

# All but tab and line feed: C0, DEL and C1, and the marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return a text with its control characters written as Python writes them.

    >>> print(visible("site \x1b[31m9"))
    site \x1b[31m9
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def echo(text: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout, or stderr."""
    click.echo(visible(str(text)), err=err, nl=nl)


class Visible(logging.Formatter):
    """Formats what is logged as :func:`visible` text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return visible(super().format(record))
