"""Tests marked ``gpu`` are skipped, with the reason, where no GPU can be used."""

import pytest


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from percolab.device import cuda_problem

    problem = cuda_problem()
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=problem))
