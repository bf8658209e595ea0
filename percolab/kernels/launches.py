"""The assignment of CUDA threads to a batch, and calls of many kernels captured as CUDA graphs.

Launching a kernel costs the host 20 to 200 us, longer than most kernels run.  A repeated call, in
which only the contents of device memory and of pinned buffers change, is therefore captured as a
CUDA graph, which the host starts by a single launch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from numba import config, uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.first_launches import launch
from percolab.kernels.memory import without_collections

# The simulator runs one Python thread per thread, so blocks are small there, and test more edges.
THREADS = 8 if config.ENABLE_CUDASIM else 256
#: The most bytes of shared memory of a block.
MOST_SHARED = 48 * 1024

#: Words or sites per thread: with one, starting the blocks took longer than the work.
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

    ``each`` and ``one`` distribute ``elements`` of every entry over threads, PER_THREAD or one per
    thread; grid axis 1 counts entries.  If there are no elements, nothing is launched.
    """

    #: The most captured calls that are kept; beyond it, the oldest is dropped.
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
        """Launch a kernel on a grid of blocks, with ``shared`` bytes of dynamic shared memory."""
        launch(kernel, (grid, threads, self.stream, shared), arguments)

    def upload(self, device: Any, pinned: Any) -> None:
        """Copy pinned host memory to device memory of the same size."""
        device.copy_to_device(pinned, stream=self.stream)

    def download(self, device: Any, pinned: Any) -> None:
        """Copy device memory to pinned host memory of the same size; :meth:`wait` waits for it."""
        device.copy_to_host(pinned, stream=self.stream)

    def wait(self) -> None:
        """Wait until all kernels and copies are done."""
        self.stream.synchronize()

    def mark(self) -> Any:
        """Return an event whose ``synchronize()`` waits for everything launched so far."""
        event = cuda.event()
        event.record(self.stream)
        return event

    def call(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do ``work``: launches and copies of this object that neither allocate nor wait.

        Calls with the same key launch the same kernels with the same arguments.  The first is
        executed directly, which compiles and allocates; the second is captured; then that is used.
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
        """Forget all captured calls, before device memory that they use is replaced."""
        self.wait()
        self._called.clear()
        self._captured.clear()

    @property
    def num_captured(self) -> int:
        """The number of captured calls."""
        return len(self._captured)

    def _capture(self, work: Callable[[], None]) -> _CapturedGraph:
        from cuda.bindings import driver

        handle = driver.CUstream(int(self.stream))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        # Freeing memory, or graphs that are garbage, would invalidate the capture.
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
    """Return the result of a driver call; RuntimeError if it failed."""
    error, *values = result
    if int(error) != 0:
        raise RuntimeError(f"CUDA driver: {error.name}")
    return values[0] if values else None
