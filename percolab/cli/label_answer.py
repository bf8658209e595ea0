"""What `percolab label` and `percolab status` say of labels: clusters that cross, and a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from percolab.cli.options import counted, echo_json
from percolab.cli.sample_options import describe_directions
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from percolab.configurations.phases import Phase
    from percolab.measure.clusters import Clusters

#: Clusters that span or wrap and are named one by one.
_MOST_NAMED = 4


def answer_labels(
    file: str,
    shape: Sequence[int],
    record: dict[str, Any],
    clusters: Clusters,
    phases: Sequence[Phase],
    *,
    names: Sequence[str] | None = None,
    tortuosities: Mapping[str, float] | None = None,
    as_json: bool,
) -> None:
    """Write what a file of labels holds, as text or JSON.

    phases: those of an image.  names: of a graph's sites.  tortuosities: of an image, by axis.
    """
    from percolab.analysis.json_values import plain

    summary, crossing = clusters.summary(), clusters.crossing()
    if names is not None:
        crossing = [item | {"name": names[item["label"]]} for item in crossing]
    if as_json:
        answer: dict[str, Any] = {"labels": file, "shape": list(shape), **record, **summary}
        answer["crossing_clusters"] = crossing
        if names is not None:
            answer["largest_names"] = _largest_names(clusters, names)
        if phases:
            answer["phases"] = [phase.to_dict() for phase in phases]
        if tortuosities:
            answer["tortuosity"] = plain(tortuosities)
        echo_json(answer)
        return
    sites = counted(summary["sites"], "site")
    echo(f"{counted(summary['clusters'], 'cluster')} of {sites} in {file}")
    if not phases:
        _describe_axes(summary)
    if names is not None and summary["largest"]:
        first = ", ".join(_largest_names(clusters, names))
        hidden = summary["largest"] - _MOST_NAMED
        echo(f"largest cluster: {first}{f' and {hidden} more' if hidden > 0 else ''}")
    for item in crossing[:_MOST_NAMED]:
        sites = counted(item["sites"], "site")
        which = f"of {item['name']}, {sites}," if names else f"{item['label']} of {sites}"
        echo(f"cluster {which} {describe_directions(item)}")
    hidden = len(crossing) - _MOST_NAMED
    if hidden > 0:
        echo(f"and {counted(hidden, 'more cluster')} that span or wrap (--json names all)")
    for axis, value in (tortuosities or {}).items():
        result = f"{value:.6g}" if math.isfinite(value) else "infinite, nothing spans along it"
        echo(f"tortuosity along {axis}: {result}")
    echo_phases(phases)


def echo_phases(phases: Sequence[Phase]) -> None:
    """Write the table of an image's phases, if there are any."""
    from percolab.configurations.phases import phase_table

    if phases:
        echo(f"\n{phase_table(phases).to_text()}")


def _describe_axes(summary: dict[str, Any]) -> None:
    echo(f"largest {summary['largest']}, second largest {summary['second_largest']}")
    if summary["open_axes"]:
        echo(f"spanning along {', '.join(summary['spanning']) or 'no axis'}")
    if summary.get("periodic_axes"):
        echo(f"wrapping around {', '.join(summary['wrapping']) or 'no axis'}")


def _largest_names(clusters: Clusters, names: Sequence[str]) -> list[str]:
    label = clusters.roots[clusters.by_size[0]] if clusters.roots.size else -2
    return [names[site] for site in (clusters.labels == label).nonzero()[0][:_MOST_NAMED]]
