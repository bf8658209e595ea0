"""Draw every kind of figure from small studies, made here in a minute, into docs/gallery/.

Every command that docs/gallery.md shows is run as it stands there, in a folder that is thrown away;
the page and the pictures are all that is kept.  Pictures are made small: few dots and few colours.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE, PICTURES = DOCS / "gallery.md", DOCS / "gallery"
#: Width of a picture as wide as a journal's page, in dots, and how many colours it keeps.
_WIDTH, _INCHES, _COLOURS = 1000, 7.2, 96
#: Sites of the example of a graph, and how far apart the ends of its bonds are.
_RING, _STEPS = 60, (1, 2, 17)


@dataclass(frozen=True)
class Picture:
    """A picture: the kind that --kind takes or what else it is called, a sentence, its command.

    command: words after percolab; {out} is the picture's file.
    """

    name: str
    sentence: str
    command: str


@dataclass(frozen=True)
class Part:
    """A part of the page: what was sampled first, and the pictures of it."""

    title: str
    text: str
    studies: Sequence[str]
    pictures: Sequence[Picture]


def _plots(file: str, kinds: dict[str, str]) -> list[Picture]:
    return [
        Picture(kind, sentence, f"plot {file} --kind {kind} --out {{out}}")
        for kind, sentence in kinds.items()
    ]


PARTS = (
    Part(
        "Thresholds",
        "Bonds on the square lattice with open sides, four sizes.",
        ["sweep --lattice square -L 16,32,64,128 --samples 2000 --out square.h5"],
        [
            Picture(
                "overview",
                "Without a kind: the curves and the drift of their crossings.",
                "plot square.h5 --out {out}",
            ),
            *_plots(
                "square.h5",
                {
                    "curves": "The probability to span against p, and the crossings close up.",
                    "drift": "Where the crossings of neighbouring sizes drift to.",
                    "collapse": "Curves before and after they are scaled by the fit; below, what "
                    "the fit misses, in standard errors.",
                    "clusters": "The largest cluster, the mean size, the second largest cluster "
                    "and the number of clusters.",
                },
            ),
        ],
    ),
    Part(
        "T of every sample",
        "The exact p at which each sample begins to span.",
        [
            "sweep --lattice square -L 16,32,64 --method threshold --samples 2000 "
            "--out thresholds.h5"
        ],
        _plots("thresholds.h5", {"thresholds": "The distribution of T, its mean and its median."}),
    ),
    Part(
        "A threshold to a given error",
        "Sites of the square lattice on tori, at p near the threshold.",
        ["threshold square --model site --error 3e-4 --out sites.h5"],
        _plots(
            "sites.h5",
            {"roots": "P(two directions) - P(none wraps) of two sizes, and the roots with p_c."},
        ),
    ),
    Part(
        "Threshold in three dimensions",
        "Three wrapping probabilities of cubic tori, all sizes in one fit.",
        ["threshold cubic --error 1e-3 --out cubic.h5"],
        _plots(
            "cubic.h5",
            {"crossings": "Crossings of each probability between neighbouring sizes, and p_c."},
        ),
    ),
    Part(
        "Sizes, radii and wrapping",
        "The square lattice on a torus, with clusters of every size counted and measured.",
        [
            "sweep --lattice square --boundary periodic -L 32,64,128 --samples 1000 "
            "--measure sizes,gyration --out torus.h5"
        ],
        _plots(
            "torus.h5",
            {
                "wrapping": "Every way to wrap around the torus, and how far from theory they are "
                "at the threshold.",
                "sizes": "Cluster numbers at the threshold: their power law, what it hides, its "
                "cut-off, and off the threshold.",
                "gyration": "Radii of clusters with their local slopes, and the correlation "
                "length.",
            },
        ),
    ),
    Part(
        "What flows",
        "Backbones, shortest paths and conductances between two sides at the threshold.",
        [
            "sweep --lattice square --boundary periodic,open -L 8,16,32,64 -p 0.5 --samples 4000 "
            "--measure backbone,path,conductance,path_lengths,currents --out flow.h5"
        ],
        _plots(
            "flow.h5",
            {
                "flow": "The backbone, the shortest path, red bonds and the conductance against L.",
                "path_lengths": "How often the shortest path has a length, scaled with its power "
                "of L.",
                "currents": "How often a bond of the backbone has a share of the current.",
            },
        ),
    ),
    Part(
        "Graphs",
        "A ring of 60 sites with bonds to neighbours and across, as a list of its bonds "
        "(`ring.edges`), from one site to another.",
        ["sweep --graph ring.edges --source 0 --target 30 --samples 4000 --out ring.h5"],
        _plots(
            "ring.h5",
            {"maxima": "What takes the place of a threshold: maxima, and where R is 1/2."},
        ),
    ),
    Part(
        "Trees",
        "Minimum spanning trees of samples.",
        ["tree --lattice square -L 16,32,64 --samples 300 --out tree.h5"],
        _plots(
            "tree.h5",
            {"tree": "Which bonds are in the tree, its sites, its weight, and the way across."},
        ),
    ),
    Part(
        "Spins",
        "The Ising model on a torus, by Swendsen and Wang's updates.",
        [
            "sweep --lattice square --boundary periodic --model ising -L 8,16,32 --samples 4000 "
            "--measure series,correlation --out ising.h5"
        ],
        _plots(
            "ising.h5",
            {
                "binder": "Binder's ratio, whose curves cross at the transition.",
                "correlation_length": "The correlation length over the size.",
                "energy": "The energy, with the exact curves of every size.",
                "specific_heat": "The specific heat, with the exact curves of every size.",
                "order": "The order parameter, with that of the infinite lattice.",
                "susceptibility": "The susceptibility by clusters and by spins.",
                "autocorrelation": "How fast a chain forgets.",
                "tau": "How the time to forget grows with the size.",
                "histogram": "The distribution of the energy at the transition.",
            },
        ),
    ),
    Part(
        "One sample",
        "What a sample looks like; nothing is stored.",
        [],
        [
            Picture(
                "show",
                "Clusters of open bonds; the largest and those that span stand out.",
                "show --lattice square -L 40 -p 0.5 --out {out}",
            ),
            Picture(
                "show-periodic",
                "Clusters on a torus.",
                "show --lattice honeycomb -L 24 -p 0.65 --boundary periodic --out {out}",
            ),
            Picture(
                "show-cubic",
                "Layers of a lattice in space.",
                "show --lattice cubic -L 48 -p 0.25 --out {out}",
            ),
            Picture(
                "show-bethe",
                "A Bethe lattice; neighbouring clusters never have the same colour.",
                "show --lattice bethe:3 -L 5 -p 0.75 --out {out}",
            ),
            Picture(
                "show-spins",
                "Spins, and the clusters between equal ones.",
                "show --lattice square --model ising -T 2.3 -L 24 --out {out}",
            ),
            Picture(
                "show-tree",
                "A minimum spanning tree, its bonds by weight, and its trunk.",
                "show --lattice square --tree -L 24 --out {out}",
            ),
            Picture(
                "show-backbone",
                "What flows from side to side: the backbone, its red bonds, and dangling ends.",
                "show --backbone --lattice square -L 40 -p 0.5 --seed 2 --out {out}",
            ),
            Picture(
                "invasion",
                "An invasion, by the time at which sites were taken, with its weights.",
                "invade --lattice square -L 64 --plot {out}",
            ),
            Picture(
                "lattice",
                "A lattice, its cell and its bonds.",
                "lattices kagome --plot {out}",
            ),
        ],
    ),
)


def page() -> str:
    """Return the page: of each picture a sentence and its command."""
    lines = [
        "# Gallery",
        "",
        "Every kind of figure, from studies that take a few seconds each on a laptop. The commands "
        "are those that made the pictures (`python scripts/gallery.py`); [Figures](plots.md) "
        "describes each kind in full.",
    ]
    for part in PARTS:
        lines += ["", f"## {part.title}", "", part.text]
        if part.studies:
            lines += ["", "```text", *(f"percolab {study}" for study in part.studies), "```"]
        for picture in part.pictures:
            command = picture.command.format(out=f"{picture.name}.png")
            lines += [
                "",
                f"![{picture.name}: {picture.sentence}](gallery/{picture.name}.png)",
                "",
                picture.sentence,
                "",
                "```text",
                f"percolab {command}",
                "```",
            ]
    return "\n".join(lines) + "\n"


def run(words: str) -> None:
    """Run a command of percolab; RuntimeError where it fails."""
    from percolab.cli import main as percolab

    try:
        percolab(shlex.split(words), prog_name="percolab")
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"percolab {words}: exit code {ended.code}") from ended


def smaller(path: Path) -> bytes:
    """Return a picture of 300 dots an inch with fewer dots and few colours, as PNG."""
    from PIL import Image

    with Image.open(path) as image:
        factor = _WIDTH / (300 * _INCHES)
        size = (round(image.width * factor), round(image.height * factor))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    # Thin lines keep their colours, however few dots they have, and grey stays grey.
    colours = small.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3)
    buffer = io.BytesIO()
    colours.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def write_ring(path: Path) -> None:
    """Write the example of a graph: a ring with bonds to neighbours and across."""
    bonds = {tuple(sorted((n, (n + step) % _RING))) for n in range(_RING) for step in _STEPS}
    path.write_text("".join(f"{a} {b}\n" for a, b in sorted(bonds)), encoding="utf-8")


@click.command(help=__doc__)
def main() -> None:
    """Draw all pictures and write the page."""
    PICTURES.mkdir(exist_ok=True)
    before, total = Path.cwd(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write_ring(Path("ring.edges"))
            for part in PARTS:
                for study in part.studies:
                    run(study)
                for picture in part.pictures:
                    name = f"{picture.name}.png"
                    run(picture.command.format(out=name))
                    content = smaller(Path(name))
                    (PICTURES / name).write_bytes(content)
                    total += len(content)
        finally:
            os.chdir(before)
    PAGE.write_text(page(), encoding="utf-8")
    click.echo(f"{PAGE.relative_to(ROOT)}, pictures of {total / 1e6:.2f} MB together")


if __name__ == "__main__":
    sys.exit(main())
