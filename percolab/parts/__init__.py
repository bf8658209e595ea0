"""Parts: one lattice in parts, whose rows equal those of the whole lattice bit for bit.

A *part* is a slab of whole layers along the last axis (:mod:`percolab.parts.parts`).  It makes its
own bonds from the keys, joins them, and hands on its *interface* (:mod:`percolab.parts.interface`).
Interfaces are joined until one is left, which has the row of the sample: one after the other, or by
ranks side by side (:mod:`percolab.parts.ranks`).  Other ways to cut a lattice are registered by
name (:mod:`percolab.parts.partitions`).

Source: D. Tiggemann, Int. J. Mod. Phys. C 12, 871 (2001).
"""

# It has the kernels of this room cached by the content of the sums, too.
import percolab.measure  # noqa: F401
