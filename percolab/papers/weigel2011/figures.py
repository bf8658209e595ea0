"""Measure on a GPU what the figures of Weigel 2011 show: labelings and updates of Potts models.

M. Weigel, Phys. Rev. E 84, 036709 (2011).  One chain of the q-state Potts model at a time, first
brought to equilibrium with the tiled labeler; then every labeler goes on from the same spins.

sizes   q = 2 on the square torus at beta_c: every labeler against L (Figs. 6, 8, 9, 10, 11)
local   the three local labelings against the edge B of tiles, at the largest L (Fig. 2)
beta    relaxation and sewing from 0.5 to 1.5 beta_c (Fig. 12)
few     all clusters, a single one, and one seed a tile of edge 16 (Fig. 14)
states  q = 2, 3 and 4 at beta_c (Table 1)
komura  the general four steps and those for square and cubic lattices alone (Komura 2016)
cpu     one core of the host, with the labeler raster (Figs. 13 and 14, Table 1)

Times are in ns a site, by device events, medians, with all repeats; the CPU's are by the
clock.  ``update`` is a whole update, several of them one captured call.  The parts are timed in
calls of their own: activation of bonds, local labeling, consolidation, the root of every site, and
the flip.  Relaxation has the host read a flag after every step, so that its update is the parts in
turn.  Clusters are not measured, except by ``tiled`` and on the CPU, where that is not apart.

The record is written after every measurement.  A run of some parts keeps the others of a record.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

from percolab.analysis.theory.potts import critical_point
from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.kernels.device import device_name, load_cuda, open_device
from percolab.labelers import labeler_class, new_labeler, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import load_lattice
from percolab.papers.measured_record import Found, Record, by_commas, made_by
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.spins.words import Chain

#: Of one measurement: repeats, and the seconds after which there are no more of them.
REPEATS, MOST_SECONDS = 7, 0.6
#: Updates that a chain makes from its ordered start, and those timed as one call.
BURN_IN, UPDATES = 300, 8
#: The longest edge of a tile that self-labeling has in shared memory, and that of few clusters.
MOST_SHARED_EDGE, SEED_EDGE = 64, 16
#: The usual edge of tiles, and the edges at which relaxation is timed against beta.
USUAL_EDGE, RELAXATION_EDGES = 16, (8, 16, 32)
#: Labelers timed in addition to those of the paper.
OTHERS = ("komura_2015", "four_step", "tiled")
RATIOS = (0.5, 0.8, 0.95, 1.0, 1.05, 1.2, 1.5)
#: Where Komura's two algorithms are compared, and the sizes.
KOMURA = {"square": (1024, 4096), "honeycomb": (1024, 4096), "triangular": (1024, 4096),
          "cubic": (128, 256), "bcc": (128, 256)}  # fmt: skip
RECORD = Path("results/h200/weigel.json")

#: Tiles along a side from which sewing is fitted.
LEAST_SEWN = 4


class Unmeasured:
    """A labeler for :class:`percolab.spins.chains_cuda.CudaChains` that measures no clusters.

    label: what labels the entries of the batch
    """

    def __init__(self, labeler: Any) -> None:
        self.batch, self.read, self.labels = labeler.batch, labeler.read, labeler.labels
        self.row_width, self.is_capturable = labeler.row_width, labeler.is_capturable
        self.label = labeler.label

    def join(self, entries: int, _reading: Reading) -> Unmeasured:
        """Label the entries."""
        self.label(entries)
        return self

    def enqueue_rows(self) -> None:
        """Do nothing."""


class Bench:
    """Equilibrated spins of one lattice, and how long labelers take to go on from them."""

    def __init__(self, lattice: str, size: int, states: int = 2, ratio: float = 1.0) -> None:
        known = critical_point(lattice, states)
        assert known is not None
        structure = load_lattice(lattice)
        axes = structure.dimension
        self.topology = structure.topology((size,) * axes, ("periodic",) * axes)
        beta = ratio * known.value
        self.what: Found = {
            "lattice": lattice, "L": size, "sites": self.topology.num_sites, "states": states,
            "beta": beta, "ratio": ratio,
        }  # fmt: skip
        threshold = p_to_threshold(-math.expm1(-beta))
        self.chain = Chain(*(np.uint64(seed) for seed in (11, 12, 13, 0, threshold)))
        self.states, self.cuda = states, load_cuda()
        self.planes = self._equilibrated()

    def _equilibrated(self) -> Any:
        name = serving_labeler("tiled", "cuda", self.topology)
        labeler: Any = new_labeler(name, "cuda", self.topology)
        labeler = Unmeasured(labeler) if name == "four_step" else labeler
        chains = self._begun(labeler, "sw", None)
        chains._sweep(BURN_IN)
        return chains.copy_planes().ravel()

    def _begun(self, labeler: Any, update: str, planes: Any) -> Any:
        """Return a chain that goes on from given spins; None: that starts ordered."""
        from percolab.spins.chains_cuda import CudaChains

        chains = CudaChains(labeler, Update.parse(update).rule(self.states))
        chains.begin(XORWOW, [self.chain], [False])
        if planes is not None:
            chains.planes.copy_to_device(planes)
        return chains

    def _times(self, stream: Any, parts: dict[str, Callable[[], object]], seen: Any) -> Found:
        """Return all repeats, in ns a site, of works that are done one after the other."""
        for _ in range(3):  # directly, which compiles; captured; launched
            for work in parts.values():
                work()
        runs: list[list[float]] = []
        begin = time.perf_counter()
        while len(runs) < REPEATS and (time.perf_counter() - begin < MOST_SECONDS or not runs):
            events = [self.cuda.event() for _ in range(len(parts) + 1)]
            events[0].record(stream)
            for event, work in zip(events[1:], parts.values(), strict=True):
                work()
                event.record(stream)
            events[-1].synchronize()
            seen()
            times = [1e6 * first.elapsed_time(last) for first, last in pairwise(events)]
            runs.append([each / self.what["sites"] for each in times])
        return {name: list(each) for name, each in zip(parts, zip(*runs), strict=True)}

    def updates(self, labeler: Any, update: str = "sw") -> Found:
        """Return the time of whole updates, as many as are one call."""
        chains = self._begun(labeler, update, self.planes)
        stream = labeler.batch.launches.stream
        times = self._times(stream, {"update": lambda: chains._sweep(UPDATES)}, lambda: None)
        return {"update": [each / UPDATES for each in times["update"]]}

    def updated(self, labeler: Any, update: str) -> Found:
        """Return the times of whole updates with their medians."""
        return summary(self.updates(labeler, update))

    def of(self, name: str, edge: int | None = None) -> Found:
        """Return the times of a labeler: of an update, and of its parts."""
        batch: Any = new_batch("cuda", self.topology, BOND, capacity=1)
        labeler = labeler_class(name, "cuda")(batch, **({} if edge is None else {"edge": edge}))
        repeats: Found = {}
        own = labeler if name == "tiled" else Unmeasured(labeler)
        if labeler.is_capturable:
            repeats |= self.updates(own)
        chains = self._begun(own, "sw", self.planes)
        steps: list[int] = []
        repeats |= self._times(batch.launches.stream, *self._parts(labeler, chains, edge, steps))
        if "update" not in repeats:
            repeats["update"] = np.sum(list(repeats.values()), axis=0).tolist()
        return summary(repeats) | ({"steps": steps} if steps else {})

    def _parts(self, labeler: Any, chains: Any, edge: int | None, steps: list[int]) -> Any:
        """Return the parts of an update, and what notes the steps of relaxation."""
        launches = labeler.batch.launches

        def captured(work: Callable[[], None]) -> Callable[[], None]:
            key = object()
            return lambda: launches.call(key, work)

        parts: dict[str, Callable[[], object]] = {"activation": captured(chains._open)}
        if not isinstance(chains.labeler, Unmeasured):
            parts["labels"] = captured(lambda: labeler.join(1, Reading.LABELS).make_labels())
            return parts, lambda: None

        def flip() -> None:
            chains.labeler.label = lambda entries: None
            chains._join_labels()
            chains.keep()

        if edge is None:
            parts["labels"] = captured(lambda: labeler.label(1))
            return parts | {"flip": captured(flip)}, lambda: None
        joined = labeler.consolidation
        run = joined.run
        parts["local"] = captured(lambda: labeler.local.run(1))
        parts["consolidation"] = (
            captured(lambda: run(1)) if joined.is_capturable else lambda: run(1)
        )
        parts["roots"] = captured(lambda: labeler.find_roots(1))
        parts["flip"] = captured(flip)
        if joined.is_capturable:
            return parts, lambda: None
        return parts, lambda: steps.append(joined.steps)

    def on_cpu(self, update: str) -> Found:
        """Return the time of an update by one core of the host."""
        rule = Update.parse(update).rule(self.states)
        chains: Any = new_chains("raster", "cpu", self.topology, rule)
        chains.begin(XORWOW, [self.chain], [False])
        chains.advance(1)  # compiles
        chains.spins.planes[:] = self.planes
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < REPEATS and (time.perf_counter() - begin < MOST_SECONDS or not times):
            start = time.perf_counter()
            chains.advance(1)
            times.append(1e9 * (time.perf_counter() - start) / self.what["sites"])
        return summary({"update": times})


def summary(repeats: Found) -> Found:
    """Return the medians of repeats, and all of them."""
    medians = {name: float(np.median(values)) for name, values in repeats.items()}
    return {"ns_a_site": medians, "repeats": repeats}


def add_labelers(record: Record, bench: Bench, requested: list[tuple[str, int | None]]) -> None:
    """Measure labelers, with tiles of an edge or None, as far as they serve the lattice."""
    for name, edge in requested:
        if serving_labeler(name, "cuda", bench.topology) != name:
            continue
        if edge is not None and edge > bench.what["L"]:
            continue
        what = bench.what | {"labeler": name} | ({} if edge is None else {"B": edge})
        record.add(what, partial(bench.of, name, edge))


def measure_sizes(record: Record, sizes: list[int], edges: list[int]) -> None:
    """Measure every labeler against L."""
    for size in sizes:
        if record.is_late:
            record.parts["sizes"]["skipped"].append({"L": size})
            continue
        requested: list[tuple[str, int | None]] = [(name, None) for name in OTHERS]
        for joined in ("sewing", "relaxation"):
            requested += [(f"tiles:self+{joined}", edge) for edge in edges]
            requested += [(f"tiles:{local}+{joined}", USUAL_EDGE) for local in ("bfs", "union")]
        add_labelers(record, Bench("square", size), requested)
        click.echo(f"L = {size} done", err=True)


def measure_local(record: Record, sizes: list[int], edges: list[int]) -> None:
    """Measure local labelings against the edge of tiles."""
    requested: list[tuple[str, int | None]] = [
        (f"tiles:{local}+sewing", edge)
        for local in ("self", "bfs", "union")
        for edge in edges
        if local != "self" or edge <= MOST_SHARED_EDGE
    ]
    add_labelers(record, Bench("square", max(sizes)), requested)


def measure_beta(record: Record, sizes: list[int], _edges: list[int]) -> None:
    """Measure sewing and relaxation against beta, at L = 1024 or the largest below."""
    size = max(size for size in sizes if size <= 1024)
    requested: list[tuple[str, int | None]] = [("tiles:self+sewing", USUAL_EDGE)]
    requested += [("tiles:self+relaxation", edge) for edge in RELAXATION_EDGES]
    for ratio in RATIOS:
        add_labelers(record, Bench("square", size, ratio=ratio), [*requested, ("tiled", None)])


def updates_of(size: int) -> tuple[str, str, str]:
    """Return the updates of Fig. 14: all clusters, a single one, and one seed a tile."""
    return "sw", "wolff", f"few:{max(size // SEED_EDGE, 1) ** 2},flip=0.5"


def measure_few(record: Record, sizes: list[int], _edges: list[int]) -> None:
    """Measure the updates of Fig. 14 with the tiled labeler."""
    for size in sizes:
        if record.is_late:
            record.parts["few"]["skipped"].append({"L": size})
            continue
        bench = Bench("square", size)
        for update in updates_of(size):
            labeler = new_labeler("tiled", "cuda", bench.topology)
            what = bench.what | {"labeler": "tiled", "update": update}
            record.add(what, partial(bench.updated, labeler, update))


def measure_states(record: Record, sizes: list[int], _edges: list[int]) -> None:
    """Measure q = 2, 3 and 4, at L = 1024 and 4096 as far as requested."""
    requested: list[tuple[str, int | None]] = [("tiles:self+sewing", USUAL_EDGE)]
    requested += [("tiles:self+relaxation", USUAL_EDGE), *((name, None) for name in OTHERS)]
    for size in table_sizes(sizes):
        for states in (2, 3, 4):
            if record.is_late:
                record.parts["states"]["skipped"].append({"L": size, "states": states})
            else:
                add_labelers(record, Bench("square", size, states), requested)


def table_sizes(sizes: list[int]) -> list[int]:
    """Return the sizes of Table 1: L = 1024 and 4096, or else the largest."""
    return [size for size in sizes if size in (1024, 4096)] or [max(sizes)]


def measure_komura(record: Record, sizes: list[int], _edges: list[int]) -> None:
    """Measure the general four steps and the special ones."""
    for lattice, own in KOMURA.items():
        for size in own:
            if record.is_late:
                record.parts["komura"]["skipped"].append({"lattice": lattice, "L": size})
            elif size <= max(sizes):
                add_labelers(
                    record, Bench(lattice, size), [("komura_2015", None), ("four_step", None)]
                )


def measure_cpu(record: Record, sizes: list[int], _edges: list[int]) -> None:
    """Measure updates by one core of the host."""
    requested = [(size, 2, update) for size in sizes for update in ("sw", "wolff")]
    requested += [(size, states, "sw") for size in table_sizes(sizes) for states in (3, 4)]
    for size, states, update in requested:
        if record.is_late:
            skipped = {"L": size, "states": states, "update": update}
            record.parts["cpu"]["skipped"].append(skipped)
            continue
        bench = Bench("square", size, states)
        what = bench.what | {"labeler": "raster", "update": update}
        record.add(what, partial(bench.on_cpu, update))


MEASURES = {
    "sizes": measure_sizes, "local": measure_local, "beta": measure_beta, "few": measure_few,
    "states": measure_states, "komura": measure_komura, "cpu": measure_cpu,
}  # fmt: skip


def fit_power(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """Return (exponent, its standard error, prefactor) of y = prefactor * x^exponent.

    By least squares of the logarithms; the error is by their scatter, NaN for less than 3 points.
    """
    logarithms = np.log(x), np.log(y)
    design = np.column_stack([logarithms[0], np.ones(len(x))])
    coefficients, residuals, rank, _ = np.linalg.lstsq(design, logarithms[1], rcond=None)
    error = np.nan
    if len(x) > 2 and rank == 2:
        scatter = float(residuals[0]) / (len(x) - 2)
        error = float(np.sqrt(scatter * np.linalg.inv(design.T @ design)[0, 0]))
    return float(coefficients[0]), error, float(np.exp(coefficients[1]))


def fit_sewing(sizes: list[int], times: list[float]) -> list[float] | None:
    """Return a, b, c of a + b/L + c/L^2, weighted by 1/time; None for less than 4 sizes."""
    if len(sizes) < 4 or min(times) <= 0:
        return None
    inverse, weights = 1 / np.array(sizes, float), 1 / np.array(times)
    design = np.column_stack([np.ones_like(inverse), inverse, inverse**2]) * weights[:, None]
    coefficients: list[float] = np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)[0].tolist()
    return coefficients


def fits(records: list[Found], least_tiles: int) -> Found:
    """Return the fits of Figs. 6 and 8, and the best B of Fig. 9, of the part ``sizes``."""
    relaxed = [record for record in records if record["labeler"] == "tiles:self+relaxation"]
    sewn = [record for record in records if record["labeler"] == "tiles:self+sewing"]
    fitted: Found = {"steps": None, "sewing": {}, "best_edge": {}, "best_sewing_edge": {}}
    points = [
        (record["L"] / record["B"], float(np.mean(record["steps"])))
        for record in relaxed
        if record["L"] >= least_tiles * record["B"]
    ]
    if len({ratio for ratio, _ in points}) > 1:
        exponent, error, prefactor = fit_power(*(list(part) for part in zip(*points)))
        fitted["steps"] = {
            "exponent": exponent,
            "error": None if np.isnan(error) else error,
            "prefactor": prefactor,
            "least_L_over_B": least_tiles,
        }
    for edge in sorted({record["B"] for record in sewn}):
        # Where there are few tiles other terms count, too.
        line = [
            (r["L"], r["ns_a_site"]["consolidation"])
            for r in sewn
            if r["B"] == edge and r["L"] >= LEAST_SEWN * edge
        ] or [(0, 0.0)]
        fitted["sewing"][edge] = fit_sewing(*(list(part) for part in zip(*line)))
    for name, own in (("best_edge", relaxed), ("best_sewing_edge", sewn)):
        for size in sorted({record["L"] for record in own}):
            of_size = [record for record in own if record["L"] == size]
            best = min(of_size, key=lambda r: labeling_time(r["ns_a_site"]))
            fitted[name][size] = best["B"]
    return fitted


def labeling_time(times: dict[str, float]) -> float:
    """Return the time of labeling alone, ns a site: local, consolidation and roots."""
    return sum(times[part] for part in ("local", "consolidation", "roots"))


def tables(parts: Found) -> str:
    """Return all medians as text."""
    columns = ("update", "activation", "labels", "local", "consolidation", "roots", "flip")
    lines = ["ns a site: " + "  ".join(columns)]
    for part, own in parts.items():
        left = f", {len(own['skipped'])} skipped, {len(own['failed'])} failed"
        lines.append(f"{part}: {len(own['records'])} in {own['seconds']:.0f} s{left}")
        for r in own["records"]:
            shown = [f"{r['ns_a_site'][c]:.4f}" if c in r["ns_a_site"] else "-" for c in columns]
            steps = f"  {np.mean(r['steps']):.1f} steps" if "steps" in r else ""
            tiles, update = (f" B={r['B']}" if "B" in r else ""), f" {r.get('update', '')}".rstrip()
            name = f"{r['labeler']}{tiles}{update}"
            model = f"{r['lattice']} L={r['L']} q={r['states']} {r['ratio']:g} beta_c"
            lines.append(f"  {model:<36}{name:<30}{'  '.join(shown)}{steps}")
    return "\n".join(lines)


def _names(context: Any, parameter: Any, value: str) -> list[str]:
    requested = value.split(",")
    for name in requested:
        if name not in MEASURES:
            raise click.BadParameter(f"{name!r} is none of {', '.join(MEASURES)}")
    return requested


@click.command(help=__doc__)
@click.option(
    "-L", "sizes", default="32,64,128,256,512,1024,2048,4096", callback=by_commas, show_default=True
)
@click.option("--edges", default="4,8,16,32,64", callback=by_commas, show_default=True, help="B.")
@click.option(
    "--local-edges",
    default="4,8,16,32,64,128",
    callback=by_commas,
    show_default=True,
    help="B of local labeling at the largest L; self-labeling up to 64.",
)
@click.option("--parts", default=",".join(MEASURES), callback=_names, show_default=True)
@click.option("--seconds", default=225.0, show_default=True, help="After which nothing is begun.")
@click.option(
    "--least-tiles", default=8, show_default=True, help="The least L/B for the fit of the steps."
)
@click.option("--commit", "known", help="Of the working tree, where git does not know it.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help=f"Write JSON here, as {RECORD}.")
def main(
    sizes: list[int],
    edges: list[int],
    local_edges: list[int],
    parts: list[str],
    seconds: float,
    least_tiles: int,
    known: str | None,
    out: Path | None,
) -> None:
    """Measure, write and print."""
    device = device_name(open_device("cuda"))
    record = Record(out, made_by(known, device), seconds)
    for part in parts:
        record.begin(part)
        MEASURES[part](record, sizes, local_edges if part == "local" else edges)
        record.write()
    click.echo(device)
    click.echo(tables({part: record.parts[part] for part in parts}))
    if "sizes" in parts:
        click.echo(json.dumps(fits(record.parts["sizes"]["records"], least_tiles)))
    record.end()


if __name__ == "__main__":
    main()
