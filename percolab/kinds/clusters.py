"""Random clusters: samples are the sweeps of Markov chains without spins, by Chayes and Machta."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds.chains import ChainsOfSpins
from percolab.labelers import new_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.measure.columns import Column, list_columns
from percolab.measure.spins import CLUSTER_SERIES
from percolab.spins.chains import Chains, compute_memory
from percolab.tasks.study import Task

_NO_SPINS = "random clusters have no spins"


class ChainsOfClusters(ChainsOfSpins):
    """Chains of open bonds at given p, in blocks like those of spins."""

    name = "clusters"
    settings = ChainsOfSpins.settings - {"update", "K"}
    refused_measures: ClassVar[Mapping[str, str]] = {
        **ChainsOfSpins.refused_measures,
        "correlation": f"a correlation length is measured for spins, and {_NO_SPINS}",
    }
    refusals: ClassVar[Mapping[str, str]] = {
        **ChainsOfSpins.refusals,
        "parts": "a sweep of {model} needs the whole lattice at once",
    }
    series: ClassVar[Sequence[int]] = CLUSTER_SERIES
    planes_are = "active sites and open bonds after the last block, 32 a word [p, plane, word]"

    def samples_identity(self, task: Task) -> dict[str, Any]:
        return {}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        return list_columns(boundary, measure, chains="clusters", wide=wide)

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        # A site is active or not, like a spin of two states; kept bonds need memory in addition.
        needs = Needs("sizes" in task.measure, len(task.p))
        own = compute_memory(name, device, extent, 2, needs, items)
        return own.plus(Memory(host=4 * (extent.num_words + extent.num_points)))

    def num_planes(self, task: Task) -> int:
        return 1 + task.structure.num_classes

    def check_planes(self, task: Task, planes: np.ndarray) -> None:
        pass

    def new_chains(self, task: Task, name: str, topology: Topology, **room: Any) -> Chains:
        labeler = new_labeler(name, topology=topology, **room)
        chains: Chains = load("spins.chayes_machta:ClusterChain")(labeler, task.draw.states)
        return chains


KIND = ChainsOfClusters()
