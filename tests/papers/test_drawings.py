"""Figures of three papers: drawn of the stored records, they say what the stored findings say."""

import json

import pytest
from helpers import RESULTS

from percolab.papers.fink1997 import drawing as fink
from percolab.papers.guo2011 import drawing as guo
from percolab.papers.weigel2011 import drawing as weigel

ROOT = RESULTS.parent
papers = pytest.mark.parametrize("paper", [fink, guo, weigel], ids=["fink", "guo", "weigel"])


@pytest.fixture
def drawn(monkeypatch):
    """The names of figures, which are not written."""
    names = set()
    for paper in (fink, guo, weigel):
        monkeypatch.setattr(paper, "draw_over", lambda figure, stem: names.add(stem.name))
    return names


@papers
def test_figures_tables_and_findings_are_the_stored_ones(paper, drawn, tmp_path):
    stored = ROOT / paper.FOLDER
    lines = paper.draw_all(ROOT / paper.RECORD, tmp_path)
    assert drawn == {path.stem for path in stored.glob("*.png")}
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert texts["findings.txt"].splitlines() == lines
    assert len(texts) > 1
    for name, text in texts.items():
        assert text == (stored / name).read_text(encoding="utf-8"), name


@pytest.mark.slow
def test_figures_are_written_in_three_formats(monkeypatch, tmp_path):
    monkeypatch.delitem(guo.FIGURES, "fig5")
    guo.draw_all(ROOT / guo.RECORD, tmp_path)
    for suffix in ("png", "pdf", "svg"):
        assert (tmp_path / f"guo-fig6.{suffix}").stat().st_size > 4000


@papers
def test_without_a_record_or_a_part_a_line_says_so(paper, drawn, tmp_path):
    (line,) = paper.draw_all(tmp_path / "none.json", tmp_path / "figures")
    assert "none.json is missing" in line
    assert not (tmp_path / "figures").exists()
    document = json.loads((ROOT / paper.RECORD).read_bytes())
    part = {fink: "coupling", guo: "trees", weigel: "beta"}[paper]
    document["parts"][part]["records"] = []
    (tmp_path / "some.json").write_text(json.dumps(document))
    lines = paper.draw_all(tmp_path / "some.json", tmp_path / "figures")
    assert len([line for line in lines if " has no" in line]) == 1
    assert (len(lines) == 1) == (paper is not weigel)
