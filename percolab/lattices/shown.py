"""How objects show themselves: in one line at a prompt, as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

#: Values of a list that are written out; of a longer one the first two and the last.
_WRITTEN_OUT = 6


class Shown:
    """An object that tells the few facts that one wants to see of it, not all that it holds."""

    def _facts(self) -> dict[str, Any]:
        """Return what is told of it by name, the most important first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """The facts in one line."""
        own = type(self).__name__
        told = [
            str(value) if name == own.lower() else f"{name} {value}"
            for name, value in self._facts().items()
        ]
        return f"<{own} {'; '.join(told)}>"

    def _repr_html_(self) -> str:
        """Return the facts as a table of two columns."""
        return html_table(type(self).__name__, self._facts())


def html_table(title: str, facts: dict[str, Any]) -> str:
    """Return a table of two columns in HTML; everything in it is escaped.

    >>> html_table("Answer", {"p_c": "0.5(1)"})
    '<table><caption>Answer</caption><tr><th>p_c</th><td>0.5(1)</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def few(values: Sequence[Any]) -> str:
    """Return values in a list, a long one with its middle left out.

    >>> few((8, 16)), few(range(9))
    ('8, 16', '0, 1, ... 8')
    """
    told = [f"{value:.8g}" if isinstance(value, float) else str(value) for value in values]
    if len(told) > _WRITTEN_OUT:
        told = [*told[:2], f"... {told[-1]}"]
    return ", ".join(told)


def printable(text: str) -> str:
    """Return text of a user's file as a terminal may show it: without control characters.

    >>> printable("a\\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(one if one.isprintable() else "?" for one in text)


def counted(number: int, word: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"
