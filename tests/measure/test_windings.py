"""Which clusters wrap agrees with what is found of all clusters together, and is named."""

import json

import numpy as np
import pytest
from cli_support import answer
from helpers import cpu_labeler

from percolab.configurations.configuration import random_configuration
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING


def axes_of(topology, opened):
    """Return the axes that any cluster wraps around, by a search without kernels."""
    labeler = cpu_labeler("reference", topology)
    labeler.load(opened)
    bits = int(labeler.row()[SPANNING]) >> FIRST_WRAPPING
    return {"xyz"[axis] for axis in range(topology.num_axes) if bits >> axis & 1}


@pytest.mark.parametrize(
    ("name", "size", "p", "boundary"),
    [
        ("square", 8, 0.5, "periodic"),
        ("triangular", 8, 0.35, "periodic,open"),
        ("cubic", 4, 0.25, "periodic,open,periodic"),
    ],
)
def test_axes_that_clusters_wrap_around_are_those_of_the_sample(name, size, p, boundary):
    seen, lattice = set(), load_lattice(name)
    for sample in range(12):
        chosen = random_configuration(lattice, size, p, sample=sample, seed=3, boundary=boundary)
        clusters = chosen.label("reference")
        wrapped = {axis for axis, numbers in clusters.wrapping.items() if numbers.size}
        assert wrapped == axes_of(chosen.topology, chosen.opened)
        # And the clusters that are named are those that do it alone.
        for item in clusters.crossing():
            own = clusters.labels == item["label"]
            alone = chosen.opened.copy()
            for klass, owner, _ in chosen.topology.bonds().tolist():
                if not own[owner]:
                    alone[klass, owner // 32] &= ~np.uint32(1 << owner % 32)
            assert set(item["wrapping"]) == axes_of(chosen.topology, alone)
        seen.add(frozenset(wrapped))
    assert len(seen) > 1


def test_label_and_show_name_the_clusters_that_span_and_wrap(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mask = np.zeros((6, 6), bool)
    mask[2] = True
    mask[4:, 1:3] = True
    np.save("mask.npy", mask)
    options = ("mask.npy", "--boundary", "periodic,open")
    message = answer("label", *options)
    assert "cluster 12 of 6 sites wraps around x" in message
    # Six of the ten sites are in the row that wraps.
    assert message.splitlines()[-2].split()[-7:] == [
        "share",
        "spanning",
        "y",
        "share",
        "wrapping",
        "x",
        "surface",
    ]
    assert message.split()[-3:] == ["0", "0.6", "18"]
    record = json.loads(answer("label", *options, "--json"))
    assert record["wrapping"] == ["x"]
    assert record["crossing_clusters"] == [
        {"label": 12, "sites": 6, "spanning": [], "wrapping": ["x"]}
    ]
    assert "cluster 12 of 6 sites wraps around x" in answer("show", "labels.h5")
