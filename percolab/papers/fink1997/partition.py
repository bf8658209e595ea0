"""The partition "boxes": every rank has a box of the lattice, or one rank has all.

Rank 0 and the others communicate as :mod:`percolab.parts.ranks` says; a :class:`BoxJob` makes them
merge boxes as :mod:`percolab.papers.fink1997.quad` does.  After every row each rank sends to rank 0
what it did.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.papers.fink1997.boxes import (
    Blocks,
    Boundary,
    Vector,
    blocks_from_text,
    row_from_boxes,
)
from percolab.papers.fink1997.quad import BUBBLES, Boxes, Merge, list_stages
from percolab.parts.interface import Interface, Row
from percolab.parts.partitions import Available, StudyLattices
from percolab.parts.parts import Whole
from percolab.parts.ranks import (
    AnyJob,
    Member,
    RankStep,
    check_memory,
    split_lattice_from_record,
    split_lattice_to_record,
)
from percolab.parts.raster import SampleKey
from percolab.parts.transport import Transport


@dataclass(frozen=True)
class BoxJob:
    """The lattice that ranks measure samples of, a box each, or one rank all boxes.

    counts: boxes along each axis; merge: how their boundaries are merged; ranks: as many as boxes,
    or one.  tally: whether sizes are tallied

    Errors are those of :class:`percolab.papers.fink1997.quad.Boxes`, as soon as they are known.
    """

    whole: Whole
    counts: Vector
    merge: Merge
    ranks: int
    tally: bool = False

    def __post_init__(self) -> None:
        self.merge.check(self.blocks)

    @property
    def blocks(self) -> Blocks:
        """How the lattice is cut."""
        return Blocks(self.whole, self.counts)

    @property
    def most_memory(self) -> Memory:
        """The memory of a rank, as if all bonds between boxes were open."""
        return Boxes.memory(self.blocks, is_rank=self.ranks > 1)

    def member(self, transport: Transport) -> Member:
        """Return this rank, ready; InputError if there is no memory."""
        return _BoxMember(transport, self)

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it, for the other ranks."""
        own = {"boxes": self.counts, "merge": str(self.merge), "ranks": self.ranks}
        own |= {"tally": self.tally, "partition": "boxes"}
        return split_lattice_to_record(self.whole) | own


class _BoxMember:
    """One of the ranks that have boxes, ready for any number of samples; one thread at a time."""

    leaves_rows = False

    def __init__(self, transport: Transport, job: BoxJob) -> None:
        self.job: AnyJob = job
        self.stages = len(list_stages(job.counts))
        self._transport = transport
        check_memory(job, transport, Device("cpu"))
        others = transport if transport.size > 1 else None
        self._boxes = Boxes(job.whole, job.counts, job.merge, tally=job.tally, transport=others)

    def measure(
        self,
        draw: SampleKey,
        left: Callable[[], bool],
        *,
        leave: Callable[[], None] | None = None,
        done: Callable[[int], None] = lambda boxes: None,
    ) -> tuple[Boundary | None, list[RankStep]]:
        """Return the boundary of all boxes, where this rank has it, and on rank 0 all steps.

        A row that was begun is not left.
        """
        steps: list[RankStep] = []
        boundary = self._boxes.merged(draw, steps, done)
        if self._transport.rank:
            self._transport.send(0, [np.array(steps, np.float64)])
            return boundary, steps
        for rank in range(1, self._transport.size):
            answer = self._transport.receive(rank)
            assert answer is not None
            steps += [RankStep(*map(int, own[:3]), *own[3:]) for own in answer[0].tolist()]
        return boundary, steps

    def make_row_of_parts(self, boundary: Any) -> Row:
        """Return the row of a sample from the boundary of all boxes."""
        return row_from_boxes(boundary)


@dataclass(frozen=True)
class BoxDivision:
    """Lattices cut into boxes.

    counts: boxes along each axis; merge: how they are merged; ranks: as many, or one with all
    """

    counts: Vector
    merge: Merge
    ranks: int

    @property
    def stages(self) -> int:
        """Stages of merging."""
        return len(list_stages(self.counts))

    @property
    def extra_stages(self) -> dict[int, str]:
        """The exchange of bubbles, if there is one."""
        return {BUBBLES: "bubbles"} if self.merge.bubbles else {}

    def job(self, size: int, whole: Whole, *, tally: bool, p: float) -> BoxJob:
        """Return what the ranks measure samples of, of the lattice of a size."""
        return BoxJob(whole, self.counts, self.merge, self.ranks, tally)

    def parts_of_first(self, size: int) -> int:
        """Return how many boxes rank 0 measures of a sample."""
        return 1 if self.ranks > 1 else prod(self.counts)

    def continues(self, size: int, rank: int, interface: Interface) -> bool:
        """Return False: a box is measured as a whole."""
        return False

    def run_record(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def split_record(self) -> dict[str, Any]:
        """Return how samples are cut and merged, as text."""
        return {"blocks": "x".join(map(str, self.counts)), "merge": str(self.merge)}

    def warm_up(self, whole: Whole, draw: SampleKey, *, tally: bool) -> None:
        """Measure a sample in few boxes, or in one if it cannot be cut into them."""
        for counts in (tuple(min(count, 2) for count in self.counts), (1,) * len(self.counts)):
            with suppress(InputError):
                Boxes(whole, counts, self.merge).row(draw)
                return


class BoxPartition:
    """Cuts lattices into boxes, by ``blocks`` and ``merge``, options."""

    def count_ranks(
        self, lattices: StudyLattices, options: Mapping[str, Any], available: Available
    ) -> int:
        """Return how many ranks there are: as many as boxes, or one; InputError otherwise."""
        counts, merge = _read_options(options)
        option = "blocks" if counts is not None else f"merge {merge}"
        if available.device.is_shared:
            raise InputError(f"{option}: boxes are labeled on the CPU alone; use --device cpu")
        if options.get("slabs") is not None:
            raise InputError(f"{option}: a box is measured as a whole; leave out --slabs")
        if counts is None:
            return self._count_along_last(list(lattices.wholes.values()), merge, available)
        ranks = prod(counts) if available.ranks is None else available.ranks
        if ranks not in (1, prod(counts)):
            raise InputError(
                f"{ranks} ranks, but blocks {'x'.join(map(str, counts))} are {prod(counts)} boxes: "
                "each rank has one, or one has all"
            )
        available.check_local(ranks)
        return ranks

    def _count_along_last(self, wholes: Sequence[Whole], merge: Merge, available: Available) -> int:
        """Return how many boxes, and ranks, there are along the last axis alone."""
        ranks = available.ranks
        if ranks is None:
            ranks = _usual_boxes(wholes, merge, available.usual)
        for whole in wholes:
            if ranks > whole.num_layers:
                raise InputError(f"{ranks} ranks, but there are {whole.num_layers} layers")
        available.check_local(ranks)
        return ranks

    def divide(
        self, lattices: StudyLattices, options: Mapping[str, Any], ranks: int, available: Available
    ) -> BoxDivision:
        """Return the boxes of all ranks; InputError: they cannot be cut so, or no memory."""
        counts, merge = _read_options(options)
        if counts is None:
            axes = len(next(iter(lattices.wholes.values())).shape)
            counts = (*(1,) * (axes - 1), ranks)
        division, local = BoxDivision(counts, merge, ranks), available.count_local(ranks)
        for size, whole in lattices.wholes.items():
            try:
                job = division.job(size, whole, tally=False, p=1.0)
            except InputError as error:
                raise InputError(f"L = {size}: {error}") from error
            needed, free = local * job.most_memory.host, available.free_memory().host
            if needed > free:
                raise InputError(
                    f"L = {size} in blocks {division.split_record()['blocks']} needs "
                    f"{needed / 1e9:.1f} GB of memory for {local} of {ranks} ranks; "
                    f"{free / 1e9:.1f} GB are free"
                )
        return division

    def job(self, record: dict[str, Any]) -> AnyJob:
        """Return the job of a record."""
        counts, merge = tuple(record["boxes"]), Merge.parse(record["merge"])
        return BoxJob(
            split_lattice_from_record(record), counts, merge, record["ranks"], record["tally"]
        )


BOXES = BoxPartition()


def _read_options(options: Mapping[str, Any]) -> tuple[Vector | None, Merge]:
    """Return the boxes along each axis, None to choose them, and how they are merged."""
    blocks, merge = options.get("blocks"), options.get("merge")
    way = Merge.parse("tree" if merge is None else merge)
    return None if blocks is None else blocks_from_text(blocks), way


def _usual_boxes(wholes: Sequence[Whole], merge: Merge, usual: int) -> int:
    """Return how many boxes there are along the last axis where no number is given.

    As many as there are processors, or fewer, so that they can be merged and divide all lattices.
    """
    layers = gcd(*(whole.num_layers for whole in wholes))
    reach = max(whole.reach for whole in wholes)
    for ranks in range(usual, 1, -1):
        is_power = not ranks & (ranks - 1)
        thick = min(whole.num_layers for whole in wholes) // ranks
        if layers % ranks == 0 and thick >= reach and (is_power or merge.kind == "tree"):
            return ranks
    return 1
