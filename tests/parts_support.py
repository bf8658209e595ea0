"""What the tests of parts share: lattices, models, and rows of whole samples."""

import threading
from functools import cache
from itertools import product

import numpy as np
from helpers import BUILT_IN, Single, cpu_labeler, lattice, probabilities

from percolab.bonds.model import BOND, Model
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.parts.interface import close, join, make_row
from percolab.parts.parts import Parts
from percolab.parts.ranks import Leader, follow
from percolab.parts.raster import SlabRaster
from percolab.parts.slabs import Slabs, thicknesses
from percolab.parts.transport import Local, RankLost

MODELS = (
    BOND,
    Model.parse("site"),
    Model.parse("site-bond"),
    Model.parse("site-bond:site=0.9"),
    Model.parse("site-bond:bond=0.8"),
)

#: Bonds that go two layers down, aside and back; a cell of three layers with a vacancy.
FAR_REACHING = lattice_from_text(
    """
name = "far_reaching"
dimension = 2
bonds = [
    { offset = [1, 0], at = [[0, 0], [1, 0], [0, 2], [1, 2]] },
    { offset = [1, 1], at = [[0, 2], [1, 2]] },
    { offset = [-3, 2], at = [[0, 0], [1, 1]] },
    { offset = [0, 2], at = [[1, 1], [1, 0], [0, 0]] },
]

[cell]
shape = [2, 3]
vacant = [[0, 1]]
""",
    where="far_reaching",
)
#: One axis, sites of which lie in end layers two thick.
CHAIN_OF_TWO = lattice_from_text(
    """
name = "chain_of_two"
dimension = 1

[unit_cell]
sites = 2
bonds = [
    { from = 0, to = 1, cell = [0] },
    { from = 1, to = 0, cell = [1] },
    { from = 0, to = 0, cell = [1] },
]
""",
    where="chain_of_two",
)
OF_TESTS = {"far_reaching": FAR_REACHING, "chain_of_two": CHAIN_OF_TWO}
NAMES = (*BUILT_IN, "honeycomb_unit_cell", *OF_TESTS)
#: Grid points along the axes, about: odd, so that slabs begin anywhere in a word.
SIZES = {1: (37,), 2: (7, 17), 3: (5, 3, 11), 4: (3, 2, 3, 9), 5: (2, 3, 2, 2, 8)}


@cache
def structure(name):
    if name in OF_TESTS:
        return OF_TESTS[name]
    return load_lattice(name) if name in BUILT_IN else lattice(name)


def boundaries_of(name):
    return tuple(product(("open", "periodic"), repeat=structure(name).dimension))


def shape_of(name, boundary, sizes=None):
    """Return a shape near the given sizes, of whole cells along periodic axes."""
    item = structure(name)
    axes = zip(sizes or SIZES[item.dimension], item.cell, boundary)
    return tuple(-(-n // cell) * cell if kind == "periodic" else n for n, cell, kind in axes)


def ps_of(name):
    return (0.0, 0.2, 0.4, 0.7, 1.0) if name in OF_TESTS else probabilities(name)


def by_ranks(job, draws):
    """Return the rows of samples, and the steps of the ranks, by threads of this process."""

    def work(transport):
        if transport.rank:
            return follow(transport)
        leader = Leader(transport)
        found = [leader.row(job, draw) for draw in draws]
        leader.end()
        return found

    return run_local(len(job.layers), work)[0]


@cache
def reference(name, shape, boundary, model, tally) -> Single:
    topology = structure(name).topology(shape, boundary)
    return cpu_labeler("raster", topology, model, tally=tally)


def row_of_the_whole(whole, draw, *, tally):
    """Return the row that the labeler raster finds in one piece."""
    name = whole.lattice.name
    single = reference(name, whole.shape, whole.boundary, whole.model, tally)
    one = np.array([draw.sample], np.uint64), np.array([draw.threshold], np.uint64)
    return single.rows(draw.generator, draw.seed, *one)[0]


def interfaces_of(whole, draw, layers, first=0, *, tally=False):
    labeler, parts = SlabRaster(whole, max(layers), tally=tally), Parts(whole)
    starts = first + np.cumsum([0, *layers[:-1]])
    return [
        labeler.make_interface(parts.part(int(start), thick), draw)
        for start, thick in zip(starts, layers)
    ]


def join_in_order(interfaces, order):
    """Return the interface of neighbouring parts, joined in an order.

    order: "chain", one after the other; "tree", pairs, pairs of pairs ...; or for each step a
    number n, which joins the n-th of the interfaces that are left to the next one
    """
    left = list(interfaces)
    while order == "tree" and len(left) > 1:
        left = [join(*pair) for pair in zip(left[::2], left[1::2])] + left[len(left) & ~1 :]
    for n in [0] * (len(left) - 1) if isinstance(order, str) else order:
        left[n : n + 2] = [join(left[n], left[n + 1])]
    (interface,) = left
    return interface


def row_by_slabs(whole, draw, *, slabs=1, order="chain", tally=False):
    """Return the row of one sample; slabs: how many, or the layers of each."""
    layers = thicknesses(whole, slabs) if isinstance(slabs, int) else slabs
    if order == "chain":
        return Slabs(whole, layers, tally=tally).row(draw)
    interface = join_in_order(interfaces_of(whole, draw, layers, tally=tally), order)
    return make_row(close(interface) if whole.is_closed else interface)


def run_local(size, work):
    """Return what work returns for every rank, each called in a thread of its own.

    What one of them raises is raised here, and ends the others.
    """
    results, errors = [None] * size, []

    def run(transport):
        try:
            results[transport.rank] = work(transport)
        except BaseException as error:
            if not isinstance(error, RankLost):
                errors.append(error)
            transport.abort(f"rank {transport.rank} has failed", 1)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in Local.ranks(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
