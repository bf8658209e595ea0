"""Energy of the Ising model on square tori beside Kaufman's exact one, to as many digits as asked.

    python scripts/kaufman.py --device cuda --out results/h200/kaufman.txt --update sw --rng xorwow

Every line is one chain study by percolab.sweep: L, K over K_c, update, generator, the energy a site
by its error, and how many errors it lies off B. Kaufman, Phys. Rev. 76, 1232 (1949).
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import percolab
from percolab.analysis.stored_spins import thermodynamics_of
from percolab.analysis.theory.ising import ising_torus

K_C = math.log(1 + math.sqrt(2)) / 2
#: K over K_c.
AROUND = (0.95, 1.0, 1.05)


def main() -> None:
    """Sample and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--update", default="sw")
    parser.add_argument("--rng", default="xorwow")
    parser.add_argument("--sizes", default="32,128")
    parser.add_argument("--samples", default="1000000,1000000", help="of each size, at each K")
    parser.add_argument("--sweeps", type=int, default=0)
    parser.add_argument("--around", default=",".join(map(str, AROUND)), help="K over K_c")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    numbers = [int(number) for number in given.samples.split(",")]
    with given.out.open("a", encoding="utf-8") as out:
        for size, samples in zip(sizes, numbers, strict=True):
            for line in study(size, samples, given):
                print(line, flush=True)
                print(line, file=out, flush=True)


def study(size: int, samples: int, given: argparse.Namespace) -> list[str]:
    """Return the lines of one size."""
    couplings = [K_C * float(part) for part in given.around.split(",")]
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        results = percolab.sweep(
            "square", model="ising", L=size, K=couplings, boundary="periodic", samples=samples,
            update=given.update, rng=given.rng, device=given.device,
            out=Path(folder) / "kaufman.h5", **({"sweeps": given.sweeps} if given.sweeps else {}),
        )  # fmt: skip
    seconds = time.perf_counter() - begin
    (found,) = thermodynamics_of(results)
    lines = []
    for n, coupling in enumerate(found.coupling):
        energy, error = found.values["energy"][n], found.errors["energy"][n]
        exact = ising_torus(size, size, float(coupling)).energy
        lines.append(
            f"L = {size:4}  K/K_c {coupling / K_C:.2f}  {given.update:6} {given.rng:7} "
            f"{found.chains} chains of {found.sweeps}  E/N {energy:.7f} +- {error:.1e}  "
            f"Kaufman {exact:.7f}  {(energy - exact) / error:+.1f} sigma  ({seconds:.0f} s a size)"
        )
    return lines


if __name__ == "__main__":
    main()
