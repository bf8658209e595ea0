"""What slabs on CUDA say that they take of memory is what they take; what they cannot do."""

from unittest.mock import PropertyMock, patch

import pytest
from helpers import needs_cuda, slow
from kernel_report_support import Peak, load_report
from parts_support import structure

from percolab import InputError, load_lattice
from percolab.bonds.model import BOND, Model
from percolab.parts.parts import Parts, Whole
from percolab.parts.raster import SampleKey

pytestmark = needs_cuda


@pytest.mark.parametrize(
    ("name", "layer", "layers", "kind", "model", "p"),
    [
        ("square", (2000,), (100, 150), "periodic", Model.parse("site"), 1.0),
        ("cubic", (160, 130), (4, 4, 4), "open", BOND, 0.3),
        slow("square", (4000,), (150, 100), "open", BOND, 0.5),
        slow("cubic", (160, 96), (4, 30), "periodic", BOND, 0.3),
        slow("kagome", (2400,), (100, 101), "open", BOND, 0.6),
    ],
)
def test_slabs_on_cuda_take_what_they_say(name, layer, layers, kind, model, p):
    from percolab.parts import tiled_cuda

    whole = Whole(load_lattice(name), (*layer, sum(layers)), (kind,) * (len(layer) + 1), model)
    said, peak = tiled_cuda.SlabTiled.memory(whole, layers, p).device, Peak()
    bonds, _ = whole.open_at_face(p)
    every, start = PropertyMock(return_value=bonds), 0
    with (
        load_report().on_host([], "case", peak.add),
        patch.object(tiled_cuda.Crossed, "num_bonds", every),
    ):
        slabs, parts = tiled_cuda.SlabTiled(whole, max(layers), tally=True), Parts(whole)
        for thick in layers:
            slabs.make_interface(parts.part(start, thick), SampleKey(0, 5, 1, 2**62))
            start += thick
    # What crosses between tiles is bounded by that of a lattice without vacancies.
    assert peak.most <= said <= (1.5 if name == "kagome" else 1.3) * peak.most


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("chain_of_two", (18,), "a chain has no layers to cut into tiles"),
        ("cubic", (2**16, 2**16, 9), "4294967296 bonds between two layers"),
    ],
)
def test_what_tiles_cannot_serve_is_refused(name, shape, words):
    from percolab.parts.tiled_cuda import SlabTiled

    whole = Whole(structure(name), shape, ("open",) * len(shape))
    with pytest.raises(InputError, match=words):
        SlabTiled(whole, 2)
