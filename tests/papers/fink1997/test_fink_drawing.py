"""Drawing of Fink's figures: a small record, and claims of one made up."""

import json
import sys
from math import prod

import pytest
from click.testing import CliRunner

from percolab.papers.fink1997 import drawing, figures

NAMES = {f"{name}{suffix}" for name in ("fink-fig4", "fink-fig5", "fink-fig6", "fink-fig7",
         "fink-table1", "fink-table2") for suffix in (".png", ".pdf", ".svg")}  # fmt: skip


def saved(factor):
    """Return what optimizations leave of times and bytes, as the paper has it at a coupling."""
    bubbles, runs = (0.3, 1.0) if factor < 1 else (1.0, 0.3) if factor > 1 else (0.7, 0.8)
    return {
        "quad": 1.0,
        "quad:bubbles": bubbles,
        "quad:runs": runs,
        "quad:bubbles,runs": 0.04 if factor < 1 else 0.4,
        "quad:bubbles,shorter": 0.04 if factor < 1 else 0.4,
        "tree": 0.1,
        "tree:bubbles,shorter": 0.04,
    }


def case(dimension, factor, counts=(), **more):
    """Return the record of a sample on which Quad alone takes 100 ms and sends 10 MB."""
    counts = counts or figures.BLOCKS[dimension]
    ranks = prod(counts)
    growth = ranks ** (0.01 + 0.15 * (dimension - 2))
    ways = {
        text: {
            "merge": text,
            # At p = 0 the calls take a millisecond.
            "global_ms": 1.0 + (99.0 * growth * left if factor else 0),
            "bytes": 10**7 * left * (ranks > 1),
            "bubble_bytes": 10**5,
            "most_bytes": {"prepare": 0} | {f"stage {n}": 2 ** (n // 2) for n in range(1, 7)},
        }
        for text, left in saved(factor).items()
    }
    return {
        "dimension": dimension, "shape": [8 * n for n in counts], "blocks": list(counts),
        "ranks": ranks, "box_sites": 8**dimension, "kappa": 0.1 * factor, "kappa_c": 0.1,
        "local_ms": 1000.0 if dimension == 2 else 10.0, "ways": ways, **more,
    }  # fmt: skip


@pytest.fixture
def record(tmp_path):
    parts = {
        "coupling": [
            case(d, factor, coupling_ratio=factor)
            for d in (2, 3, 4)
            for factor in figures.SMALL_COUPLINGS
        ],
        "bytes": [case(d, f, p_ratio=f) for d in (2, 3, 4) for f in figures.RATIOS],
        "scaled": [
            case(d, 1.0, counts)
            for d in (2, 3, 4)
            for counts in figures.scaled_blocks(d, prod(figures.BLOCKS[d]))
        ],
    }
    path = tmp_path / "fink.json"
    path.write_text(json.dumps({"parts": {k: {"records": own} for k, own in parts.items()}}))
    return path


def test_a_record_as_the_paper_agrees_with_it(record):
    parts = drawing.read_record(record)
    lines = drawing.claims_of(parts)
    assert len(lines) == 11
    for line in lines:
        assert "not agree" not in line
        assert "in part" not in line
    assert "up to 20 times fewer bytes: agrees" in lines[6]
    assert "2-D 25 below, 2.5 at, 3.33 above" in lines[6]
    assert "sends 2-D 10 to 10 times less" in lines[7]
    texts = drawing.table_1(parts["bytes"]), drawing.table_2(parts["scaled"])
    tables = [text.splitlines() for text in texts]
    assert tables[0][5].startswith(
        "| 2-D 64 x 64 | 0.5 | 10 | 3 | 10 | 0.4 | 0.4 | 1 | 0.4 | 0.1 |"
    )
    assert [len(table) for table in tables] == [14, 11]
    assert tables[1][-1].startswith("| 64 |")


def test_differences_from_the_paper_are_reported(record):
    content = json.loads(record.read_text())
    for each in content["parts"]["coupling"]["records"]:
        if each["kappa"]:
            each["ways"]["quad:bubbles,runs"] |= {"global_ms": 1e4, "bytes": 2 * 10**7}
        each["local_ms"] = 10.0
    record.write_text(json.dumps(content))
    parts = drawing.read_record(record)
    for line in drawing.claims_of_times(parts):
        assert "does not agree" in line
    for line in drawing.claims_of_places(parts):
        assert line.count("both does not agree") == 2
    (line,) = drawing.claim_of_costs(parts)
    assert "agrees in part" in line


def test_without_a_record_or_a_part_one_line_says_so_and_nothing_is_made(tmp_path):
    (line,) = drawing.draw_all(tmp_path / "none.json", tmp_path / "figures")
    assert "none.json is missing" in line
    (tmp_path / "some.json").write_text(json.dumps({"parts": {"bytes": {"records": []}}}))
    (line,) = drawing.draw_all(tmp_path / "some.json", tmp_path / "figures")
    assert line.endswith("has nothing of coupling, bytes, scaled")
    assert not (tmp_path / "figures").exists()


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
    assert content["bytes"]["command"] == "figures.py --small fink.json"
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
