"""The tiled labeler: clusters of tiles in shared memory, then of what crosses their borders."""
