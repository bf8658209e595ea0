"""The Bethe lattice: a centre with z neighbours, each with z - 1 further ones, shell after shell.

A finite one, k shells around the centre, is a Cayley tree.  Komura (2016), section 4, labels it
with the sites numbered in two ways: *standard*, from the centre outwards, shell after shell, the
children of a site side by side; *random*, by a permutation of these numbers.
"""

import hashlib
import json
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from percolab.errors import InputError, nearest
from percolab.lattices.graph import TERMINALS, graph_topology
from percolab.lattices.lattice import Threshold
from percolab.lattices.topology import MAX_POINTS, Topology

NUMBERINGS = ("standard", "random")


@dataclass(frozen=True)
class BetheLattice:
    """The Bethe lattices of one coordination number z and one numbering; L counts the shells.

    A sample spans if its centre is joined to the outermost shell.  More than half of the sites are
    in that shell however large L is, so finite-size scaling does not hold, and the curves R_L(p)
    of two sizes do not cross.

    InputError: z below 3, or an unknown numbering
    """

    #: One axis, from the centre to the outermost shell, its end layers a pair of terminals.
    dimension: ClassVar[int] = 1
    boundaries: ClassVar[tuple[str, ...]] = (TERMINALS,)
    is_scalable: ClassVar[bool] = False

    coordination_number: int = 3
    numbering: str = NUMBERINGS[0]

    def __post_init__(self) -> None:
        if type(self.coordination_number) is not int:
            raise ValueError(f"a coordination number is an integer: {self.coordination_number!r}")
        bethe_num_sites(1, self.coordination_number)
        site_numbers(1, self.numbering)

    @property
    def name(self) -> str:
        """Its name, "bethe:3" or "bethe:3:random"."""
        more = "" if self.numbering == NUMBERINGS[0] else f":{self.numbering}"
        return f"bethe:{self.coordination_number}{more}"

    @property
    def title(self) -> str:
        more = "" if self.numbering == NUMBERINGS[0] else f", {self.numbering} numbering"
        return f"Bethe lattice, z = {self.coordination_number}{more}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.record()).encode()).hexdigest()[:16]

    @property
    def num_classes(self) -> int:
        """The number of bond classes: in random numbering a site may own all z of its bonds."""
        return 1 if self.numbering == NUMBERINGS[0] else self.coordination_number

    def shape(self, size: int) -> tuple[int, ...]:
        """Return the number of sites of ``size`` shells, a tuple; InputError if it is too large."""
        return (bethe_num_sites(size, self.coordination_number),)

    def check_size(self, size: int, boundary: tuple[str, ...]) -> None:
        bethe_num_sites(size, self.coordination_number)

    def topology(self, shape: tuple[int, ...], boundary: tuple[str, ...] | None = None) -> Topology:
        """Return the topology with this number of sites; InputError if there are too many."""
        shells = next(k for k in count(1) if self.shape(k)[0] >= shape[0])
        z, numbering = self.coordination_number, self.numbering
        return bethe_topology(shells, coordination_number=z, numbering=numbering)

    def threshold(self, model: str = "bond") -> Threshold | None:
        """Return 1/(z - 1), p_c of the infinite lattice, for bonds and sites; else None."""
        if model not in ("bond", "site"):
            return None
        return Threshold(
            model=model,
            value=1 / (self.coordination_number - 1),
            error=0.0,
            expression=f"1/{self.coordination_number - 1}",
            reference="M. E. Fisher and J. W. Essam, J. Math. Phys. 2, 609 (1961)",
            cite="Fisher and Essam 1961",
        )

    def record(self) -> dict[str, object]:
        z, numbering = self.coordination_number, self.numbering
        return {"kind": "bethe", "coordination_number": z, "numbering": numbering}


def bethe_lattice(name: str) -> BetheLattice:
    """Return the lattice that "bethe", "bethe:z" or "bethe:z:numbering" names.

    InputError: no such name.

    >>> bethe_lattice("bethe:4").name
    'bethe:4'
    """
    start, *parts = name.split(":")
    if start != "bethe" or len(parts) > 2 or not all(part.isdecimal() for part in parts[:1]):
        raise InputError(
            f"lattice {name!r}, but a Bethe lattice is bethe, bethe:z or bethe:z:random, with z "
            "its coordination number"
        )
    z = int(parts[0][:12]) if parts else 3
    return BetheLattice(z, *parts[1:])


def bethe_topology(
    shells: int, *, coordination_number: int = 3, numbering: str = "standard", seed: int = 0
) -> Topology:
    """Return the topology of a Bethe lattice with this many shells around its centre.

    A sample spans if its centre is joined to the outermost shell: these are the end layers of axis
    0.  A bond belongs to the larger of its two sites, so in standard numbering every site but the
    centre, site 0, owns one bond, and in random numbering a site owns up to z.

    seed: for the permutation, from 0 to 2^64 - 1; standard numbering does not use it
    InputError: fewer than 1 shell, a coordination number below 3, too many sites, or an unknown
    numbering

    >>> bethe_topology(1).bonds().tolist()
    [[0, 1, 0], [0, 2, 0], [0, 3, 0]]
    """
    num_sites = bethe_num_sites(shells, coordination_number)
    inner = bethe_num_sites(shells - 1, coordination_number) if shells > 1 else 1
    numbers = site_numbers(num_sites, numbering, seed)
    bonds = np.empty((num_sites - 1, 2), np.int32)
    bonds[:, 0] = numbers[1:]
    bonds[:, 1] = numbers[parents(num_sites, coordination_number)]
    return graph_topology(num_sites, bonds, source=numbers[:1], target=numbers[inner:])


def bethe_num_sites(shells: int, coordination_number: int = 3) -> int:
    """Return the number of sites of k shells: 1 + z ((z - 1)^k - 1) / (z - 2).

    InputError as for :func:`bethe_topology`.

    >>> bethe_num_sites(17) == 3 * 2**17 - 2
    True
    """
    if coordination_number < 3:
        raise InputError(
            f"coordination number {coordination_number}: a Bethe lattice needs at least 3"
        )
    if shells < 1:
        raise InputError(f"{shells} shells, but a Bethe lattice has at least 1")
    num_sites, in_shell = 1, coordination_number
    for _ in range(shells):
        num_sites += in_shell
        in_shell *= coordination_number - 1
        if num_sites > MAX_POINTS:
            raise InputError(
                f"{shells} shells with coordination number {coordination_number}: more than "
                f"the {MAX_POINTS} sites that can be labeled"
            )
    return num_sites


def site_numbers(num_sites: int, numbering: str = "standard", seed: int = 0) -> np.ndarray:
    """Return the number, int32, of every site in the order of standard numbering.

    A random numbering sorts the sites by the outputs of Philox 4x64 (Salmon et al. 2011) with the
    seed as its key, so that it is the same on every machine and with every version of NumPy.
    """
    if numbering not in NUMBERINGS:
        raise InputError(f"unknown numbering {numbering!r}; {nearest(numbering, NUMBERINGS)}")
    if not 0 <= seed < 2**64:
        raise InputError(f"seed = {seed}, but it must be an integer from 0 to 2^64 - 1")
    if numbering == "standard":
        return np.arange(num_sites, dtype=np.int32)
    outputs = np.random.Philox(key=seed).random_raw(num_sites)
    return np.argsort(outputs, kind="stable").astype(np.int32)


def parents(num_sites: int, coordination_number: int) -> np.ndarray:
    """Return the inner neighbour, int32, of sites 1 ... num_sites - 1 in standard numbering.

    Site j > 0 has the children j (z - 1) + 2 ... j (z - 1) + z, and the centre 1 ... z.
    """
    before = np.arange(-1, num_sites - 2, dtype=np.int32)
    before[:1] = 0
    return before // np.int32(coordination_number - 1)


def reach_probability(p: float, shells: int, *, coordination_number: int = 3) -> float:
    """Return the exact probability that the centre's cluster reaches the outermost shell.

    Let q_m be the probability that a site other than the centre is joined to one of its
    descendants m shells further out; q_0 = 1.  Each of its z - 1 children takes it there if the
    bond to the child is open and the child is joined to its own descendants m - 1 shells on, with
    probability p q_{m-1}; the children's subtrees share no bond, so they fail independently:

        q_m = 1 - (1 - p q_{m-1})^(z-1).

    The centre has z children, so it reaches shell k with probability 1 - (1 - p q_{k-1})^z.

    >>> reach_probability(0.5, 1)
    0.875
    """
    onwards = 1.0
    for _ in range(shells - 1):
        onwards = 1.0 - (1.0 - p * onwards) ** (coordination_number - 1)
    return 1.0 - (1.0 - p * onwards) ** coordination_number
