"""The template of a page that needs no other file, and its parts, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from string import Template
from typing import Any

#: title is text that was escaped; the others are elements.
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 Georgia, serif; color: #111; background: #fff; max-width: 52rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { font-family: Helvetica, Arial, sans-serif; line-height: 1.25; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid #999; }
.answer { font-size: 1.25rem; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.8rem 0; }
th, td { padding: 0.2rem 0.7rem 0.2rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #ddd; overflow-wrap: break-word; }
.long td { overflow-wrap: anywhere; }
thead th { border-bottom: 1px solid #111; }
pre { font-size: 0.8rem; white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5;
      padding: 0.6rem; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; }
  h2, h3 { break-after: avoid; }
  tr { break-inside: avoid; }
  table { font-size: 8pt; }
  th, td { padding-right: 0.4rem; }
  pre { font-size: 7.5pt; background: none; border: 1px solid #ccc; }
}
</style>
</head>
<body>
<h1>$title</h1>
$answer
<h2>Study</h2>
$study
<h2>Thresholds and fits</h2>
$fits
<h2>Figures</h2>
$figures
<h2>Samples</h2>
$samples
<h2>Methods</h2>
$methods
<h2>Provenance</h2>
$provenance
</body>
</html>
""")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table, everything in it escaped; without a header the first column is one."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = []
    for row in rows:
        cells = [escape(str(cell)) for cell in row]
        first = f"<td>{cells[0]}</td>" if header else f"<th>{cells[0]}</th>"
        lines.append(f"<tr>{first}{''.join(f'<td>{cell}</td>' for cell in cells[1:])}</tr>")
    head = f"<thead><tr>{top}</tr></thead>" if header else ""
    kind = "" if header else ' class="long"'
    return f"<table{kind}>{head}<tbody>{''.join(lines)}</tbody></table>\n"


def paragraph(text: str) -> str:
    """Return a paragraph of text."""
    return f"<p>{escape(text)}</p>\n"


def preformatted(text: str) -> str:
    """Return text whose lines and columns stay as they are."""
    return f"<pre>{escape(text)}</pre>\n"
