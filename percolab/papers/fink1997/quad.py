"""One lattice in boxes over ranks: their boundaries merged by a tree, or by Quad.

S. J. Fink, S. B. Baden, C. Huston and K. Jansen, Parallel cluster identification for
multidimensional lattices, IEEE Transactions on Parallel and Distributed Systems (1997).

A rank has one box.  In each of log2 P *stages* blocks of boxes meet that are neighbours along one
axis, the axes in turn.  ``tree``: the upper one sends its boundary (the paper's *information
region*) to the lower one, and the first rank ends with the row.  ``quad``: partners exchange whole
boundaries and both join them, and all ranks end with everything.

``bubbles``: before the first stage neighbours send each other which of their clusters cross no face
but the one between them.  These bubbles are joined there and dropped; but of a component of
clusters that bonds of the face join, only if all are bubbles of this face: one that is not may join
the others to something else later.  ``runs``: borders are runs of equal entries, in memory and in
messages.  ``shorter``: the same, but a border is sent by its bonds where that is shorter.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, nearest
from percolab.kernels.memory import Memory
from percolab.lattices.lattice import AXIS_NAMES
from percolab.papers.fink1997.box_kernels import find_finished
from percolab.papers.fink1997.boxes import (
    BOND_BYTES,
    Blocks,
    Border,
    Boundary,
    BoxRaster,
    Vector,
    is_upward,
    join_boundaries,
    opposite,
    row_from_boxes,
)
from percolab.parts.interface import Face, Interface, InterfaceSums, Row, join, no_face
from percolab.parts.kernels import INSIDE, number_entries
from percolab.parts.parts import Whole
from percolab.parts.ranks import RankStep
from percolab.parts.raster import SampleKey
from percolab.parts.transport import Arrays, Transport

#: The stage of a step in which neighbours exchange bubbles.
BUBBLES = -2
_OPTIONS = ("bubbles", "runs", "shorter")
_KINDS = ("tree", "quad")

#: Bytes of a label, of a bond's offset into the labels, and of a run, as the paper's messages have
#: them; and what a bubble exchange takes for each bond, a label whose highest bit is the mark.
LABEL, OFFSET, RUN, MARKED = 4, 4, 8, 4


@dataclass(frozen=True)
class Merge:
    """How boundaries are merged.

    kind:    ``tree`` or ``quad``
    bubbles, runs, shorter: as the module says; ``shorter`` has runs
    """

    kind: str = "tree"
    bubbles: bool = False
    runs: bool = False
    shorter: bool = False

    @classmethod
    def parse(cls, text: str) -> Merge:
        """Return what ``tree`` or ``quad`` says, with options behind a colon; InputError.

        >>> str(Merge.parse("quad:bubbles,runs"))
        'quad:bubbles,runs'
        """
        kind, _, rest = text.partition(":")
        if kind not in _KINDS:
            raise InputError(f"merge {text!r}: unknown {kind!r}; {nearest(kind, _KINDS)}")
        options = rest.split(",") if rest or ":" in text else []
        for option in options:
            if option not in _OPTIONS:
                raise InputError(
                    f"merge {text!r}: unknown option {option!r}; {nearest(option, _OPTIONS)}"
                )
        shorter = "shorter" in options
        return cls(kind, "bubbles" in options, shorter or "runs" in options, shorter)

    def __str__(self) -> str:
        runs = "shorter" if self.shorter else "runs" if self.runs else ""
        options = [name for name in ("bubbles" if self.bubbles else "", runs) if name]
        return f"{self.kind}:{','.join(options)}" if options else self.kind

    def check(self, blocks: Blocks) -> None:
        """Raise InputError if so many boxes cannot be merged in this way."""
        for axis, count in enumerate(blocks.counts):
            if self.kind == "quad" and count & (count - 1):
                raise InputError(
                    f"merge quad needs a power of two of boxes along every axis, but there are "
                    f"{count} along {AXIS_NAMES[axis]}; merge tree takes any"
                )


def list_stages(counts: Vector) -> list[tuple[int, int]]:
    """Return the stages as (axis, boxes from a block to its partner along it), the axes in turn.

    >>> list_stages((4, 2))
    [(0, 1), (1, 1), (0, 2)]
    """
    stages, step = [], 1
    while step < max(counts):
        stages += [(axis, step) for axis, count in enumerate(counts) if step < count]
        step *= 2
    return stages


def rank_of(blocks: Blocks, box: Vector) -> int:
    """Return which rank has a box: ranks are in the order of boxes, the first axis fastest."""
    rank = 0
    for place, count in zip(box[::-1], blocks.counts[::-1]):
        rank = rank * count + place
    return rank


# --- messages ------------------------------------------------------------------------------------


def bytes_of(boundary: Boundary, merge: Merge) -> int:
    """Return how long the paper's message of a boundary is: labels and borders alone."""
    total = LABEL * boundary.num_clusters
    for border in boundary.faces.values():
        by_bond, by_run = OFFSET * border.num_bonds, RUN * border.num_runs
        if merge.shorter:
            total += min(by_bond, by_run)
        else:
            total += by_run if merge.runs else by_bond
    return total


def pack(boundary: Boundary, merge: Merge) -> list[NDArray[Any]]:
    """Return a boundary as arrays, to be sent; :func:`unpack` makes it again."""
    header = [*boundary.corner, *boundary.boxes]
    borders: list[NDArray[Any]] = []
    for direction, border in boundary.faces.items():
        each = 12 if border.face.codes.size else 4
        if merge.shorter and each * border.num_bonds < border.num_bytes:
            border = border.expanded()
        header += [*direction, border.counts is not None]
        borders += [border.face.clusters, border.face.codes]
        if border.counts is not None:
            borders.append(border.counts)
    sums = boundary.sums.to_arrays()
    return [np.array(header, np.int64), boundary.sizes, boundary.flags, *sums, *borders]


def unpack(arrays: Sequence[NDArray[Any]], blocks: Blocks, merge: Merge) -> Boundary:
    """Return the boundary that :func:`pack` has made into arrays."""
    header, sizes, flags, *sums = arrays[:6]
    axes, numbers, left = len(blocks.counts), header.tolist(), deque(arrays[6:])
    faces = {}
    for start in range(2 * axes, len(numbers), axes + 1):
        *direction, has_counts = numbers[start : start + axes + 1]
        face = Face(left.popleft(), left.popleft())
        border = Border(face, left.popleft() if has_counts else None)
        faces[tuple(direction)] = border.compressed() if merge.runs else border
    corner, boxes = tuple(numbers[:axes]), tuple(numbers[axes : 2 * axes])
    return Boundary(corner, boxes, blocks, faces, sizes, flags, InterfaceSums.from_arrays(sums))


class Message(NamedTuple):
    """What a rank sends and waits for, in a stage.

    to, content:  to which rank, and a boundary or an offer; None where nothing is sent
    source:       from which rank something is awaited, or None
    """

    stage: str
    to: int | None
    content: Any
    source: int | None


#: Joins two boundaries along an axis, as :func:`.boxes.join_boundaries` does.
Join = Callable[[Boundary, Boundary, int], Boundary]


#: Yields what is sent, is given what has come, and returns the boundary of all boxes, or None.
Merging = Generator[Message, Any, Boundary | None]


def merging(box: Boundary, merge: Merge, join_two: Join = join_boundaries) -> Merging:
    """Merge the boundary of a box with those of all others, as one rank does."""
    blocks, corner, own = box.blocks, box.corner, box
    rank = rank_of(blocks, corner)
    if merge.bubbles:
        own = yield from _without_bubbles(own)
    if merge.runs:
        own = own.compressed()
    for number, (axis, step) in enumerate(list_stages(blocks.counts), 1):
        stage, stride = f"stage {number}", step * _stride(blocks, axis)
        is_upper = bool(corner[axis] // step % 2)
        if merge.kind == "quad":
            partner = rank - stride if is_upper else rank + stride
            other = yield Message(stage, partner, own, partner)
            low, high = (other, own) if is_upper else (own, other)
            own = join_two(low, high, axis)
        elif is_upper:
            yield Message(stage, rank - stride, own, None)
            return None
        elif corner[axis] + step < blocks.counts[axis]:
            other = yield Message(stage, None, None, rank + stride)
            own = join_two(own, other, axis)
    return own


def _stride(blocks: Blocks, axis: int) -> int:
    """Return how far ranks are apart whose boxes are neighbours along an axis."""
    return rank_of(blocks, tuple(int(n == axis) for n in range(len(blocks.counts))))


# --- bubbles -------------------------------------------------------------------------------------


class Offer(NamedTuple):
    """What a box sends its neighbour before bubbles are dropped.

    face:    the bonds between them, clusters numbered from 0 on in this face
    may_end: uint8, by cluster, whether it crosses no other face
    sizes, flags: of these clusters, where the neighbour is the one that counts them; else empty
    """

    face: Face
    may_end: NDArray[np.uint8]
    sizes: NDArray[np.uint64]
    flags: NDArray[np.uint32]


@dataclass
class _Marks:
    """Which clusters of a box cross which faces, and which are finished.

    single: uint8, whether a cluster crosses one face alone; done: bool, whether it was dropped
    """

    single: NDArray[np.uint8]
    done: NDArray[np.bool_]


def _message_flags(boundary: Boundary) -> _Marks:
    seen = np.zeros(boundary.num_clusters, np.uint8)
    for border in boundary.faces.values():
        here = np.zeros(seen.size, np.uint8)
        here[border.face.clusters] = 1
        seen += here
    return _Marks((seen == 1).view(np.uint8), np.zeros(seen.size, bool))


def _make_offer(boundary: Boundary, direction: Vector, marks: _Marks) -> tuple[Offer, Any]:
    """Return what is sent in a direction, and the box's numbers of these clusters."""
    border = boundary.faces.get(direction)
    face = no_face() if border is None else border.face
    clusters = face.clusters.copy()
    count = boundary.num_clusters
    parents, numbers = np.arange(count, dtype=np.uint32), np.full(count, INSIDE, np.uint32)
    none = np.empty(0, np.int64)
    num_clusters = number_entries(clusters, none, 0, 0, parents, none, numbers)
    chosen = np.empty(num_clusters, np.int64)
    chosen[clusters] = face.clusters
    counted = slice(0, 0 if is_upward(direction) else None)
    sizes, flags = boundary.sizes[chosen[counted]], boundary.flags[chosen[counted]]
    return Offer(Face(clusters, face.codes), marks.single[chosen], sizes, flags), chosen


def _without_bubbles(boundary: Boundary) -> Generator[Message, Any, Boundary]:
    """Drop the bubbles of a box, all its neighbours doing the same."""
    marks, ended = _message_flags(boundary), []
    blocks, box = boundary.blocks, boundary.corner
    # Of all bonds that lead along an axis, ranks exchange those of every second box at a time.
    offsets = tuple(bond.offset for bond in blocks.whole.lattice.bonds)
    for direction, color in _meetings(offsets, blocks.counts):
        for way in (direction, opposite(direction)):
            partner = blocks.neighbour(box, way)
            lower = box if way == direction else partner
            if partner is None or lower is None or _color(blocks, lower, direction) != color:
                continue
            offer, chosen = _make_offer(boundary, way, marks)
            rank, bonds = rank_of(blocks, partner), offer.face.num_bonds
            other = yield Message("bubbles", rank, offer, rank)
            own_ends, other_ends = (np.empty(n.size, np.uint8) for n in (chosen, other.may_end))
            if other.face.num_bonds != bonds:
                raise ValueError(f"{bonds} open bonds here, {other.face.num_bonds} there")
            clusters = offer.face.clusters, other.face.clusters
            find_finished(*clusters, offer.may_end, other.may_end, own_ends, other_ends)
            marks.done[chosen[own_ends.view(bool)]] = True
            if way == direction:
                own = offer.face, own_ends, boundary.sizes[chosen], boundary.flags[chosen]
                ended.append((own, (other.face, other_ends, other.sizes, other.flags)))
    sums = boundary.sums.plus(_finished(ended, boundary), len(box))
    return replace(_dropped(boundary, marks.done), sums=sums)


@lru_cache(maxsize=64)
def _meetings(offsets: tuple[Vector, ...], counts: Vector) -> list[tuple[Vector, int]]:
    """Return the upward directions of a lattice's faces, each with every color of a pair.

    offsets: of its bonds; counts: boxes along each axis
    """
    upward: set[Vector] = set()
    for offset in offsets:
        # A bond that leads aslant crosses some of the faces along its way.
        steps = [sorted({0, int(np.sign(o)) * (n > 1)}) for o, n in zip(offset, counts)]
        ways = (way for way in product(*steps) if any(way))
        upward |= {way if is_upward(way) else opposite(way) for way in ways}
    return [(direction, color) for direction in sorted(upward) for color in range(3)]


def _color(blocks: Blocks, lower: Vector, direction: Vector) -> int:
    """Return which of three colors a pair of neighbours has, so that a box has one of each."""
    axis = max(n for n, step in enumerate(direction) if step)
    last = blocks.counts[axis] - 1
    return 2 if lower[axis] == last and last % 2 == 0 else lower[axis] % 2


def _finished(ended: list[tuple[Any, Any]], boundary: Boundary) -> InterfaceSums:
    """Return what the clusters add up to that end at faces, as the box below them counts them.

    ended: for each face its two sides: the bonds, which clusters end, all sizes and all flags
    """
    where, none = (1, 2, len(boundary.corner)), InterfaceSums.empty(len(boundary.sums.bins))
    low, high = (_ending([sides[n] for sides in ended]) for n in (0, 1))
    both = join(
        Interface(0, *where, no_face(), *low, none),
        Interface(1, *where, high[0], no_face(), *high[1:], none),
    )
    return both.sums


def _ending(sides: list[Any]) -> tuple[Face, NDArray[np.uint64], NDArray[np.uint32]]:
    """Return one side of several faces as one: the bonds of clusters that end, sizes and flags."""
    faces, before = [], 0
    for face, ends, _, _ in sides:
        kept = ends.view(bool)
        entries = kept[face.clusters]
        numbers = (np.cumsum(kept) + (before - 1)).astype(np.uint32)
        codes = face.codes[entries] if face.codes.size else face.codes
        faces.append((numbers[face.clusters[entries]], codes))
        before += int(np.count_nonzero(kept))
    if not faces:
        return no_face(), np.empty(0, np.uint64), np.empty(0, np.uint32)
    kinds = zip(*faces), zip(*((s[2][s[1].view(bool)], s[3][s[1].view(bool)]) for s in sides))
    clusters, codes, sizes, flags = (np.concatenate(each) for kind in kinds for each in kind)
    return Face(clusters, codes), sizes, flags


def _dropped(boundary: Boundary, done: NDArray[np.bool_]) -> Boundary:
    """Return a boundary without some of its clusters."""
    kept = ~done
    numbers = (np.cumsum(kept) - 1).astype(np.uint32)
    faces = {}
    for direction, border in boundary.faces.items():
        face = border.face
        entries = kept[face.clusters]
        codes = face.codes[entries] if face.codes.size else face.codes
        faces[direction] = Border(Face(numbers[face.clusters[entries]], codes))
    return replace(boundary, faces=faces, sizes=boundary.sizes[kept], flags=boundary.flags[kept])


# --- all ranks in one process --------------------------------------------------------------------


@dataclass
class Stage:
    """What all ranks did in a stage.

    messages, num_bytes: sent, as the paper counts unless stated otherwise; most_bytes: by one rank
    seconds:             of each rank's own work, by the clock that was given
    """

    messages: int = 0
    num_bytes: int = 0
    most_bytes: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Merged:
    """What ranks that were simulated have found.

    boundaries: of all boxes, by rank, None where a rank has sent its own away
    stages:     by name, in order: ``prepare``, ``bubbles``, ``stage 1`` ...
    """

    boundaries: list[Boundary | None]
    stages: dict[str, Stage]

    @property
    def num_bytes(self) -> int:
        """Bytes sent in the stages, without those of the bubble exchange, as the paper counts."""
        return sum(stage.num_bytes for name, stage in self.stages.items() if name != "bubbles")

    @property
    def seconds(self) -> float:
        """The critical path: the sum over stages of the slowest rank's time."""
        return sum(max(stage.seconds, default=0.0) for stage in self.stages.values())


class _Once:
    """Joins two boundaries once, however many ranks do: they would all do the same work.

    owed: seconds that the joins took that were not done again, to be counted for a rank
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self.owed = clock, 0.0
        # The two are kept, so that no others have their identities.
        self._done: dict[tuple[int, int], tuple[float, tuple[Boundary, Boundary, Boundary]]] = {}

    def __call__(self, low: Boundary, high: Boundary, axis: int) -> Boundary:
        pair = id(low), id(high)
        if pair in self._done:
            seconds, (*_, joined) = self._done[pair]
            self.owed += seconds
            return joined
        start = self._clock()
        joined = join_boundaries(low, high, axis)
        self._done[pair] = self._clock() - start, (low, high, joined)
        return joined


class _Ranks:
    """Ranks that work one after the other in one thread, each until it waits."""

    def __init__(
        self,
        boxes: Sequence[Boundary],
        merge: Merge,
        clock: Callable[[], float],
        length: Callable[[Boundary | Offer, Merge], int],
    ) -> None:
        self._clock, self._merge, self._join = clock, merge, _Once(clock)
        self._length = length
        self._ranks = [merging(box, merge, self._join) for box in boxes]
        self._mail: dict[tuple[int, int], deque[Any]] = {}
        self._waiting: dict[int, Message] = {}
        self.stages: dict[str, Stage] = {}
        self.boundaries: list[Boundary | None] = [None] * len(boxes)

    def run(self) -> None:
        """Let all ranks work until they are done."""
        for rank in range(len(self._ranks)):
            self._work(rank, "prepare", None)
        while self._waiting:
            ready = [rank for rank in self._waiting if self._may_go_on(rank)]
            if not ready:
                raise RuntimeError(f"ranks wait for what nobody sends: {self._waiting}")
            for rank in ready:
                message = self._waiting.pop(rank)
                came = None
                if message.source is not None:
                    came = self._mail[message.source, rank].popleft()
                self._work(rank, message.stage, came)

    def _may_go_on(self, rank: int) -> bool:
        """Return whether a rank has what it waits for."""
        source = self._waiting[rank].source
        return source is None or bool(self._mail.get((source, rank)))

    def _stage(self, name: str) -> Stage:
        return self.stages.setdefault(name, Stage(seconds=[0.0] * len(self._ranks)))

    def _work(self, rank: int, stage: str, content: Any) -> None:
        """Let a rank go on with what has come."""
        message, start = None, self._clock()
        try:
            message = self._ranks[rank].send(content)
        except StopIteration as end:
            self.boundaries[rank] = end.value
        seconds = self._clock() - start + self._join.owed
        self._stage(stage).seconds[rank] += seconds
        self._join.owed = 0.0
        if message is None:
            return
        self._waiting[rank] = message
        if message.to is not None:
            self._mail.setdefault((rank, message.to), deque()).append(message.content)
            own, length = self._stage(message.stage), self._length(message.content, self._merge)
            own.messages += 1
            own.num_bytes += length
            own.most_bytes = max(own.most_bytes, length)


def length_of(content: Boundary | Offer, merge: Merge) -> int:
    """Return how long a message is, as the paper counts."""
    if isinstance(content, Offer):
        return MARKED * content.face.num_bonds
    return bytes_of(content, merge)


def simulate(
    boxes: Sequence[Boundary],
    merge: Merge,
    clock: Callable[[], float] = time.thread_time,
    length: Callable[[Boundary | Offer, Merge], int] = length_of,
) -> Merged:
    """Merge the boundaries of all boxes, one rank after the other in this thread, and count.

    boxes: by rank.  Messages are handed over as they are; length: how their bytes are counted.
    Ranks that join the same two boundaries do so once, and the time counts for each.

    InputError: as :meth:`Merge.check`.
    """
    merge.check(boxes[0].blocks)
    ranks = _Ranks(boxes, merge, clock, length)
    ranks.run()
    return Merged(ranks.boundaries, ranks.stages)


# --- one rank of many ----------------------------------------------------------------------------


def merge_over(
    transport: Transport, box: Boundary, merge: Merge, steps: list[RankStep] | None = None
) -> Boundary | None:
    """Merge the boundary of this rank's box with those of the others.

    Returns the boundary of all boxes, with ``tree`` None on all ranks but the first.
    steps: gets what this rank did: first what it had to do alone, as part of stage -1; then one
    step for every message that came, of stage 0, 1, ... or :data:`BUBBLES`.
    """
    merge.check(box.blocks)
    work, traffic, steps = merging(box, merge), transport.traffic, [] if steps is None else steps
    step: RankStep | None = RankStep(transport.rank, -1, 0, 0.0, 0.0, 0.0)
    content: Boundary | Offer | None = None
    start = time.perf_counter()
    while True:
        merged: Boundary | None = None
        message: Message | None = None
        try:
            message = work.send(content)
        except StopIteration as end:
            merged = end.value
        arrays = [] if message is None else _message_arrays(message.content, merge)
        if step is not None:
            steps.append(step._replace(work=time.perf_counter() - start))
        if message is None:
            return merged
        before = replace(traffic)
        came = _passed(transport, message, arrays)
        start, step, content = time.perf_counter(), None, None
        if came is not None:
            received = traffic.bytes_received - before.bytes_received
            seconds, waiting = traffic.seconds - before.seconds, traffic.waiting - before.waiting
            where = transport.rank, stage_number(message.stage)
            step = RankStep(*where, received, seconds, waiting, 0.0)
            is_offer = isinstance(message.content, Offer)
            content = _offer_from(came) if is_offer else unpack(came, box.blocks, merge)


def _passed(transport: Transport, message: Message, arrays: Arrays) -> Arrays | None:
    """Send what a message has and return what is awaited, None if nothing is."""
    if message.to is None:
        assert message.source is not None
        return transport.receive(message.source)
    if message.source is None:
        transport.send(message.to, arrays)
        return None
    return transport.exchange(message.to, arrays)


def stage_number(name: str) -> int:
    """Return the number of a stage in a :class:`percolab.parts.ranks.RankStep`.

    >>> stage_number("stage 1"), stage_number("bubbles"), stage_number("prepare")
    (0, -2, -1)
    """
    if name.startswith("stage "):
        return int(name.split()[1]) - 1
    return BUBBLES if name == "bubbles" else -1


def _message_arrays(content: Boundary | Offer | None, merge: Merge) -> Arrays:
    """Return what a message has as arrays."""
    if content is None:
        return []
    return _offered(content) if isinstance(content, Offer) else pack(content, merge)


def _offered(offer: Offer) -> list[NDArray[Any]]:
    """Return an offer as arrays."""
    return [offer.face.clusters, offer.face.codes, offer.may_end, offer.sizes, offer.flags]


def _offer_from(arrays: Arrays) -> Offer:
    """Return the offer that these arrays are of."""
    clusters, codes, *rest = arrays
    return Offer(Face(clusters, codes), *rest)


class Boxes:
    """One lattice in boxes, ready for any number of samples; one thread at a time.

    whole:     the lattice
    counts:    boxes along each axis
    merge:     how their boundaries are merged
    tally:     whether sizes are tallied
    transport: of as many ranks as there are boxes, of which this is one.  Without one all boxes are
               done here, one by one.

    InputError: as for :class:`.boxes.Blocks` and :meth:`Merge.check`, or ranks that are not as many
    as boxes.
    """

    def __init__(
        self,
        whole: Whole,
        counts: Sequence[int],
        merge: Merge,
        *,
        tally: bool = False,
        transport: Transport | None = None,
    ) -> None:
        self.blocks, self.merge, self.transport = Blocks(whole, tuple(counts)), merge, transport
        merge.check(self.blocks)
        if transport is not None and transport.size != self.blocks.num_boxes:
            raise InputError(
                f"{transport.size} ranks, but {self.blocks.num_boxes} boxes: each rank has one"
            )
        self._raster, self._boxes = BoxRaster(self.blocks, tally=tally), self.blocks.coordinates()

    @staticmethod
    def memory(blocks: Blocks, *, is_rank: bool) -> Memory:
        """Return the memory that a row takes, whatever p is: as if all bonds at faces were open.

        is_rank: whether this is one rank of a transport.  Then it has its box and, in the last
        stage, three boundaries of the whole lattice; else all boundaries of all stages.
        """
        whole = BOND_BYTES * blocks.most_crossing(blocks.counts)
        merging = 3 * whole
        if not is_rank:
            boxes, left = (1,) * len(blocks.counts), blocks.num_boxes
            # Twice, for the bubbles that are left out.
            merging += 2 * left * BOND_BYTES * blocks.most_crossing(boxes)
            for axis, _ in list_stages(blocks.counts):
                boxes = tuple(
                    min(n * (1 + (k == axis)), blocks.counts[k]) for k, n in enumerate(boxes)
                )
                left = -(-left // 2)
                merging += left * BOND_BYTES * blocks.most_crossing(boxes)
        return BoxRaster.memory(blocks).plus(Memory(host=merging))

    def row(self, draw: SampleKey) -> Row | None:
        """Return the row of a sample; with ``tree`` and a transport None but on the first rank."""
        merged = self.merged(draw)
        return None if merged is None else row_from_boxes(merged)

    def merged(
        self,
        draw: SampleKey,
        steps: list[RankStep] | None = None,
        done: Callable[[int], None] = lambda boxes: None,
    ) -> Boundary | None:
        """Return the boundary of all boxes of a sample; None where :meth:`row` is.

        steps: gets what this rank did.  Where all boxes are done here, the seconds of a stage are
        those of the rank that would take longest.  done: is called with the number of
        boxes that were labeled.
        """
        steps = [] if steps is None else steps
        rank = 0 if self.transport is None else self.transport.rank
        start, own = time.perf_counter(), []
        for box in self._boxes if self.transport is None else [self._boxes[rank]]:
            own.append(self._raster.boundary(box, draw))
            done(1)
        steps.append(RankStep(rank, -1, 0, 0.0, 0.0, time.perf_counter() - start))
        if self.transport is not None:
            return merge_over(self.transport, own[0], self.merge, steps)
        simulated = simulate(own, self.merge)
        for name, stage in simulated.stages.items():
            seconds = max(stage.seconds, default=0.0)
            steps.append(RankStep(0, stage_number(name), 0, 0.0, 0.0, seconds))
        return simulated.boundaries[0]
