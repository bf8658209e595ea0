"""Options made from the table of settings (:mod:`percolab.tasks.settings`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from percolab.cli.groups import grouped
from percolab.cli.options import F, Numbers, WholeNumber
from percolab.tasks.settings import SETTINGS

_TYPES: dict[type, Any] = {str: str, float: float, Path: click.Path()}


def setting_option(name: str, **changed: Any) -> Callable[[F], F]:
    """Return the option of a setting; it is None, False or () where it is not given.

    changed: of its declaration (:class:`percolab.tasks.settings.Setting`), for another command.
    """
    setting = replace(SETTINGS[name], **changed)
    flags = (f"--{name.replace('_', '-')}",) if setting.flags is None else setting.flags
    if setting.kind is bool:
        return grouped(setting.group, *flags, name, is_flag=True, help=setting.option_help)
    whole = WholeNumber(setting.low, setting.high)
    kind = Numbers(whole) if setting.kind is tuple else _TYPES.get(setting.kind, whole)
    return grouped(
        setting.group, *flags, name, type=kind, multiple=setting.repeated, help=setting.option_help
    )


def settings_named(*names: str, **changed: Mapping[str, Any]) -> Callable[[F], F]:
    """Return what adds the options of these settings; changed: of their declarations, by name."""

    def add(function: F) -> F:
        for name in reversed(names):
            function = setting_option(name, **changed.get(name, {}))(function)
        return function

    return add


#: Adds the options of all settings that have one.
setting_options = settings_named(*(name for name, each in SETTINGS.items() if each.flags != ()))


def given_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that options give, and none that they leave out."""
    values = {name: given.get(name) for name in SETTINGS}
    # 0 is a value like any other, which equals False.
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != ()
    }
