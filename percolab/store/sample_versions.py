"""Sample versions: what was wrong with earlier ones, and how much that may have moved a result.

Version 1 (until 0.1.0): bond b of a word read bit b of every XORWOW output, and the recurrence ties
the low bits of its outputs together: bonds 0 and 2 of a word were correlated by up to 2e-3.  Such
files stay readable, but cannot be continued.  docs/randomness.md tells the whole story.
"""

from __future__ import annotations

from percolab.errors import InputError
from percolab.lattices.lattice import load_lattice
from percolab.store.results import Results
from percolab.tasks.study import SAMPLE_VERSION, Study

#: By how much the correlated bonds of version 1 moved p_c of bond percolation, by linear response,
#: by the name of the library's lattice: positive where the measured value is too high.
THRESHOLD_SHIFTS = {"cubic": "+3.4(2)e-7", "bcc": "+1.1(4)e-6", "fcc": "+0.6(4)e-6"}


def warning_of(results: Results) -> str | None:
    """Return one line on what was wrong with the samples of a file, or None if nothing was.

    Philox was free of it in version 1, too.
    """
    study = results.study
    if study.sample_version != 1 or study.rng == "philox":
        return None
    # What is drawn for sites comes from the same words.
    drawn = {"bond": "bonds", "site": "sites"}.get(study.model, "bonds and sites")
    return (
        f"sample version 1 (percolab until 0.1.0): {drawn} of one random word were correlated, "
        f"which moved p_c by {_shift_of(study)} (docs/randomness.md)"
    )


def _shift_of(study: Study) -> str:
    """Return by how much version 1 moved a p_c, in words."""
    if study.model != "bond":
        return "an amount of the order of 1e-6, not worked out for this model"
    for name, shift in THRESHOLD_SHIFTS.items():
        if study.structure.digest == load_lattice(name).digest:
            return f"{shift}, to be subtracted"
    return "an amount of the order of 1e-6, not worked out for this lattice"


def check_can_continue(results: Results, path: object) -> None:
    """Raise InputError if a file's samples are of an earlier version, which is sampled no more."""
    version = results.study.sample_version
    if version != SAMPLE_VERSION:
        raise InputError(
            f"{path}: has samples of version {version}, and sampling goes on in version "
            f"{SAMPLE_VERSION} only: choose another --out (docs/randomness.md says why)"
        )
