"""Merging results: blocks add, and no sample comes in twice."""

from copy import deepcopy

import pytest
from cli_support import assert_equal_datasets, stored

from percolab.api import sweep
from percolab.errors import InputError
from percolab.lattices.graph import Graph
from percolab.store.joined import joined
from percolab.store.merging import merge
from percolab.store.results import encode, read_results


def part(seed=5, samples=20, **changes):
    options = {"L": [4, 6], "p": [0.4, 0.6], "block_size": 10, "device": "cpu"}
    return sweep("square", **{**options, "seed": seed, "samples": samples, **changes})


def blocks_only(results, *numbers):
    """Return a copy with the blocks of these numbers alone, as a run that made no others."""
    results = deepcopy(results)
    for item in results.tasks.values():
        item.blocks = {n: item.blocks[n] for n in numbers}
    results.runs[0]["blocks"] = dict.fromkeys(results.tasks, len(numbers))
    return results


def test_blocks_of_one_task_unite(tmp_path):
    whole = part(samples=40)
    parts = [blocks_only(whole, 3, 0), blocks_only(whole, 1, 2)]
    merged = merge(zip(("a", "b"), parts))
    assert_equal_datasets(stored(tmp_path / "m.h5", merged), stored(tmp_path / "w.h5", whole))
    assert merged.runs == parts[0].runs + parts[1].runs
    assert read_results(tmp_path / "m.h5").runs == merged.runs


def test_merged_blocks_are_the_bytes_of_an_undivided_run(tmp_path):
    whole = part(samples=40)
    merged = merge([("a", blocks_only(whole, 3, 0)), ("b", blocks_only(whole, 1, 2))])
    merged.runs = whole.runs
    assert encode(merged) == encode(whole)


def test_other_seeds_sizes_and_grids_share_a_file():
    parts = [
        part(),
        part(seed=6),
        part(L=[8]),
        part(L=[7], p=[0.5]),
    ]
    merged = merge([(str(n), one) for n, one in enumerate(parts)])
    assert len(merged.tasks) == sum(len(one.tasks) for one in parts)
    for one in parts:
        for key, item in one.tasks.items():
            assert merged.tasks[key].blocks.keys() == item.blocks.keys()


def test_other_boundaries_are_refused():
    parts = [("a", part()), ("b", part(boundary=["periodic", "open"], p=[0.5]))]
    with pytest.raises(InputError, match="b: has boundary periodic, open, not open, open"):
        merge(parts)


def test_merging_changes_no_part():
    one, two = blocks_only(part(), 0), blocks_only(part(), 1)
    merge([("a", one), ("b", two)])
    assert all(list(item.blocks) == [0] for item in one.tasks.values())
    assert all(list(item.blocks) == [1] for item in two.tasks.values())


def test_the_same_samples_at_other_p_are_one_task_of_all_p():
    merged = merge([("a.h5", part()), ("b.h5", part(p=[0.45]))])
    assert joined(merged).tasks.keys() == part(p=[0.4, 0.45, 0.6]).tasks.keys()


@pytest.mark.parametrize(
    "second",
    [
        {},
        {"samples": 40},
        {"p": [0.4, 0.5, 0.6]},
        {"p": [0.45], "block_size": 20},
        {"block_size": 7},
        {"L": [6]},
    ],
    ids=str,
)
def test_the_same_samples_twice_are_refused(second):
    with pytest.raises(InputError) as error:
        merge([("a.h5", part()), ("b.h5", part(**second))])
    message = str(error.value)
    assert message.startswith("b.h5 and a.h5 both hold samples 0 to ")
    assert "seed 5; independent runs need different seeds" in message


def test_the_refusal_names_the_samples_that_come_twice():
    one, two = blocks_only(part(samples=40), 0, 2), blocks_only(part(samples=40), 1, 2)
    with pytest.raises(InputError, match=r"samples 20 to 29 of L = 4"):
        merge([("a", one), ("b", two)])


def test_neighbouring_blocks_of_other_sizes_do_not_overlap():
    one = blocks_only(part(), 0, 1)
    two = blocks_only(part(block_size=20, samples=60), 1, 2)
    assert len(merge([("a", one), ("b", two)]).tasks) == 4


def test_another_lattice_is_refused():
    other = sweep("triangular", L=[4], p=[0.4], samples=10, device="cpu")
    with pytest.raises(InputError, match=r"b\.h5: holds lattice triangular, not square"):
        merge([("a.h5", part()), ("b.h5", other)])


def test_graphs_of_one_name_and_other_bonds_are_distinguished():
    graphs = [Graph.of_bonds(3, bonds) for bonds in ([(0, 1)], [(0, 1), (1, 2)])]
    parts = [sweep(graph=graph, p=[0.5], samples=10, device="cpu") for graph in graphs]
    message = r"b\.h5: its graph differs in content from that of the others \([0-9a-f]{16}, "
    with pytest.raises(InputError, match=message):
        merge(zip(("a.h5", "b.h5"), parts))


def test_merging_nothing_is_refused():
    with pytest.raises(InputError, match="at least one file"):
        merge([])
