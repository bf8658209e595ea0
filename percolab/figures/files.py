"""Writing a figure, as a file or as a part of a page; equal figures give equal bytes."""

import io
import re
from collections.abc import Mapping
from pathlib import Path

from percolab.figures.style import Figure
from percolab.store.output_files import check_output, check_suffix, write_output

#: Formats of `save_figure`, with the metadata that would otherwise contain the date or version; by
#: the program's name in it a figure of percolab is recognised before it is replaced.
FORMATS: Mapping[str, Mapping[str, str | None]] = {
    ".png": {"Software": "percolab"},
    ".pdf": {"CreationDate": None, "Creator": "percolab", "Producer": None},
    ".svg": {"Date": None, "Creator": "percolab"},
}


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png (300 dpi), .pdf or .svg; equal figures give equal bytes.

    The file is written completely or not at all.  InputError: another suffix, a file that cannot be
    written, or an existing file that is not a figure of percolab.
    """
    import matplotlib

    suffix = Path(path).suffix.lower()
    check_suffix(path, FORMATS, "a figure")
    check_output(path)
    buffer = io.BytesIO()
    # Journals require TrueType (42) fonts, and other programs can edit them.
    with matplotlib.rc_context({"svg.hashsalt": "percolab", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=suffix[1:], dpi=300, metadata=dict(FORMATS[suffix]))
    write_output(path, buffer.getvalue())


def svg_text(figure: Figure, name: str) -> str:
    """Return a figure as an <svg> element for a page with several figures.

    name: letters and digits, prefixed to every id to make ids unique in the page.  Text is drawn as
    outlines, and comments are removed, so the page gets nothing but numbers.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "percolab", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=dict(FORMATS[".svg"]))
    text = re.sub(r"<!--.*?-->\s*", "", buffer.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for mark in (' id="', 'href="#', "url(#"):
        text = text.replace(mark, f"{mark}{name}-")
    return text
