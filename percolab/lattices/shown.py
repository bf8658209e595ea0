"""Display of results: tables as text, HTML, JSON and CSV; objects on one line or in a notebook."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

#: The longest list that is written out; of a longer one, the first two values and the last are.
_WRITTEN_OUT = 6


@dataclass(frozen=True)
class Table:
    """Rows under headings, () if there are none, and notes below them.

    >>> print(Table(("L", "p_c"), [(8, "0.50(1)"), (16, "0.501(3)")], ["few samples"]).to_text())
    L   p_c
    8   0.50(1)
    16  0.501(3)
    <BLANKLINE>
    note: few samples
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def lines(self) -> list[str]:
        """Return headings and rows as lines of text, every column as wide as its widest cell."""
        rows = [[str(cell) for cell in row] for row in (self.headings, *self.rows) if row]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]

    def to_text(self) -> str:
        """Return the table for a terminal, its notes below an empty line."""
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([*self.lines(), *([""] if notes and self.rows else []), *notes])

    def to_html(self, caption: str) -> str:
        """Return the table in HTML, all text escaped; cells of the first column are headings.

        >>> Table((), [("p_c", "0.5(1)")]).to_html("Answer")
        '<table><caption>Answer</caption><tr><th>p_c</th><td>0.5(1)</td></tr></table>'
        """
        lines = [f"<caption>{escape(caption)}</caption>"]
        if self.headings:
            names = "".join(f"<th>{escape(name)}</th>" for name in self.headings)
            lines.append(f"<tr>{names}</tr>")
        for name, *cells in self.rows:
            own = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
            lines.append(f"<tr><th>{escape(str(name))}</th>{own}</tr>")
        return f"<table>{''.join(lines)}</table>"

    def to_json(self) -> list[dict[str, Any]]:
        return [dict(zip(self.headings, row, strict=True)) for row in self.rows]


class Shown:
    """An object whose repr shows a few facts, not all of its contents."""

    def _facts(self) -> dict[str, Any]:
        """Return the facts by name, the most important first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        own = type(self).__name__
        facts = [
            str(value) if name == own.lower() else f"{name} {value}"
            for name, value in self._facts().items()
        ]
        return f"<{own} {'; '.join(facts)}>"

    def _repr_html_(self) -> str:
        """Return the facts as a table of two columns."""
        return Table((), list(self._facts().items())).to_html(type(self).__name__)


def few(values: Sequence[Any]) -> str:
    """Return values in a list, a long one with its middle left out.

    >>> few((8, 16)), few(range(9))
    ('8, 16', '0, 1, ... 8')
    """
    texts = [f"{value:.8g}" if isinstance(value, float) else str(value) for value in values]
    if len(texts) > _WRITTEN_OUT:
        texts = [*texts[:2], f"... {texts[-1]}"]
    return ", ".join(texts)


def printable(text: str) -> str:
    """Return text of a user's file with control characters replaced, safe for a terminal.

    >>> printable("a\\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(one if one.isprintable() else "?" for one in text)


def counted(number: int, word: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV, an empty field where there is no number.

    An apostrophe precedes text that a spreadsheet would take for a formula, except for numbers.

    >>> print(csv_text(["name", "mean"], [["=1+1", -0.5], ["-3", None]]), end="")
    name,mean
    '=1+1,-0.5
    -3,
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_cell, header))
    writer.writerows(map(_cell, row) for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula and not is_number(value) else value


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
