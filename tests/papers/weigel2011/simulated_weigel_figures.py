"""Runs percolab.papers.weigel2011.figures in CUDA's simulator, whose events measure nothing."""

from percolab.papers.weigel2011 import figures

SIZES = ("-L", "4,8", "--edges", "2,4", "--local-edges", "4,6", "--least-tiles", "1")


def main(out, *more):
    """Measure tiny lattices."""
    figures.REPEATS = figures.UPDATES = 1
    figures.BURN_IN = 2
    figures.USUAL_EDGE = 4
    figures.SEED_EDGE, figures.RELAXATION_EDGES = 4, (4,)
    figures.RATIOS = (1e-9, 1.0)
    figures.KOMURA = {"honeycomb": (4,), "square": (4,)}
    figures.main([*SIZES, "--out", out, *more])
