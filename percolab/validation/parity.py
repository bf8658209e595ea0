"""Every labeler of the device against the reference: open bonds, labels and rows, bit for bit."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, TOP, XORWOW, p_to_threshold
from percolab.coupled import fit_coupling, new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.kernels.device import Device
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.lattices.topology import Topology
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    differing,
    list_labelers,
    read_samples,
    sum_differing,
)

QUICK = ("square", "triangular", "honeycomb", "kagome", "cubic")
#: Lengths of 1 and 2, and lengths below, at and across the edges of words and of a GPU's tiles.
_SHAPES = {
    2: ((1, 1), (1, 37), (2, 2), (7, 5), (32, 3), (34, 6)),
    3: ((1, 1, 1), (2, 2, 2), (7, 4, 5), (34, 2, 3)),
    4: ((2, 2, 2, 2), (3, 4, 2, 5)),
    5: ((2, 2, 2, 2, 2),),
}
_MODELS = (BOND, Model.parse("site"))
_SAMPLES = 2
#: Linear sizes by dimension, quick and full, with many words and tiles.
_LARGE = {2: (254, 4094), 3: (38, 254), 4: (14, 62), 5: (8, 26)}
_CPU = Device("cpu")


def _small(lattice_name: str, conditions: Conditions) -> Iterator[Outcome]:
    lattice, device = load_lattice(lattice_name), conditions.device
    names = [name for name in list_labelers(device.kind, lattice) if name != "reference"]
    samples, limits = _entries(lattice)
    cases, seed = list(_cases(lattice)), conditions.stream_seed("parity", lattice_name)

    def counted() -> Iterator[tuple[str, str, int]]:
        for number, (case, topology, model) in enumerate(cases):
            drawn = number % len(GENERATORS), seed, samples, limits
            expected = _measure("reference", _CPU, topology, model, drawn)
            for name in names:
                pairs = zip(_measure(name, device, topology, model, drawn), expected, strict=True)
                differ = np.any([np.any(one != other, axis=1) for one, other in pairs], axis=0)
                yield name, case, int(differ.sum())

    note = f"{len(cases) * samples.size} configurations"
    yield from sum_differing(f"{{}} on {lattice_name}: unlike reference", counted(), note)


def _entries(lattice: Lattice) -> tuple[np.ndarray, np.ndarray]:
    """Return batch entries (sample, threshold), uint64, at p = 0, low, critical, high and 1."""
    middle = _middle(lattice)
    grid = [p_to_threshold(p) for p in (0.0, 0.3 * middle, middle, (1 + middle) / 2, 1.0)]
    numbers = np.arange(_SAMPLES, dtype=np.uint64)
    return np.repeat(numbers, len(grid)), np.tile(np.array(grid, np.uint64), _SAMPLES)


def _middle(lattice: Lattice) -> float:
    known = lattice.threshold("bond")
    return known.value if known else 1 / (lattice.coordination_number - 1)


def _cases(lattice: Lattice) -> Iterator[tuple[str, Topology, Model]]:
    """Yield shapes with every boundary, computed and stored neighbours, and models."""
    for shape in _SHAPES[lattice.dimension]:
        for boundary in product(lattice.boundaries, repeat=lattice.dimension):
            axes = zip(shape, lattice.cell, boundary)
            if any(kind == "periodic" and n % cell for n, cell, kind in axes):
                continue
            topology = lattice.topology(shape, boundary)
            layers = topology.end_layers
            for model in _MODELS:
                # Site models refuse sites that are in both end layers of an axis.
                if model.draws_sites and any(np.intersect1d(*ends).size for ends in layers):
                    continue
                case = f"{' x '.join(map(str, shape))}, {', '.join(boundary)}, {model}"
                yield case, topology, model
                yield f"{case}, neighbour list", topology.explicit(), model


def _measure(
    name: str, device: Device, topology: Topology, model: Model, drawn: Any
) -> tuple[np.ndarray, ...]:
    """Return open bonds, labels and rows of batch entries by a labeler, one entry per row."""
    coupling = fit_coupling(device, topology, model, name=name, most=len(drawn[2]))
    labeler = coupling.labeler
    opened, labels = read_samples(
        labeler, drawn, lambda entries: labeler.join(entries, Reading.LABELS).labels()
    )
    return opened, labels, coupling.rows(*drawn)


def _large(lattice_name: str, conditions: Conditions) -> Iterator[Outcome]:
    """Compare rows of a grid of p on a lattice of many words and tiles with the CPU's raster."""
    lattice, device = load_lattice(lattice_name), conditions.device
    size = conditions.count(*_LARGE[lattice.dimension])
    size -= size % math.lcm(*lattice.cell)
    boundary = ("open",) + ("periodic",) * (lattice.dimension - 1)
    topology = lattice.topology(lattice.shape(size), boundary)
    seed = conditions.stream_seed("parity at size", lattice_name)
    samples = np.arange(2, dtype=np.uint64)
    steps = [_middle(lattice) * step for step in (0.98, 1.0, 1.01, 1.2)]
    grid = np.array([p_to_threshold(p) for p in steps], np.uint64)
    expected = new_coupling("raster", "cpu", topology).grid_rows(XORWOW, seed, samples, grid)
    for name in list_labelers(device.kind, lattice):
        # The reference labeler would take minutes, and raster is what others are compared with.
        if name == "reference" or (device.kind, name) == ("cpu", "raster"):
            continue
        coupling = fit_coupling(device, topology, name=name, most=samples.size)
        rows = coupling.grid_rows(XORWOW, seed, samples, grid)
        wrong = int(np.any(rows != expected, axis=-1).sum())
        text = f"{name} on {lattice_name}, {' x '.join(map(str, topology.shape))}: unlike raster"
        yield differing(text, wrong, f"{expected.size // expected.shape[-1]} rows")


def _spanning_thresholds(conditions: Conditions) -> Iterator[Outcome]:
    """Compare the exact p at which samples begin to span with bisection by the reference."""
    lattice, device = load_lattice("triangular"), conditions.device
    topology = lattice.topology((11, 9))
    seed, samples = conditions.stream_seed("parity of T"), np.arange(4, dtype=np.uint64)
    window = p_to_threshold(0.3), p_to_threshold(0.4)
    reference = new_coupling("reference", "cpu", topology)
    expected = find_thresholds(reference, XORWOW, seed, samples, (0, TOP))
    for name in list_labelers(device.kind, lattice):
        if (device.kind, name) == ("cpu", "reference"):
            continue
        coupling = fit_coupling(device, topology, name=name, most=samples.size)
        thresholds = find_thresholds(coupling, XORWOW, seed, samples, window)
        wrong = int(np.sum(thresholds != expected))
        yield differing(f"{name}: spanning thresholds unlike reference's", wrong)


def checks(lattices: Sequence[str]) -> tuple[Check, ...]:
    small = [Check("labelers", f"small {name}", partial(_small, name)) for name in lattices]
    large = [Check("labelers", f"large {name}", partial(_large, name)) for name in lattices]
    return (*small, Check("labelers", "spanning thresholds", _spanning_thresholds), *large)
