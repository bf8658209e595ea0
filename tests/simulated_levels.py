"""Finds levels of values in CUDA's simulator and prints them; a test compares them."""

import json
from unittest.mock import patch

import numpy as np
from level_support import call, record

import percolab
from percolab.errors import InputError
from percolab.trees import level_labeler_cuda


def main(*names):
    """Find the levels of cases, a line each; "refused" stands for what cannot be used."""
    # Several parts, so that their order counts, and of the values the fewest.
    few = patch.multiple(
        level_labeler_cuda, _PART=2, TRIED=40, _PART_BYTES=256, _COPIERS=3, _SEARCHERS=4
    )
    with few:
        for name in names:
            if name == "refused":
                print(json.dumps([refusal(np.nan), refusal(-np.inf), refusal(np.inf, above=True)]))
                continue
            print(json.dumps(record(percolab.threshold(**call(name), device="cuda"))), flush=True)


def refusal(value, **options):
    values = np.array([[0, 1, 2], [3, value, np.nan_to_num(-value, nan=0)]])
    try:
        percolab.threshold(weights=values, device="cuda", **options)
    except InputError as error:
        return str(error)
    return ""
