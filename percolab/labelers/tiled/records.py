"""The records that the kernels of the tiled labeler take as arguments."""

from typing import Any, NamedTuple


class Tiles(NamedTuple):
    """A topology cut into tiles (:class:`percolab.labelers.tiled.tiling.Tiling`), for kernels.

    shape:          grid points along the axes, at least three numbers, uint32
    extents:        binary logarithms of a tile's words (axis 0) and grid points (others), uint32
    counts:         tiles along the axes, uint32; 0 from the last axis on that has several
    classes, shifts, rows: for every class but the chain's: its number, and the distance of the
                    other end in bits and in words of the tile; int32 each
    inner:          uint32, the bonds with both ends in one tile
    occupied:       uint32, the sites that exist, one bit each
    chain:          the class of the chain bonds, or -1, int32
    num_words:      words of a class, uint32
    words_per_entry: bond words of an entry, uint32
    points:         grid points, uint32
    """

    shape: Any
    extents: Any
    counts: Any
    classes: Any
    shifts: Any
    rows: Any
    inner: Any
    occupied: Any
    chain: Any
    num_words: Any
    words_per_entry: Any
    points: Any


class Crossing(NamedTuple):
    """The bonds between tiles (:class:`percolab.labelers.tiled.tiling.CrossingBonds`), n entries.

    words:  uint32 (n,), the bond word
    owners: uint32 (n,), the word of sites that own its bonds
    masks:  uint32 (n,), which of its bonds lead to another tile
    deltas: int32 (n,), their other ends less their owners
    codes:  int32 (n,), codes of the periods that they cross, in the form for CUDA
    """

    words: Any
    owners: Any
    masks: Any
    deltas: Any
    codes: Any


class Nodes(NamedTuple):
    """The clusters at borders of tiles, uint32 each, with room for ``room`` of them in every tile.

    If only the wrapping is read, arrays of one element stand for no array.

    parents: a root's parent is itself
    sizes:   sites; later, at roots, those of the whole cluster, and 0 elsewhere
    ends:    flags of the end layers that the cluster touches (bit 2a: first layer of axis a)
    origins: the smallest site
    room:    nodes for which a tile has room, uint32
    """

    parents: Any
    sizes: Any
    ends: Any
    origins: Any
    room: Any


class CrossingList(NamedTuple):
    """The open bonds between tiles of every entry.

    bonds:  uint32, 32 n + b for bit b of entry n of the crossing bonds
    counts: uint32 (entries,)
    room:   bonds for which an entry has room, uint32
    """

    bonds: Any
    counts: Any
    room: Any


class Openings(NamedTuple):
    """The bonds of tiles that open between a lower and an upper p, where these join two clusters.

    upper:    uint32, the bond words at the upper p
    list:     uint32 (blocks, room, 4): for every opening its two nodes; its bond, later its step;
              and the periods that the bond crosses
    counts:   uint32 (blocks,)
    room:     openings for which a tile has room, uint32; 0 where there is no upper p
    overflow: uint32 (1,), set if a tile's room was too small: then another method repeats the work
    """

    upper: Any
    list: Any
    counts: Any
    room: Any
    overflow: Any


class Tallies(NamedTuple):
    """The tallies of all entries: uint64, ``width`` (uint32) numbers each; or one if none."""

    counts: Any
    width: Any
