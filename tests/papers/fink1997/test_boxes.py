"""A lattice in boxes has the row of the whole lattice, however its boundaries are merged."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from helpers import lattice, slow, slow_but, traced_peak
from parts_support import (
    MODELS,
    NAMES,
    interfaces_of,
    ps_of,
    row_of_the_whole,
    run_local,
    structure,
)

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.measure.sums import NUMBERS, ClusterSums
from percolab.papers.fink1997.boxes import (
    Blocks,
    Border,
    BoxRaster,
    blocks_from_text,
    join_boundaries,
    row_from_boxes,
)
from percolab.papers.fink1997.quad import Boxes, Merge, list_stages, pack, simulate, unpack
from percolab.parts.interface import Face, InterfaceSums
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.transport import Local

MERGES = (
    "tree",
    "quad",
    "quad:bubbles",
    "quad:runs",
    "quad:bubbles,runs",
    "quad:shorter",
    "tree:bubbles,shorter",
)
TORUS = "periodic", "periodic"
OPEN = "open", "open"


def row_by_boxes(whole, draw, *, blocks, merge="tree", tally=False, transport=None):
    return Boxes(whole, blocks, Merge.parse(merge), tally=tally, transport=transport).row(draw)


def boxes_of(whole, counts, draw, *, tally=False):
    raster = BoxRaster(Blocks(whole, counts), tally=tally)
    return [raster.boundary(box, draw) for box in raster.blocks.coordinates()]


def random_cut(name, model, rng, kinds):
    """Return a lattice of random boundaries and how it is cut, in boxes of 1 to 6 sites a side."""
    item = structure(name)
    axes = item.dimension
    while True:
        boundary = tuple(kinds[n] for n in rng.integers(len(kinds), size=axes))
        most = 5 if axes < 3 else 4 if axes == 3 else 3
        counts = tuple(int(n) for n in rng.integers(1, most, axes))
        sides = rng.integers(1, 7 if axes < 4 else 4, axes)
        try:
            whole = Whole(item, tuple(int(n) for n in sides * counts), boundary, model)
            Blocks(whole, counts)
            if model.draws_sites:
                item.topology(whole.shape, boundary).check_end_layers()
        except InputError:
            continue
        return whole, counts


def assert_rows_equal(name, model, p, rng, merges, *, kinds=OPEN[:1] + TORUS[:1]):
    whole, counts = random_cut(name, model, rng, kinds)
    tally = bool(rng.integers(2))
    draw = SampleKey(int(rng.integers(2)), 5, int(rng.integers(1000)), p_to_threshold(p))
    expected = row_of_the_whole(whole, draw, tally=tally)
    boxes = boxes_of(whole, counts, draw, tally=tally)
    for text in merges:
        merge = Merge.parse(text)
        if merge.kind == "quad" and any(n & (n - 1) for n in counts):
            merge = replace(merge, kind="tree")
        found = simulate(boxes, merge).boundaries
        rows = [row_from_boxes(boundary) for boundary in found if boundary is not None]
        assert len(rows) == (len(boxes) if merge.kind == "quad" else 1)
        case = f"{name} {whole.shape} {counts} {whole.boundary} {model} {draw} p = {p} {merge}"
        for row in (rows[0], rows[-1]):
            np.testing.assert_array_equal(row.numbers, expected, err_msg=case)
            assert row.sum_squares == expected[3], case


@pytest.mark.parametrize("name", slow_but(NAMES, "square", "kagome", "cubic", "far_reaching"))
def test_rows_of_boxes_are_those_of_the_whole_lattice(name):
    rng = np.random.default_rng(len(name) + 2)
    for n, p in enumerate(ps_of(name)[1:4]):
        # All models and ways of merging, not each with each.
        first = int(rng.integers(7))
        merges = MERGES[first], MERGES[(first + 3) % 7]
        assert_rows_equal(name, MODELS[(n + len(name)) % 5], p, rng, merges)


@pytest.mark.parametrize("name", ["square", "square-nnn", "far_reaching", "cubic", "hypercubic-4d"])
def test_wrapping_rows_of_boxes_about_the_threshold(name):
    rng = np.random.default_rng(3)
    for n in range(10):
        p = ps_of(name)[2] * rng.uniform(0.9, 1.3)
        assert_rows_equal(name, BOND, p, rng, [MERGES[n % 7]], kinds=TORUS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_boxes_with_all_boundaries_and_merges(name):
    rng = np.random.default_rng(7)
    for n, (model, p) in enumerate(product(MODELS, (*ps_of(name), ps_of(name)[2] * 1.1))):
        assert_rows_equal(name, model, p, rng, MERGES[n % 7 :][:1])


@pytest.mark.parametrize("counts", [(1, 1), (1, 6), (6, 1), (2, 3)], ids=str)
def test_p_of_0_and_1_and_one_box_and_slabs(counts):
    for p, kind in ((0.0, "open"), (1.0, "periodic"), (0.5, "periodic")):
        whole = Whole(lattice("square"), (12, 6), (kind, kind))
        draw = SampleKey(0, 5, 3, p_to_threshold(p))
        row = row_by_boxes(whole, draw, blocks=counts, tally=True)
        expected = row_of_the_whole(whole, draw, tally=True)
        np.testing.assert_array_equal(row.numbers, expected)


@pytest.mark.parametrize("layer", [0, 2**27, 2**31 - 8, 2**33], ids=lambda n: f"layer {n}")
def test_boxes_far_inside_join_to_the_slab_there(layer):
    whole = Whole(lattice("square"), (66, 2**34), OPEN, Model.parse("site-bond"))
    draw = SampleKey(0, 5, 1, p_to_threshold(0.85))
    (slab,) = interfaces_of(whole, draw, [8], layer, tally=True)
    raster = BoxRaster(Blocks(whole, (2, 2**31)), tally=True)
    both = join_boundaries(*(raster.boundary((x, layer // 8), draw) for x in range(2)), 0)
    assert both.sums == slab.sums
    assert sorted(both.sizes) == sorted(slab.sizes)
    for face, direction in ((slab.low, (0, -1)), (slab.high, (0, 1))):
        own = both.faces.get(direction)
        clusters = np.empty(0, np.uint32) if own is None else own.face.clusters
        assert both.sizes[clusters].tolist() == slab.sizes[face.clusters].tolist()
        assert both.flags[clusters].tolist() == slab.flags[face.clusters].tolist()
    assert slab.high.num_bonds > 20


# --- Quad ----------------------------------------------------------------------------------------


def test_stages_take_the_axes_in_turn():
    assert list_stages((4, 4, 2, 2)) == [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2)]
    assert list_stages((1, 3)) == [(1, 1), (1, 2)]
    assert list_stages((1, 1)) == []


#: Four boxes of 3 x 3 on a torus: 4 faces of 3 bonds, then 18 bonds at those of two boxes.
FULL = Whole(lattice("square"), (6, 6), TORUS)


@pytest.mark.parametrize(
    ("text", "messages", "num_bytes"),
    [
        ("quad", 8, 4 * (4 + 4 * 12) + 4 * (4 + 4 * 18)),
        ("quad:runs", 8, 8 * (4 + 8 * 4)),
        ("quad:shorter", 8, 8 * (4 + 8 * 4)),
        ("quad:bubbles", 8, 4 * (4 + 4 * 12) + 4 * (4 + 4 * 18)),
        ("tree", 3, 2 * (4 + 4 * 12) + (4 + 4 * 18)),
        ("tree:runs", 3, 3 * (4 + 8 * 4)),
    ],
)
def test_messages_and_bytes_are_counted_as_the_paper_has_them(text, messages, num_bytes):
    merged = simulate(
        boxes_of(FULL, (2, 2), SampleKey(0, 5, 1, p_to_threshold(1.0))), Merge.parse(text)
    )
    stages = dict(merged.stages)
    bubbles = stages.pop("bubbles", None)
    assert sum(stage.messages for stage in stages.values()) == messages
    assert merged.num_bytes == num_bytes
    assert list(stages) == ["prepare", "stage 1", "stage 2"]
    assert (bubbles is None) == ("bubbles" not in text)
    if bubbles is not None:
        # Every box asks at all four sides.
        assert (bubbles.messages, bubbles.num_bytes, bubbles.most_bytes) == (16, 4 * 4 * 12, 12)


def test_shorter_takes_each_border_by_itself():
    whole = Whole(lattice("square"), (64, 64), TORUS)
    for p in (0.3, 0.5, 0.6):
        boxes = boxes_of(whole, (4, 4), SampleKey(0, 5, 1, p_to_threshold(p)))
        by_bond, by_run, shorter = (
            simulate(boxes, Merge.parse(text)).num_bytes
            for text in ("quad", "quad:runs", "quad:shorter")
        )
        assert shorter <= min(by_bond, by_run)
        assert shorter < by_bond or p == 0.3


def test_partners_that_do_the_same_work_are_timed_alike():
    ticks = iter(range(10**6))
    merged = simulate(
        boxes_of(FULL, (2, 2), SampleKey(0, 5, 1, p_to_threshold(0.5))),
        Merge("quad"),
        lambda: float(next(ticks)),
    )
    # Joining takes one tick; whoever joins first reads the clock twice more.
    assert sorted(merged.stages["stage 1"].seconds) == [2.0, 2.0, 3.0, 3.0]
    assert sorted(merged.stages["stage 2"].seconds) == [2.0, 2.0, 2.0, 3.0]
    assert merged.seconds == 1.0 + 3.0 + 3.0


# --- bubbles -------------------------------------------------------------------------------------


def test_bubbles_are_gone_before_the_first_stage():
    whole = Whole(lattice("square"), (64, 64), TORUS)
    boxes = boxes_of(whole, (2, 2), SampleKey(0, 5, 1, p_to_threshold(0.3)))
    every, left = (simulate(boxes, Merge.parse(text)) for text in ("quad", "quad:bubbles"))
    assert left.stages["stage 1"].num_bytes < every.stages["stage 1"].num_bytes / 5
    assert (
        row_from_boxes(left.boundaries[0]).numbers.tolist()
        == row_from_boxes(every.boundaries[0]).numbers.tolist()
    )


# --- runs ----------------------------------------------------------------------------------------


def test_runs_are_of_equal_clusters_and_codes():
    face = Face(np.array([3, 3, 3, 1, 1, 3], np.uint32), np.array([0, 0, 7, 7, 7, 7], np.int64))
    border = Border(face)
    short = border.compressed()
    assert short.counts.tolist() == [2, 1, 2, 1]
    assert (short.num_bonds, border.num_runs, short.num_runs) == (6, 3, 3)
    for given, again in zip(face.__dict__.values(), short.expanded().face.__dict__.values()):
        np.testing.assert_array_equal(given, again)
    assert short.compressed().counts.tolist() == [2, 1, 2, 1]


# --- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["tree", "quad:bubbles", "quad:bubbles,shorter"])
def test_ranks_with_a_transport_find_the_row(text):
    whole = Whole(lattice("cubic"), (8, 6, 4), ("periodic", "open", "periodic"))
    draw = SampleKey(0, 5, 1, p_to_threshold(0.3))
    given = {"blocks": (2, 2, 2), "merge": text, "tally": True}
    rows = run_local(8, lambda own: row_by_boxes(whole, draw, **given, transport=own))
    expected = row_of_the_whole(whole, draw, tally=True)
    assert [row is None for row in rows] == [text == "tree" and rank > 0 for rank in range(8)]
    for row in rows[:1] if text == "tree" else rows:
        np.testing.assert_array_equal(row.numbers, expected)


def test_sums_of_any_length_are_sent():
    boxes = boxes_of(FULL, (2, 2), SampleKey(0, 5, 1, p_to_threshold(0.5)))
    clusters = ClusterSums(*range(1, NUMBERS + 1))._replace(sum_squares=2**119 + 5)
    sums = InterfaceSums(clusters, 2**178 + 7, 2**239 + 9, (1, 0, 2**40), 5, -(2**13) + 1)
    given = replace(boxes[2], sums=sums)
    for text in ("quad", "quad:runs"):
        merge = Merge.parse(text)
        again = unpack(pack(given, merge), given.blocks, merge)
        assert again.sums == sums
        assert (again.corner, again.boxes) == (given.corner, given.boxes)
        assert list(again.faces) == list(given.faces)


# --- what is refused -----------------------------------------------------------------------------

WHOLE = Whole(lattice("square"), (8, 12), OPEN)
DRAW = SampleKey(0, 5, 1, p_to_threshold(0.5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: blocks_from_text("4x0"), "blocks '4x0'"),
        (lambda: blocks_from_text("-1x2"), "blocks '-1x2'"),
        (lambda: blocks_from_text("auto"), "as 4x4x2"),
        (lambda: blocks_from_text("9" * 5000), "they are numbers of boxes"),
        (lambda: Blocks(WHOLE, (1, 5)), "12 grid points along axis y"),
        (
            lambda: Blocks(Whole(structure("far_reaching"), (8, 6), OPEN), (8, 1)),
            "boxes of 1 grid points along axis x, but bonds of far_reaching reach",
        ),
        (lambda: Blocks(Whole(lattice("square"), (2**20, 2**12), OPEN), (1, 1)), "at most"),
        (
            lambda: Blocks(Whole(lattice("square"), (1, 4), OPEN, Model.parse("site")), (1, 1)),
            "two end layers, but 1 grid points along axis x",
        ),
        (lambda: Merge.parse("quad:bubble"), "did you mean 'bubbles'"),
        (lambda: Merge.parse("quad:"), "unknown option ''"),
        (lambda: row_by_boxes(WHOLE, DRAW, blocks=(1, 3), merge="quad"), "3 along y"),
        (
            lambda: row_by_boxes(WHOLE, DRAW, blocks=(2, 2), transport=Local.ranks(3)[0]),
            "3 ranks, but 4 boxes",
        ),
        (lambda: row_from_boxes(boxes_of(WHOLE, (2, 2), DRAW)[0]), "all 4 boxes; there are 1"),
        (
            lambda: join_boundaries(*boxes_of(WHOLE, (2, 2), DRAW)[::3], 0),
            "no neighbours along axis x",
        ),
    ],
)
def test_what_is_no_box_or_no_merge_is_refused_in_one_line(call, words):
    with pytest.raises(InputError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["tree", "tree:runs", "quad:bubbles"])
def test_boxes_of_different_samples_do_not_match(text):
    one, other = (
        boxes_of(WHOLE, (2, 2), SampleKey(0, 5, 1, p_to_threshold(p))) for p in (0.4, 1.0)
    )
    with pytest.raises(ValueError, match="open bonds"):
        simulate([one[0], *other[1:]], Merge.parse(text))


def test_merges_and_blocks_are_read():
    for text in ("tree", "quad", "quad:bubbles,runs", "tree:shorter"):
        assert str(Merge.parse(text)) == text
    assert blocks_from_text("4x4x2") == (4, 4, 2)
    assert blocks_from_text("8") == (8,)


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("square", (600, 600), (2, 2)),
        ("cubic", (60, 60, 60), (2, 2, 1)),
        ("fcc", (48,) * 3, (2,) * 3),
    ],
)
def test_memory_of_a_box_is_stated(name, shape, counts):
    whole = Whole(lattice(name), shape, ("periodic",) * len(shape))
    blocks = Blocks(whole, counts)
    assert prod(blocks.box) * blocks.num_boxes == whole.num_points
    draw, box = SampleKey(0, 5, 1, p_to_threshold(0.6)), (1,) * 2 + (0,) * (len(shape) - 2)
    BoxRaster(blocks).boundary(box, draw)
    peak = traced_peak(lambda: BoxRaster(blocks).boundary(box, draw))
    assert peak <= BoxRaster.memory(blocks).host < 3 * peak


@pytest.mark.parametrize("text", ["tree", slow("quad:bubbles,runs")])
def test_memory_of_a_row_is_stated(text):
    whole = Whole(lattice("cubic"), (64,) * 3, ("periodic",) * 3)
    blocks, merge = Blocks(whole, (4, 4, 2)), Merge.parse(text)
    draw = SampleKey(0, 5, 1, p_to_threshold(0.3))
    Boxes(whole, blocks.counts, merge).row(draw)
    peak = traced_peak(lambda: Boxes(whole, blocks.counts, merge).row(draw))
    alone, rank = (Boxes.memory(blocks, is_rank=is_rank).host for is_rank in (False, True))
    assert peak <= alone < 12 * peak
    assert rank < alone
