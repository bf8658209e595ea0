"""Whole sweeps of spins timed: open bonds, clusters, rows on the host, and new spins.

Lattices are periodic; chains start at random and forget that before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from percolab.benchmark.calls import Setting
from percolab.benchmark.timer import Timer, spread, time_runs
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.labelers import labeler_class, serving_labeler
from percolab.lattices.lattice import Lattice
from percolab.spins.chains import new_chains
from percolab.spins.words import Chain

#: Spins of all chains of one timed run times its sweeps, and those that it takes at least.
_SPINS_PER_RUN = {"cpu": 2**22, "cuda": 2**31}
_LEAST_SWEEPS, _MOST_SWEEPS = 8, 1024
#: Sweeps before anything is timed.
_BURN_IN = 64


@dataclass(frozen=True)
class SweepTime:
    """The time of one sweep of all chains: median, least and most over ``runs`` runs.

    chains: that are swept together.  sweeps: of a run.  ratio: of the coupling to the critical one,
    None where p was given.
    """

    lattice: str
    L: int
    num_sites: int
    model: str
    update: str
    p: float
    ratio: float | None
    labeler: str
    device: str
    chains: int
    sweeps: int
    runs: int
    seconds_per_sweep: float
    seconds_per_sweep_min: float
    seconds_per_sweep_max: float

    @property
    def nanoseconds_per_spin(self) -> float:
        """Time of a sweep over the spins of all chains."""
        return 1e9 * self.seconds_per_sweep / self.num_sites / self.chains

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"nanoseconds_per_spin": self.nanoseconds_per_spin}


def time_sweeps(timer: Timer, lattice: Lattice, size: int, setting: Setting) -> Iterator[SweepTime]:
    """Time sweeps on a periodic lattice of size L; records are yielded as soon as they are there.

    On the CPU one chain is swept at a time.  InputError: no such size or labeler, or no p given
    where no transition is published.
    """
    boundary = ("periodic",) * lattice.dimension
    lattice.check_size(size, boundary)
    topology, kind = lattice.topology(lattice.shape(size), boundary), timer.device.kind
    for labeler in setting.labelers:
        labeler_class(labeler, kind)
        rule = setting.update.rule(setting.model.states)
        swept = new_chains(labeler, kind, topology, rule, capacity=setting.chains)
        count = min(setting.chains, swept.capacity)
        for place in setting.choose_places(lattice, 1.0):
            threshold = np.uint64(p_to_threshold(place.p))
            seeds = np.uint64(1), np.uint64(2), np.uint64(3)
            keys = [Chain(*seeds, np.uint64(number), threshold) for number in range(count)]
            swept.begin(XORWOW, keys, [True] * count)
            swept.advance(_BURN_IN)
            sweeps = _SPINS_PER_RUN[kind] // (topology.num_points * count)
            sweeps = min(max(sweeps, _LEAST_SWEEPS), _MOST_SWEEPS)
            # Whole captured calls.
            sweeps -= sweeps % _LEAST_SWEEPS
            times = time_runs(timer, partial(swept.advance, sweeps), setting.runs) / sweeps
            yield SweepTime(
                lattice=lattice.name,
                L=size,
                num_sites=topology.num_sites,
                model=str(setting.model),
                update=str(setting.update),
                p=place.p,
                ratio=place.ratio,
                labeler=serving_labeler(labeler, kind, topology),
                device=str(timer.device),
                chains=count,
                sweeps=sweeps,
                runs=setting.runs,
                **spread("seconds_per_sweep", times),
            )
