"""Functions that both Python and kernels call: without a cache every process would compile them."""

import pytest

import percolab.bonds.batch_cpu  # noqa: F401  All models add their hooks.
from percolab.bonds import hooks
from percolab.bonds.words import uniform_number
from percolab.flows.cycle_words import virtual_word, word_streams
from percolab.trees.weights import compute_key

CALLED = [uniform_number, virtual_word, word_streams, compute_key]


@pytest.mark.parametrize("function", [*CALLED, *(each.draw for each in hooks._HOOKS.values())])
def test_what_python_calls_itself_is_cached(function):
    assert len(hooks._HOOKS) == 4
    assert type(function._cache).__name__ == "FunctionCache"
