"""Relations of low weight between the digits of a word, for several ways to use XORWOW's outputs.

Output k of a word's stream is o_k = v_k + d_k, where v_{n+5} = A v_{n+4} ^ B v_n over GF(2) with
A = 1 + L^4, B = (1 + L)(1 + R^2) (L, R: shifts left and right) and d_k = d_0 + 362437 (k + 1).
A *relation* is a set of bits of o_0, o_1, ... whose xor is biased: the v bits cancel, what is left
is the carries and bits of the Weyl sequence d.  The bits of a relation lie on a few *lanes* (bonds)
of the word, and the product of their open bits then has a correlation: the product over the lanes
of the Walsh coefficients of u < p, times the bias.

Four scatters: ``none`` (sample version 1), ``rotation`` (output k by 11 k bits), ``scrambled``
(rotl(5 o, 7) * 9) and ``both`` (sample version 2).  For the first two the relations of the
recurrence are relations of digits.  A digit of the last two is no linear function of o; there
the parities of a digit each in planes 0, 4 and 5 are measured, all 32^3 of them.

Left out: relations of more than three instances of the recurrence (each an instance at one bit, or
at all bits up to one), and of outputs after the ninth.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import click
import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.keys import mix64
from percolab.bonds.xorwow import xorwow_next

WEYL = 362437
ROTATION = 11
PLANES = 9
ONES = (1 << 32) - 1
PROBABILITIES = (
    0.0497,
    0.120164,
    0.180288,
    0.248813,
    1 / 3,
    0.347296,
    0.3896,
    0.5,
    0.652704,
    0.73,
)


# --- What needs no simulation: ranks over GF(2) ---------------------------------------------------


def transposed_step(mask: int) -> tuple[int, int]:
    """Return (A^T mask, B^T mask): which bits of v_{n+4} and v_n a parity of v_{n+5} bits is."""
    x = mask ^ (mask >> 1)
    return mask ^ (mask >> 4), (x ^ (x << 2)) & ONES


def rows_of_planes(planes: int) -> list[list[int]]:
    """Return, for each plane and bit, the bit of v as a parity (160-bit mask) of v_0 ... v_4."""
    rows = [[1 << (32 * plane + bit) for bit in range(32)] for plane in range(5)]

    def parity(plane: int, mask: int) -> int:
        found = 0
        for bit in range(32):
            if mask >> bit & 1:
                found ^= rows[plane][bit]
        return found

    for plane in range(5, planes):
        pairs = [transposed_step(1 << bit) for bit in range(32)]
        rows.append([parity(plane - 1, a) ^ parity(plane - 5, b) for a, b in pairs])
    return rows


def rank(vectors: list[int]) -> int:
    """Return the rank over GF(2) of bit masks.

    >>> rank([0b011, 0b101, 0b110])
    2
    """
    basis: dict[int, int] = {}
    for vector in vectors:
        while vector:
            top = vector.bit_length()
            if top not in basis:
                basis[top] = vector
                break
            vector ^= basis[top]
    return len(basis)


def dependent_planes(planes: int, largest: int) -> dict[tuple[int, ...], int]:
    """Return the sets of planes that have relations of their own: planes to number of relations.

    Of the sets of at most ``largest`` among the first planes; relations that already hold within
    a subset are not counted.  Where a set is missing, the outputs of its planes are exactly
    uniform and independent.
    """
    rows = rows_of_planes(planes)
    found: dict[tuple[int, ...], int] = {}
    for size in range(1, largest + 1):
        for chosen in itertools.combinations(range(planes), size):
            inherited = [part for part in found if set(part) < set(chosen)]
            free = 32 * size - rank([row for plane in chosen for row in rows[plane]])
            if free and (not inherited or free > sum(found[part] for part in inherited)):
                found[chosen] = free - sum(found[part] for part in inherited)
    return found


# --- Walsh coefficients of u < p ------------------------------------------------------------------


def walsh_coefficient(planes: tuple[int, ...], p: float) -> float:
    """Return E[1(u < p) (-1)^(sum of the digits of u in these planes)], u uniform in [0, 1).

    Only the interval of length 2^-K that holds p counts, K the deepest plane: the sign is that of
    p's own digits in the other planes, the size at most 2^-(K + 1).

    >>> walsh_coefficient((0,), 0.25), walsh_coefficient((0, 1), 0.75)
    (0.25, -0.25)
    """
    deepest = max(planes)
    inside = (p * 2.0**deepest) % 1.0
    digits = sum(int(p * 2.0 ** (plane + 1)) & 1 for plane in planes if plane != deepest)
    return (-1) ** digits * min(inside, 1.0 - inside) * 2.0**-deepest


def walsh_amplitude(lanes: dict[int, tuple[int, ...]], p: float) -> float:
    """Return the correlation that lanes (to their planes) have where their parity's bias is 1."""
    product = 1.0
    for planes in lanes.values():
        product *= walsh_coefficient(planes, p) / np.sqrt(p * (1 - p))
    return product


# --- Relations of the recurrence ------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """A mask of output bits for each plane; ``bias`` is E[(-1)^parity], with its error."""

    masks: tuple[int, ...]
    bias: float = 1.0
    error: float = 0.0

    def lanes(self, rotation: int) -> dict[int, tuple[int, ...]]:
        """Return the lanes and the planes that each has a digit in."""
        found: dict[int, tuple[int, ...]] = {}
        for plane, bit in self.bits():
            lane = (bit + rotation * plane) % 32
            found[lane] = (*found.get(lane, ()), plane)
        return dict(sorted(found.items()))

    def bits(self) -> list[tuple[int, int]]:
        """Return (plane, bit) of every digit."""
        return [
            (plane, bit)
            for plane, mask in enumerate(self.masks)
            for bit in range(32)
            if mask >> bit & 1
        ]

    def correlation(self, rotation: int, p: float) -> float:
        """Return the correlation of the product of the lanes that this relation alone gives."""
        return walsh_amplitude(self.lanes(rotation), p) * self.bias


def instances() -> np.ndarray:
    """Return relations of v, uint32[n, PLANES]: the recurrence at every n, at bit j or bits <= j.

    The bits up to j together telescope: only two bits of v_n and four of v_{n+4} remain.
    """
    masks = [1 << j for j in range(32)] + [(2 << j) - 1 for j in range(1, 32)]
    found = np.zeros((len(masks) * (PLANES - 5), PLANES), np.uint32)
    for row, (n, mask) in enumerate(itertools.product(range(PLANES - 5), masks)):
        found[row, n + 5] = mask
        found[row, n + 4], found[row, n] = transposed_step(mask)
    return found


def lane_count(masks: np.ndarray, rotation: int) -> np.ndarray:
    """Return how many lanes relations (uint32[n, PLANES]) fall on."""
    lanes = np.zeros(len(masks), np.uint32)
    for plane in range(masks.shape[1]):
        turn = np.uint32(rotation * plane % 32)
        column = masks[:, plane]
        lanes |= column if turn == 0 else (column << turn) | (column >> (np.uint32(32) - turn))
    return np.bitwise_count(lanes)


def few_lanes(rotation: int, most: int) -> np.ndarray:
    """Return the xors of one to three instances that fall on at most so many lanes."""
    base = instances()
    kept = [base[lane_count(base, rotation) <= most]]
    first, second = np.triu_indices(len(base), 1)
    pairs = base[first] ^ base[second]
    kept.append(pairs[lane_count(pairs, rotation) <= most])
    for row in base:
        triples = pairs ^ row
        kept.append(triples[lane_count(triples, rotation) <= most])
    found = np.unique(np.concatenate(kept), axis=0)
    return found[found.any(axis=1)]


def largest_amplitude(relation: Relation, rotation: int, grid: np.ndarray) -> tuple[float, float]:
    """Return (p, amplitude) where the amplitude over a grid of p is largest."""
    lanes = relation.lanes(rotation)
    values = [abs(walsh_amplitude(lanes, p)) for p in grid]
    best = int(np.argmax(values))
    return float(grid[best]), values[best]


def exact_bias(masks: tuple[int, ...]) -> float | None:
    """Return the bias of a relation from the low bits of d alone, None where that is not enough.

    If the bits of v that feed carries obey no relation but this one, then given d the planes'
    biases multiply, each being E over v of (-1)^(mask . ((v + d_k) ^ v)).
    """
    tops = [mask.bit_length() for mask in masks]
    if max(tops) > 9:
        return None
    rows = rows_of_planes(len(masks))
    used = [rows[plane][bit] for plane, top in enumerate(tops) for bit in range(top)]
    if rank(used) != len(used) - 1:
        return None
    size = 1 << max(tops)
    v = np.arange(size)[None, :]
    product = np.ones(size)
    for plane, mask in enumerate(masks):
        d = (np.arange(size) + WEYL * (plane + 1))[:, None]
        parity = np.bitwise_count(((v + d) ^ v) & mask) & 1
        product *= 1.0 - 2.0 * parity.mean(axis=1)
    return float(product.mean())


@njit
def count_odd(masks, scrambled, states, seed):
    """Return how often the parity of each relation (uint32[n, planes]) of the outputs is odd."""
    odd = np.zeros(len(masks), np.int64)
    planes = masks.shape[1]
    out = np.zeros(planes, np.uint32)
    step = mix64(uint64(seed)) | uint64(1)
    z = mix64(step)
    for _ in range(states):
        a, b, c = mix64(z), mix64(uint64(z + step)), mix64(uint64(z + step + step))
        z = uint64(z + uint64(3) * step)
        v0, v1, v2 = uint32(a), uint32(a >> uint64(32)), uint32(b)
        v3, v4, d = uint32(b >> uint64(32)), uint32(c), uint32(c >> uint64(32))
        for k in range(planes):
            o, v0, v1, v2, v3, v4, d = xorwow_next(v0, v1, v2, v3, v4, d)
            if scrambled:
                o = uint32(o * uint32(5))
                o = uint32(((o << uint32(7)) | (o >> uint32(25))) * uint32(9))
            out[k] = o
        for i in range(len(masks)):
            x = uint32(0)
            for k in range(planes):
                x ^= masks[i, k] & out[k]
            x ^= x >> uint32(16)
            x ^= x >> uint32(8)
            x ^= x >> uint32(4)
            odd[i] += (uint32(0x6996) >> (x & uint32(15))) & uint32(1)
    return odd


def measured_bias(masks: np.ndarray, states: int, *, scrambled: bool, seed: int) -> np.ndarray:
    """Return the biases of relations (uint32[n, planes]), by simulation; error 1/sqrt(states)."""
    return 1.0 - 2.0 * count_odd(masks, scrambled, states, seed) / states


def ranked_relations(
    rotation: int, *, lanes: int, keep: int, quick: int, states: int, seed: int
) -> list[Relation]:
    """Return the relations whose predicted correlations are largest, best first.

    A quick simulation of all picks those worth the long one; the largest of the ten p counts.
    """
    masks = few_lanes(rotation, lanes)
    candidates = [Relation(tuple(map(int, row))) for row in masks]
    grid = np.array(PROBABILITIES)
    sizes = np.array([largest_amplitude(r, rotation, grid)[1] for r in candidates])
    order = np.argsort(-sizes)[:4000]
    bias = measured_bias(masks[order], quick, scrambled=False, seed=seed)
    sure = np.clip(np.abs(bias) - 4 / np.sqrt(quick), 0, None)
    best = order[np.argsort(-sure * sizes[order])[:keep]]
    best_bias = measured_bias(masks[best], states, scrambled=False, seed=seed + 1)
    found = []
    for row, value in zip(best, best_bias):
        exact = exact_bias(candidates[row].masks)
        error = states**-0.5 if exact is None else 0.0
        found.append(Relation(candidates[row].masks, value if exact is None else exact, error))
    return sorted(found, key=lambda r: -abs(r.bias) * largest_amplitude(r, rotation, grid)[1])


# --- Parities of three digits, where the outputs are scrambled ------------------------------------


@njit
def _bits_set(x):
    x = x - ((x >> uint64(1)) & uint64(0x5555555555555555))
    x = (x & uint64(0x3333333333333333)) + ((x >> uint64(2)) & uint64(0x3333333333333333))
    x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (x * uint64(0x0101010101010101)) >> uint64(56)


@njit
def count_odd_triples(blocks, seed):
    """Return how often bit i of output 0, j of 4 and k of 5, scrambled, have odd parity [i, j, k].

    Of 64 states a block.
    """
    odd = np.zeros((32, 32, 32), np.int64)
    step = mix64(uint64(seed)) | uint64(1)
    z = mix64(step)
    for _ in range(blocks):
        bits = np.zeros((3, 32), np.uint64)
        for state in range(64):
            a, b, c = mix64(z), mix64(uint64(z + step)), mix64(uint64(z + step + step))
            z = uint64(z + uint64(3) * step)
            v0, v1, v2 = uint32(a), uint32(a >> uint64(32)), uint32(b)
            v3, v4, d = uint32(b >> uint64(32)), uint32(c), uint32(c >> uint64(32))
            for plane in range(6):
                o, v0, v1, v2, v3, v4, d = xorwow_next(v0, v1, v2, v3, v4, d)
                if 0 < plane < 4:
                    continue
                o = uint32(o * uint32(5))
                o = uint32(((o << uint32(7)) | (o >> uint32(25))) * uint32(9))
                row = 0 if plane == 0 else plane - 3
                for bit in range(32):
                    bits[row, bit] |= uint64((o >> uint32(bit)) & uint32(1)) << uint64(state)
        for i in range(32):
            for j in range(32):
                x = bits[0, i] ^ bits[1, j]
                for k in range(32):
                    odd[i, j, k] += _bits_set(x ^ bits[2, k])
    return odd


def triple_lanes(i: int, j: int, k: int, rotation: int) -> dict[int, tuple[int, ...]]:
    """Return the lanes and planes of bits i, j, k of outputs 0, 4 and 5."""
    return Relation((1 << i, 0, 0, 0, 1 << j, 1 << k)).lanes(rotation)


# --- What an enemy would test ---------------------------------------------------------------------

#: Sets of lanes (as they are for the first output; each to be tested in all 32 shifts).
SUSPECT_SETS: tuple[tuple[int, ...], ...] = (
    # Version 1: relations at bit 0, at bits 0 and 1, at the bits up to j, at the top.
    (0, 1, 2),
    (0, 1, 3),
    (0, 1, 2, 3),
    (2, 3, 4, 5),
    (27, 30, 31),
    (26, 29, 30, 31),
    # Rotation alone: two neighbouring instances at bit 0 (bias 1/4: the fault of rotation alone),
    # the same one output later, one instance at bit 0 (unbiased), and longer ones at low and
    # high bits.
    (0, 2, 11, 12, 13),
    (11, 13, 22, 23, 24),
    (0, 2, 12, 23),
    (1, 2, 3, 4, 14, 25),
    (2, 3, 4, 5, 15, 26),
    (1, 2, 3, 12, 13, 14),
    (1, 9, 10, 18, 22),
    (0, 4, 13, 14, 24, 25),
    # Version 2: one digit in each of planes 0, 4 and 5 of about equal place, since the top bits
    # of 5 o come out nearly plain (bits 0 to 6 of the scrambled word); (0, 13, 24) and
    # (0, 15, 26) have the largest biases known, 2e-5 and 8e-6, by the exact law.  (0, 10, 11):
    # planes 0 and 6, 4, 1, through two instances, where the Weyl words can cancel.  Then sets
    # with two digits where the recurrence takes two (v4 at j and j - 4, v0 at j and j + 2).
    (0, 12, 23),
    (0, 12, 24),
    (0, 10, 11),
    (0, 13, 24),
    (0, 15, 26),
    (1, 12, 23),
    (0, 2, 12, 24),
    (0, 1, 12, 23),
    (0, 8, 12, 23),
    (0, 2, 8, 12, 23),
)


def lanes_text(lanes: dict[int, tuple[int, ...]]) -> str:
    """Return lanes and their planes in short."""
    return "  ".join(f"{lane}:{','.join(map(str, planes))}" for lane, planes in lanes.items())


def print_ranks() -> None:
    """Print which sets of output planes are exactly independent."""
    click.echo("Sets of planes, of the first 10, with relations between v (any other set of four")
    click.echo("or fewer planes is exactly uniform and independent, whatever the scatter):")
    for planes, number in dependent_planes(10, 4).items():
        click.echo(f"  planes {planes}: {number} independent relations")


def print_relations(scatter: str, found: list[Relation]) -> None:
    """Print relations with lanes:planes, bias and the correlation each alone gives."""
    rotation = ROTATION if scatter == "rotation" else 0
    grid = np.concatenate([(np.arange(1024) + 0.5) / 1024, PROBABILITIES])
    click.echo(
        f"\n{scatter}: lanes with their planes | parity's bias | p, correlation where most |"
    )
    click.echo("correlation at " + " ".join(f"{p:.6g}" for p in PROBABILITIES))
    for relation in found:
        p, amplitude = largest_amplitude(relation, rotation, grid)
        error = f"({relation.error:.0e})" if relation.error else "(exact)"
        values = " ".join(f"{relation.correlation(rotation, p):+.1e}" for p in PROBABILITIES)
        click.echo(
            f"{lanes_text(relation.lanes(rotation))} | {relation.bias:+.4f}{error} "
            f"| {p:.4f} {amplitude * abs(relation.bias):.1e} | {values}"
        )


def print_triples(blocks: int, seed: int, rows: int) -> None:
    """Print what the parities of three scrambled digits show."""
    states = 64 * blocks
    z = (1 - 2 * count_odd_triples(blocks, seed) / states) * np.sqrt(states)
    click.echo(
        f"\nboth: parities of bits i, j, k of outputs 0, 4, 5, scrambled; {states:.1e} states"
    )
    click.echo(f"chi2 {np.sum(z**2):.0f} of {z.size}, one sigma of a bias {states**-0.5:.1e}")
    for flat in np.argsort(-np.abs(z), axis=None)[:rows]:
        i, j, k = map(int, np.unravel_index(flat, z.shape))
        lanes = triple_lanes(i, j, k, ROTATION)
        most = max(abs(walsh_amplitude(lanes, p)) for p in PROBABILITIES)
        click.echo(
            f"bits {i} {j} {k}, lanes {lanes_text(lanes)}: z {z[i, j, k]:+.1f}, "
            f"correlation at most {most * abs(z[i, j, k]) * states**-0.5:.1e}"
        )


@click.command(help=__doc__)
@click.option("--lanes", default=6, show_default=True, help="Most lanes of a relation.")
@click.option("--keep", default=20, show_default=True, help="Relations listed, of each scatter.")
@click.option("--states", default=1e7, show_default=True, help="States of a measured bias.")
@click.option("--triples", default=0.0, show_default=True, help="States of the parities of three.")
@click.option("--seed", default=1, show_default=True)
def main(lanes: int, keep: int, states: float, triples: float, seed: int) -> None:
    """Find and print."""
    print_ranks()
    for scatter in ("none", "rotation"):
        rotation = ROTATION if scatter == "rotation" else 0
        found = ranked_relations(
            rotation, lanes=lanes, keep=keep, quick=1 << 18, states=int(states), seed=seed
        )
        print_relations(scatter, found)
    if triples:
        print_triples(max(1, int(triples) // 64), seed, 10)


if __name__ == "__main__":
    main()
