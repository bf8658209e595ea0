"""Probabilities that a model fixes, as its text has them."""

from __future__ import annotations

from percolab.errors import InputError


def check_probability(key: str, value: object) -> None:
    """Raise InputError unless a fixed probability is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"model: {key} = {value!r}, but it must be a number from 0 to 1")


def read_number(text: str, number: str) -> float:
    """Return a number of a model's text; InputError if it is none."""
    try:
        return float(number)
    except ValueError as error:
        raise InputError(f"model {text!r}: {number!r} is not a number") from error


def read_fixed(text: str, rest: str) -> dict[str, float]:
    """Return what "site=0.9" or "bond=0.7" fixes, by the argument's name."""
    key, equals, number = (part.strip() for part in rest.partition("="))
    if key not in ("site", "bond") or not equals:
        raise InputError(f"model {text!r}, but what is fixed is written as in site-bond:site=0.9")
    return {f"{key}_p": read_number(text, number)}
