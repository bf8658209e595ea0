"""Drawing of Weigel's figures: figures, table and sentences from a record that was made up."""

import json

import pytest

from percolab.papers.weigel2011 import drawing

SIZES = (64, 256, 1024, 4096)


def made(labeler, size, *, edge=None, states=2, ratio=1.0, lattice="square", **more):
    """Return a record that follows the paper's laws."""
    x = size / (edge or 1)
    times = {"activation": 0.05, "flip": 0.05, "roots": 0.01}
    if edge:
        serial = {"self": 0.01 * edge**1.08, "union": 1.5, "bfs": 2.5}
        times["local"] = next(v for k, v in serial.items() if k in labeler)
        near = 3.0 if abs(ratio - 1) < 0.01 else 1.0
        relaxed = 1e-4 * near * x**1.08 + 1 / size
        times["consolidation"] = relaxed if "relax" in labeler else 0.02 + 70 / size * ratio
    else:
        times["labels"] = {"four_step": 0.12, "komura_2015": 0.1}.get(labeler, 0.01)
    times = {"update": sum(times.values()), **times}
    found = {"labeler": labeler, "L": size, "sites": size**2, "states": states, "ratio": ratio}
    found |= {"lattice": lattice, "ns_a_site": times} | ({"B": edge} if edge else {}) | more
    return found | ({"steps": [round(3 * x**1.08)]} if "relax" in labeler else {})


def update_of(size, time, update, states=2):
    return {
        "labeler": "raster", "L": size, "states": states, "ratio": 1.0, "update": update,
        "ns_a_site": {"update": time},
    }  # fmt: skip


@pytest.fixture
def record(tmp_path):
    edges, others = (4, 8, 16, 32), ("four_step", "komura_2015", "tiled")
    both = ("sewing", "relaxation")
    sizes = [made(f"tiles:self+{j}", L, edge=B) for L in SIZES for B in edges for j in both]
    sizes += [
        made(f"tiles:{a}+{j}", L, edge=16) for L in SIZES for a in ("bfs", "union") for j in both
    ]
    sizes += [made(name, L) for L in SIZES for name in others]
    ratios = (0.5, 0.8, 1.0, 1.2, 1.5)
    parts = {
        "sizes": sizes,
        "local": [
            made(f"tiles:{a}+sewing", 4096, edge=B)
            for a in ("self", "bfs", "union") for B in (4, 8, 16, 32, 64)
        ],
        "beta": [
            made(name, 1024, edge=16, ratio=r)
            for name in ("tiles:self+sewing", "tiles:self+relaxation") for r in ratios
        ],
        "few": [
            update_of(L, t, u) for L in SIZES
            for u, t in (("sw", 0.02), ("wolff", 0.02), ("few:16,flip=0.5", 0.03))
        ],
        "states": [made(name, 1024, states=q) for q in (2, 3, 4) for name in others],
        "komura": [
            made(name, 1024, lattice=x) for x in ("square", "honeycomb", "cubic")
            for name in others[:2] if (x, name) != ("honeycomb", "komura_2015")
        ],
        "cpu": [update_of(L, 10.0, u) for L in SIZES for u in ("sw", "wolff")],
    }  # fmt: skip
    path = tmp_path / "weigel.json"
    path.write_text(json.dumps({"parts": {k: {"records": v} for k, v in parts.items()}}))
    return path


@pytest.mark.slow
def test_every_figure_is_drawn_and_says_what_was_found(record, tmp_path):
    out = tmp_path / "figures"
    reported = dict(line.split(": ", 1) for line in drawing.draw_all(record, out))
    assert list(reported) == list(drawing.FIGURES)
    for name in reported:
        assert all(
            (out / f"weigel-{name}.{s}").stat().st_size > 4000 for s in ("png", "pdf", "svg")
        )
    assert "(L/B)^1.08" in reported["fig6"]
    assert "agrees with d_min" in reported["fig6"]
    assert "which agrees with the paper's order" in reported["fig2"]
    assert "grows monotonically" in reported["fig12"]
    assert "longest at 1 beta_c" in reported["fig12"]
    assert "square L = 1024 +10 % (+20 %)" in reported["komura"]
    assert len((out / "table.md").read_text().splitlines()) == 2 + 9


@pytest.mark.slow
def test_steps_that_grow_otherwise_do_not_agree_and_a_figure_without_its_part_is_left_out(
    record, tmp_path
):
    document = json.loads(record.read_text())
    for each in document["parts"]["sizes"]["records"]:
        if "steps" in each:
            each["steps"] = [(each["L"] / each["B"]) ** 1.5]
    document["parts"] = {"sizes": document["parts"]["sizes"]}
    record.write_text(json.dumps(document))
    reported = drawing.draw_all(record, tmp_path / "figures")
    assert "1.500(0.000) for L/B >= 8, which does not agree" in "".join(reported)
    assert "fig12: left out, the record has no beta" in reported


def test_without_a_record_one_line_says_so_and_nothing_is_made(tmp_path):
    (line,) = drawing.draw_all(tmp_path / "none.json", tmp_path / "figures")
    assert "none.json is missing" in line
    assert not (tmp_path / "figures").exists()
