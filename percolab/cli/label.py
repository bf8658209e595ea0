"""percolab label: the clusters of a configuration as a file of labels."""

from typing import Any

import click

from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.options import as_json, check_target, counted, output_file, refuse, write_answer
from percolab.cli.sample_options import sample_options, with_usual
from percolab.cli.setting_options import setting_option
from percolab.cli.status import answer_labels, phase_lines
from percolab.errors import InputError, need_given
from percolab.tasks.setting_groups import MACHINE, OUTPUT, WHAT

#: The labels, where no file is named.
_OUT = "labels.h5"


@click.command(cls=GroupedCommand)
@click.argument("configuration", nargs=-1, metavar="[INPUT]...")
@sample_options
@grouped(
    WHAT,
    "--phase",
    metavar="VALUES",
    help="For INPUT with several values: 2 makes sites of the pixels with value 2; 1,2 are two "
    "phases, 1+2 is one, all is every value.",
)
@grouped(
    WHAT,
    "--connectivity",
    type=click.Choice(["4", "8", "6", "18", "26"]),
    help="Neighbours of a pixel (4 or 8) or voxel (6, 18 or 26), in place of --lattice.  "
    "[default: 4 or 6]",
)
@grouped(
    WHAT,
    "--threshold",
    metavar="NUMBER|otsu",
    help="For INPUT in grey, colours or other values: sites are the pixels above it.",
)
@grouped(WHAT, "--below", is_flag=True, help="With --threshold: sites are the other pixels.")
@setting_option("graph", help="Graph file; without -p all its bonds are open.")
@setting_option("source", help="With --graph: sites 0,5,17 or a file with one per line.")
@setting_option("target", help="Like --source; clusters that connect both are named.")
@setting_option("multi", help="Keep parallel edges of the graph file.")
@setting_option("columns")
@setting_option("labeler")
@grouped(MACHINE, "--device", default="cpu", show_default=True, help="auto, cpu, cuda or cuda:n.")
@grouped(
    MACHINE,
    "--slabs",
    metavar="N|auto",
    help="For an INPUT larger than memory: cut it along its first axis, and read and label one "
    "slab after the other; --out is a .npy file.",
)
@grouped(OUTPUT, "--tortuosity", is_flag=True,
         help="For INPUT on square or cubic: of diffusion along open axes.")  # fmt: skip
@grouped(
    OUTPUT,
    "--voxel",
    metavar="X,Y[,Z]",
    help="With --tortuosity: sides of a pixel or voxel, in any unit.  [default: all equal]",
)
@grouped(OUTPUT, "--serial", is_flag=True, help="Number clusters 0 ... n - 1.")
@grouped(
    OUTPUT,
    "--sizes",
    type=click.Path(),
    help="Write a CSV file with one line per cluster: label, sites, phase, what it spans.",
)
@grouped(OUTPUT, "-o", "--out", type=click.Path(),
         help=f"Labels: .h5 (with sizes) or .npy.  [default: {_OUT}]")  # fmt: skip
@as_json
@quiet_option()
def command(
    configuration: tuple[str, ...], as_json: bool, quiet: bool, serial: bool, **given: Any
) -> None:
    """Label the clusters of your own configuration, or of one sample of a sweep.

    INPUT is an image in two or three dimensions: a .png, .tif, .npy or file.h5:/dataset, or its
    slices: a folder, a pattern such as "slices/*.png", or several files.  Sites are the nonzero
    pixels if these have one value, else give --phase or --threshold.  Neighbours on --lattice, or
    by --connectivity, are joined.  --boundary periodic joins opposite sides.  With -L, INPUT is the
    packed open bonds of a lattice, uint32 in a .npy file.  Without INPUT, a sample is labeled:
    --lattice (bethe:3 is a Bethe lattice), -L, -p and --seed; or a --graph.  For spins (--model
    ising, -T) it is the state of chain --sample after --sweeps updates.

    A label is the smallest site index of its cluster, and -1 where there is no site.  For an image
    a table of its phases follows: fraction of the image (porosity), clusters, the largest, the
    fraction of the phase in clusters that span or wrap, and its surface.
    """
    from percolab.cli.progress import ProgressBar
    from percolab.configurations import LabeledClusters, write_labels
    from percolab.configurations.flow import find_tortuosities
    from percolab.configurations.label import configure
    from percolab.configurations.label_files import find_label_format
    from percolab.lattices.shown import csv_text
    from percolab.store.output_files import CLUSTERS_CSV, write_output

    sizes, out, voxel = given["sizes"], given["out"], given.pop("voxel")
    if voxel is not None and not given["tortuosity"]:
        raise InputError("--voxel: only with --tortuosity; leave it out")
    given = with_usual(given)
    if given["connectivity"] is not None:
        given["connectivity"] = int(given["connectivity"])
    name = configuration[0] if len(configuration) == 1 else configuration or None
    if name is not None and given["graph"] is None and given["L"] is not None:
        if name is configuration:
            raise InputError(f"{name[1]}: -L takes one file of open bonds; leave the others out")
        given["opened"] = name
    else:
        given["mask"] = name
    default = _OUT if given["slabs"] is None else "labels.npy"
    target = str(output_file(out, default, find_label_format(out or default)))
    if sizes is not None:
        check_target(sizes, "a table of clusters", (".csv", ".txt"), CLUSTERS_CSV)
    if given["slabs"] is not None:
        given["serial"] = serial
        if sizes is not None:
            raise InputError(f"--sizes: not with --slabs; afterwards use percolab export {target}")
        refuse(given, "labels in slabs (--slabs) have none", "serial", "tortuosity")
        _label_in_slabs(given, target, as_json=as_json)
        return
    if name is None and given["graph"] is None:
        point = "p" if all(given[name] is None for name in ("T", "K", "beta")) else "L"
        needed = {name: given[name] for name in ("lattice", "L", point)}
        need_given("a sample (without INPUT)", **needed)
    chosen = configure("label", given)
    sides = None if voxel is None else voxel.split(",")
    tortuosities = find_tortuosities(chosen, sides) if given["tortuosity"] else {}
    observer = ProgressBar(silent=quiet)
    clusters = chosen.label(given["labeler"], given["device"], observer=observer)
    write_labels(target, clusters, chosen, serial=serial)
    labels = LabeledClusters.of(clusters, chosen, serial=serial)
    if sizes is not None:
        write_output(sizes, csv_text(*labels.cluster_table()).encode(), CLUSTERS_CSV)
    answer_labels(target, labels, tortuosities, as_json=as_json)


def _label_in_slabs(given: dict[str, Any], target: str, *, as_json: bool) -> None:
    """Label an image slab by slab, and write what was found of it."""
    from percolab.configurations.configuration import OF_GRAPH, OF_SAMPLE, OF_SPINS
    from percolab.configurations.label import take_image
    from percolab.configurations.label_slabs import label_in_slabs

    excluded = ("L", "p", "graph", *OF_SAMPLE, *OF_SPINS, *OF_GRAPH)
    refuse(given, "an image (--slabs) has none", *excluded)
    if given["mask"] is None:
        raise InputError("--slabs: only for an INPUT of sites; leave it out")
    slabs = given["slabs"]
    count = int(slabs) if slabs.isascii() and slabs.isdigit() else slabs
    ways: dict[str, Any] = {"labeler": given["labeler"], "device": given["device"], "slabs": count}
    labeled = label_in_slabs(**take_image(given), **ways, out=target)
    summary = labeled.summary()
    facts = {"labels": target, "shape": list(labeled.array.shape), **labeled.record, **summary}
    facts |= {"phases": [phase.to_dict() for phase in labeled.phases]}
    sites = counted(summary["sites"], "site")
    text = f"{counted(summary['clusters'], 'cluster')} of {sites} in {target}"
    write_answer(facts, "\n".join([text, *phase_lines(labeled.phases)]), as_json=as_json)
