"""Do the stated errors hold?  Pulls, (value - known value) / stated error, of many real studies.

python pulls.py sample --device cuda     counts of systems with a known threshold
python pulls.py spins --device cuda      moments of spins with a known coupling
"""

from __future__ import annotations

import time
from pathlib import Path

import click
import sampling

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"


@click.group(help=__doc__)
def main() -> None:
    """Sample, fit, count."""


@main.command()
@click.option("--device", default="auto", show_default=True)
@click.option("--budget", default=900.0, show_default=True, help="Seconds.")
@click.option("--processes", default=1, show_default=True, help="That share the device.")
@click.option("--only", default="", help="Systems by a part of their name.")
@click.option("--scale", default=1.0, show_default=True, help="Factor on the samples.")
@click.option("--data", default=DATA, type=click.Path(path_type=Path), help="Folder of counts.")
def sample(device: str, budget: float, processes: int, only: str, scale: float, data: Path) -> None:
    """Sample systems in order until the plan is done or the time is over; goes on where it was."""
    jobs = [(system, samples) for system, samples in sampling.plan(scale) if only in system.name]
    deadline = time.time() + budget
    sampling.sample_all(jobs, sampling.Asked(data, device, deadline, processes))


@main.command()
@click.option("--device", default="auto", show_default=True)
@click.option("--budget", default=300.0, show_default=True, help="Seconds.")
@click.option("--studies", default=sampling.SPIN_STUDIES, show_default=True)
@click.option("--data", default=DATA, type=click.Path(path_type=Path), help="Folder of moments.")
def spins(device: str, budget: float, studies: int, data: Path) -> None:
    """Sample spins whose files are not there, as long as there is time."""
    sampling.sample_all_spins(data, device, budget, studies)


if __name__ == "__main__":
    main()
