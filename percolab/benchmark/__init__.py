"""Timing of a sample's stages on one device, beside the machine's own copy bandwidth and peers.

stages.py   what is timed, and the bytes that each stage has to move
timer.py    device events or the CPU's clock, and the bandwidth of a copy
records.py  one lattice and size timed at several p with several labelers
peers.py    the same work by scipy and cupyx
figure.py   time per site against N
"""

from percolab.benchmark.records import (
    Place,
    StageTime,
    compared,
    places_of,
    probability_of,
    time_lattice,
    time_stages,
)
from percolab.benchmark.stages import STAGES
from percolab.benchmark.timer import timer_of

__all__ = [
    "STAGES",
    "Place",
    "StageTime",
    "compared",
    "places_of",
    "probability_of",
    "time_lattice",
    "time_stages",
    "timer_of",
]
