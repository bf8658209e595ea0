"""Runs scripts that time kernels in CUDA's simulator, whose events measure nothing.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python simulator.py simulated_timings.py bench_trees ...
"""

import importlib
import sys
import warnings
from pathlib import Path
from unittest import mock

from numba.cuda.simulator.kernel import FakeCUDAKernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import bench_kernels

from percolab.papers.guo2011 import figures


def kernels_of(module):
    """Return the kernels that a module names, as kernel_report.kernels_of does on a GPU."""
    kernels = {name: own for name, own in vars(module).items() if isinstance(own, FakeCUDAKernel)}
    return {name: item for name, item in kernels.items() if not item._device}


if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    bench_kernels.WARM_UP_SECONDS, bench_kernels.kernels_of = 0.0, kernels_of
    figures.REPEATS, figures.BONDS = 1, 2
    name, *arguments = sys.argv[1:]
    with mock.patch("percolab.kernels.device.free_memory", return_value=10**12):
        importlib.import_module(name).main(arguments)
