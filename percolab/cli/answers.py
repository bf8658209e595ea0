"""What commands write about a study, by its kind.  A new kind has a line in :data:`ANSWERS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from percolab.tasks.study import Study


@dataclass(frozen=True)
class Answers:
    """What commands write about a kind of study.

    fit:    place of what ``percolab fit`` answers, (results, options): for JSON, and as text
    end:    place of what ``percolab sweep`` ends with, (results, target error)
    scales: whether the fit needs sizes that scale, which a graph does not have
    p:      where its p come from, "" where they are given or found by a pilot
    grid:   what ``percolab status`` has in place of p, "" where it has p
    """

    fit: str
    end: str
    scales: bool = True
    p: str = ""
    grid: str = ""


_TRANSITION = Answers("cli.fit:fit_transition", "cli.sweep:write_transition")
_FIT, _END = "cli.fit:fit_probability", "cli.sweep:write_threshold"
#: By the name of the kind.
ANSWERS = {
    "grid": Answers(_FIT, _END),
    "threshold": Answers(_FIT, _END, p="of every sample's threshold", grid="thresholds"),
    "microcanonical": Answers(_FIT, _END, p="any", grid="any"),
    "chains": _TRANSITION,
    "clusters": _TRANSITION,
    "trees": Answers(
        "cli.fit:fit_tree_means",
        "cli.sweep:write_trees",
        scales=False,
        p="of all bonds, for trees",
        grid="trees",
    ),
}


def find_answers(study: Study) -> Answers:
    return ANSWERS[study.kind.name]
