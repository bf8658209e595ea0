"""A browser page that shows one sample at every p, with a slider for p (pages/clusters.js)."""

from base64 import b64encode
from math import prod
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, TOP, p_to_threshold
from percolab.configurations.configuration import random_configuration
from percolab.configurations.picture import make_title
from percolab.coupled.one_by_one import list_openings
from percolab.errors import InputError
from percolab.figures.page import slider_page
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, decode_periods, unpack_bits
from percolab.tasks.study_file import make_request
from percolab.trees.weights import make_bond_keys, make_sample_weights

#: The largest number of points of a page, which holds all bonds and must be fast on a phone.
MOST_POINTS = 2**14
#: The number of steps of the slider from p = 0 to p = 1.
STEPS = 1000
_MODELS = ("bond", "site")


def sample_page(
    lattice: Structure, L: int, p: float | None = None, **keys: Any
) -> tuple[str, dict[str, Any]]:
    """Return the page of a sample, self-contained HTML, and its facts for JSON.

    p: the initial position of the slider; None is the published threshold, or 0.5.  keys: seed,
    sample, rng, model and boundary, as for
    :func:`percolab.configurations.configuration.random_configuration`.

    InputError: a lattice not in the plane, too many points for a page, a model other than bond or
    site percolation, or a sample that does not exist.
    """
    if not isinstance(lattice, Lattice) or lattice.dimension != 2 or not lattice.vectors:
        raise InputError(f"{lattice.name}: a page (--html) shows lattices in the plane")
    model = keys.get("model", "bond")
    if model not in _MODELS:
        allowed = " and ".join(_MODELS)
        raise InputError(f"model {model}: a page (--html) shows {allowed} percolation")
    points = prod(lattice.shape(L))
    if points > MOST_POINTS:
        most = f"a page (--html) has at most {MOST_POINTS}"
        raise InputError(f"L = {L}: {points} grid points, but {most}")
    known = lattice.threshold(model)
    start = (known.value if known else 0.5) if p is None else p
    chosen = random_configuration(lattice, L, start, **keys)
    record = chosen.record
    settings = {key: record[key] for key in ("seed", "rng", "boundary")}
    task = make_request(lattice, L=[L], p=[start], model=model, **settings).study.tasks[L]
    weights = make_sample_weights(GENERATORS[record["rng"]], task.stream_seed, record["sample"])
    data = pack_sample(chosen.topology, weights, draws_sites=model == "site")
    title = make_title(lattice.title, {key: record[key] for key in record if key != "p"})
    title = title.replace("$", "")
    drawing = {
        "vectors": lattice.vectors,
        "cell": lattice.cell,
        "shifts": [[*point, *shift] for point, shift in lattice.shifts],
        "boundary": record["boundary"],
        "p": start,
        "known": None if known is None else [known.value, known.cite],
    }
    facts = {
        "title": title,
        "model": Model.parse(model).title,
        "sites": chosen.topology.num_sites,
        "bonds": chosen.topology.num_bonds,
    }
    return slider_page(title, data | drawing | facts), record | facts


def pack_sample(topology: Topology, weights: Any, *, draws_sites: bool) -> dict[str, Any]:
    """Return the data of a sample for clusters.js, in which bonds or sites open in order of u.

    order, ends: uint16, the sites in the order in which they appear, and the two ends of every
    bond in the order in which bonds open.  counts: for every step of p, how many bonds (sites) are
    open.  digits: uint16, the position of every u within its step, 16 binary digits.  sides: the
    sites of the first and the last layer of every axis.  periods: the bonds across a boundary, with
    the periods from their first to their second end.
    """
    openings = list_openings(topology, sites=draws_sites)
    keys = make_bond_keys(weights, openings.places.astype(np.uint32))
    order = np.argsort(keys, kind="stable")
    steps = np.array([p_to_threshold(k / STEPS) for k in range(STEPS + 1)], np.uint64)
    counts = np.searchsorted(keys[order], steps)
    step = np.searchsorted(steps, keys[order], side="right") - 1
    inside = 65536 * (keys[order] / (TOP / STEPS) - step)
    sites = np.flatnonzero(unpack_bits(topology.occupied, topology.num_points))
    bonds = list_openings(topology, sites=False)
    if draws_sites:
        sites = openings.sites[order]
        born = np.empty(topology.num_points, np.int64)
        born[sites] = np.arange(sites.size)
        order = np.argsort(born[bonds.pairs].max(axis=1), kind="stable")
    ends = bonds.pairs[order]
    periods = []
    if bonds.codes.size:
        crossing = np.flatnonzero(bonds.codes[order])
        around = decode_periods(bonds.codes[order][crossing], topology.num_axes)
        periods = np.column_stack([crossing, around]).tolist()
    return {
        "shape": topology.shape,
        "draws_sites": draws_sites,
        "order": _packed(sites),
        "ends": _packed(ends.ravel()),
        "counts": counts.tolist(),
        "digits": _packed(inside.clip(0, 65535)),
        "sides": [layer.tolist() for pair in topology.end_layers for layer in pair],
        "periods": periods,
    }


def _packed(values: np.ndarray) -> str:
    return b64encode(values.astype("<u2").tobytes()).decode()
