"""Runs percolab.papers.guo2011.figures in CUDA's simulator, whose events measure nothing."""

from percolab.papers.guo2011 import figures


def main(out, *more):
    """Measure tiny graphs."""
    figures.REPEATS, figures.BATCH, figures.LENGTHS, figures.BONDS = 1, 3, (5,), 2
    figures.main(["-V", "4,9", "--out", out, *more])
