"""One labeling for all p: rows on a whole grid of p, and the exact threshold T of a sample."""
