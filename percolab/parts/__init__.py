"""Parts: one lattice in parts, whose rows equal those of the whole lattice bit for bit.

A *part* is a slab of whole layers along the last axis (:mod:`percolab.parts.parts`).  Its bonds are
drawn from the keys and joined, and give its *interface* (:mod:`percolab.parts.interface`).
Interfaces are joined until one is left, which gives the row of the sample: one after the other, or
by ranks in parallel (:mod:`percolab.parts.ranks`).  Other ways to cut a lattice are registered by
name (:mod:`percolab.parts.partitions`).

Source: D. Tiggemann, Int. J. Mod. Phys. C 12, 871 (2001).
"""

# This import makes the cache of this room's kernels depend on the content of the sums, too.
import percolab.measure  # noqa: F401
