"""The program of results/newman-ziff finds percolab's own rows when it opens the bonds in order."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import (
    LATTICES,
    cpu_labeler,
    lattice,
    parity_topologies,
    probabilities,
    record_program,
    without_wrapping,
)

from percolab.bonds.words import XORWOW, p_to_threshold

newman_ziff = record_program("newman-ziff/newman_ziff.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", LATTICES)
def test_its_rows_are_percolabs_at_every_p(name):
    thresholds = np.array([p_to_threshold(p) for p in probabilities(name)], np.uint64)
    for _, topology in parity_topologies(name):
        labeler = cpu_labeler("reference", topology)
        sample = 3
        samples = np.full(thresholds.size, sample, np.uint64)
        rows = labeler.rows(XORWOW, newman_ziff.SEED, samples, thresholds)
        found = newman_ziff.rows_in_order(topology, sample, np.array(probabilities(name)))
        np.testing.assert_array_equal(
            found, np.array(without_wrapping(rows))[:, newman_ziff.COLUMNS]
        )


def test_bonds_are_shuffled_and_none_is_lost():
    program = newman_ziff.NewmanZiff(lattice("square").topology((8, 8)))
    before = program.order.copy()
    program.shuffle()
    assert not np.array_equal(program.order, before)
    np.testing.assert_array_equal(np.sort(program.order), before)


@pytest.mark.slow
def test_command_prints_and_writes_the_comparison(tmp_path):
    target = tmp_path / "nz.json"
    given = ["-L", "8,16", "--runs", "1", "--json", str(target)]
    result = CliRunner().invoke(newman_ziff.main, given, catch_exceptions=False)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == ["L", "8", "16"]
    document = json.loads(target.read_text(encoding="utf-8"))
    for record in document["records"]:
        whole = record["shuffle_seconds"] + record["open_all_seconds"]
        ratio = whole / record["rows_at_grid_seconds"]
        assert record["newman_ziff_over_grid"] == pytest.approx(ratio)
