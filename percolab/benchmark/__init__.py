"""Timing of a sample's stages on one device, beside the machine's own copy bandwidth and peers.

timer.py    device events or the CPU's clock, and the bandwidth of a copy
stages.py   what is timed, and the bytes that each stage has to move
peers.py    the same work by scipy and cupyx
records.py  one lattice and size, or one graph, timed at several p with several labelers
benchmark.py  a whole benchmark and its document
spin_times.py  whole sweeps of spins
figure.py   time per site against N
"""

from percolab.benchmark.benchmark import Benchmark, document_of
from percolab.benchmark.figure import plot_time_per_site
from percolab.benchmark.peers import PeerTime
from percolab.benchmark.records import (
    Place,
    StageTime,
    compared,
    places_of,
    probability_of,
    time_stages,
    time_topology,
)
from percolab.benchmark.stages import STAGES
from percolab.benchmark.timer import copy_bandwidth, timer_of

__all__ = [
    "STAGES",
    "Benchmark",
    "PeerTime",
    "Place",
    "StageTime",
    "compared",
    "copy_bandwidth",
    "document_of",
    "places_of",
    "plot_time_per_site",
    "probability_of",
    "time_stages",
    "time_topology",
    "timer_of",
]
