"""What figures of the series of chains share: what series are called, and at which p they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from percolab.analysis.statistics import Floats
from percolab.figures.study_view import StudyView
from percolab.figures.style import choose_look
from percolab.tasks.study import Study

#: The series of a chain, as legends name them.
SERIES_LABELS: Mapping[str, str] = {
    "satisfied": "energy",
    "state_squares": r"$M^2$, by the spins",
    "sum_squares": r"$S_2$, by the clusters",
}


def series_look(number: int) -> dict[str, Any]:
    """Return the colour and the marker of a series."""
    return choose_look(number, number)


def time_unit(study: Study) -> str:
    """Return what the times of series are counted in, those of measured sweeps."""
    return "updates" if study.every == 1 else f"{study.every} updates"


def nearest_p(figures: StudyView, p: Floats) -> tuple[int, str]:
    """Return which of a task's p is nearest to the transition, and whence that is known."""
    threshold, source = figures.taken_for_threshold()
    return int(np.argmin(np.abs(p - threshold))), source
