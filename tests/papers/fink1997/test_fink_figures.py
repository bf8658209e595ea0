"""The program that measures Fink's figures: a small record, which is drawn."""

import json
import sys
from math import prod

import pytest
from click.testing import CliRunner

from percolab.papers.fink1997 import drawing, figures

NAMES = {f"{name}{suffix}" for name in ("fink-fig4", "fink-fig5", "fink-fig6", "fink-fig7",
         "fink-table1", "fink-table2") for suffix in (".png", ".pdf", ".svg")}  # fmt: skip


def test_axes_are_doubled_in_turn():
    found = figures.scaled_blocks(4, 64)
    assert found[-2:] == [(4, 2, 2, 2), (4, 4, 2, 2)]
    assert [prod(counts) for counts in found] == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.slow
def test_a_small_record_is_made_and_drawn(tmp_path, monkeypatch):
    out = tmp_path / "fink.json"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "figures.py"), "--small", str(out)])
    done = CliRunner().invoke(figures.main, ["--small", "--out", str(out)])
    assert done.exit_code == 0, done.output
    content = json.loads(out.read_text())["parts"]
    assert [len(content[name]["records"]) for name in ("coupling", "bytes", "scaled")] == [
        15,
        9,
        13,
    ]
    assert all(not own["failed"] and not own["skipped"] for own in content.values())
    assert content["bytes"]["command"].endswith(" --small fink.json")
    lines = drawing.draw_all(out, tmp_path / "figures")
    assert {path.name for path in (tmp_path / "figures").iterdir()} > NAMES
    assert (tmp_path / "figures" / "fink-fig4.png").stat().st_size > 10_000
    assert (tmp_path / "figures" / "findings.txt").read_text().splitlines() == lines
    assert "Table 1" in lines[6]


def test_a_row_that_differs_is_no_record(monkeypatch):
    sample = figures.Sample(2, 4, (2, 2), 0.5)
    sample.merged(("tree",))
    sample._row[0] += 1
    with pytest.raises(RuntimeError, match="quad has another row"):
        sample.merged(("quad",))
