"""What slabs on CUDA say that they take of memory is what they take; what they cannot do."""

import importlib.util
import sys
import weakref
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest

from percolab.bonds.model import BOND, Model
from percolab.domains.parts import Parts, Whole
from percolab.domains.raster import Draw
from percolab.errors import InputError
from percolab.lattices.lattice import load_lattice

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


class Peak:
    """Adds up the bytes of arrays that are in use; ``most`` is their peak."""

    def __init__(self):
        self.now = self.most = 0

    def add(self, array):
        self.now += array.nbytes
        self.most = max(self.most, self.now)
        weakref.finalize(array, self.drop, array.nbytes)

    def drop(self, size):
        self.now -= size


def load_report():
    """Return scripts/kernel_report.py, which runs CUDA labelers on host arrays."""
    path = Path(__file__).parents[2] / "scripts" / "kernel_report.py"
    spec = importlib.util.spec_from_file_location("kernel_report", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_report"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "layer", "layers", "kind", "model"),
    [
        ("square", (200,), (150, 100), "periodic", Model("site")),
        ("cubic", (40, 30), (3, 2), "open", BOND),
        pytest.param("square", (400,), (150, 100), "open", BOND, marks=pytest.mark.slow),
        pytest.param("cubic", (60, 50), (30, 10), "periodic", BOND, marks=pytest.mark.slow),
    ],
)
def test_slabs_on_cuda_take_what_they_say(name, layer, layers, kind, model):
    from percolab.domains import tiled_cuda

    boundary = (kind,) * (len(layer) + 1)
    whole = Whole(load_lattice(name), (*layer, 1000), boundary, model)
    said, peak = tiled_cuda.SlabTiled.memory(whole, max(layers)).device, Peak()
    every = PropertyMock(return_value=whole.most_crossing)
    with (
        load_report().on_host([], "case", peak.add),
        patch.object(tiled_cuda.Crossed, "num_bonds", every),
    ):
        slabs, parts = tiled_cuda.SlabTiled(whole, max(layers), tally=True), Parts(whole)
        start = 500
        for thick in (*layers, layers[0]):
            slabs.front_of(parts.part(start, thick), Draw(0, 5, 1, 2**62))
            start += thick
    assert 0.4 * said <= peak.most <= said + 100_000


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("hypercubic-4d", (3, 3, 3, 9), "tiles have 3 axes, the lattice 4"),
        ("cubic", (2**16, 2**16, 9), "4294967296 bonds between two layers"),
    ],
)
def test_what_tiles_cannot_serve_is_refused(name, shape, words):
    from percolab.domains.tiled_cuda import SlabTiled

    whole = Whole(load_lattice(name), shape, ("open",) * len(shape))
    with pytest.raises(InputError, match=words):
        SlabTiled(whole, 2)
