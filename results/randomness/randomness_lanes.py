"""Are the 32 bonds of a word independent?  Counts over up to 3e11 words on a GPU.

The words are made by percolab's own kernel and counted by CUDA C++ of this folder
(lane_statistics.cu), which knows nothing of how they are made.  At every p:

pairs      the covariance of two lanes (bonds) of a word, 496 of them
triples    the third central moment of three lanes, 4960
parities   whether an even or odd number of bonds is open among the lanes that relations of the
           recurrence suggest (randomness_relations.py), in all 32 rotations
across     the covariance of a lane of one word and a lane of another: the next word, the word half
           a sample on (the other class of the same owners), the next sample, the next seed
counts     the variance of the open bonds of words, of samples, and over seeds

Every number is compared with what independent bonds give, as z; a line of the table has their
chi^2, the probability of a larger one, and the largest |z| with its place and the correlation it
stands for.  ``--generator version-1`` shows what the program says of words that are not right.

Needs a GPU and CuPy.

    python results/randomness/randomness_lanes.py --generator xorwow --out results/randomness
"""

import math
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import click
import cupy
import numba
import numpy as np
from randomness_relations import SUSPECT_SETS
from randomness_version_1 import open_word_of_version_1
from scipy.stats import chi2, norm

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.bonds.words_cuda import open_words_kernel
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS

PROBABILITIES = (0.0497, 0.120164, 0.180288, 0.248813, 1 / 3, 0.347296, 0.3896, 0.5, 0.652704, 0.73)
PER_SAMPLE = 2**16
SAMPLES = 2**12
LIMIT, BAND = 5.0, 0.001
_BLOCKS, _BLOCK = 132 * 8, 256


@cuda.jit
def _version_1_kernel(seed, samples, thresholds, opened, per_sample):
    item, word = cuda.blockIdx.y, cuda.grid(1)
    if word < per_sample:
        opened[item * per_sample + word] = open_word_of_version_1(
            seed, samples[item], word, thresholds[item]
        )


class Words:
    """Words of ``SAMPLES`` samples in device memory, made anew by :meth:`fill`."""

    def __init__(self, generator: str, p: float) -> None:
        self._generator = generator
        self._exists = cuda.to_device(np.full(PER_SAMPLE, 2**32 - 1, np.uint32))
        self._thresholds = cuda.to_device(np.full(SAMPLES, p_to_threshold(p), np.uint64))
        self._words = cuda.device_array(SAMPLES * PER_SAMPLE, np.uint32)
        self.array = cupy.asarray(self._words)

    def fill(self, seed: int, first: int) -> None:
        """Make the words of samples ``first`` ... of a seed."""
        samples = cuda.to_device(np.arange(first, first + SAMPLES, dtype=np.uint64))
        if self._generator == "version-1":
            grid = (math.ceil(PER_SAMPLE / THREADS), SAMPLES)
            _version_1_kernel[grid, THREADS](
                np.uint64(seed), samples, self._thresholds, self._words, PER_SAMPLE
            )
            return
        grid = (math.ceil(PER_SAMPLE / (THREADS * PER_THREAD)), SAMPLES)
        open_words_kernel[grid, THREADS](
            GENERATORS[self._generator],
            np.uint64(seed),
            samples,
            self._thresholds,
            np.uint64(0),
            self._exists,
            self._words,
        )


def orbits() -> list[tuple[int, int]]:
    """Return (a, b) of every triple of lanes (0, a, b), one for each set of 32 rotations."""
    found = set()
    for a in range(1, 31):
        for b in range(a + 1, 32):
            gaps = (a, b - a, 32 - b)
            best = min(gaps[n:] + gaps[:n] for n in range(3))
            found.add((best[0], best[0] + best[1]))
    return sorted(found)


def lane_module() -> cupy.RawModule:
    """Return the counting kernels, compiled for the sets of lanes that are looked at."""
    source = (Path(__file__).parent / "lane_statistics.cu").read_text(encoding="utf-8")
    triples = "".join(
        f"n[{k}] += __popc(x & y[{a}] & y[{b}]); " for k, (a, b) in enumerate(orbits())
    )
    sets = "".join(
        f"n[{s}] += __popc({' ^ '.join(f'COLUMN({lane})' for lane in lanes)}); "
        for s, lanes in enumerate(SUSPECT_SETS)
    )
    macros = (
        f"#define NUM_SETS {len(SUSPECT_SETS)}\n#define TRIPLES {triples}\n#define SETS {sets}\n"
    )
    return cupy.RawModule(code=macros + source, options=("-std=c++17",))


@dataclass
class Line:
    """One line of the table."""

    name: str
    p: float
    words: int
    z: np.ndarray
    places: list[str]
    scale: float

    def __str__(self) -> str:
        total, most = float(np.sum(self.z**2)), int(np.argmax(np.abs(self.z)))
        exceeded = chi2.sf(total, self.z.size)
        fine = BAND <= exceeded <= 1 - BAND and abs(self.z[most]) <= LIMIT
        return (
            f"{self.name:22} p = {self.p:<9.6g} {self.words:.2e} words  "
            f"chi2 {total:9.1f} / {self.z.size:<5} P {exceeded:.4f}  "
            f"max z {self.z[most]:+6.2f} at {self.places[most]:14} "
            f"({self.z[most] * self.scale:+.1e}){'' if fine else '   <-- not independent'}"
        )


def _lanes(*offsets: int) -> list[str]:
    return [",".join(str((lane + a) % 32) for a in offsets) for lane in range(32)]


class Counter:
    """Adds up what the kernels count at one p, and judges it."""

    def __init__(self, module: cupy.RawModule, generator: str, p: float) -> None:
        self._kernels = {
            name: module.get_function(name)
            for name in ("pairs", "triples", "parities", "across", "counts")
        }
        self.generator, self.p = generator, p
        self.words, self.other = Words(generator, p), Words(generator, p)
        self.single = cupy.zeros(32, np.uint64)
        self.pairs = cupy.zeros((16, 32), np.uint64)
        self.triple_single, self.triple_pairs = cupy.zeros(32, np.uint64), self.pairs.copy()
        self.triples = cupy.zeros((155, 32), np.uint64)
        self.parities = cupy.zeros((len(SUSPECT_SETS), 32), np.uint64)
        self.across = {
            name: cupy.zeros((34, 32), np.uint64)
            for name in ("next word", "other class", "next sample", "next seed")
        }
        self.made = {"pairs": 0, "triples": 0, "parities": 0, "across": 0, "counts": 0}
        self.square_of_words = cupy.zeros(1, np.uint64)
        self.of_samples: list[np.ndarray] = []
        self.of_seeds: list[int] = []

    def _run(self, name: str, *arguments: object) -> None:
        self._kernels[name]((_BLOCKS,), (_BLOCK,), arguments)

    def add(self, seed: int, first: int, *, deep: bool, across: bool) -> None:
        """Count one batch of words; ``deep`` with triples and parities."""
        self.words.fill(seed, first)
        words = self.words.array
        groups = np.uint64(words.size // 32)
        self._run("pairs", words, groups, self.single, self.pairs)
        self.made["pairs"] += words.size
        opened = cupy.zeros(SAMPLES, np.uint64)
        self._kernels["counts"](
            (SAMPLES,), (_BLOCK,), (words, np.uint32(PER_SAMPLE), opened, self.square_of_words)
        )
        self.made["counts"] += words.size
        of_samples = cupy.asnumpy(opened)
        self.of_samples.append(of_samples)
        self.of_seeds.append(int(of_samples.sum()))
        if deep:
            self._run("pairs", words, groups, self.triple_single, self.triple_pairs)
            self._run("triples", words, groups, self.triples)
            self._run("parities", words, groups, self.parities)
            self.made["triples"] += words.size
            self.made["parities"] += words.size
        if across:
            self.other.fill(seed + 1, first)
            groups = np.uint64((words.size - PER_SAMPLE) // 32)
            for name, second in (
                ("next word", words[1:]),
                ("other class", words[PER_SAMPLE // 2 :]),
                ("next sample", words[PER_SAMPLE:]),
                ("next seed", self.other.array),
            ):
                self._run("across", words, second, groups, self.across[name])
            self.made["across"] += 32 * int(groups)

    def lines(self) -> list[Line]:
        """Return the lines of the table."""
        found = [self._pairs(), *self._counts()]
        if self.made["triples"]:
            found += [self._triples(), self._parities()]
        if self.made["across"]:
            found += [self._across(name) for name in self.across]
        return found

    def _pairs(self) -> Line:
        n, p, q = self.made["pairs"], self.p, 1 - self.p
        one, two = cupy.asnumpy(self.single).astype(float), cupy.asnumpy(self.pairs).astype(float)
        z, places = [], []
        for d in range(1, 17):
            covariance = two[d - 1] - p * (one + np.roll(one, -d)) + n * p * p
            # Distance 16 has every pair twice.
            part = slice(0, 16 if d == 16 else 32)
            z.append((covariance / (math.sqrt(n) * p * q))[part])
            places += _lanes(0, d)[part]
        return Line("pairs", p, n, np.concatenate(z), places, 1 / math.sqrt(n))

    def _triples(self) -> Line:
        n, p, q = self.made["triples"], self.p, 1 - self.p
        one = cupy.asnumpy(self.triple_single).astype(float)
        two = cupy.asnumpy(self.triple_pairs).astype(float)
        three = cupy.asnumpy(self.triples).astype(float)

        def pair(a: int, b: int) -> np.ndarray:
            """Return counts of lanes l + a and l + b, by l."""
            d = (b - a) % 32
            return np.roll(two[d - 1], -a) if d <= 16 else np.roll(two[31 - d], -b)

        z, places = [], []
        for k, (a, b) in enumerate(orbits()):
            ones = one + np.roll(one, -a) + np.roll(one, -b)
            twos = pair(0, a) + pair(0, b) + pair(a, b)
            moment = three[k] - p * twos + p * p * ones - n * p**3
            z.append(moment / (math.sqrt(n) * (p * q) ** 1.5))
            places += _lanes(0, a, b)
        return Line("triples", p, n, np.concatenate(z), places, 1 / math.sqrt(n))

    def _parities(self) -> Line:
        n, odd = self.made["parities"], cupy.asnumpy(self.parities).astype(float)
        z, places = [], []
        for s, lanes in enumerate(SUSPECT_SETS):
            # The mean of (-1)^(open bonds among m independent ones) is (1 - 2 p)^m.
            mean = (1 - 2 * self.p) ** len(lanes)
            z.append((n - 2 * odd[s] - n * mean) / math.sqrt(n * (1 - mean * mean)))
            places += _lanes(*lanes)
        return Line("parities of 3 to 6", self.p, n, np.concatenate(z), places, 1 / math.sqrt(n))

    def _across(self, name: str) -> Line:
        n, p, q = self.made["across"], self.p, 1 - self.p
        *both, one, other = cupy.asnumpy(self.across[name]).astype(float)
        z, places = [], []
        for d in range(32):
            covariance = both[d] - p * (one + np.roll(other, -d)) + n * p * p
            z.append(covariance / (math.sqrt(n) * p * q))
            places += _lanes(0, d)
        return Line(name, p, n, np.concatenate(z), places, 1 / math.sqrt(n))

    def _counts(self) -> list[Line]:
        n, p, q = self.made["counts"], self.p, 1 - self.p
        samples = np.concatenate(self.of_samples).astype(float)
        # Sums of squares about the expected means, and their variances for independent bonds.
        words = float(self.square_of_words.get()[0])
        words += -2 * 32 * p * samples.sum() + n * (32 * p) ** 2
        seeds = np.array(self.of_seeds, float) - SAMPLES * PER_SAMPLE * 32 * p
        found = [
            ("open bonds", samples.sum() - n * 32 * p, math.sqrt(n * 32 * p * q)),
            _variance("variance, words", words, n, 32, p),
            _variance(
                "variance, samples",
                float(np.sum((samples - PER_SAMPLE * 32 * p) ** 2)),
                samples.size,
                32 * PER_SAMPLE,
                p,
            ),
            _variance(
                "variance, seeds", float(np.sum(seeds**2)), seeds.size, 32 * SAMPLES * PER_SAMPLE, p
            ),
        ]
        return [
            Line(name, p, n, np.array([value / sigma]), ["all"], 1 / math.sqrt(n))
            for name, value, sigma in found
        ]


def _variance(name: str, squares: float, n: int, bonds: int, p: float) -> tuple[str, float, float]:
    """Return (name, excess of a sum of n squares, its standard deviation): counts of ``bonds``."""
    pq = p * (1 - p)
    mean = bonds * pq
    fourth = mean * (1 + 3 * (bonds - 2) * pq)
    return name, squares - n * mean, math.sqrt(n * (fourth - mean * mean))


@click.command()
@click.option("--generator", type=click.Choice([*GENERATORS, "version-1"]), default="xorwow")
@click.option(
    "--words", type=float, default=3e11, show_default=True, help="Words of pairs, each p."
)
@click.option("--deep", type=float, default=1e11, show_default=True, help="Words of the others.")
@click.option("--across", "across_at", multiple=True, type=float, help="p of other words [all].")
@click.option("-p", "probabilities", multiple=True, type=float, help="p values [ten].")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(file_okay=False), help="Folder of lanes-GENERATOR.txt.")
def main(generator, words, deep, across_at, probabilities, seed, out):
    """Count what the lanes of percolab's random words have to do with one another."""
    text: list[str] = []

    def say(line: str) -> None:
        click.echo(line)
        text.append(line)
        if out:
            Path(out).mkdir(parents=True, exist_ok=True)
            path = Path(out) / f"lanes-{generator}.txt"
            path.write_text("\n".join(text) + "\n", encoding="utf-8")

    module, batch = lane_module(), SAMPLES * PER_SAMPLE
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    versions = f"Python {platform.python_version()}, numba {numba.__version__}"
    say(f"{generator}, seeds from {seed}, {PER_SAMPLE} words a sample; {device}, {versions}")
    say(f"sets of lanes: {SUSPECT_SETS}")
    worst, lines = 0.0, 0
    for index, p in enumerate(probabilities or PROBABILITIES):
        begin = time.perf_counter()
        counter = Counter(module, generator, p)
        for n in range(max(math.ceil(words / batch), 1)):
            inside = n * batch < deep
            # A seed of its own for every batch; samples go on all the same.
            counter.add(
                seed + 10**6 * index + 2 * n,
                n * SAMPLES,
                deep=inside,
                across=inside and (not across_at or p in across_at),
            )
        for line in counter.lines():
            say(str(line))
            worst, lines = max(worst, float(np.max(np.abs(line.z)))), lines + line.z.size
        say(f"  {time.perf_counter() - begin:.1f} s")
        del counter
        cupy.get_default_memory_pool().free_all_blocks()
    expected = norm.isf(0.5 / max(lines, 1))
    say(f"largest |z| of {lines}: {worst:.2f} (about {expected:.1f} is expected)")


if __name__ == "__main__":
    main()
