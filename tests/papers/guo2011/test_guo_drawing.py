"""Drawing of Guo's figures: figures, table and sentences from a record that was made up."""

import json

import pytest

from percolab.papers.guo2011 import drawing

SIZES = (1024, 4096, 8192, 16384)
#: As the paper finds it: ms at V = 1024, and the power of V that they grow with.
PAPER = {
    "CPU, heap": (1.0, 1.5),
    "CPU, kruskal": (0.5, 1.0),
    "without primitive": (8.0, 1.5),
    "with primitive": (4.1, 1.0),
    "one launch": (0.6, 1.0),
}


@pytest.fixture
def record(tmp_path):
    def write(ways):
        records = [
            {"V": size, "way": way, "time": time * (size / 1024) ** power}
            for size in reversed(SIZES)
            for way, (time, power) in ways.items()
        ]
        path = tmp_path / "guo.json"
        path.write_text(json.dumps({"parts": {"trees": {"records": records}}}))
        return path

    return write


def test_a_record_as_the_paper_agrees_with_it(record, tmp_path):
    out = tmp_path / "figures"
    reported = dict(line.split(": ", 1) for line in drawing.draw_all(record(PAPER), out))
    assert list(reported) == ["fig5", "fig6"]
    for name in reported:
        for suffix in ("png", "pdf", "svg"):
            assert (out / f"guo-{name}.{suffix}").stat().st_size > 4000
    assert "7.8 times as fast, which agrees" in reported["fig5"]
    # 4.1 against sqrt(V / 1024), which is at most 4.
    assert "at no V up to the largest with the primitive" in reported["fig6"]
    assert "at every V than Kruskal" not in reported["fig6"]
    rows = (out / "table.md").read_text().splitlines()
    assert (
        rows[0]
        == "| V | CPU, heap | CPU, kruskal | without primitive | with primitive | one launch |"
    )
    assert rows[2].startswith("| 1024 | 1 | 0.5 | 8 | 4.1 |")
    assert (out / "findings.txt").read_text().splitlines()[0] == f"fig5: {reported['fig5']}"


def sentence(ways):
    times = {way: {v: t * (v / 1024) ** n for v in SIZES} for way, (t, n) in ways.items()}
    return drawing.figure_6(times)[1]


def test_the_size_from_which_the_gpu_is_faster_is_reported():
    late = sentence(PAPER | {"with primitive": (2.1, 1.0)})
    assert "is faster from V = 8192 on with the primitive and at no V" in late
    assert "the first agrees, the second agrees" in late
    early = sentence(PAPER | {"with primitive": (1.1, 1.0)})
    assert "is faster from V = 4096 on with the primitive" in early
    assert "the first does not agree, the second agrees" in early


def test_without_a_record_one_line_says_so_and_nothing_is_made(tmp_path):
    (line,) = drawing.draw_all(tmp_path / "none.json", tmp_path / "figures")
    assert "none.json is missing" in line
    assert not (tmp_path / "figures").exists()


def test_a_record_without_a_way_is_named(record, tmp_path):
    made = record({"CPU, heap": (1.0, 1.0), "with primitive": (1.0, 1.0)})
    (line,) = drawing.draw_all(made, tmp_path / "figures")
    assert "has no times of without primitive, one launch" in line
