"""Small lattices on CUDA, in its simulator: rows and sums of blocks are those of the reference."""

import pytest
from helpers import assert_simulated, slow_but

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
