"""Thermal means against temperature, with what is known exactly: what several kinds draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_spins import compute_thermodynamics
from percolab.analysis.theory.ising_curves import (
    exact_infinite,
    exact_on_torus,
    is_square_ising,
)
from percolab.analysis.thermodynamics import THERMAL, Thermodynamics
from percolab.analysis.value import format_with_error
from percolab.bonds.model import Model
from percolab.figures.axes import (
    Exact,
    bars_if_known,
    draw_residuals,
    exact_record,
    few_ticks,
    jackknife_title,
    legend_entries,
    letter_panels,
    only_p,
    place_sizes,
    plain_ticks,
    size_label,
)
from percolab.figures.math_text import typeset
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, StudyView
from percolab.figures.style import (
    BAND,
    COLUMN_STYLE,
    COLUMN_WIDTH,
    EXACT_LINE,
    PAGE_WIDTH,
    STYLE,
    Axes,
    choose_looks,
)

#: What every kind of thermal means says of its errors.
JACKKNIFE = "Error bars are one standard error, of a jackknife over chains."
#: Temperatures at which exact curves are evaluated.
_POINTS = 160
_INFINITE: dict[str, Any] = {"color": "black", "linewidth": 0.9}
#: Exact curves are evaluated at couplings that their formulae are accurate for.
_COUPLINGS = (1e-3, 20.0)


@dataclass(frozen=True, eq=False)
class ThermalCurve:
    """A thermal mean of one task: one size against temperature.

    p, temperature, values, errors: float64 (m,).  exact: what it is exactly there, or None.
    """

    L: int
    p: Floats
    temperature: Floats
    values: Floats
    errors: Floats
    exact: Floats | None = None


@dataclass(frozen=True, eq=False)
class ExactCurve:
    """What is known exactly: float64 (n,) each; L None of the infinite lattice."""

    L: int | None
    temperature: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class ThermalPanel:
    """What one panel shows.

    name: in THERMAL, or of another quantity with its ``meaning``.  label: of the vertical axis.
    hollow: a second estimator, drawn hollow.  logarithmic: whether the vertical axis may be.
    """

    name: str
    label: str
    curves: Sequence[ThermalCurve]
    hollow: Sequence[ThermalCurve] = ()
    exact: Sequence[ExactCurve] = field(default_factory=tuple)
    logarithmic: bool = False
    meaning: str = ""


def temperature_label(model: Model) -> str:
    """Return what a temperature axis says: the unit and which Hamiltonian it is of."""
    if model.name == "ising":
        return r"$k_B T / J = 1/K$    ($H = -J\,\Sigma\,s s^\prime,\ s = \pm 1$)"
    return r"$k_B T / J = 1/\beta$    ($H = -J\,\Sigma\,\delta_{s s^\prime}$)"


def thermal_problem(figures: StudyView, *names: str) -> str | None:
    """Return why some thermal means cannot be drawn, or None if they can."""
    problem = figures.no_spins()
    if problem is None:
        for item in compute_thermodynamics(figures.results):
            finite = np.isfinite(item.temperature)
            if not any(np.isfinite(item.values[name][finite]).any() for name in names):
                return f"L = {item.L} has no {names[0]} at any finite temperature"
    return problem


def fitted_temperature(figures: StudyView) -> tuple[float, float] | None:
    """Return k_B T_c / J of the fit of all sizes and its error; None if there is no such fit."""
    found = figures.spin_fit_or_problem
    if isinstance(found, str):
        return None
    temperature, error = found.temperature
    return None if error is None else (temperature, error)


def make_panel(
    figures: StudyView, name: str, label: str, *, hollow: str | None = None, **options: Any
) -> ThermalPanel:
    """Return the panel of a thermal mean, with what is known exactly of it.

    hollow: the name of a second estimator of the same.
    """
    found = compute_thermodynamics(figures.results)
    study, model = figures.study, figures.model
    known = is_square_ising(study.structure, model)
    is_torus = known and set(study.boundary) == {"periodic"}
    curves = [_curve(item, name, is_torus=is_torus) for item in found]
    seconds = [_curve(item, hollow) for item in found] if hollow is not None else ()
    finite = np.concatenate([curve.temperature for curve in curves])
    exact: list[ExactCurve] = []
    if known and finite.size and finite.min() < finite.max():
        grid = np.linspace(finite.min(), finite.max(), _POINTS)
        sizes = sorted({curve.L for curve in curves}) if is_torus else ()
        exact = [
            own for size in (*sizes, None) if (own := _exact(name, model, size, grid)) is not None
        ]
    return ThermalPanel(name, label, curves, seconds, exact, **options)


def _curve(item: Thermodynamics, name: str, *, is_torus: bool = False) -> ThermalCurve:
    """Return a thermal mean where temperature and value are finite."""
    kept = np.isfinite(item.temperature) & np.isfinite(item.values[name])
    model = item.system.model
    exact = None
    if is_torus and name in ("energy", "specific_heat"):
        # No coupling at p = 0, and none that the formulae reach near p = 1.
        kept &= (item.coupling >= _COUPLINGS[0]) & (item.coupling <= _COUPLINGS[1])
        exact = np.array(
            [exact_on_torus(name, model, item.L, float(x)) for x in item.coupling[kept]], float
        )
    return ThermalCurve(
        L=item.L,
        p=item.p[kept],
        temperature=item.temperature[kept],
        values=item.values[name][kept],
        errors=item.errors[name][kept],
        exact=exact,
    )


def _exact(name: str, model: Model, size: int | None, grid: Floats) -> ExactCurve | None:
    """Return the exact curve over a grid of temperatures, or None if there is none."""
    inside = grid[(1 / grid >= _COUPLINGS[0]) & (1 / grid <= _COUPLINGS[1])]
    values = [
        exact_infinite(name, model, 1 / float(at))
        if size is None
        else exact_on_torus(name, model, size, 1 / float(at))
        for at in inside
    ]
    held = np.array([value is not None for value in values], bool)
    if not held.any():
        return None
    return ExactCurve(size, inside[held], np.array([x for x in values if x is not None]))


def plot_thermal(
    panels: Sequence[ThermalPanel],
    *,
    model: Model,
    title: str,
    critical: Exact | None = None,
    levels: Sequence[tuple[float, str]] = (),
    fitted: tuple[float, float] | None = None,
    into: Target = NEW_FIGURE,
) -> Drawn:
    """Draw thermal means against temperature, a panel each side by side, one curve a task.

    At a single temperature they are drawn against L.  Below a panel whose curves are known
    exactly are the deviations in standard errors.  critical: published k_B T_c / J and what is
    said of it.  levels: values across the panels, and what a legend says of them.
    fitted: a fit's k_B T_c / J and its error.
    """
    at = only_p(panels[0].curves)
    deviations = [curve for curve in panels[0].curves if curve.exact is not None]
    wide = len(panels) > 1
    size, style = ((PAGE_WIDTH, 4.0), STYLE) if wide else ((COLUMN_WIDTH, 3.6), COLUMN_STYLE)
    if deviations:
        size = size[0], size[1] + 0.7
    with into.sheet(*size, style=style) as sheet:
        grid: Any = sheet.subplots(
            2 if deviations else 1, len(panels), squeeze=False, sharex="col",
            height_ratios=[3, 1] if deviations else None,
        )  # fmt: skip
        for axes, panel in zip(grid[0], panels, strict=True):
            _draw_panel(axes, panel, against_size=at is not None)
            if at is None:
                _draw_critical(axes, critical)
                _draw_fitted(axes, fitted)
            for value, label in levels:
                axes.axhline(value, color="black", linestyle=":", linewidth=0.9, label=label)
        if deviations:
            _draw_deviations(grid[1, 0], panels[0].curves, against_size=at is not None)
        sizes = sorted({curve.L for curve in panels[0].curves})
        for axes in grid.flat:
            few_ticks(axes, number=5)
            if at is not None:
                place_sizes(axes, sizes)
            plain_ticks(axes)
        for axes in grid[-1]:
            label = temperature_label(model) if at is None else "$L$"
            # Side by side there is room for two long labels.
            axes.set_xlabel(label.replace("    ", "\n") if len(panels) > 2 else label)
        for axes in grid[0] if deviations else ():
            axes.set_xlabel("")
        shown = (
            f", $k_B T / J = {panels[0].curves[0].temperature[0]:.6g}$" if at is not None else ""
        )
        sheet.set_title(title + shown)
        letter_panels(grid.flat)
        sheet.add_legend(
            legend_entries(grid[0, 0]),
            ncols=4 if wide else 3,
            title=jackknife_title(
                (curve.errors for panel in panels for curve in panel.curves), over="chains"
            ),
        )
    return sheet.figure, {
        "title": title,
        "hamiltonian": "-J sum s s'" if model.name == "ising" else "-J sum delta(s, s')",
        "critical_temperature": exact_record(critical),
        "fitted_temperature": list(fitted) if fitted is not None else None,
        "panels": [_numbers_of(panel) for panel in panels],
    }


def _draw_panel(axes: Axes, panel: ThermalPanel, *, against_size: bool) -> None:
    joined = all(exact.L is None for exact in panel.exact)
    for own, filled in ((panel.curves, True), (panel.hollow, False)):
        for curve, look, new in choose_looks(own):
            if not filled:
                look |= {"markerfacecolor": "white", "markersize": 5.0}
            axes.errorbar(
                [curve.L] if against_size else curve.temperature, curve.values,
                bars_if_known(curve.errors), **({"markersize": 2.8} | look),
                linestyle="-" if joined and filled else "none", linewidth=0.6,
                elinewidth=0.8, capsize=1.5, zorder=3 if filled else 2,
                label=size_label(curve.L, {}) if new and filled else None,
            )  # fmt: skip
    if against_size:
        _draw_exact_means(axes, panel)
    else:
        _draw_exact(axes, panel)
    axes.set_ylabel(panel.label)
    values = np.concatenate([curve.values for curve in panel.curves])
    if panel.logarithmic and values.min() > 0 and values.max() > 20 * values.min():
        axes.set_yscale("log")
    elif any(exact.L is None for exact in panel.exact):
        # A divergence of the infinite lattice does not stretch the axis.
        low, high = float(values.min()), float(values.max())
        axes.set_ylim(low - 0.06 * (high - low or 1), high + 0.12 * (high - low or 1))


def _draw_exact_means(axes: Axes, panel: ThermalPanel) -> None:
    """Draw, at a single temperature, what is known exactly of each size."""
    label = "exact, torus of each size"
    for curve in panel.curves:
        if curve.exact is not None:
            axes.plot(
                np.full(curve.exact.size, curve.L), curve.exact, linestyle="none", marker="_",
                markersize=14, color="black", zorder=1, label=label,
            )  # fmt: skip
            label = "_nolegend_"


def _draw_exact(axes: Axes, panel: ThermalPanel) -> None:
    """Draw what is known exactly, the torus of each size in the size's colour."""
    looks = {curve.L: look["color"] for curve, look, _ in choose_looks(panel.curves)}
    for exact in panel.exact:
        line = {"color": looks[exact.L], "linewidth": 0.8} if exact.L is not None else _INFINITE
        label = "exact, infinite lattice" if exact.L is None else None
        axes.plot(exact.temperature, exact.values, label=label, zorder=1, **line)
    if any(exact.L is not None for exact in panel.exact):
        axes.plot([], [], color="0.45", linewidth=0.8, label="exact, torus of each size")


def _draw_deviations(axes: Axes, curves: Sequence[ThermalCurve], *, against_size: bool) -> None:
    """Draw measured less exact values, in standard errors."""
    series = []
    for curve, look, _ in choose_looks(curves):
        if curve.exact is None:
            continue
        known = curve.errors > 0
        away = (curve.values - curve.exact)[known] / curve.errors[known]
        x = np.full(away.size, curve.L) if against_size else curve.temperature[known]
        series.append((x, away, look))
    draw_residuals(axes, series, of="exact")


def _draw_critical(axes: Axes, critical: Exact | None) -> None:
    """Draw a published critical temperature where the axis shows it."""
    low, high = axes.get_xlim()
    if critical is not None and low < critical[0] < high:
        label = f"$k_B T_c / J = {critical[0]:.8g}$ {typeset(critical[1])}"
        axes.axvline(critical[0], label=label, zorder=0, **EXACT_LINE)


def _draw_fitted(axes: Axes, fitted: tuple[float, float] | None) -> None:
    """Draw a fit's critical temperature as a band one error wide on either side."""
    if fitted is not None:
        value, error = fitted
        label = f"$k_B T_c / J = {format_with_error(value, error)}$, fit of all sizes"
        axes.axvspan(value - error, value + error, label=label, zorder=0, **BAND)


def _numbers_of(panel: ThermalPanel) -> dict[str, Any]:
    return {
        "quantity": panel.name,
        "meaning": panel.meaning or THERMAL[panel.name].meaning,
        "curves": [plain(curve) for curve in panel.curves],
        "second_estimator": [plain(curve) for curve in panel.hollow],
        "exact": [plain(curve) for curve in panel.exact],
    }


def draw_thermal(
    figures: StudyView,
    into: Target,
    panels: Sequence[ThermalPanel],
    levels: Sequence[tuple[float, str]] = (),
    *,
    fitted: tuple[float, float] | None = None,
) -> Drawn:
    """Draw panels of one study, with its title and critical temperature."""
    return plot_thermal(
        panels,
        model=figures.model,
        title=figures.head["title"],
        critical=figures.critical_temperature,
        levels=levels,
        fitted=fitted,
        into=into,
    )
