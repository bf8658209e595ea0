"""What is seen in a figure, in a sentence or two, for readers who do not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Numbers = Mapping[str, Any]

#: The quality of a collapse below which sizes are said to agree.
_AGREES = 2.0


def alt_text(kind: str, numbers: Numbers) -> str:
    """Return what a figure of a kind shows, from every number drawn; "" if that is not known."""
    describe = _KINDS.get(kind, _of_panels if numbers.get("panels") else _of_curves)
    return " ".join(filter(None, describe(numbers)))


def _of_curves(numbers: Numbers) -> list[str]:
    return [_sizes_and_range(numbers.get("curves") or [])]


def _of_panels(numbers: Numbers) -> list[str]:
    """Of thermal means: the range of each panel's values, and where a maximum is inside."""
    panels = numbers["panels"]
    said = [_sizes_and_range(panels[0]["curves"])]
    for panel in panels:
        largest = panel["curves"][-1]
        values = [value for value in largest["values"] if value is not None]
        if values:
            name = panel["quantity"].replace("_", " ")
            ends = f"from {min(values):.4g} to {max(values):.4g}"
            said.append(f"The {name} of L = {largest['L']} is {ends}.")
    return said


def _of_spanning(numbers: Numbers) -> list[str]:
    curves = numbers["curves"]
    said = [_sizes_and_range(curves), _rises("The probability", curves[-1])]
    if numbers.get("fit"):
        said.append(f"The curves become steeper with L and cross near p = {_p_c(numbers['fit'])}.")
    if numbers.get("median"):
        said.append(f"It is 1/2 at p = {numbers['median']['p']:.4g}.")
    return said


def _of_drift(numbers: Numbers) -> list[str]:
    p = numbers["drift"]["p"]
    line = numbers["drift"]["line"]
    end = f" A curve through them ends at p = {line['threshold']:.6g}." if line else ""
    where = f"at p = {p[0]:.6g}" if len(p) == 1 else f"from p = {p[0]:.6g} to p = {p[-1]:.6g}"
    return [f"{_counted(len(p), 'crossing')} of neighbouring sizes, {where}.{end}"]


def _of_collapse(numbers: Numbers) -> list[str]:
    names = {"largest": "the largest cluster", "chi": "the mean cluster size"}
    said = []
    for item in numbers["collapses"]:
        sizes = sorted(set(item["L"]))
        name = names.get(item["observable"], "the probability")
        agrees = item["quality"] < _AGREES
        after = "on one curve within errors" if agrees else "together, but not within errors,"
        said.append(
            f"Curves of {name} at {_counted(len(sizes), 'size')} up to L = {sizes[-1]} lie apart "
            f"before and {after} after, with quality S = {item['quality']:.3g}."
        )
    return said


def _of_clusters(numbers: Numbers) -> list[str]:
    curves = numbers["curves"]
    last = curves[-1]
    strength = last["percolation_strength"]
    chi = last["mean_cluster_size"]
    at = chi.index(max(chi))
    return [
        _sizes_and_range(curves),
        f"At L = {last['L']} the largest cluster grows from {strength[0]:.3g} to "
        f"{strength[-1]:.3g} of all sites, and the mean cluster size is largest, {chi[at]:.4g} "
        f"sites, at p = {last['p'][at]:.4g}.",
    ]


def _of_sizes(numbers: Numbers) -> list[str]:
    sizes = sorted({curve["L"] for curve in numbers["curves"]})
    last = numbers["curves"][-1]
    held = [value for value in last["n_s"] if value > 0]
    said = [
        f"Cluster numbers of {_counted(len(sizes), 'size')} up to L = {sizes[-1]} fall from "
        f"{held[0]:.2g} to {min(held):.1g} per site, on a nearly straight line on logarithmic axes "
        f"up to where the lattice ends them."
    ]
    if numbers["fit"]:
        said.append(f"Its slope is tau = {numbers['fit']['tau']:.3f}.")
    return said


def _of_gyration(numbers: Numbers) -> list[str]:
    last = numbers["curves"][-1]
    lengths = [value for value in last["correlation_length"] if value is not None]
    said = [
        f"Radii of clusters of {_counted(len(numbers['curves']), 'size')} lie on a nearly straight "
        "line on logarithmic axes."
    ]
    if numbers["fit"]:
        said.append(f"Its slope is 1/d_f with d_f = {numbers['fit']['d_f']:.3f}.")
    if lengths:
        said.append(f"The correlation length of L = {last['L']} reaches {max(lengths):.3g}.")
    return said


def _of_wrapping(numbers: Numbers) -> list[str]:
    panels = numbers["panels"]
    said = [_sizes_and_range(panels[0]["curves"]), _rises("The first", panels[0]["curves"][-1])]
    compared = numbers["at_threshold"]
    if compared:
        away = max(abs(item["value"] - item["theory"]) / item["error"] for item in compared)
        said.append(f"At p_c all are within {away:.1f} standard errors of theory.")
    return said


def _of_maxima(numbers: Numbers) -> list[str]:
    said = [_sizes_and_range(numbers["curves"])]
    if len(numbers["sizes"]) == 1:
        found = [each for each in numbers["sizes"][0]["estimates"] if each["p"] is not None]
        said += [f"{each['meaning'].capitalize()}: p = {each['p']:.4g}." for each in found]
    return said


def _of_thresholds(numbers: Numbers) -> list[str]:
    return [
        f"T of L = {item['L']}: one peak with median {item['median']:.5g}, "
        f"{item['deviation'] or 0:.3g} wide."
        for item in numbers["sizes"]
    ]


def _of_trees(numbers: Numbers) -> list[str]:
    sizes = [item["L"] for item in numbers["sizes"]]
    limit = numbers.get("limit")
    end = f" Their weight a site tends to {limit['value']:.4g}." if limit else ""
    return [f"Trees of {_counted(len(sizes), 'size')} up to L = {sizes[-1]}.{end}"]


def _of_tau(numbers: Numbers) -> list[str]:
    said = []
    for curve in numbers["curves"]:
        points = curve["points"]
        taus = f"from {points[0]['tau']:.3g} at L = {points[0]['L']}"
        taus += f" to {points[-1]['tau']:.3g} at L = {points[-1]['L']}"
        said.append(f"The time of {curve['series'].replace('_', ' ')} goes {taus}.")
    return said


def _of_autocorrelation(numbers: Numbers) -> list[str]:
    count = len(numbers["curves"])
    return [f"{_counted(count, 'correlation function')} at L = {numbers['L']}, which fall from 1."]


_KINDS: Mapping[str, Callable[[Numbers], list[str]]] = {
    "curves": _of_spanning,
    "drift": _of_drift,
    "collapse": _of_collapse,
    "clusters": _of_clusters,
    "sizes": _of_sizes,
    "gyration": _of_gyration,
    "wrapping": _of_wrapping,
    "maxima": _of_maxima,
    "thresholds": _of_thresholds,
    "tree": _of_trees,
    "tau": _of_tau,
    "autocorrelation": _of_autocorrelation,
}


def _sizes_and_range(curves: Sequence[Numbers]) -> str:
    """Return how many sizes there are, and over which range."""
    sizes = sorted({curve["L"] for curve in curves})
    if not sizes:
        return ""
    shown = f"L = {sizes[0]}"
    if len(sizes) > 1:
        shown = f"{len(sizes)} sizes, L = {sizes[0]} to {sizes[-1]}"
    key, name = ("temperature", "k_B T / J") if "temperature" in curves[0] else ("p", "p")
    ends = [curve[key] for curve in curves]
    flat = [x for own in ends for x in (own if isinstance(own, list) else [own])]
    if not flat or min(flat) == max(flat):
        return f"{shown}."
    return f"{shown}, {name} from {min(flat):.4g} to {max(flat):.4g}."


def _rises(what: str, curve: Numbers) -> str:
    values = curve["probability"]
    return f"{what} goes from {values[0]:.3g} to {values[-1]:.3g} at L = {curve['L']}."


def _p_c(fit: Numbers) -> str:
    from percolab.analysis import format_with_error

    return format_with_error(fit["threshold"], fit["threshold_error"] or 0.0)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
