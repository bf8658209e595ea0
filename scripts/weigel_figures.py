"""Measure on a GPU what the figures of Weigel 2011 show, on the square torus.

M. Weigel, Phys. Rev. E 84, 036709 (2011).  Of samples of one lattice at a time:

local    time of the three local labelings against the edge B of tiles, at the largest L (Fig. 2)
steps    of relaxation against L/B, with a fitted power (Fig. 6)
sewing   time against L for every B, with fitted a + b/L + c/L^2 (Fig. 8)
edges    B at which self-labeling and relaxation together take least, against L (Fig. 9)
total    time of whole labelings against L, beside percolab's own (Fig. 10)
parts    local labeling, consolidation, and the root of every site, against L (Fig. 11)

Times are in ns a site, by device events, medians; steps are means over samples.  Local labeling and
sewing are replayed as recorded calls; relaxation has the host read a flag after every step.
The bonds are those of bond percolation at p, or words from files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import click
import numpy as np

from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, threshold_of
from percolab.kernels.device import device_name, open_device
from percolab.labelers import labeler_class, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.store.provenance import package_versions

#: Of one measurement: repeats, and the seconds after which there are no more of them.
REPEATS, MOST_SECONDS = 7, 1.0
#: Samples over which the steps of relaxation are averaged.
SAMPLES = 8
#: The longest edge of a tile that self-labeling has in shared memory.
MOST_SHARED_EDGE = 64
#: Labelers timed as a whole beside the two of the paper.
OTHERS = ("komura_2015", "four_step", "label_equivalence", "tiled")

#: Gives a batch the bonds of a sample, by its number.
Words = Callable[[Any, int], None]


def percolation_words(p: float) -> Words:
    """Return what fills a batch with samples of bond percolation at p."""

    def fill(batch: Any, sample: int) -> None:
        batch.fill(XORWOW, 1, np.array([sample], np.uint64), np.array([threshold_of(p)], np.uint64))

    return fill


def words_of_files(pattern: str) -> Words:
    """Return what loads a batch from files, one for each L, whose name has {L} for it.

    A file: .npy, uint32 (samples, 2 * num_words), the bond words of the square torus of size L.
    """

    def fill(batch: Any, sample: int) -> None:
        words = np.load(pattern.format(L=batch.topology.shape[0]), mmap_mode="r")
        batch.load(words[sample % len(words)][np.newaxis])

    return fill


class Bench:
    """Times parts of work on one batch of one lattice."""

    def __init__(self, cuda: Any, topology: Topology, words: Words) -> None:
        self.cuda, self.topology, self.words = cuda, topology, words
        self.batch = new_batch("cuda", topology, BOND, capacity=1)

    def median_times(self, parts: dict[str, Callable[[], object]]) -> dict[str, float]:
        """Return ns a site of each of some works that are done one after the other."""
        stream, sites = self.batch.launches.stream, self.topology.num_points
        self.words(self.batch, 0)
        for _ in range(3):  # directly, which compiles; recorded; replayed
            for work in parts.values():
                work()
        found, begin = [], time.perf_counter()
        while len(found) < REPEATS and (time.perf_counter() - begin < MOST_SECONDS or not found):
            events = [self.cuda.event() for _ in range(len(parts) + 1)]
            events[0].record(stream)
            for event, work in zip(events[1:], parts.values(), strict=True):
                work()
                event.record(stream)
            events[-1].synchronize()
            pairs = pairwise(events)
            found.append([1e6 * first.elapsed_time(last) / sites for first, last in pairs])
        return dict(zip(parts, np.median(found, axis=0).tolist(), strict=True))

    def recorded(self, key: object, work: Callable[[], None]) -> Callable[[], None]:
        """Return what does the work, replayed once it has been done twice."""
        return lambda: self.batch.launches.call(key, work)

    def of_tiles(self, name: str, edge: int) -> dict[str, Any]:
        """Return the times of a labeler on tiles, and the steps if it relaxes their labels."""
        labeler = labeler_class(name, "cuda")(self.batch, edge=edge)
        local, joined, keys = labeler.local, labeler.consolidation, [object() for _ in range(3)]
        parts = {
            "local": self.recorded(keys[0], lambda: local.run(1)),
            "consolidation": lambda: joined.run(1),
            "roots": self.recorded(keys[2], lambda: labeler.find_roots(1)),
        }
        if joined.is_recordable:
            parts["consolidation"] = self.recorded(keys[1], lambda: joined.run(1))
        found = {"labeler": name, "L": self.topology.shape[0], "B": edge}
        found["ns_a_site"] = self.median_times(parts)
        if not joined.is_recordable:
            found["steps"] = self.steps_of(labeler)
        return found

    def steps_of(self, labeler: Any) -> list[int]:
        """Return how many steps relaxation takes on some samples."""
        found, begin = [], time.perf_counter()
        while len(found) < SAMPLES and (time.perf_counter() - begin < MOST_SECONDS or not found):
            self.words(self.batch, len(found))
            labeler.label(1)
            found.append(labeler.consolidation.steps)
        return found

    def of_whole(self, name: str) -> dict[str, Any] | None:
        """Return the time of a labeler that has no such parts; None if it cannot serve."""
        if serving_labeler(name, "cuda", self.topology) != name:
            return None
        labeler = labeler_class(name, "cuda")(self.batch)

        def label() -> None:
            labeler.join(1, Reading.LABELS).make_labels()

        work = self.recorded(object(), label) if labeler.is_recordable else label
        times = self.median_times({"labels": work})
        return {"labeler": name, "L": self.topology.shape[0], "ns_a_site": times}


def measure(
    cuda: Any, sizes: list[int], edges: list[int], local_edges: list[int], words: Words
) -> list[dict[str, Any]]:
    """Return the records of all sizes: labelers on tiles of all edges, and others."""
    square, records = load_lattice("square"), []
    for size in sizes:
        bench = Bench(cuda, square.topology((size, size), ("periodic", "periodic")), words)
        asked = [("tiles:self+sewing", edge) for edge in edges]
        asked += [("tiles:self+relaxation", edge) for edge in edges]
        if size == max(sizes):
            wider = [edge for edge in local_edges if edge not in edges]
            asked += [("tiles:self+sewing", edge) for edge in wider if edge <= MOST_SHARED_EDGE]
            asked += [
                (f"tiles:{local}+sewing", e) for local in ("bfs", "union") for e in local_edges
            ]
        records += [bench.of_tiles(name, edge) for name, edge in asked if edge <= size]
        records += filter(None, map(bench.of_whole, OTHERS))
        click.echo(f"L = {size} done", err=True)
    return records


def fit_power(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """Return (exponent, its standard error, prefactor) of y = prefactor * x^exponent.

    By least squares of the logarithms; the error is by their scatter, NaN for less than 3 points.
    """
    logarithms = np.log(x), np.log(y)
    design = np.column_stack([logarithms[0], np.ones(len(x))])
    found, residuals, rank, _ = np.linalg.lstsq(design, logarithms[1], rcond=None)
    error = np.nan
    if len(x) > 2 and rank == 2:
        scatter = float(residuals[0]) / (len(x) - 2)
        error = float(np.sqrt(scatter * np.linalg.inv(design.T @ design)[0, 0]))
    return float(found[0]), error, float(np.exp(found[1]))


def fit_sewing(sizes: list[int], times: list[float]) -> list[float] | None:
    """Return a, b, c of a + b/L + c/L^2, weighted by 1/time; None for less than 4 sizes."""
    if len(sizes) < 4 or min(times) <= 0:
        return None
    inverse, weights = 1 / np.array(sizes, float), 1 / np.array(times)
    design = np.column_stack([np.ones_like(inverse), inverse, inverse**2]) * weights[:, None]
    return np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)[0].tolist()


def fits(records: list[dict[str, Any]], least_tiles: int) -> dict[str, Any]:
    """Return the fits of Figs. 6 and 8, and the best B of Fig. 9."""
    relaxed = [record for record in records if record["labeler"] == "tiles:self+relaxation"]
    sewn = [record for record in records if record["labeler"] == "tiles:self+sewing"]
    found: dict[str, Any] = {"steps": None, "sewing": {}, "best_edge": {}}
    points = [
        (record["L"] / record["B"], float(np.mean(record["steps"])))
        for record in relaxed
        if record["L"] >= least_tiles * record["B"]
    ]
    if len({ratio for ratio, _ in points}) > 1:
        exponent, error, prefactor = fit_power(*(list(part) for part in zip(*points)))
        found["steps"] = {
            "exponent": exponent,
            "error": None if np.isnan(error) else error,
            "prefactor": prefactor,
            "least_L_over_B": least_tiles,
        }
    for edge in sorted({record["B"] for record in sewn}):
        line = [(r["L"], r["ns_a_site"]["consolidation"]) for r in sewn if r["B"] == edge]
        found["sewing"][edge] = fit_sewing(*(list(part) for part in zip(*line)))
    for size in sorted({record["L"] for record in relaxed}):
        of_size = [record for record in relaxed if record["L"] == size]
        best = min(of_size, key=lambda r: sum(r["ns_a_site"].values()))
        found["best_edge"][size] = best["B"]
    return found


def tables(records: list[dict[str, Any]], found: dict[str, Any]) -> str:
    """Return the records and the fits as text."""
    head = ("labeler", "L", "B", "local", "consolidation", "roots", "total", "steps")
    rows = [("", "", "", "ns/site", "ns/site", "ns/site", "ns/site", "")]
    for record in records:
        times = record["ns_a_site"]
        parts = [times.get(part) for part in ("local", "consolidation", "roots")]
        shown = ["" if part is None else f"{part:.4f}" for part in parts]
        steps = f"{np.mean(record['steps']):.1f}" if "steps" in record else ""
        total = f"{sum(times.values()):.4f}"
        rows.append((record["labeler"], record["L"], record.get("B", ""), *shown, total, steps))
    lines = [
        f"{name:<22}{size:>6}{edge:>5}{a:>10}{b:>15}{c:>10}{total:>10}{steps:>8}"
        for name, size, edge, a, b, c, total, steps in (head, *rows)
    ]
    steps = found["steps"]
    if steps:
        error = "" if steps["error"] is None else f" +- {steps['error']:.3f}"
        lines.append(
            f"steps = {steps['prefactor']:.2f} (L/B)^{steps['exponent']:.3f}{error}"
            f" for L/B >= {steps['least_L_over_B']}"
        )
    for edge, fit in found["sewing"].items():
        if fit:
            lines.append(
                "sewing, B = {}: {:.4g} + {:.4g}/L + {:.4g}/L^2 ns a site".format(edge, *fit)
            )
    best = ", ".join(f"{edge} at L = {size}" for size, edge in found["best_edge"].items())
    lines.append(f"self-labeling and relaxation take least with B = {best}")
    return "\n".join(lines)


def _numbers(context: Any, parameter: Any, value: str) -> list[int]:
    return [int(part) for part in value.split(",")]


@click.command(help=__doc__)
@click.option(
    "-L", "sizes", default="32,64,128,256,512,1024,2048,4096", callback=_numbers, show_default=True
)
@click.option("--edges", default="4,8,16,32", callback=_numbers, show_default=True, help="B.")
@click.option(
    "--local-edges",
    default="4,8,16,32,64,128",
    callback=_numbers,
    show_default=True,
    help="B of local labeling at the largest L; self-labeling up to 64.",
)
@click.option("-p", default=0.5, show_default=True, help="Of bond percolation; 0.5 is critical.")
@click.option("--words", "pattern", help="Bond words instead: files, one for each {L}, as .npy.")
@click.option(
    "--least-tiles", default=8, show_default=True, help="The least L/B for the fit of the steps."
)
@click.option("--out", type=click.Path(), help="Also write JSON here, a file in results/.")
def main(
    sizes: list[int],
    edges: list[int],
    local_edges: list[int],
    p: float,
    pattern: str | None,
    least_tiles: int,
    out: str | None,
) -> None:
    """Measure, fit and print."""
    cuda = open_device("cuda")
    words = words_of_files(pattern) if pattern else percolation_words(p)
    begin = time.perf_counter()
    records = measure(cuda, sizes, edges, local_edges, words)
    found = fits(records, least_tiles)
    source = pattern or f"bond percolation, p = {p:g}"
    click.echo(f"{device_name(cuda)}, square torus, {source}")
    click.echo(tables(records, found))
    if out:
        document = {
            "device_name": device_name(cuda),
            "versions": package_versions(),
            "words": source,
            "seconds": time.perf_counter() - begin,
            "records": records,
            "fits": found,
        }
        with open(out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
