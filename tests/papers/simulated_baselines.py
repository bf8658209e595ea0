"""Runs the labelers of papers in CUDA's simulator, compared with the reference.

Tiles are tiny there, so that lattices of a few hundred sites have many, joined over several levels.
"""

import numpy as np
from helpers import BASELINES, assert_cuda_equals_cpu, cpu_labeler, items_of, lattice, probabilities

from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.labelers import labeler_class, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.topology import pack_bits, unpack_bits

#: Shapes, and the boundary along each axis, by dimension: several tiles along both axes, of which
#: the last are no whole ones; one tile; less than one.
CASES = {
    2: (
        ((17, 13), ("open", "open")),
        ((15, 11), ("periodic", "periodic")),
        ((4, 4), ("periodic", "open")),
        ((19, 2), ("open", "periodic")),
    ),
    3: (((5, 3, 4), ("open",) * 3), ((4, 6, 3), ("periodic", "open", "periodic"))),
}
#: Edges of tiles other than the usual one of the simulator, 4.
EDGES = (2, 5, 20)


def samples_of(topology, ps):
    """Return the open bonds and the labels of a sample at every p, one a line."""
    host, opened, labels = cpu_labeler("reference", topology), [], []
    for number, p in enumerate(ps):
        host.open_bonds(XORWOW, 3, number, p_to_threshold(p))
        opened.append(host.opened)
        labels.append(host.label())
    return np.array(opened), np.array(labels)


def labels_of(labeler, opened):
    """Return the labels of these open bonds."""
    return labeler.join(labeler.batch.load(opened), Reading.LABELS).labels()


def new_labeler(name, topology, items, **options):
    """Return a labeler of CUDA, made directly."""
    return labeler_class(name, "cuda")(new_batch("cuda", topology, BOND, capacity=items), **options)


def compare_labels(name):
    """Compare labels on small shapes, near p_c and far above it, in batches."""
    item, (_, _, middle, high, _) = lattice(name), probabilities(name)
    for shape, boundary in CASES[item.dimension]:
        axes = zip(shape, item.cell, boundary)
        fitting = tuple(n - n % cell if kind == "periodic" else n for n, cell, kind in axes)
        topology = item.topology(fitting, boundary)
        # With all bonds open the queue of a search is as full as it can be.
        opened, expected = samples_of(topology, (middle, high, 1.0))
        for labeler in BASELINES:
            if serving_labeler(labeler, "cuda", topology) == labeler:
                found = labels_of(new_labeler(labeler, topology, 3), opened)
                case = f"{labeler}, {fitting}, {boundary}"
                np.testing.assert_array_equal(found, expected, err_msg=case)


def labels_in_tiles(topology, opened, edge):
    """Return the labels of one sample if the bonds between tiles were closed."""
    width, _ = topology.shape
    bonds = np.flatnonzero(unpack_bits(opened, 32 * opened.size))
    k, i = np.divmod(bonds, 32 * topology.num_words)
    right, down = np.array(topology.offsets).T[:, k]
    x, y = i % width, i // width
    inside = (x // edge == (x + right) // edge) & (y // edge == (y + down) // edge)
    if topology.periodic_words is not None:
        inside &= ~np.isin(bonds, topology.periodic_bonds)
    closed = np.zeros(32 * opened.size, bool)
    closed[bonds[inside]] = True
    host = cpu_labeler("reference", topology)
    host.load(pack_bits(closed))
    return host.label()


def compare_tiles():
    """Compare what a local labeling finds, before anything is joined over borders."""
    topology = lattice("square-nnn").topology((19, 13), ("periodic", "open"))
    opened, _ = samples_of(topology, (0.4,))
    for name in ("tiles:bfs+sewing", "tiles:union+sewing", "tiles:self+sewing"):
        for edge in (4, 5):
            labeler = new_labeler(name, topology, 1, edge=edge)
            labeler.local.run(labeler.batch.load(opened))
            labeler.find_roots(1)
            expected = labels_in_tiles(topology, opened[0], edge)
            np.testing.assert_array_equal(labeler.labels.copy_to_host(), expected, err_msg=name)


def compare_edges():
    """Compare labels in tiles of other edges, and count the steps of relaxation."""
    compare_tiles()
    topology = lattice("square-nnn").topology((19, 13), ("periodic", "open"))
    opened, expected = samples_of(topology, (0.3,))
    for edge in EDGES:
        for name in BASELINES[1:]:
            labeler = new_labeler(name, topology, 1, edge=edge)
            found = labels_of(labeler, opened)
            np.testing.assert_array_equal(found, expected, err_msg=f"{name}, edge {edge}")
    whole = lattice("square").topology((16, 8))
    labeler = new_labeler("tiles:bfs+relaxation", whole, 1)
    for p, least, most in ((0.0, 1, 1), (1.0, 2, 5)):
        # From the first of 4 x 2 tiles the label 0 comes to the last in four steps at most.
        labels_of(labeler, samples_of(whole, (p,))[0])
        assert least <= labeler.consolidation.steps <= most, labeler.consolidation.steps
    one = new_labeler("tiles:bfs+relaxation", whole, 1, edge=16)
    labels_of(one, samples_of(whole, (0.5,))[0])
    assert one.consolidation.steps == 0


def compare_rows():
    """Compare rows, by way of the coupling that measures point by point."""
    topology = lattice("square").topology((9, 5), ("periodic", "open"))
    for name in ("komura_2015", "tiles:self+sewing", "tiles:union+relaxation"):
        assert_cuda_equals_cpu(name, topology, items_of((0.4, 0.6)))
