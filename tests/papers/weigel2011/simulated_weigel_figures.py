r"""Runs percolab.papers.weigel2011.figures in CUDA's simulator, whose events measure nothing.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python tests/simulator.py \
    tests/papers/weigel2011/simulated_weigel_figures.py OUT.json
"""

import sys
import warnings

from percolab.papers.weigel2011 import figures

SIZES = ("-L", "4,8", "--edges", "2,4", "--local-edges", "4,6", "--least-tiles", "1")

if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    figures.REPEATS = figures.UPDATES = 1
    figures.BURN_IN = 2
    figures.USUAL_EDGE = 4
    figures.SEED_EDGE, figures.RELAXATION_EDGES = 4, (4,)
    figures.RATIOS = (1e-9, 1.0)
    figures.KOMURA = {"honeycomb": (4,), "square": (4,)}
    out, *more = sys.argv[1:]
    figures.main([*SIZES, "--out", out, *more])
