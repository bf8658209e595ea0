"""Measure what Figs 4 to 7 and Tables 1 and 2 of Fink et al. show: boxes merged by Quad.

S. J. Fink, S. B. Baden, C. Huston and K. Jansen, Parallel cluster identification for
multidimensional lattices, IEEE Transactions on Parallel and Distributed Systems (1997).  Tori in
two, three and four dimensions on 64 ranks, a box each: 4680 x 4680, 280^3, 68 x 68 x 34 x 34.

coupling  global and local time, and bytes, against the coupling kappa (Figs 4 to 6)
bytes     bytes of every way of merging at 0.5, 1 and 1.5 p_c (Table 1, Fig 7)
scaled    1 to 64 ranks of 585^2, 70^3, 17^4 sites at p_c (Table 2)

The paper has bonds of Ising models; here they are those of bond percolation.  Where the paper's
text says how p follows from kappa it is garbled: p = 1 - exp(-4 kappa) is inferred from its
critical couplings.

Ranks are simulated: one core does their work one after the other, and what they send is handed over
in memory and counted.  Bytes are exact, with labels and offsets of 4 bytes and runs of 8, as the
paper's messages have them.  Times are processor times of every rank's own work, the least of some
repeats; the time of a stage is that of its slowest rank, and the global time is the sum of the
stages, the bubble exchange and the closing of the torus among them.  Sending takes none.  Every way
of merging must give the same row, or no number of it is written down.
"""

import math
import time
from math import prod
from pathlib import Path
from typing import Any

import click
import numpy as np

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.kernels.memory import without_collections
from percolab.lattices.lattice import load_lattice
from percolab.papers.fink1997.boxes import Blocks, Boundary, BoxRaster, row_from_boxes
from percolab.papers.fink1997.quad import Merge, Merged, simulate
from percolab.papers.measured_record import Record, made_by
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey

LATTICES = {2: "square", 3: "cubic", 4: "hypercubic-4d"}
#: Sites of a rank's box along each axis, and boxes along each axis: the paper's, and for tests.
SIDES = {2: 585, 3: 70, 4: 17}
BLOCKS = {2: (8, 8), 3: (4, 4, 4), 4: (4, 4, 2, 2)}
SMALL_SIDES = {2: 24, 3: 8, 4: 4}
SMALL_BLOCKS = {2: (4, 4), 3: (2, 2, 2), 4: (2, 2, 2, 1)}
#: The paper's four ways, and ours.
PAPER = ("quad", "quad:bubbles", "quad:runs", "quad:bubbles,runs")
OURS = ("quad:bubbles,shorter", "tree", "tree:bubbles,shorter")
COUPLINGS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5)
SMALL_COUPLINGS = (0.0, 0.5, 1.0, 2.0, 2.5)
RATIOS = (0.5, 1.0, 1.5)
SEED, REPEATS, LOCAL_REPEATS = 1, 6, 3
RECORD = Path("results/fink/fink.json")

Found = dict[str, Any]


def coupling_of(p: float) -> float:
    """Return the coupling kappa at which bonds are open with probability p."""
    return -math.log1p(-p) / 4


def critical_p(dimension: int) -> float:
    """Return the threshold of bonds."""
    known = load_lattice(LATTICES[dimension]).threshold()
    assert known is not None
    return known.value


class Sample:
    """One sample in boxes: the boundary of each, and what finding it took."""

    def __init__(self, dimension: int, side: int, counts: tuple[int, ...], p: float) -> None:
        shape = tuple(side * count for count in counts)
        whole = Whole(load_lattice(LATTICES[dimension]), shape, ("periodic",) * dimension)
        raster = BoxRaster(Blocks(whole, counts))
        draw = SampleKey(XORWOW, SEED, 0, p_to_threshold(p))
        self.boxes: list[Boundary] = []
        local = []
        with without_collections():
            for box in raster.blocks.coordinates():
                crossing = raster.fill(box, draw)
                times = []
                for _ in range(LOCAL_REPEATS):
                    start = time.thread_time()
                    labeled = raster.label(box, crossing)
                    times.append(time.thread_time() - start)
                local.append(min(times))
                self.boxes.append(labeled)
        self.what = {
            "dimension": dimension, "lattice": whole.lattice.name, "shape": shape,
            "blocks": counts, "ranks": prod(counts), "box_sites": prod(shape) // prod(counts),
            "p": p, "p_c": critical_p(dimension), "kappa": coupling_of(p),
            "kappa_c": coupling_of(critical_p(dimension)),
        }  # fmt: skip
        self.local = {"local_ms": 1e3 * max(local), "local_mean_ms": 1e3 * float(np.mean(local))}
        self._row: list[int] | None = None

    def merged(self, ways: tuple[str, ...]) -> dict[str, Found]:
        """Return what ways of merging take and send, each tried in turn, over and over."""
        least: dict[str, dict[str, Any]] = {text: {} for text in ways}
        done: dict[str, Merged] = {}
        for _ in range(REPEATS):
            for text in ways:
                with without_collections():
                    done[text], closing = self._once(text)
                stages = {name: stage.seconds for name, stage in done[text].stages.items()}
                for name, seconds in (stages | {"close": [closing]}).items():
                    least[text][name] = np.minimum(least[text].get(name, np.inf), seconds)
        return {text: _numbers_of(text, done[text], least[text]) for text in ways}

    def _once(self, text: str) -> tuple[Merged, float]:
        """Merge once; return that and the seconds of closing the torus."""
        done = simulate(self.boxes, Merge.parse(text))
        (last, *_) = done.boundaries
        assert last is not None
        start = time.thread_time()
        row = row_from_boxes(last).numbers.tolist()
        closing = time.thread_time() - start
        self._row = self._row or row
        if row != self._row:
            raise RuntimeError(f"{text} has another row: {row}, not {self._row}")
        return done, closing


def _numbers_of(text: str, done: Merged, least: dict[str, Any]) -> Found:
    """Return what is written down of a way of merging; least: its seconds by stage and rank."""
    bubbles = done.stages.get("bubbles")
    return {
        "merge": text,
        "global_ms": 1e3 * sum(float(each.max()) for each in least.values()),
        "stage_ms": {name: 1e3 * float(each.max()) for name, each in least.items()},
        "bytes": done.num_bytes,
        "messages": sum(s.messages for name, s in done.stages.items() if name != "bubbles"),
        "bubble_bytes": bubbles.num_bytes if bubbles else 0,
        "bubble_messages": bubbles.messages if bubbles else 0,
        "stage_bytes": {name: stage.num_bytes for name, stage in done.stages.items()},
        "most_bytes": {name: stage.most_bytes for name, stage in done.stages.items()},
    }


def measure(record: Record, case: tuple[Any, ...], ways: tuple[str, ...], **more: Any) -> None:
    """Measure a sample, by what :class:`Sample` takes, and some ways of merging it."""

    def work() -> Found:
        sample = Sample(*case)
        return sample.what | sample.local | more | {"ways": sample.merged(ways)}

    record.add({"case": case}, work)
    click.echo(f"{case} done", err=True)


def scaled_blocks(dimension: int, most: int) -> list[tuple[int, ...]]:
    """Return boxes along each axis of 1, 2, 4 ... ranks, the axes doubled in turn.

    >>> scaled_blocks(2, 8)
    [(1, 1), (2, 1), (2, 2), (4, 2)]
    """
    counts = [(1,) * dimension]
    while prod(counts[-1]) < most:
        axis = (len(counts) - 1) % dimension
        counts.append(tuple(n * (1 + (k == axis)) for k, n in enumerate(counts[-1])))
    return counts


@click.command(help=__doc__)
@click.option("--small", is_flag=True, help="Lattices and repeats for a test.")
@click.option("--seconds", default=900.0, show_default=True, help="After which nothing is begun.")
@click.option("--commit", "known", help="Of the working tree, where git does not know it.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help=f"Write JSON here, as {RECORD}.")
def main(small: bool, seconds: float, known: str | None, out: Path | None) -> None:
    """Measure, write and print."""
    global REPEATS
    REPEATS = 1 if small else REPEATS
    sides, blocks = (SMALL_SIDES, SMALL_BLOCKS) if small else (SIDES, BLOCKS)
    couplings = SMALL_COUPLINGS if small else COUPLINGS
    record = Record(out, made_by(known), seconds)
    for dimension in LATTICES:  # compiles
        warm = Sample(dimension, 4, SMALL_BLOCKS[dimension], 0.3)
        warm.merged(PAPER + OURS)
    record.begin("coupling")
    for dimension in LATTICES:
        for ratio in couplings:
            p = -math.expm1(-4 * ratio * coupling_of(critical_p(dimension)))
            case = dimension, sides[dimension], blocks[dimension], p
            measure(record, case, (*PAPER, "tree"), coupling_ratio=ratio)
    record.begin("bytes")
    for dimension in LATTICES:
        for ratio in RATIOS:
            p = ratio * critical_p(dimension)
            case = dimension, sides[dimension], blocks[dimension], p
            measure(record, case, PAPER + OURS, p_ratio=ratio)
    record.begin("scaled")
    for dimension in LATTICES:
        for counts in scaled_blocks(dimension, prod(blocks[dimension])):
            case = dimension, sides[dimension], counts, critical_p(dimension)
            measure(record, case, (*PAPER[::3], "tree"))
    record.write()
    record.end()


if __name__ == "__main__":
    main()
