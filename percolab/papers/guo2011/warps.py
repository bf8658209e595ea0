"""What the threads of a warp send each other, and the least element that they have.

All threads of a warp have to come to each of these functions together.  CUDA's simulator has no
warps: there a block of four threads is one, which write and read in turns what they send.
"""

from typing import Any

from numba import int32, int64, uint32, uint64

from percolab.kernels.cuda import SIMULATED, cuda
from percolab.papers.guo2011.min_reduction import min_of_warp

#: Threads of a warp.
WARP = 4 if SIMULATED else 32
_ALL = 0xFFFFFFFF

if SIMULATED:

    def _everyones(value: Any) -> list[Any]:
        """Return what all lanes have."""
        values = cuda.shared.array(WARP, uint64)
        values[cuda.threadIdx.x] = value
        cuda.syncthreads()
        listed = [values[lane] for lane in range(WARP)]
        cuda.syncthreads()
        return listed

    def in_step():
        """Wait for all lanes; what they wrote is seen by all."""
        cuda.syncthreads()

    def from_lane(value, lane):
        """Return the number, uint32, that a lane has."""
        return uint32(_everyones(value)[lane])

    def from_lane64(value, lane):
        """Return the number, uint64, that a lane has."""
        return _everyones(value)[lane]

    def lanes_where(flag):
        """Return the lanes whose flag is true, a bit each."""
        return uint32(sum(1 << lane for lane, own in enumerate(_everyones(flag)) if own))

    def first_lane(lanes):
        """Return the first of some lanes."""
        return uint32((int(lanes) & -int(lanes)).bit_length() - 1)

    def least_of_lanes(key, tail):
        """Return the least element that the lanes have, to all of them."""
        return min(zip(_everyones(key), _everyones(tail), strict=True))

else:

    @cuda.jit(device=True)
    def in_step():
        """Wait for all lanes; what they wrote is seen by all."""
        cuda.syncwarp()

    @cuda.jit(device=True)
    def from_lane(value, lane):
        """Return the number, uint32, that a lane has."""
        return uint32(cuda.shfl_sync(_ALL, int32(value), int32(lane)))

    @cuda.jit(device=True)
    def from_lane64(value, lane):
        """Return the number, uint64, that a lane has."""
        return uint64(cuda.shfl_sync(_ALL, int64(value), int32(lane)))

    @cuda.jit(device=True)
    def lanes_where(flag):
        """Return the lanes whose flag is true, a bit each."""
        return uint32(cuda.ballot_sync(_ALL, flag))

    @cuda.jit(device=True)
    def first_lane(lanes):
        """Return the first of some lanes."""
        return uint32(uint32(cuda.ffs(lanes)) - uint32(1))

    least_of_lanes = min_of_warp
