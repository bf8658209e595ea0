"""Chains on a device: started, swept and measured; many at once if the device has room.

There is one class for the CPU and one for CUDA; both take any labeler and give the same numbers.
A further class for CUDA sweeps lattices that fit in the shared memory of one block.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch import batch_class
from percolab.bonds.model import BOND
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.labelers import labeler_class, new_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.spins.update import UpdateRule
from percolab.spins.words import Chain


class Chains(Protocol):
    """Up to ``capacity`` chains, all of one topology and swept by one rule."""

    labeler: Any
    capacity: int

    def begin(self, generator: int, chains: list[Chain], random: list[bool]) -> None:
        """Start chains: each with all spins 0, or with random ones."""

    def resume(self, planes: NDArray[np.uint32], sweep: int) -> None:
        """Continue, after :meth:`begin`, from spins that :meth:`copy_planes` returned at a sweep.

        planes: uint32 (chains, planes, num_words).  sweep: number of sweeps since the start.
        """

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Do sweeps; return their rows (chains, sweeps, row width) and numbers of spins.

        The numbers are (chains, sweeps, SPIN_ROW_WIDTH), with zeros in the row's columns.
        """

    def skip(self, sweeps: int) -> None:
        """Do sweeps without measuring; the spins are those of :meth:`advance`."""

    def rows_at(self, thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the rows of the next sweep, with a given threshold in each chain.

        No spin changes.  thresholds: uint64 (chains,).  Rows: int64 (chains, row width).
        """

    def advance_at(self, thresholds: NDArray[np.uint64]) -> None:
        """Do one sweep with a given threshold in each chain, uint64 (chains,)."""

    def copy_planes(self) -> NDArray[np.uint32]:
        """Return the spins, uint32 (chains, planes, num_words)."""


_CHAINS = {"cpu": "spins.chain_cpu:CpuChain", "cuda": "spins.chains_cuda:CudaChains"}


def compute_memory(
    name: str, kind: str, extent: Extent, states: int, needs: Needs, entries: int = 1
) -> Memory:
    """Return the total memory of chains, their batch and their labeler."""
    needs = needs._replace(labels=True)
    batch = batch_class(kind).memory(extent, BOND, entries)
    labels = labeler_class(name, kind).memory(extent, needs, entries)
    chains = load(_CHAINS[kind]).memory(extent, states, entries)
    total: Memory = batch.plus(labels).plus(chains)
    return total


def new_chains(
    name: str | None,
    kind: str,
    topology: Topology,
    rule: UpdateRule,
    *,
    capacity: int = 1,
    tally: bool = False,
) -> Chains:
    """Return chains on a kind of device, "cpu" or "cuda", with a new labeler.

    Arguments as for :func:`percolab.labelers.new_labeler`.
    """
    labeler = new_labeler(name, kind, topology, capacity=capacity, tally=tally)
    chosen = load(_CHAINS[kind])
    if kind == "cuda":
        from percolab.spins.one_block import OneBlockChains, is_one_block

        chosen = OneBlockChains if is_one_block(labeler, rule) else chosen
    chains: Chains = chosen(labeler, rule)
    return chains
