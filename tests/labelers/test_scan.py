"""Which small lattices a thread scans word by word on CUDA."""

from unittest.mock import Mock, patch

import numpy as np
import pytest
from helpers import lattice

from percolab.labelers import scan_cuda


@pytest.mark.parametrize(
    ("name", "shape", "boundary", "slots"),
    [
        ("square", (4, 4), "periodic", (2, 1, 0)),
        ("square", (20, 20), "periodic", (3, 1, 0)),
        ("square", (64, 64), "open", (4, 0, 1)),
        ("square", (64, 64), "periodic", (3, 2, 0)),
        ("triangular", (64, 64), "periodic", (4, 2, 1)),
        ("cubic", (10, 10, 10), "open", (5, 0, 0)),
        ("cubic", (8, 8, 8), "periodic", None),
        ("cubic", (16, 16, 16), "open", None),
        ("square", (1, 9), "open", None),
        ("square", (32, 128), "open", (2, 0, 0)),
        ("square", (32, 128), "periodic", None),
        ("square-nnn", (48, 64), "periodic", (4, 2, 0)),
    ],
)
def test_a_window_has_room_for_the_words_that_bonds_lead_to(name, shape, boundary, slots):
    topology = lattice(name).topology(shape, (boundary,) * len(shape))
    with patch.object(scan_cuda, "cuda", Mock(to_device=np.asarray)):
        made = scan_cuda.make_scan_lattice(topology, None)
    assert (made and (made.ring, made.kept, made.paired)) == slots
