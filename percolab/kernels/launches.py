"""How CUDA threads are laid over a batch, and calls of many kernels: captured once, then launched.

To launch a kernel costs the host 20 to 200 us, more than most kernels run.  A call that is made
again and again, with nothing changed but what lies in device memory and in pinned buffers, is
therefore captured as a CUDA graph, which the host starts in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from numba import config, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.first_launches import launch
from percolab.kernels.memory import without_collections

# The simulator runs a Python thread per thread: small blocks there, which also meet more edges.
THREADS = 8 if config.ENABLE_CUDASIM else 256
#: Bytes of shared memory that a block may have.
MOST_SHARED = 48 * 1024

#: Words or sites one thread works on: with one each, starting the blocks took longer than the work.
PER_THREAD = 4


@cuda.jit(device=True)
def element(step):
    """Return the number of this thread's ``step``-th word or site, as uint32."""
    return uint32((cuda.blockIdx.x * PER_THREAD + step) * THREADS + cuda.threadIdx.x)


@cuda.jit(cache=True)
def zero_kernel(numbers, size):
    """Set the first ``size`` numbers of an array, uint32 or uint64, to zero; size: uint32."""
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            numbers[n] = uint32(0)


class Launches:
    """The kernels and copies of one batch, in their order on one stream.

    ``each`` and ``one`` lay threads over ``elements`` of every entry, PER_THREAD of them or one a
    thread; grid axis 1 counts entries.  Where there are no elements nothing is launched.
    """

    #: Captured calls that are kept; the oldest goes when there are more.
    MOST_CAPTURED = 16

    def __init__(self, *, is_urgent: bool = False) -> None:
        self.stream = urgent_stream() if is_urgent else cuda.stream()
        self._called: set[Hashable] = set()
        self._captured: dict[Hashable, Any] = {}

    def each(self, kernel: Any, elements: int, entries: int, *arguments: Any) -> None:
        """Launch a kernel whose threads work on PER_THREAD elements each."""
        if elements:
            blocks = -(-elements // (PER_THREAD * THREADS))
            launch(kernel, ((blocks, entries), THREADS, self.stream, 0), arguments)

    def one(self, kernel: Any, elements: int, entries: int, *arguments: Any) -> None:
        """Launch a kernel whose threads work on one element each."""
        if elements:
            blocks = -(-elements // THREADS)
            launch(kernel, ((blocks, entries), THREADS, self.stream, 0), arguments)

    def blocks(
        self, kernel: Any, grid: Any, threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Launch a kernel on a grid of blocks, with so many bytes of dynamic shared memory."""
        launch(kernel, (grid, threads, self.stream, shared), arguments)

    def upload(self, device: Any, pinned: Any) -> None:
        """Copy pinned host memory to as much device memory."""
        device.copy_to_device(pinned, stream=self.stream)

    def download(self, device: Any, pinned: Any) -> None:
        """Copy device memory to as much pinned host memory; it is there after :meth:`wait`."""
        device.copy_to_host(pinned, stream=self.stream)

    def wait(self) -> None:
        """Wait until everything is done."""
        self.stream.synchronize()

    def mark(self) -> Any:
        """Return an event after all that was launched: its ``synchronize()`` waits for that."""
        event = cuda.event()
        event.record(self.stream)
        return event

    def call(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do ``work``: launches and copies of this object that neither allocate nor wait.

        Works of one key launch the same kernels with the same arguments.  The first is done
        directly, which compiles and allocates; the second is captured; from then on it is launched.
        """
        if key in self._captured:
            self._launch(self._captured[key])
        elif key not in self._called or config.ENABLE_CUDASIM:
            self._called.add(key)
            work()
        else:
            while len(self._captured) >= self.MOST_CAPTURED:
                self._captured.pop(next(iter(self._captured)))
            self._captured[key] = self._capture(work)
            self._launch(self._captured[key])

    def forget(self) -> None:
        """Forget all captured calls: device memory that they work on is going to be replaced."""
        self.wait()
        self._called.clear()
        self._captured.clear()

    @property
    def num_captured(self) -> int:
        """How many calls are captured."""
        return len(self._captured)

    def _capture(self, work: Callable[[], None]) -> _CapturedGraph:
        from cuda.bindings import driver

        handle = driver.CUstream(int(self.stream))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        # What is freed in between would spoil the capture: memory, and graphs that are garbage.
        with cuda.defer_cleanup(), without_collections():
            checked(driver.cuStreamBeginCapture(handle, mode))
            try:
                work()
            finally:
                graph = checked(driver.cuStreamEndCapture(handle))
        return _CapturedGraph(driver, graph)

    def _launch(self, graph: _CapturedGraph) -> None:
        graph.launch(int(self.stream))


def urgent_stream() -> Any:
    """Return a stream of the highest priority, which stays until the process ends."""
    if config.ENABLE_CUDASIM:
        return cuda.stream()
    from cuda.bindings import driver

    cuda.current_context()
    error, _, greatest = driver.cuCtxGetStreamPriorityRange()
    checked((error,))
    handle = checked(driver.cuStreamCreateWithPriority(0, greatest))
    return cuda.external_stream(int(handle))


class _CapturedGraph:
    """A captured call, ready to be started."""

    def __init__(self, driver: Any, graph: Any) -> None:
        self._driver = driver
        self._ready = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphDestroy(graph))

    def launch(self, stream: int) -> None:
        """Start it on a stream."""
        checked(self._driver.cuGraphLaunch(self._ready, stream))

    def __del__(self) -> None:
        # Nothing can be done about an error here; at exit the context may be gone already.
        self._driver.cuGraphExecDestroy(self._ready)


def checked(result: tuple[Any, ...]) -> Any:
    """Return what a driver call gives; RuntimeError if it failed."""
    error, *values = result
    if int(error) != 0:
        raise RuntimeError(f"CUDA driver: {error.name}")
    return values[0] if values else None
