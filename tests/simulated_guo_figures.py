"""Runs scripts/guo_figures.py in CUDA's simulator, whose events measure nothing.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python simulator.py simulated_guo_figures.py OUT.json
"""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import guo_figures

if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    guo_figures.REPEATS, guo_figures.BATCH, guo_figures.LENGTHS = 1, 3, (5,)
    guo_figures.BONDS = 2
    out, *more = sys.argv[1:]
    guo_figures.main(["-V", "4,9", "--out", out, *more])
