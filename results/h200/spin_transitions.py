"""Critical couplings of Ising and Potts models, each from one command: time, value, error.

    python results/h200/spin_transitions.py --out spin-transitions.txt [NAME ...]

Every line is made by `percolab sweep` and `percolab fit` alone, with nothing given but lattice,
model, sizes and samples; the published values stand beside.  The results files stay in the folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: By name: lattice, model, sizes, samples a size and p.
STUDIES = {
    "square": ("square", "ising", "64,128,256,512", 400_000),
    "triangular": ("triangular", "ising", "64,128,256,512", 400_000),
    "honeycomb": ("honeycomb", "ising", "64,128,256,512", 400_000),
    "square-q3": ("square", "potts:q=3", "64,128,256,512", 400_000),
    "square-q4": ("square", "potts:q=4", "32,64,128,256", 800_000),
    "cubic": ("cubic", "ising", "32,48,64,96,128", 600_000),
}


def main() -> None:
    """Run the studies that are named, all by default, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, help="in place of those of the list")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    with given.out.open("a", encoding="utf-8") as out:
        for name in given.names or STUDIES:
            for line in study(name, folder, given.device, given.samples):
                print(line, flush=True)
                print(line, file=out, flush=True)


def study(name: str, folder: Path, device: str, samples: int | None) -> list[str]:
    """Return the lines of one study."""
    lattice, model, sizes, usual = STUDIES[name]
    path = folder / f"{name}.h5"
    options = f"--lattice {lattice} --model {model} -L {sizes} --boundary periodic"
    command = f"sweep {options} --samples {samples or usual} --device {device}"
    begin = time.perf_counter()
    percolab([*command.split(), "--out", str(path), "--quiet"])
    seconds = time.perf_counter() - begin
    found = json.loads(percolab(["fit", str(path), "--json"]))
    known = found["published_coupling"]
    symbol = found["coupling_name"]
    lines = [f"percolab {command}", f"  {seconds:.1f} s by the clock, pilots and all"]
    error = found["coupling_error"]
    value = f"  {symbol}_c = {found['coupling']:.8f}"
    value += " (no error quoted: chains know their start)" if error is None else f" +- {error:.1e}"
    if known is not None:
        value += f"   published {known['value']:.9f}"
        if error is not None:
            value += f"   {(found['coupling'] - known['value']) / error:+.1f} sigma"
    fit = found["joint_fit"]
    if fit is not None:  # else chains depend on their start
        quality = fit["chi_square"]
        value += f"   chi2/dof {quality['value']:.1f}/{quality['dof']}"
        value += f"   systematic {fit['systematic_error'] or float('nan'):.1e} (in p)"
    lines.append(value)
    for item in found["exponents"]:
        known = item["known"]
        beside = f"   published {known['value']:.6g}" if known else ""
        error = item["error"] or float("nan")
        lines.append(f"  {item['name']} = {item['value']:.4f} +- {error:.4f}{beside}")
    return [*lines, *(f"  note: {note}" for note in found["notes"])]


def percolab(arguments: list[str]) -> str:
    """Run the command line and return what it prints."""
    command = [sys.executable, "-m", "percolab", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
