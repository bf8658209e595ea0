"""What a user can mend: errors whose text is the one line to read, and hints at known words."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class InputError(ValueError):
    """Input that cannot be used; its text is the one line a user should read."""


def nearest(word: str, known: Collection[str]) -> str:
    """Return a hint naming the known word nearest to ``word``, or listing them all."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"


class AnalysisError(ValueError):
    """The data cannot answer the question; the message is one line that says what is missing."""
