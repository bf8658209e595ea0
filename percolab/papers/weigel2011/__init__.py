"""Labeling on tiles, then over their borders: the schemes that Weigel compares, for CUDA.

M. Weigel, "Connected component identification and cluster update on graphics processing units",
Phys. Rev. E 84, 036709 (2011), section II.  A labeler is one of three local labelings of square
tiles, and one of two consolidations of their labels:

tiles.py          the tiles, what a step is, and which topologies are served
bfs.py            breadth-first search, one thread a tile
union.py          union-find, one thread a tile
self_labeling.py  both ends of every bond get the smaller label until no label changes, one thread
                  a site
relaxation.py     the same over the borders of tiles
sewing.py         tiles are joined two by two along both axes, level by level
labeler.py        a local labeling and a consolidation make a labeler

They are here to compare with.  Against the paper: open bonds are bits of words, as everywhere in
percolab, and the root of a tree is its smallest site, not that of the larger of two joined trees,
since the smallest site is a cluster's label.
"""
