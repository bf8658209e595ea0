"""The tiled labeler: clusters of tiles in shared memory, then of what crosses their borders."""

#: Axes that a tile has.
TILE_DIMENSION = 3
