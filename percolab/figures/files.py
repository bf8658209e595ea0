"""How a figure is written: as a file, or as a part of a page; equal figures give equal bytes."""

import io
import re
from collections.abc import Mapping
from pathlib import Path

from percolab.figures.style import Figure
from percolab.store.output_files import check_output, check_suffix, write_output

#: What `save_figure` writes, with the metadata that would otherwise hold the date or version; the
#: program's name is what a figure of percolab's is recognised by when it is written again.
FORMATS: Mapping[str, Mapping[str, str | None]] = {
    ".png": {"Software": "percolab"},
    ".pdf": {"CreationDate": None, "Creator": "percolab", "Producer": None},
    ".svg": {"Date": None, "Creator": "percolab"},
}


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png (300 dpi), .pdf or .svg; equal figures give equal bytes.

    The file appears complete or not at all.  InputError: another suffix, or a file that cannot be
    written or holds something else than such a figure.
    """
    import matplotlib

    suffix = Path(path).suffix.lower()
    check_suffix(path, FORMATS, "a figure")
    check_output(path)
    buffer = io.BytesIO()
    # TrueType (42) fonts are what journals take, and what other programs can edit.
    with matplotlib.rc_context({"svg.hashsalt": "percolab", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=suffix[1:], dpi=300, metadata=dict(FORMATS[suffix]))
    write_output(path, buffer.getvalue())


def svg_text(figure: Figure, name: str) -> str:
    """Return a figure as an <svg> element to stand in a page with others.

    name: letters and digits, put before every id, which are unique in a page.  Text is drawn as
    outlines, and comments are left out, so that nothing but numbers reaches the page.
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
