"""Bonds or sites open one by one, and every observable is summed after every opening."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.coupled import one_by_one
from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.kinds import workplace
from percolab.kinds.workplace import IsStopped, TaskSampler
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph
from percolab.lattices.removal import RANDOM
from percolab.lattices.structure import Structure
from percolab.measure import openings as bins
from percolab.measure.columns import MEASURES
from percolab.tasks.blocks import AnyBlock, OpeningsBlock, pick_observables
from percolab.tasks.codecs import OpeningsCodec
from percolab.tasks.kind import Algorithms, Kind
from percolab.tasks.study import Study, Task
from percolab.tasks.values import check_choice

#: Blocks of a task: enough for errors from their scatter, but few, since each has many numbers.
_FEWEST_BLOCKS, _MOST_BLOCKS = 20, 50
#: The one way to find the clusters, by its name.
NEWMAN_ZIFF = "newman_ziff"
_MODELS = ("bond", "site")


class OneByOne(Algorithms):
    """The one algorithm."""

    def default(self, kind: str) -> str:
        return NEWMAN_ZIFF

    def check(self, name: str) -> None:
        check_choice("labeler of method microcanonical", name, (NEWMAN_ZIFF,))

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        if kind != "cpu":
            raise InputError("method microcanonical runs only on the CPU: use --device cpu")
        return NEWMAN_ZIFF, ""


class Microcanonical(Kind):
    """Every observable after every opening; there is no p."""

    name = "microcanonical"
    settings = frozenset({"order"})
    fixed_p = ()
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES,
        "method microcanonical, which --order uses, does not measure it; method grid without "
        "--order does",
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": workplace.OPENS_IN_ORDER,
        "functions": workplace.NO_FUNCTIONS,
        "target_error": "method microcanonical makes few large blocks, but a target error "
        "needs many small ones",
    }
    codec = OpeningsCodec()
    algorithms = OneByOne()
    sampler = "kinds.microcanonical:OpeningsSampler"

    def check(self, sampling: Task | Study) -> None:
        if sampling.model not in _MODELS:
            raise InputError(
                f"method microcanonical opens bonds or sites: the model is bond or site, not "
                f"{sampling.model}"
            )
        if sampling.p:
            raise InputError("method microcanonical gives observables at any p: leave out p")
        if sampling.order != RANDOM and not isinstance(sampling.structure, Graph | Ensemble):
            raise InputError(f"order = {sampling.order}, but only a graph has one: give --graph")
        most = bins.MOST_OPENINGS
        if isinstance(sampling, Task) and max(sampling.num_openings, sampling.num_points) > most:
            raise InputError(
                f"L = {sampling.size}: {sampling.num_openings} {sampling.model}s on "
                f"{sampling.num_points} grid points, but method microcanonical takes at "
                f"most {most} of each"
            )

    def samples_identity(self, task: Task) -> dict[str, Any]:
        """Return the order of removal, where it is not random; its ranks are in the digest."""
        return {} if task.order == RANDOM else {"order": task.order}

    def largest_sum(self, num_points: int) -> int:
        """Return the largest sum of squared cluster sizes over the openings of a bin."""
        return num_points**2 * bins.MOST_WIDTH

    def choose_blocks(self, study: Study, task: Task, samples: int | None) -> Task:
        if study.block_size or samples is None or isinstance(study.structure, Ensemble):
            return task
        largest = max(samples // _FEWEST_BLOCKS, 1)
        least = max(samples // _MOST_BLOCKS, 1)
        size = min(range(largest, least - 1, -1), key=lambda size: -samples % size)
        most = (2**63 - 1) // self.largest_sum(task.num_points)
        return replace(task, block_size=max(min(size, most), 1))

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        openings = task.num_openings
        host = one_by_one.host_bytes(extent, openings, sites=task.draw.draws_sites)
        host += 16 * len(bins.bin_counts(openings)) * (len(task.observables) + 1)
        if task.order != RANDOM:
            # Ranks, and the degrees and keys of sites whose neighbours are removed.
            host += 32 * openings + 32 * extent.num_classes * extent.num_points
        return Memory(host=host)

    def count_labelings(self, task: Task) -> int:
        """Return how many labelings take as long as all openings, about."""
        return 16


class OpeningsSampler(TaskSampler):
    """Opens the bonds or sites of blocks of samples one by one."""

    def _new(self) -> tuple[one_by_one.Openings, one_by_one.Layers, one_by_one.Scratch]:
        """Return what opens bonds or sites, the sites, and this thread's memory."""
        topology, draws_sites = self._place.topology, self.task.draw.draws_sites
        if draws_sites:
            topology.check_end_layers()
        openings = one_by_one.list_openings(topology, sites=draws_sites)
        if self.task.order in one_by_one.ADAPTIVE_RANKS:
            openings = openings._replace(ranks=one_by_one.ADAPTIVE_RANKS[self.task.order])
        elif self.task.order != RANDOM:
            openings = openings._replace(ranks=self._ranks(draws_sites))
        layers = one_by_one.list_layers(topology)
        return openings, layers, one_by_one.make_scratch(topology, openings)

    def _ranks(self, sites: bool) -> NDArray[np.int64]:
        graph = self.task.structure
        assert isinstance(graph, Graph)
        assert graph.bonds.ranks is not None
        numbers = graph.inner_numbers if sites else graph.bond_numbers()
        ranks = graph.bonds.ranks
        return ranks if numbers is None else np.asarray(ranks[np.argsort(numbers)])

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        return [self._sample_block(number, stopped) for number in numbers]

    def _sample_block(self, number: int, stopped: IsStopped | None) -> OpeningsBlock:
        task, columns = self.task, self.task.observables
        generator, seed = self._key
        openings, layers, scratch = self._place.own(self._new)
        picks = tuple(pick_observables(columns))
        count = openings.places.size
        sums = np.zeros((len(bins.bin_counts(count)), len(columns) + 1), np.int64)
        key, into = (generator, np.uint64(seed)), (picks, bins.bin_width(count), sums)
        samples = workplace.number_samples([number], task.block_size)
        # Where nothing is left to chance, all samples are equal.
        is_exact = one_by_one.is_strict(openings.ranks, count)
        samples, times = (samples[:1], samples.size) if is_exact else (samples, 1)
        for part in workplace.steps(samples.size, 1, stopped):
            one_by_one.add_sample(*key, samples[part][0], openings, layers, scratch, *into)
        names = [*(column.name for column in columns), bins.LARGEST_SQUARES]
        arrays = (np.ascontiguousarray(times * column) for column in sums.T)
        return OpeningsBlock(number, dict(zip(names, arrays, strict=True)))


KIND = Microcanonical()
