"""Small lattices on CUDA, in its simulator: rows and sums of blocks are those of the reference."""

import pytest
from helpers import assert_simulated, lattice, slow_but

from percolab.coupled.small import _can_flood

CASES = [
    ("triangular", "bond", "3", "one boundary each"),
    ("triangular", "bond", "3"),
    ("square", "site", "4"),
    ("kagome", "site-bond", "4"),
    ("honeycomb", "bond", "4"),
    ("cubic", "bond", "3"),
    ("triangular", "bond:x=0.3", "4"),
    ("hypercubic-4d", "bond", "3"),
    ("hypercubic-4d", "site", "2"),
]


@pytest.mark.parametrize("case", slow_but(CASES, CASES[0]))
def test_simulated_teams_equal_the_reference(case):
    assert_simulated("simulated_small.py", *case)


@pytest.mark.parametrize(
    ("name", "shape", "floods"),
    [("cubic", (10, 10, 10), True), ("fcc", (10, 10, 10), False), ("square", (1, 9), False)],
)
def test_samples_are_flooded_that_fit_in_shared_memory(name, shape, floods):
    topology = lattice(name).topology(shape, ("open",) * len(shape))
    assert _can_flood(topology) is floods
