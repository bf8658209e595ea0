"""Write the lattice files of the Laves lattices, the duals of the Archimedean ones.

    python results/thresholds/duals.py

They are made by ``percolab.lattices.dual``; ``lattices/NAME.toml`` can be used as any lattice file:

    percolab threshold results/thresholds/lattices/dice.toml --model site --error 1e-5

The duals of square, triangular and honeycomb are in percolab's library already.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from percolab.lattices.dual import make_dual
from percolab.lattices.lattice import load_lattice

HERE = Path(__file__).resolve().parent / "lattices"
_PARVIAINEN = ("R. Parviainen, J. Phys. A 40, 9253 (2007)", "Parviainen 2007")
_JACOBSEN = ("J. L. Jacobsen, J. Phys. A 47, 135001 (2014)", "Jacobsen 2014")
_MATCHING = ("M. F. Sykes and J. W. Essam, J. Math. Phys. 5, 1117 (1964)", "Sykes and Essam 1964")
#: Name, title, dual of, published site threshold with its error and source.  A triangulation
#: matches itself, so that its site threshold is 1/2.
LAVES: tuple[tuple[str, str, str, float, float, tuple[str, str]], ...] = (
    ("dice", "dice D(3,6,3,6)", "kagome", 0.585040, 5e-6, _PARVIAINEN),
    ("cairo", "Cairo D(3^2,4,3,4)", "snub-square", 0.6501834, 2e-7, _JACOBSEN),
    ("prismatic", "prismatic pentagonal D(3^3,4^2)", "trellis", 0.6470471, 2e-7, _JACOBSEN),
    ("floret", "floret pentagonal D(3^4,6)", "maple-leaf", 0.639447, 5e-6, _PARVIAINEN),
    ("deltoidal", "deltoidal trihexagonal D(3,4,6,4)", "ruby", 0.582410, 5e-6, _PARVIAINEN),
    ("tetrakis", "tetrakis square D(4,8^2)", "four-eight", 0.5, 0.0, _MATCHING),
    ("triakis", "triakis triangular D(3,12^2)", "three-twelve", 0.5, 0.0, _MATCHING),
    ("kisrhombille", "kisrhombille D(4,6,12)", "four-six-twelve", 0.5, 0.0, _MATCHING),
)


def main() -> None:
    """Write the files."""
    HERE.mkdir(exist_ok=True)
    for name, title, of, value, error, (reference, cite) in LAVES:
        lattice = load_lattice(of)
        bond = lattice.threshold("bond")
        assert bond is not None
        thresholds: list[dict[str, Any]] = [
            {
                "model": "bond",
                "value": round(1 - bond.value, 15),
                "error": bond.error,
                "reference": f"1 - p_c of {lattice.title}: {bond.reference}",
                "cite": bond.cite,
            },
            {
                "model": "site",
                "value": value,
                "error": error,
                "reference": reference,
                "cite": cite,
            },
        ]
        dual = make_dual(lattice, name=name, title=title, thresholds=thresholds)
        (HERE / f"{name}.toml").write_text(dual.source)


if __name__ == "__main__":
    main()
