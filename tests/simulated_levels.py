"""Finds levels of values in CUDA's simulator and prints them; a test compares them."""

import json
from unittest.mock import patch

import numpy as np
from device_array_support import DeviceArray
from helpers import LATTICES, lattice
from numba import cuda
from tree_support import call, record

import percolab
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.trees import level_labeler_cuda


def main(*names):
    """Find the levels of cases, a line each, or what refusals say."""
    # Several parts, so that their order counts, and of the values the fewest.
    few = patch.multiple(
        level_labeler_cuda, _PART=2, TRIED=40, _PART_BYTES=256, _COPIERS=3, _SEARCHERS=4
    )
    with few:
        for name in names:
            if name == "refused":
                print(json.dumps([refusal(np.nan), refusal(-np.inf), refusal(np.inf, above=True)]))
            elif name == "memory":
                print(json.dumps(without_memory()))
            elif name == "bonds of lattices":
                print(json.dumps(compare_bonds()))
            elif name == "device array":
                print(json.dumps(record(on_device())))
            else:
                print(json.dumps(record(percolab.threshold(**call(name), device="cuda"))))


def compare_bonds():
    """Compare the bonds that are made on the device with those of topologies; return how many."""
    count = 0
    for name in LATTICES:
        item = lattice(name)
        for boundary in ("open", "periodic"):
            shape = tuple(2 * cell + cell * (axis == 0) for axis, cell in enumerate(item.cell))
            topology = item.topology(shape, (boundary,) * item.dimension)
            labeler = level_labeler_cuda.CudaLevelLabeler(
                topology, np.zeros(topology.num_points), above=False
            )
            exists, crossing = labeler._read(labeler._exists), labeler._read(labeler._crossing)
            np.testing.assert_array_equal(exists, topology.exists.ravel())
            periodic = topology.periodic_words
            expected = np.zeros_like(exists) if periodic is None else periodic.ravel()
            np.testing.assert_array_equal(crossing, expected)
            numbers, ends, codes = map(labeler._read, labeler._periodic)
            np.testing.assert_array_equal(numbers, topology.periodic_bonds)
            np.testing.assert_array_equal(ends[numbers.size :], topology.periodic_ends)
            np.testing.assert_array_equal(codes, topology.periodic_codes)
            count += numbers.size
    return count


def on_device():
    arguments = call("open")
    view = "percolab.configurations.levels._view"
    with patch(view, lambda given, device: (cuda.to_device(given.array), Device("cuda"))):
        return percolab.threshold(**arguments | {"weights": DeviceArray(arguments["weights"])})


def without_memory():
    with patch.object(level_labeler_cuda, "free_memory", lambda cuda: 100):
        return refusal(0.0)


def refusal(value, **options):
    values = np.array([[0, 1, 2], [3, value, 4]])
    try:
        percolab.threshold(weights=values, device="cuda", **options)
    except InputError as error:
        return str(error)
    return ""
