"""Runs `percolab bench` on CUDA's simulator, whose events measure nothing; tests start it."""

from numba.cuda.simulator.kernel import FakeCUDAKernel

import percolab.kernels.device
from percolab.benchmark import calls, further_times, records, stages, timer
from percolab.cli import main as command_line


def main(*arguments):
    """Run the command on a few sites."""
    # The simulator's memory is infinite, and it runs a Python thread per thread.
    percolab.kernels.device.free_memory = lambda cuda: 2**30
    stages.SITES_PER_RUN["cuda"] = 32
    stages.GRID_POINTS = 2
    records.make_grid.__defaults__ = (2,)
    timer.COPY_BYTES["cuda"] = 64
    timer.WARM_UP_SECONDS = 0.0
    timer.WARM_UP_CALLS["cuda"] = 1
    further_times._GRAPH_SITES["cuda"], further_times._BONDS_PER_SITE = 8, 2
    calls.is_kernel = lambda item: isinstance(item, FakeCUDAKernel) and not item._device
    command_line(["bench", "--device", "cuda", "--runs", "1", "--json", "-", *arguments])
