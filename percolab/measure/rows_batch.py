"""The rows of a batch: sums on the device, and their copy to the host."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch, period_width
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import zero_kernel
from percolab.kernels.memory import Memory, Needs
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.rows_cuda import FULL, PARTIALS, finish_rows_kernel
from percolab.measure.sums import NUMBERS
from percolab.measure.tallies import compute_row_width
from percolab.measure.wrapping_cuda import Loops

#: The most rows that are copied through pinned memory, as captured calls do; more are copied
#: directly, since the additional copy would cost more than capturing saves.
_PINNED_ROWS = 2**17


class RowsBatch:
    """Device memory for the rows of a batch, at one p or at several steps of a grid.

    partials: int64 (capacity, partials, NUMBERS), the sums of each block of threads for each entry
    spanning: uint32 (capacity,), the flags of every entry
    loops:    the loops around the lattice that were found
    rows_on_device: int64 (rows * ROW_WIDTH,), the finished rows
    tallies:  uint64, the tallies of all entries, ``tally_width`` numbers each, or one number
    """

    def __init__(self, batch: CudaBatch, partials: int, *, tally: bool) -> None:
        top, capacity = batch.topology, batch.capacity
        self._batch = batch
        self.partials = cuda.device_array((capacity, partials, NUMBERS), np.int64)
        self._no_sums = cuda.to_device(np.zeros((capacity, 1, NUMBERS), np.int64))
        self.spanning = cuda.device_array(capacity, np.uint32)
        loop = cuda.device_array(capacity, np.int32)
        width = np.int32(period_width(top))
        self.loops = Loops(loop, self.spanning, np.int32(top.num_axes), width)
        self.row_width = compute_row_width(top.num_points) if tally else ROW_WIDTH
        self.tally_width = np.uint32(self.row_width - ROW_WIDTH)
        self.tallies = cuda.device_array(max(capacity * int(self.tally_width), 1), np.uint64)
        self.tallies_of_steps = self.tallies
        self._make_rows(capacity)

    @staticmethod
    def memory(points: int, entries: int, needs: Needs) -> Memory:
        """Return the memory for the rows of a batch, with the most possible partial sums."""
        rows = 8 * ROW_WIDTH * entries * needs.steps
        tally = 8 * (compute_row_width(points) - ROW_WIDTH) * entries * needs.tally
        tallies = tally * (needs.steps + (needs.steps > 1))
        partials = 8 * NUMBERS * (max(entries * PARTIALS, FULL) + entries)
        return Memory(host=rows + tallies, device=rows + tallies + partials + 8 * entries)

    def _make_rows(self, rows: int) -> None:
        self.rows_on_device = cuda.device_array(rows * ROW_WIDTH, np.int64)
        self._pinned = cuda.pinned_array(min(rows, _PINNED_ROWS) * ROW_WIDTH, np.int64)

    def make_room(self, steps: int) -> bool:
        """Ensure that there is memory for ``steps`` steps of a grid; return whether it is new."""
        rows = steps * self._batch.capacity
        is_new = False
        if rows * ROW_WIDTH > self.rows_on_device.size:
            self._make_rows(rows)
            is_new = True
        if rows * int(self.tally_width) > self.tallies_of_steps.size:
            self.tallies_of_steps = cuda.device_array(rows * int(self.tally_width), np.uint64)
            is_new = True
        return is_new

    def clear_tallies(self, entries: int) -> None:
        """Empty the tallies of the first entries, if there are any."""
        size = entries * int(self.tally_width)
        self._batch.launches.each(zero_kernel, size, 1, self.tallies, np.uint32(size))

    def finish(self, entries: int, step: int = 0, steps: int = 1) -> None:
        """Write the rows of a step from the partial sums; rows of an entry follow one another."""
        self._finish(self.partials, entries, step, steps)

    def finish_flags(self, entries: int, step: int = 0, steps: int = 1) -> None:
        """Write the rows of a step with only their flags; all other numbers are 0."""
        self._finish(self._no_sums, entries, step, steps)

    def _finish(self, partials: Any, entries: int, step: int, steps: int) -> None:
        places = self.rows_on_device, np.int64(step), np.int64(steps)
        self._batch.launches.blocks(
            finish_rows_kernel, entries, PARTIALS, partials, self.spanning, *places
        )

    def download(self, entries: int, steps: int = 1) -> None:
        """Begin to copy the rows of all steps to the host, for :meth:`fetch`."""
        # The array is flat, as slicing an array of rows takes longer than the copy.
        size = entries * steps * ROW_WIDTH
        if entries * steps <= _PINNED_ROWS:
            self._batch.launches.download(self.rows_on_device[:size], self._pinned[:size])

    def fetch(self, entries: int, steps: int = 1, *, done: Any = None) -> NDArray[np.int64]:
        """Wait, and return the rows of the first entries, (entries * steps, row_width).

        done: an event after :meth:`download`, to wait for that instead of later launches; only for
        few rows without tallies.
        """
        if done is None:
            self._batch.launches.wait()
        else:
            done.synchronize()
        size = entries * steps * ROW_WIDTH
        if entries * steps <= _PINNED_ROWS:
            rows: NDArray[np.int64] = self._pinned[:size].copy().reshape(-1, ROW_WIDTH)
        else:
            rows = self.rows_on_device[:size].copy_to_host().reshape(-1, ROW_WIDTH)
        width = int(self.tally_width)
        if not width:
            return rows
        with_tallies = np.empty((len(rows), self.row_width), np.int64)
        with_tallies[:, :ROW_WIDTH] = rows
        tallies = self.tallies if steps == 1 else self.tallies_of_steps
        flat = tallies[: len(rows) * width].copy_to_host()
        with_tallies[:, ROW_WIDTH:] = flat.view(np.int64).reshape(-1, width)
        return with_tallies
