"""What several kinds of figures say to readers who do not see them, from every number drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Numbers = Mapping[str, Any]


def describe_curves(numbers: Numbers) -> list[str]:
    """Return what is seen of curves, in sentences."""
    return [sizes_and_range(numbers.get("curves") or [])]


def describe_panels(numbers: Numbers) -> list[str]:
    """Return what is seen of thermal means: the range of each panel's values."""
    panels = numbers["panels"]
    found = [sizes_and_range(panels[0]["curves"])]
    for panel in panels:
        largest = panel["curves"][-1]
        values = [value for value in largest["values"] if value is not None]
        if values:
            name = panel["quantity"].replace("_", " ")
            ends = f"from {min(values):.4g} to {max(values):.4g}"
            found.append(f"The {name} of L = {largest['L']} is {ends}.")
    return found


def sizes_and_range(curves: Sequence[Numbers]) -> str:
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


def goes_from(what: str, curve: Numbers) -> str:
    """Return from where to where a probability goes."""
    values = curve["probability"]
    return f"{what} goes from {values[0]:.3g} to {values[-1]:.3g} at L = {curve['L']}."
