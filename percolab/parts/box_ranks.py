"""One lattice over ranks that have a box of it each: what ranks are told, and do.

Rank 0 and the others talk as :mod:`percolab.parts.ranks` says; a :class:`BoxJob` makes them merge
boxes as :mod:`percolab.parts.quad` does.  After every row all tell rank 0 what they did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.parts.boxes import Blocks, Boundary, Vector, row_of_whole
from percolab.parts.front import Row
from percolab.parts.parts import Whole
from percolab.parts.quad import Boxes, Merge, stages_of
from percolab.parts.ranks import (
    AnyJob,
    Job,
    Member,
    Step,
    check_memory,
    record_of_whole,
    whole_of_record,
)
from percolab.parts.raster import Draw
from percolab.parts.transport import Transport


@dataclass(frozen=True)
class BoxJob:
    """The lattice that ranks measure samples of, a box each, or one rank all boxes.

    counts: boxes along each axis; merge: how their boundaries are merged; ranks: as many as boxes,
    or one.  tally: whether sizes are tallied

    Errors are those of :class:`percolab.parts.quad.Boxes`, as soon as they are known.
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
        return record_of_whole(self.whole) | own | {"tally": self.tally}


def job_of_record(record: dict[str, Any]) -> AnyJob:
    """Return the job of a record, of boxes or of slabs."""
    if "boxes" not in record:
        return Job.of_record(record)
    counts, merge = tuple(record["boxes"]), Merge.parse(record["merge"])
    return BoxJob(whole_of_record(record), counts, merge, record["ranks"], record["tally"])


class _BoxMember:
    """One of the ranks that have boxes, ready for any number of samples; one thread at a time."""

    def __init__(self, transport: Transport, job: BoxJob) -> None:
        self.job: AnyJob = job
        self.stages = len(stages_of(job.counts))
        self._transport = transport
        check_memory(job, transport, Device("cpu"))
        others = transport if transport.size > 1 else None
        self._boxes = Boxes(job.whole, job.counts, job.merge, tally=job.tally, transport=others)

    def measure(
        self,
        draw: Draw,
        left: Callable[[], bool],
        *,
        leave: Callable[[], None] | None = None,
        done: Callable[[int], None] = lambda boxes: None,
    ) -> tuple[Boundary | None, list[Step]]:
        """Return the boundary of all boxes, where this rank has it, and on rank 0 all steps.

        A row that was begun is not left.
        """
        steps: list[Step] = []
        found = self._boxes.merged(draw, steps, done)
        if self._transport.rank:
            self._transport.send(0, [np.array(steps, np.float64)])
            return found, steps
        for rank in range(1, self._transport.size):
            answer = self._transport.receive(rank)
            assert answer is not None
            steps += [Step(*map(int, own[:3]), *own[3:]) for own in answer[0].tolist()]
        return found, steps

    def row_of_all(self, found: Any) -> Row:
        """Return the row of a sample from the boundary of all boxes."""
        return row_of_whole(found)
