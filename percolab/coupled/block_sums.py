"""CUDA: sums over blocks of samples whose rows are measured on the device and stay there."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.coupled import Rows, SampleBlocks, Samples
from percolab.kernels.cuda import cuda
from percolab.measure import block_sums_cuda as sums_cuda
from percolab.measure.block_sums import CHUNK

#: Measures samples, given a slice of the blocks, the first sample and the number of samples in
#: each; yields a slice of the grid and its rows, flat, on the device, by (block, sample, p).
Measure = Callable[[slice, int, int], Iterable[tuple[slice, Any]]]


class BlockSums:
    """The sums of blocks of a coupling, which has a ``labeler`` and a ``row_width``."""

    labeler: Any
    row_width: int

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kept: dict[str, Any] = {}

    def measure_blocks(
        self, generator: int, seed: int, blocks: SampleBlocks, grid: Samples
    ) -> Measure:
        """Return the function that measures samples of blocks."""
        raise NotImplementedError

    def most_samples(self, steps: int) -> int:
        """Return the most samples whose rows at ``steps`` p fit on the device at a time."""
        raise NotImplementedError

    def block_sums(
        self,
        generator: int,
        seed: int,
        blocks: SampleBlocks,
        grid: Samples,
        picks: NDArray[np.int64],
        squared: NDArray[np.bool_],
        begins: NDArray[np.int64] | None = None,
    ) -> tuple[Rows, NDArray[np.float64]]:
        """Return sums of observables, and of the squares of some, for blocks at all p of a grid.

        picks: int64 (4, C); squared: bool (C,).  begins: the first blocks of groups that are added
        up (:func:`percolab.tasks.groups.find_groups`).  The sums (blocks, m, C) and the squares
        (blocks, m, Q) are those of :func:`percolab.measure.block_sums.sum_blocks`.  ValueError:
        rows have tallies, or there are more observables than there is room for.  OverflowError: the
        sum of a group does not fit in 64 bits.
        """
        width, points, count = picks.shape[1], grid.size, len(blocks.starts)
        if self.labeler.read.tally_width or width + squared.sum() > sums_cuda.MOST_OBSERVABLES:
            raise ValueError("rows with tallies, or so many observables, are summed on the host")
        measure = self.measure_blocks(generator, seed, blocks, grid)
        sums = self._keep("sums", (count, points, width), np.int64)
        squares = self._keep("squares", (count, points, int(squared.sum())), np.float64)
        observables = sums_cuda.Observables(*map(cuda.to_device, (picks, np.flatnonzero(squared))))
        most = self.most_samples(points)
        together = min(max(most // blocks.size, 1), count)
        # A block whose samples do not all fit is summed piece by piece.
        step = min(max(most // CHUNK, 1) * CHUNK, blocks.size)
        chunks = together * -(-step // CHUNK)
        chunk_sums = sums_cuda.ChunkSums(
            self._keep("chunk sums", (chunks, points, width), np.int64),
            self._keep("chunk squares", (chunks, points, max(squares.shape[2], 1)), np.float64),
        )
        launches = self.labeler.batch.launches
        for block in range(0, count, together):
            part = slice(block, min(block + together, count))
            for first in range(0, blocks.size, step):
                samples = min(step, blocks.size - first)
                totals = chunk_sums, sums[part], squares[part]
                for steps, rows in measure(part, first, samples):
                    given = rows, steps, samples, observables, totals
                    self._sum_rows(*given, is_first=first == 0)
        if begins is not None and len(begins) <= count:
            sums, squares = sums_cuda.add_groups(launches, begins, sums, squares)
        launches.wait()
        return sums.copy_to_host(), squares.copy_to_host()

    def _keep(self, name: str, shape: tuple[int, ...], kind: type) -> Any:
        """Return device memory that calls share, as freeing memory waits for all kernels."""
        array = self._kept.pop(name, None)
        if array is None or array.shape != shape:
            array = None  # so that old and new need not fit together
            array = cuda.device_array(shape, kind)
        self._kept[name] = array
        return array

    def _sum_rows(
        self,
        rows: Any,
        steps: slice,
        samples: int,
        observables: Any,
        totals: tuple[Any, ...],
        *,
        is_first: bool,
    ) -> None:
        """Add the rows at some p of a number of samples of each block to sums and squares."""
        chunk_sums, sums, squares = totals
        first, count = steps.start or 0, steps.stop - (steps.start or 0)
        blocks, _, width = sums.shape
        chunks = -(-samples // CHUNK)
        launch, threads = self.labeler.batch.launches.blocks, sums_cuda.SUM_THREADS
        grid, shared = (blocks * chunks, count), sums_cuda.shared_bytes(width)
        given = rows, np.int64(self.row_width), np.int64(samples), observables, chunk_sums
        launch(sums_cuda.sum_chunks_kernel, grid, threads, *given, shared=shared)
        places = np.int64(chunks), np.uint32(is_first), np.uint32(first), sums, squares
        launch(sums_cuda.add_chunks_kernel, (blocks, count), threads, chunk_sums, *places)
