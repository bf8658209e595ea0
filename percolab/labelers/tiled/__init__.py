"""The tiled labeler: clusters within tiles in shared memory, then clusters across tile borders."""
