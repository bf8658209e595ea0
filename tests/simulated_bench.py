"""Runs `percolab bench` on CUDA's simulator, whose events measure nothing; a test starts it.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python simulator.py simulated_bench.py
"""

import warnings

import percolab.kernels.device
from percolab.benchmark import stages, timer
from percolab.cli import main

ARGUMENTS = ("--device", "cuda", "--lattice", "square", "--labeler", "four_step", "--no-peers")

if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    # The simulator's memory is infinite, and it runs a Python thread per thread.
    percolab.kernels.device.free_memory = lambda cuda: 2**30
    stages.SITES_PER_RUN["cuda"] = 32
    stages.GRID_POINTS = 2
    timer.COPY_BYTES["cuda"] = 64
    timer.WARM_UP_SECONDS = 0.0
    main(["bench", *ARGUMENTS, "-L", "4", "--quick", "--runs", "1", "--json", "-"])
