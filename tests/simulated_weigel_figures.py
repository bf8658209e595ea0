"""Runs scripts/weigel_figures.py in CUDA's simulator, whose events measure nothing.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python simulator.py simulated_weigel_figures.py OUT.json
"""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import weigel_figures

SIZES = ("-L", "4,8", "--edges", "2,4", "--local-edges", "4,6", "--least-tiles", "1")

if __name__ == "__main__":
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    weigel_figures.REPEATS = weigel_figures.UPDATES = 1
    weigel_figures.BURN_IN = 2
    weigel_figures.USUAL_EDGE = 4
    weigel_figures.SEED_EDGE, weigel_figures.RELAXATION_EDGES = 4, (4,)
    weigel_figures.RATIOS = (1e-9, 1.0)
    weigel_figures.KOMURA = {"honeycomb": (4,), "square": (4,)}
    out, *more = sys.argv[1:]
    weigel_figures.main([*SIZES, "--out", out, *more])
