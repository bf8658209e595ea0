"""Runs a function of a program, main unless named, on CUDA's simulator, always in the same way.

    export NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1
    python simulator.py simulated_cuda.py:compare_bonds honeycomb

The simulator has to be chosen before numba is imported, hence a program of its own;
``helpers.run_simulated`` starts it.  A function that launches no kernel has compared nothing: then
it fails.  ``test_simulated.py`` lists the cases.

numba-cuda simulates every thread by one of the interpreter, and all of a block run at once.  Here
those of some blocks take turns: one runs until it comes to a barrier, ends, or is interrupted,
which may be after every access to shared or device memory, so also between a read and a write that
are no atomic.  Who goes on is drawn from a fixed seed: a missing barrier or atomic shows itself,
and does so again.

Memory that nobody wrote, shared or not, is full of one large number, which no index survives.
"""

import importlib
import random
import sys
import threading
import warnings
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
from numba import cuda
from numba.cuda.simulator import kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernel import FakeCUDAKernel
from numba.cuda.simulator.kernelapi import Dim3
from numba.np import numpy_support

#: Accesses to memory in a turn, one of these: short turns find races, long ones missing barriers.
TURNS = (1, 1, 2, 3, 5, 9, 33)
#: Threads of a warp, as the kernels have it that are written for warps.
WARP = 4
#: Blocks that run at a time.
BLOCKS_AT_ONCE = 3
#: What Numba's types do in Python, NumPy's do in a tenth of the time.
NUMBERS = ("int32", "int64", "uint8", "uint32", "uint64", "float64")


def garbage(shape, dtype):
    """Return an array full of the number that stands for memory nobody wrote."""
    return np.full(shape, np.frombuffer(bytes([0xFE] * 8), dtype)[0], dtype)


class Memory:
    """An array as kernels see it: after any access another thread may have its turn."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        found = self.array[index]
        if isinstance(found, np.ndarray):
            return Memory(found)
        scheduler.after_access()
        return found

    def __setitem__(self, index, value):
        self.array[index] = value
        scheduler.after_access()

    def __getattr__(self, name):
        return getattr(self.array, name)

    def __len__(self):
        return len(self.array)


def _atomic(name):
    def atomic(self, memory, *arguments):
        old = getattr(_PLAIN, name)(getattr(memory, "array", memory), *arguments)
        scheduler.after_access()
        return old

    return atomic


_PLAIN = kernelapi.FakeCUDAAtomic()
_ATOMICS = ("add", "and_", "cas", "exch", "max", "min", "or_", "sub", "xor")
#: The atomics: nobody has a turn between their read and their write.
Atomic = type("Atomic", (), {name: _atomic(name) for name in _ATOMICS})


class Lane:
    """A thread of the interpreter that waits for its turn to be a thread of some block."""

    def __init__(self):
        self.turn = threading.Lock()
        self.turn.acquire()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        np.seterr(over="ignore")  # CUDA wraps around.
        while True:
            self.turn.acquire()
            try:
                scheduler.work()
            except BaseException as error:
                scheduler.fail(error)
                return
            scheduler.leave()


class Block:
    """A block of threads that runs: its shared memory, and those who wait at its barrier."""

    def __init__(self, place, lanes, dynamic_bytes):
        self.place = Dim3(*place)
        self.running, self.waiting, self.votes = len(lanes), [], []
        self.warps = [Warp(len(lanes[n : n + WARP])) for n in range(0, len(lanes), WARP)]
        self.arrays, self.dynamic = {}, garbage(dynamic_bytes // 8 + 1, np.uint64)
        for number, lane in enumerate(lanes):
            lane.block, lane.index = self, Dim3(number, 0, 0)


class Warp:
    """The threads of a warp that run, and those who wait for each other."""

    def __init__(self, running):
        self.running, self.waiting, self.votes = running, [], []


class Scheduler:
    """Gives the threads of a launch their turns, some blocks at a time."""

    def __init__(self):
        self._idle = []
        self._draws = random.Random(1)
        self._over = threading.Lock()
        self._over.acquire()
        self._left = inf
        self.launches = 0

    def launch(self, work, grid, threads, dynamic_bytes):
        """Run a function in all threads of a grid of blocks."""
        self.launches += 1
        self.work, self._error, self._ready = work, None, []
        self._threads, self._dynamic_bytes = threads, dynamic_bytes
        self._places = np.ndindex(*grid)
        for _ in range(BLOCKS_AT_ONCE):
            self._begin_block()
        self._draw().turn.release()
        self._over.acquire()
        self._left = inf
        if self._error:
            raise self._error

    def _begin_block(self):
        place = next(self._places, None)
        if place is not None:
            while len(self._idle) < self._threads:
                self._idle.append(Lane())
            lanes = [self._idle.pop() for _ in range(self._threads)]
            Block(place, lanes, self._dynamic_bytes)
            self._ready += lanes

    def _draw(self):
        """Draw who has the next turn, and how long."""
        self._left = self._draws.choice(TURNS)
        lane = self._running = self._draws.choice(self._ready)
        cuda.threadIdx, cuda.blockIdx = lane.index, lane.block.place
        return lane

    def after_access(self):
        """Count an access to memory; the turn of the thread that made it may end here."""
        self._left -= 1
        if self._left <= 0:
            self._hand_on(self._running)

    def _hand_on(self, lane):
        following = self._draw()
        if following is not lane:
            following.turn.release()
            lane.turn.acquire()

    def barrier(self):
        """Wait until all threads of the block that still run have come to a barrier."""
        self._wait(self._running.block)

    def barrier_or(self, vote):
        """Wait at a barrier; return whether the vote of any thread there is true."""
        block = self._running.block
        block.votes.append(vote)
        self.barrier()
        return int(block.elected)

    def warp_barrier(self):
        """Wait until all threads of the warp that still run have come to such a barrier."""
        self._wait(self._warp(self._running))

    def _wait(self, group):
        lane = self._running
        self._ready.remove(lane)
        group.waiting.append(lane)
        self._let_through(group)
        self._hand_on(lane)

    def _let_through(self, group):
        if len(group.waiting) == group.running:
            self._ready += group.waiting
            group.elected, group.waiting, group.votes = any(group.votes), [], []

    def _warp(self, lane):
        return lane.block.warps[lane.index.x // WARP]

    def leave(self):
        """End the thread that has its turn."""
        lane = self._running
        self._ready.remove(lane)
        self._idle.append(lane)
        for group in (lane.block, self._warp(lane)):
            group.running -= 1
            self._let_through(group)
        if not lane.block.running:
            self._begin_block()
        (self._draw().turn if self._ready else self._over).release()

    def fail(self, error):
        """End the launch by what was raised in one of its threads."""
        self._error, self._idle = error, []
        self._over.release()

    def shared_array(self, shape, dtype):
        """Return the shared array declared at the caller's line, or all dynamic memory for 0."""
        block, kind = self._running.block, _kind(dtype)
        if shape == 0:
            return Memory(block.dynamic.view(kind))
        frame = sys._getframe(1)
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in block.arrays:
            block.arrays[place] = garbage(shape, kind)
        return Memory(block.arrays[place])


scheduler = Scheduler()


def _kind(dtype):
    return np.dtype(dtype if isinstance(dtype, type) else numpy_support.as_dtype(dtype))


def local_array(shape, dtype):
    """Return an array of a thread's own."""
    return garbage(shape, _kind(dtype))


def _argument(value):
    if isinstance(value, tuple):
        parts = map(_argument, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, FakeCUDAArray):
        return Memory(value._ary)
    return value


class Kernel(FakeCUDAKernel):
    """A kernel as the scheduler runs it."""

    def __call__(self, *arguments):
        arguments = tuple(map(_argument, arguments))
        cuda.gridDim, cuda.blockDim = Dim3(*self.grid_dim), Dim3(*self.block_dim)
        threads, _, _ = self.block_dim
        scheduler.launch(lambda: self.fn(*arguments), self.grid_dim, threads, self.dynshared_size)


def grid(dimensions):
    """Return the number of the thread among all along the grid's first axis."""
    assert dimensions == 1
    return cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x


def gridsize(dimensions):
    """Return the number of threads along the grid's first axis."""
    assert dimensions == 1
    return cuda.gridDim.x * cuda.blockDim.x


def jit(function=None, device=False, **options):
    """Declare a kernel; a function of the device is called as it is."""
    if function is None:
        return lambda function: jit(function, device=device)
    return function if device else Kernel(function, device=False)


def device_array(shape, dtype=np.float64, **options):
    """Return memory of the device."""
    return FakeCUDAArray(garbage(shape, dtype))


def install():
    """Change the simulator of this process, before any kernel is declared."""
    assert "percolab.kernels.launches" not in sys.modules
    for name in NUMBERS:
        setattr(numba, name, getattr(np, name))
    cuda.jit, cuda.device_array = jit, device_array
    kernelapi.FakeCUDAAtomic = Atomic
    cuda.atomic, cuda.syncthreads = Atomic(), scheduler.barrier
    cuda.syncwarp, cuda.syncthreads_or = scheduler.warp_barrier, scheduler.barrier_or
    cuda.grid, cuda.gridsize = grid, gridsize
    cuda.shared = SimpleNamespace(array=scheduler.shared_array)
    cuda.local = SimpleNamespace(array=local_array)
    cuda.threadfence = cuda.threadfence_block = lambda: None


if __name__ == "__main__":
    _, program, *arguments = sys.argv
    program, _, function = program.partition(":")
    install()
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    sys.path.insert(1, str(Path(program).parent))
    getattr(importlib.import_module(Path(program).stem), function or "main")(*arguments)
    assert scheduler.launches, "no kernel was launched"
