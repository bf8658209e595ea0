"""Exact laws of digits of a word: version 1, rotation alone, and sample version 2.

Three laws, none of which samples anything.

* ``walk``: the joint law of a few lanes under no scatter or rotation alone, plane by plane.  Bits 0
  to 2 of the outputs are followed (five planes back, with d mod 8), all others are taken as free.
* ``brute``: the bias of a parity of scrambled digits in planes 0, 4 and 5 by going through all
  states, for narrow words.
* ``spectral``: the same bias for words of any width, as the sum over masks m of
  G5(m) G4(A^T m) G0(B^T m), where G_k is the Walsh spectrum of plane k's digits as a function of
  v_k.  The spectra have 2^w entries, but a digit needs little memory from bit to bit (two carries),
  so each is a chain of small matrices, one a bit (a tensor train, Oseledets 2011), made smaller by
  singular values; the sum over m, and the mean over d, is then a walk over bit positions.

Narrow words: the shifts 2, 1 and 4, the factors 5 and 9 and the Weyl constant (mod 2^w) stay, the
rotation by 7 is by round(7 w / 32).  At w = 32 nothing is changed.
"""

from __future__ import annotations

import itertools
from functools import cache

import click
import numpy as np
from numba import njit
from randomness_relations import PROBABILITIES, ROTATION, WEYL, triple_lanes, walsh_amplitude

PLANES = (0, 4, 5)

# --- Version 1 and rotation alone: a walk over planes ---------------------------------------------

EQUAL, BELOW, ABOVE = 0, 1, 2


@njit
def _followed_step(law, bits, digit):
    """Return the law after a plane in which lane i reads bit bits[i] (0 to 2; free where -1)."""
    after = np.zeros_like(law)
    statuses = law.shape[0]
    for s in range(statuses):
        for h0 in range(32):
            for h2 in range(32):
                low = ((h0 & 1) ^ (h0 >> 4) ^ (h2 >> 4)) & 1
                for d in range(8):
                    weight = law[s, h0, h2, d] / 4
                    if weight == 0.0:
                        continue
                    e = (d + WEYL) & 7
                    for middle in range(2):
                        for high in range(2):
                            o = (low + 2 * middle + 4 * high + e) & 7
                            code, place, rest = 0, 1, s
                            for bit in bits:
                                status = rest % 3
                                rest //= 3
                                if status == 0 and bit >= 0:
                                    read = (o >> bit) & 1
                                    if read != digit:
                                        status = 1 if read < digit else 2
                                code += status * place
                                place *= 3
                            new0, new2 = ((h0 << 1) & 31) | low, ((h2 << 1) & 31) | high
                            after[code, new0, new2, e] += weight
    return after


def _free_step(law: np.ndarray, lane: int, digit: int) -> np.ndarray:
    """Return the law after a lane has read a free bit."""
    parts = law.reshape(-1, 3, 3**lane, *law.shape[1:]).copy()
    half = parts[:, EQUAL] / 2
    parts[:, EQUAL] = half
    parts[:, BELOW if digit else ABOVE] += half
    return parts.reshape(law.shape)


def walk(lanes: tuple[int, ...], p: float, rotation: int, planes: int = 36) -> np.ndarray:
    """Return the probabilities float64[2, 2, ...] of lanes being closed (0) or open (1)."""
    law = np.zeros((3 ** len(lanes), 32, 32, 8))
    law[0] = 1 / law[0].size
    for plane in range(planes):
        digit = int(p * 2.0 ** (plane + 1)) & 1
        read = [(lane - rotation * plane) % 32 for lane in lanes]
        bits = np.array([bit if bit < 3 else -1 for bit in read])
        law = _followed_step(law, bits, digit)
        for lane in np.flatnonzero(bits < 0):
            law = _free_step(law, int(lane), digit)
    by_status = law.sum(axis=(1, 2, 3)).reshape((3,) * len(lanes)).transpose()
    for axis in range(len(lanes)):
        split = np.split(by_status, 3, axis=axis)
        by_status = np.concatenate([split[EQUAL] + split[ABOVE], split[BELOW]], axis=axis)
    return by_status


def product_correlation(law: np.ndarray, chosen: tuple[int, ...], p: float) -> float:
    """Return E[prod of (open - p) / sqrt(p (1 - p))] over chosen axes of a law of lanes."""
    weights = law
    for axis in range(law.ndim):
        value = np.array([-p, 1 - p]) / np.sqrt(p * (1 - p)) if axis in chosen else np.ones(2)
        weights = weights * value.reshape([-1 if i == axis else 1 for i in range(law.ndim)])
    return float(weights.sum())


# --- Scrambled digits: brute force ----------------------------------------------------------------


def scramble_turn(width: int) -> int:
    """Return the rotation of the scrambler at a width of words."""
    return round(7 * width / 32)


def scrambled(o: np.ndarray, width: int) -> np.ndarray:
    """Return rotl(5 o, 7) * 9 of words (int64), at a width."""
    ones, turn = (1 << width) - 1, scramble_turn(width)
    y = (5 * o) & ones
    y = ((y << turn) | (y >> (width - turn))) & ones
    return (9 * y) & ones


def brute(masks: tuple[int, int, int], width: int) -> np.ndarray:
    """Return the bias E[(-1)^parity] for every d_0, float64[2^width].

    masks: the digits (before the rotation by planes) of planes 0, 4 and 5.
    """
    ones = (1 << width) - 1
    v = np.arange(1 << width, dtype=np.int64)
    t = v ^ (v >> 2)
    from0, from4 = t ^ ((t << 1) & ones), v ^ ((v << 4) & ones)
    v5 = from4[:, None] ^ from0[None, :]
    found = np.zeros(1 << width)
    for d in range(1 << width):
        signs = []
        for plane, mask in zip(PLANES, masks):
            o = (v + d + WEYL * (plane + 1)) & ones
            signs.append(1 - 2.0 * (np.bitwise_count(scrambled(o, width) & mask) & 1))
        found[d] = signs[1] @ signs[2][v5] @ signs[0] / 4.0**width
    return found


# --- Scrambled digits: chains of matrices ---------------------------------------------------------

# A chain is a list of arrays [left, symbol, right], one for each bit position, lowest first; the
# first has left 1, the last right 1.  The function's value is the product of the chosen matrices.


def compressed(chain: list[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Return a chain of smaller matrices, off by at most so much in root mean square.

    Every core is scaled by the root of its number of symbols, so that norms are means.
    """
    cores, carry = [], np.ones((1, 1))
    for core in chain:
        joined = np.tensordot(carry, core / np.sqrt(core.shape[1]), 1)
        left, symbols, right = joined.shape
        q, carry = np.linalg.qr(joined.reshape(left * symbols, right))
        cores.append(q.reshape(left, symbols, -1))
    cores[-1] = cores[-1] * carry[0, 0]
    allowed = tolerance / np.sqrt(len(chain))
    for i in range(len(cores) - 1, 0, -1):
        left, symbols, right = cores[i].shape
        u, s, vt = np.linalg.svd(cores[i].reshape(left, symbols * right), full_matrices=False)
        lost = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1]
        keep = max(1, int(np.sum(lost > allowed)))
        cores[i] = vt[:keep].reshape(keep, symbols, right)
        cores[i - 1] = np.tensordot(cores[i - 1], u[:, :keep] * s[:keep], 1)
    return [core * np.sqrt(core.shape[1]) for core in cores]


def _digit_core(position: int, bit: int, width: int) -> np.ndarray:
    """Return the matrices of a scrambled digit at one bit position of o.

    The state is (guess, carry of 5 o, carry of 9 y): y's bits above the turn come first, so that
    the carry into them is guessed and compared at the end.
    """
    turn = scramble_turn(width)
    core = np.zeros((9, 5, 9, 2, 9, 5, 9))
    place = position + turn if position < width - turn else position + turn - width
    for guess, c5, c9, symbol in itertools.product(range(9), range(5), range(9), range(2)):
        x = 5 * symbol + c5
        sum9, sign, new9 = 9 * (x & 1) + c9, 1.0, 0
        if place <= bit:
            sign = -1.0 if place == bit and sum9 & 1 else 1.0
            new9 = sum9 >> 1
        if position < width - turn and place >= bit:
            new9 = 0
        if place == turn - 1 and bit >= turn and new9 != guess:
            continue
        core[guess, c5, c9, symbol, guess, x >> 1, new9] = sign
    return core.reshape(405, 2, 405)


@cache
def digit_chain(bit: int, width: int, tolerance: float) -> tuple[np.ndarray, ...]:
    """Return (-1)^bit of rotl(5 o, 7) * 9 as a chain over the bits of o."""
    turn = scramble_turn(width)
    guesses = range(9) if bit >= turn else range(1)
    first, last = np.zeros((1, 405)), np.ones((405, 1))
    for guess in guesses:
        # Where the first position is the lowest of y's upper part, the guess is its carry.
        first[0, guess * 45 + (guess if bit >= turn else 0)] = 1.0
    cores = [_digit_core(position, bit, width) for position in range(width)]
    cores[0] = np.tensordot(first, cores[0], 1)
    cores[-1] = np.tensordot(cores[-1], last, 1)
    return tuple(compressed(cores, tolerance))


def product_chain(one: list[np.ndarray], two: list[np.ndarray]) -> list[np.ndarray]:
    """Return the chain of the product of two functions."""
    return [
        np.einsum("asb,csd->acsbd", x, y).reshape(
            x.shape[0] * y.shape[0], x.shape[1], x.shape[2] * y.shape[2]
        )
        for x, y in zip(one, two)
    ]


def digits_chain(mask: int, width: int, tolerance: float) -> list[np.ndarray]:
    """Return (-1)^parity of several scrambled digits as a chain over the bits of o."""
    chain: list[np.ndarray] | None = None
    for bit in range(width):
        if mask >> bit & 1:
            digit = list(digit_chain(bit, width, tolerance))
            chain = digit if chain is None else compressed(product_chain(chain, digit), tolerance)
    if chain is None:
        raise ValueError("a plane without digits has no bias to add to")
    return chain


@cache
def plane_chain(mask: int, plane: int, width: int, tolerance: float) -> tuple[np.ndarray, ...]:
    """Return the Walsh spectrum over v_k, for every d_0, of digits of plane k.

    A chain of [left, mask bit, d bit, right]; o = v + d_0 + WEYL (k + 1) carries 0, 1 or 2.
    """
    constant = WEYL * (plane + 1)
    chain = []
    for position, core in enumerate(digits_chain(mask, width, tolerance)):
        left, _, right = core.shape
        wide = np.zeros((left, 3, 2, 2, right, 3))
        for a, v, d in itertools.product(range(3), range(2), range(2)):
            total = v + d + (constant >> position & 1) + a
            wide[:, a, v, d, :, total >> 1] = core[:, total & 1, :]
        chain.append(wide.reshape(left * 3, 4, right * 3))
    chain[0] = chain[0][:1]
    chain[-1] = chain[-1].reshape(-1, 4, 1, 3).sum(axis=3)
    small = compressed(chain, tolerance)
    walsh = np.array([[0.5, 0.5], [0.5, -0.5]])
    return tuple(
        np.einsum("mv,avdb->amdb", walsh, core.reshape(core.shape[0], 2, 2, -1)) for core in small
    )


def spectral(
    masks: tuple[int, int, int],
    width: int,
    *,
    d: int | None = None,
    tolerance: float = 1e-7,
) -> float:
    """Return the bias of digits of planes 0, 4 and 5 (masks before the rotation by planes).

    The mean over d_0, or for one d_0.  The walk keeps m's bits j - 2 to j + 3 (a window of 64) and
    the three chains' states: A^T m has bit j of m ^ m >> 4, B^T m that of x ^ x << 2,
    x = m ^ m >> 1.
    """
    chains = [plane_chain(mask, k, width, tolerance) for mask, k in zip(masks, PLANES)]
    state = {window: np.ones((1, 1, 1)) for window in range(0, 64, 4)}
    for j, cores in enumerate(zip(*chains)):
        d_bits = (0, 1) if d is None else (d >> j & 1,)
        after: dict[int, np.ndarray] = {}
        for d_bit in d_bits:
            partial: dict[int, np.ndarray] = {}
            for window, x in state.items():
                m = [window >> i & 1 for i in range(6)]  # bits j - 2, ..., j + 3
                in5 = m[2]
                in0 = m[2] ^ m[3] ^ (m[0] ^ m[1] if j > 1 else 0)
                # Axes: planes 0, 4, 5.
                y = np.tensordot(cores[0][:, in0, d_bit].T, x, 1)
                y = y @ cores[2][:, in5, d_bit]
                partial[window >> 1] = partial.get(window >> 1, 0) + y
            for window, y in partial.items():
                for new in (0, 1) if j + 4 < width else (0,):
                    in4 = (window >> 1 & 1) ^ new
                    z = np.matmul(cores[1][:, in4, d_bit].T, y) / len(d_bits)
                    key = window | new << 5
                    after[key] = after.get(key, 0) + z
        state = after
    return float(sum(x[0, 0, 0] for x in state.values()))


# --- Command line ---------------------------------------------------------------------------------

#: Lanes followed, the rotation, and the products of lanes (by position) that are printed.
WALKS = (
    ("version 1", (0, 1, 2), 0, ((0, 1), (0, 2), (1, 2), (0, 1, 2))),
    ("rotation alone", (0, 2, 12, 23), ROTATION, ((0, 1), (0, 1, 2), (0, 1, 2, 3))),
    ("rotation alone", (0, 2, 11, 12, 13), ROTATION, ((0, 1), (0, 1, 2, 3), (0, 1, 2, 3, 4))),
)


def print_walks() -> None:
    """Print the correlations of the lanes most at risk without the scrambler."""
    for name, lanes, rotation, products in WALKS:
        click.echo(f"{name}, lanes {lanes}: p, then products of lanes")
        for p in PROBABILITIES:
            law = walk(lanes, p, rotation)
            values = [
                f"{tuple(lanes[i] for i in chosen)} {product_correlation(law, chosen, p):+.3e}"
                for chosen in products
            ]
            click.echo(f"  {p:.6f}  " + "  ".join(values))


def print_widths(tolerance: float) -> None:
    """Print how the bias of three digits falls with the width of the words."""
    click.echo("width, digits of planes 0, 4, 5: mean bias over d_0, root mean square over 8 d_0")
    generator = np.random.default_rng(1)
    for width in (8, 10, 12, 14):
        bits = (width // 2,) * 3
        masks = (1 << bits[0], 1 << bits[1], 1 << bits[2])
        some = generator.integers(0, 1 << width, 8)
        given = [spectral(masks, width, d=int(d), tolerance=tolerance) for d in some]
        mean = spectral(masks, width, tolerance=tolerance)
        click.echo(f"  {width} {bits}: {mean:+.2e} {np.sqrt(np.mean(np.square(given))):.1e}")


def print_digits(chosen: list[tuple[int, int, int]], tolerance: float) -> None:
    """Print the bias of parities of three digits of words of 32 bits, and what lanes make of it."""
    click.echo("bits i, j, k of outputs 0, 4, 5, scrambled, and lanes: mean bias over d_0")
    for bits in chosen:
        bias = spectral((1 << bits[0], 1 << bits[1], 1 << bits[2]), 32, tolerance=tolerance)
        lanes = triple_lanes(*bits, ROTATION)
        most = max(abs(walsh_amplitude(lanes, p)) for p in PROBABILITIES) * abs(bias)
        click.echo(f"  {bits} {tuple(lanes)}: {bias:+.2e}, correlation at most {most:.1e}")


@click.command(help=__doc__)
@click.option("--walks/--no-walks", default=True, help="Version 1 and rotation alone.")
@click.option("--widths/--no-widths", default=False, help="How biases fall with the width.")
@click.option("--triple", "triples", multiple=True, type=(int, int, int), help="Bits i, j, k.")
@click.option("--tolerance", default=1e-3, show_default=True, help="Of the chains.")
def main(
    walks: bool, widths: bool, triples: tuple[tuple[int, int, int], ...], tolerance: float
) -> None:
    """Print the laws asked for."""
    if walks:
        print_walks()
    if widths:
        print_widths(tolerance)
    if triples:
        print_digits(list(triples), tolerance)


if __name__ == "__main__":
    main()
