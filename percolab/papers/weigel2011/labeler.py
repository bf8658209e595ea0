"""The labelers that a local labeling and a consolidation make together."""

from typing import Any, ClassVar

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.four_step_cuda import analysis_kernel
from percolab.labelers.labeled_batch import LabeledBatch
from percolab.lattices.extent import Extent
from percolab.papers.weigel2011.bfs import Bfs
from percolab.papers.weigel2011.relaxation import Relaxation
from percolab.papers.weigel2011.self_labeling import SelfLabeling
from percolab.papers.weigel2011.sewing import Sewing
from percolab.papers.weigel2011.tiles import EDGE, tiles_of
from percolab.papers.weigel2011.union import Union


class Weigel(LabeledBatch):
    """A batch labeled on tiles, then over their borders; a subclass says how.

    local, consolidation: what ``label`` runs in turn; relaxation has the number of its ``steps``
    """

    local_step: ClassVar[Any]
    consolidation_step: ClassVar[Any]

    def __init__(self, batch: CudaBatch, *, tally: bool = False, edge: int = EDGE) -> None:
        """edge: of a tile; ValueError where it is shorter than a bond or too long for a step."""
        super().__init__(batch, tally=tally)
        tiles = tiles_of(batch.topology, edge)
        self.local = self.local_step(batch, self.labels, tiles)
        self.consolidation = self.consolidation_step(batch, self.labels, tiles)

    def __init_subclass__(cls) -> None:
        cls.is_capturable = cls.consolidation_step.is_capturable

    @classmethod
    def memory(cls, extent: Extent, needs: Needs, entries: int) -> Memory:
        """Return the memory of the labels and of both steps, in tiles of the usual edge."""
        labels = LabeledBatch.memory(extent, needs, entries)
        if len(extent.shape) != 2:  # served by another labeler
            return labels
        steps = cls.local_step, cls.consolidation_step
        return labels.plus(Memory(device=sum(step.memory(extent, EDGE, entries) for step in steps)))

    def label(self, entries: int) -> None:
        """Label the open bonds of the first entries of the batch."""
        self.local.run(entries)
        self.consolidation.run(entries)
        self.find_roots(entries)

    def find_roots(self, entries: int) -> None:
        """Make every site's label the root of its tree."""
        points = self.batch.topology.num_points
        work = self.labels, self.batch.adjacency.num_points
        self.batch.launches.each(analysis_kernel, points, entries, *work)


class BfsSewing(Weigel):
    """Breadth-first search in tiles, sewn."""

    name = "tiles:bfs+sewing"
    local_step, consolidation_step = Bfs, Sewing


class BfsRelaxation(Weigel):
    """Breadth-first search in tiles, relaxed."""

    name = "tiles:bfs+relaxation"
    local_step, consolidation_step = Bfs, Relaxation


class UnionSewing(Weigel):
    """Union-find in tiles, sewn."""

    name = "tiles:union+sewing"
    local_step, consolidation_step = Union, Sewing


class UnionRelaxation(Weigel):
    """Union-find in tiles, relaxed."""

    name = "tiles:union+relaxation"
    local_step, consolidation_step = Union, Relaxation


class SelfSewing(Weigel):
    """Self-labeling in tiles, sewn."""

    name = "tiles:self+sewing"
    local_step, consolidation_step = SelfLabeling, Sewing


class SelfRelaxation(Weigel):
    """Self-labeling in tiles, relaxed."""

    name = "tiles:self+relaxation"
    local_step, consolidation_step = SelfLabeling, Relaxation
