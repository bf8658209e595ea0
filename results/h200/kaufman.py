"""Energy of the Ising model on square tori beside Kaufman's exact one, to as many digits as asked.

    python results/h200/kaufman.py --device cuda --out kaufman.txt --error 1e-5 --seconds 90

Every line is of one L, K over K_c, update and generator: the energy a site by its error, and how
many errors it lies off B. Kaufman, Phys. Rev. 76, 1232 (1949).  The energy is the mean of studies
with the seeds 1, 2 ..., each some seconds long and of equally many samples, made until the error is
reached or the time is up.  (When to stop is decided by the error alone, not by the energy.)
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import percolab
from percolab.analysis.spin_fit import start_differences
from percolab.analysis.stored_spins import compute_thermodynamics, list_spin_tasks
from percolab.analysis.theory.ising import ising_torus

K_C = math.log(1 + math.sqrt(2)) / 2
#: K over K_c.
AROUND = (0.95, 1.0, 1.05)
# Samples of the first study, which tells how long one takes, and the seconds of the others.
_PILOT, _SECONDS = 200_000, 12.0


def main() -> None:
    """Sample and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--updates", default="sw")
    parser.add_argument("--rngs", default="xorwow,philox")
    parser.add_argument("--sizes", default="32,128")
    parser.add_argument("--around", default=",".join(map(str, AROUND)), help="K over K_c")
    parser.add_argument("--every", type=int, default=1, help="updates from sample to sample")
    parser.add_argument("--error", type=float, default=1e-5, help="of the energy a site")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each line at most")
    given = parser.parse_args()
    for size in map(int, given.sizes.split(",")):
        for update in given.updates.split(","):
            for rng in given.rngs.split(","):
                for ratio in map(float, given.around.split(",")):
                    line = energy_of(size, update, rng, ratio, given)
                    print(line, flush=True)
                    with given.out.open("a", encoding="utf-8") as out:
                        print(line, file=out)


def energy_of(size: int, update: str, rng: str, ratio: float, given: argparse.Namespace) -> str:
    """Return the line of one study."""
    coupling = K_C * ratio

    differing = 0
    options: dict[str, int] = {}

    def study(seed: int, samples: int) -> tuple[float, float]:
        """Return the energy a site and its error."""
        with tempfile.TemporaryDirectory() as folder:
            results = percolab.sweep(
                "square", model="ising", L=size, K=[coupling], boundary="periodic", update=update,
                samples=samples, every=given.every, rng=rng, seed=seed, device=given.device,
                out=Path(folder) / "kaufman.h5", **options,
            )  # fmt: skip
            (found,) = compute_thermodynamics(results)
            # What the pilot of the first study found serves the others.
            options["burn_in"] = list_spin_tasks(results)[0].task.burn_in
            nonlocal differing
            differing += bool(start_differences(list_spin_tasks(results)))
        return float(found.values["energy"][0]), float(found.errors["energy"][0])

    study(10**6, 2000)  # compiles
    start = time.perf_counter()
    study(10**6, _PILOT)
    end, rate = start + given.seconds, _PILOT / (time.perf_counter() - start)
    samples = max(_PILOT, int(rate * _SECONDS))
    energies: list[float] = []
    errors: list[float] = []
    while not errors or (
        math.hypot(*errors) / len(errors) > given.error
        and time.perf_counter() + samples / rate < end
    ):
        energy, error = study(len(errors) + 1, samples)
        energies.append(energy)
        errors.append(error)
    mean, error = sum(energies) / len(energies), math.hypot(*errors) / len(errors)
    exact = ising_torus(size, size, coupling).energy
    every = f" every {given.every} updates" if given.every > 1 else ""
    starts = f"; in {differing} studies ordered and random starts differ" if differing else ""
    return (
        f"L = {size:3}  K/K_c {ratio:.2f}  {update:5} {rng:6} "
        f"{len(errors) * samples:.2e} samples{every}  E/N {mean:.7f} +- {error:.1e}  "
        f"Kaufman {exact:.7f}  {(mean - exact) / error:+.1f} sigma  "
        f"({time.perf_counter() - start:.0f} s){starts}"
    )


if __name__ == "__main__":
    main()
