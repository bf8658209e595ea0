"""What is measured of the clusters of a sample: sizes, spanning, wrapping, tallies, radii."""
