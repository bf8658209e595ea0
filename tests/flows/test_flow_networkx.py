"""Bridges, red bonds, trails, backbones and shortest paths of random multigraphs: as networkx."""

import numpy as np
import pytest
from flow_support import (
    chain_flow,
    expected_bridge_free,
    expected_bridges,
    expected_flow,
    random_flow,
)
from helpers import slow


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [range(400), slow(range(400, 10_000))])
def test_flow_through_random_multigraphs_is_that_of_networkx(numbers):
    connected_ones, with_red, differing = 0, 0, 0
    for number in numbers:
        flow = random_flow(number)
        assert np.array_equal(flow.bridges, expected_bridges(flow.bonds)), number
        assert flow.num_bridges == flow.bridges.sum()
        assert flow.largest_bridge_free == expected_bridge_free(flow), number
        connected, red, trails, backbone, length, elastic = expected_flow(flow)
        assert flow.connected == connected, number
        assert flow.length == length, number
        found = flow.red, flow.trails, flow.backbone, flow.elastic
        for own, other in zip(found, (red, trails, backbone, elastic), strict=True):
            assert np.array_equal(own, other), number
        counts = flow.num_red, flow.num_trails, flow.num_backbone, flow.num_elastic
        assert counts == tuple(marks.sum() for marks in found), number
        touched = np.unique(flow.bonds[backbone]).size, np.unique(flow.bonds[elastic]).size
        assert touched == (flow.num_backbone_sites, flow.num_elastic_sites), number
        connected_ones += connected
        with_red += red.any()
        differing += not np.array_equal(trails, backbone)
    # All cases come: red bonds, and trails that are no paths.
    assert min(connected_ones, with_red, differing) > len(numbers) // 50


def test_a_long_loop_has_no_bridge_and_one_bond_less_only_bridges():
    flow = chain_flow(100_000, closed=True)
    assert (flow.num_bridges, flow.num_red, flow.num_backbone) == (0, 0, 100_000)
    flow = chain_flow(100_000, closed=False)
    assert (flow.num_bridges, flow.num_red, flow.length) == (99_999, 50_000, 50_000)
