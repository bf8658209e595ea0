r"""Runs percolab.papers.guo2011.figures in CUDA's simulator, whose events measure nothing.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python tests/simulator.py \
    tests/papers/guo2011/simulated_guo_figures.py OUT.json
"""

import sys
import warnings

from percolab.papers.guo2011 import figures

if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    figures.REPEATS, figures.BATCH, figures.LENGTHS = 1, 3, (5,)
    figures.BONDS = 2
    out, *more = sys.argv[1:]
    figures.main(["-V", "4,9", "--out", out, *more])
