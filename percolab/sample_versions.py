"""Sample versions: what was wrong with earlier ones, and how much that may have moved a result.

Version 1 (until 0.1.0): bond b of a word read bit b of every XORWOW output, and the recurrence ties
the low bits of its outputs together: bonds 0 and 2 of a word were correlated by up to 2e-3.  Such
files stay readable, but cannot be continued.  docs/randomness.md tells the whole story.
"""

from __future__ import annotations

from percolab.storage import Results
from percolab.study import SAMPLE_VERSION
from percolab.toml_input import InputError


def check_can_continue(results: Results, path: object) -> None:
    """Raise InputError if a file's samples are of an earlier version, which is sampled no more."""
    version = results.study.sample_version
    if version != SAMPLE_VERSION:
        raise InputError(
            f"{path}: has samples of version {version}, and sampling goes on in version "
            f"{SAMPLE_VERSION} only: choose another --out (docs/randomness.md says why)"
        )
