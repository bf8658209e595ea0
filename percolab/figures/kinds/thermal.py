"""Thermal means of spins against temperature, with what is known exactly: six kinds of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_spins import (
    THERMAL,
    Thermodynamics,
    compute_correlation_lengths,
    compute_thermodynamics,
    describe_system,
    list_spin_tasks,
)
from percolab.analysis.theory.ising import (
    BINDER_AT_CRITICALITY,
    BINDER_SOURCE,
    exact_infinite,
    exact_on_torus,
    is_square_ising,
)
from percolab.analysis.value import format_with_error
from percolab.bonds.model import Model
from percolab.figures.alt_text import describe_panels
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
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
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
from percolab.lattices.lattice import AXIS_NAMES

#: Temperatures at which exact curves are evaluated, and couplings their formulae are accurate for.
_POINTS, _COUPLINGS = 160, (1e-3, 20.0)
#: Panels of correlation lengths that a page has room for.
_MOST_AXES = 3
#: xi / L at T_c of the Ising model on a large square torus.
_XI_AT_CRITICALITY, _XI_SOURCE = 0.9050488292, "Salas and Sokal 2000"
_RATIO = r"$Q_m = \langle M^2 \rangle^2 / \langle M^4 \rangle$"


@dataclass(frozen=True, eq=False)
class ThermalCurve:
    """A thermal mean of one task: one size against temperature.

    p, temperature, values, errors: float64 (m,).  exact: the exact values, or None.
    """

    L: int
    p: Floats
    temperature: Floats
    values: Floats
    errors: Floats
    exact: Floats | None = None


@dataclass(frozen=True, eq=False)
class ExactCurve:
    """An exact curve: float64 (n,) each; L is None for the infinite lattice."""

    L: int | None
    temperature: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class ThermalPanel:
    """One panel.

    name: in THERMAL, or of another quantity with its ``meaning``.  label: of the vertical axis.
    hollow: a second estimator, drawn hollow.  logarithmic: whether the vertical axis may be.
    """

    name: str
    label: str
    curves: Sequence[ThermalCurve]
    hollow: Sequence[ThermalCurve] = ()
    exact: Sequence[ExactCurve] = ()
    logarithmic: bool = False
    meaning: str = ""


def _is_ising_torus(figures: StudyView) -> bool:
    known = is_square_ising(figures.study.structure, figures.model)
    return known and set(figures.study.boundary) == {"periodic"}


def _make_panel(
    figures: StudyView, name: str, label: str, *, hollow: str | None = None, **options: Any
) -> ThermalPanel:
    """Return the panel of a thermal mean with its exact curves; hollow: of a second estimator."""
    found = compute_thermodynamics(figures.results)
    is_torus = _is_ising_torus(figures)
    curves = [_make_curve(item, name, is_torus=is_torus) for item in found]
    seconds = [_make_curve(item, hollow) for item in found] if hollow is not None else ()
    finite = np.concatenate([curve.temperature for curve in curves])
    exact: list[ExactCurve | None] = []
    known = is_square_ising(figures.study.structure, figures.model)
    if known and finite.size and finite.min() < finite.max():
        grid = np.linspace(finite.min(), finite.max(), _POINTS)
        sizes = sorted({curve.L for curve in curves}) if is_torus else ()
        exact = [_exact_curve(name, figures.model, size, grid) for size in (*sizes, None)]
    drawn = [curve for curve in exact if curve is not None]
    return ThermalPanel(name, label, curves, seconds, drawn, **options)


def _make_curve(item: Thermodynamics, name: str, *, is_torus: bool = False) -> ThermalCurve:
    """Return a thermal mean where temperature and value are finite."""
    values, errors = item.values[name], item.errors[name]
    kept = np.isfinite(item.temperature) & np.isfinite(values)
    exact = None
    if is_torus and name in ("energy", "specific_heat"):
        # The coupling is 0 at p = 0, and too large for the formulae near p = 1.
        kept &= (item.coupling >= _COUPLINGS[0]) & (item.coupling <= _COUPLINGS[1])
        at = item.coupling[kept]
        exact = np.array(
            [exact_on_torus(name, item.system.model, item.L, float(x)) for x in at], float
        )
    return ThermalCurve(
        item.L, item.p[kept], item.temperature[kept], values[kept], errors[kept], exact
    )


def _exact_curve(name: str, model: Model, size: int | None, grid: Floats) -> ExactCurve | None:
    """Return the exact curve over a grid of temperatures, or None if there is none."""
    inside = grid[(1 / grid >= _COUPLINGS[0]) & (1 / grid <= _COUPLINGS[1])]
    pairs = [
        (at, value)
        for at in inside
        for value in [
            exact_infinite(name, model, 1 / float(at))
            if size is None
            else exact_on_torus(name, model, size, 1 / float(at))
        ]
        if value is not None
    ]
    return ExactCurve(size, *np.array(pairs, float).T) if pairs else None


def _draw(
    figures: StudyView,
    into: Target,
    panels: Sequence[ThermalPanel],
    levels: Sequence[tuple[float, str]] = (),
    *,
    with_fit: bool = False,
) -> Drawn:
    """Draw thermal means against temperature, a panel each side by side, one curve a task.

    At a single temperature they are drawn against L.  Below a panel whose curves are known
    exactly are the deviations in standard errors.  levels: values across the panels with their
    labels.  with_fit: whether the fitted T_c is drawn.
    """
    model, title = figures.model, figures.head["title"]
    critical, fitted = figures.critical_temperature, _fitted_temperature(figures, with_fit)
    at, curves = only_p(panels[0].curves), panels[0].curves
    has_exact = any(curve.exact is not None for curve in curves)
    wide = len(panels) > 1
    (width, height), style = (
        ((PAGE_WIDTH, 4.0), STYLE) if wide else ((COLUMN_WIDTH, 3.6), COLUMN_STYLE)
    )
    with into.sheet(width, height + 0.7 * has_exact, style=style) as sheet:
        grid: Any = sheet.subplots(
            2 if has_exact else 1, len(panels), squeeze=False, sharex="col",
            height_ratios=[3, 1] if has_exact else None,
        )  # fmt: skip
        for axes, panel in zip(grid[0], panels, strict=True):
            _draw_panel(axes, panel, against_size=at is not None)
            if at is None:
                _draw_critical(axes, critical, fitted)
            for value, label in levels:
                axes.axhline(value, color="black", linestyle=":", linewidth=0.9, label=label)
        if has_exact:
            _draw_deviations(grid[1, 0], curves, against_size=at is not None)
        for axes in grid.flat:
            few_ticks(axes, number=5)
            if at is not None:
                place_sizes(axes, sorted({curve.L for curve in curves}))
            plain_ticks(axes)
        for axes in grid[-1]:
            label = _temperature_label(model) if at is None else "$L$"
            # Three panels side by side have no room for long labels.
            axes.set_xlabel(label.replace("    ", "\n") if len(panels) > 2 else label)
        for axes in grid[0] if has_exact else ():
            axes.set_xlabel("")
        shown = f", $k_B T / J = {curves[0].temperature[0]:.6g}$" if at is not None else ""
        sheet.set_title(title + shown)
        letter_panels(grid.flat)
        errors = (curve.errors for panel in panels for curve in panel.curves)
        sheet.add_legend(
            legend_entries(grid[0, 0]),
            ncols=4 if wide else 3,
            title=jackknife_title(errors, over="chains"),
        )
    return sheet.figure, {
        "title": title,
        "hamiltonian": "-J sum s s'" if model.name == "ising" else "-J sum delta(s, s')",
        "critical_temperature": exact_record(critical),
        "fitted_temperature": list(fitted) if fitted is not None else None,
        "panels": [
            {
                "quantity": panel.name,
                "meaning": panel.meaning or THERMAL[panel.name].meaning,
                "curves": [plain(curve) for curve in panel.curves],
                "second_estimator": [plain(curve) for curve in panel.hollow],
                "exact": [plain(curve) for curve in panel.exact],
            }
            for panel in panels
        ],
    }


def _fitted_temperature(figures: StudyView, with_fit: bool) -> tuple[float, float] | None:
    """Return k_B T_c / J of the fit of all sizes and its error; None if there is no such fit."""
    found = figures.spin_fit_or_problem if with_fit else ""
    if isinstance(found, str):
        return None
    temperature, error = found.temperature
    return None if error is None else (temperature, error)


def _temperature_label(model: Model) -> str:
    """Return the label of a temperature axis: the unit, and the Hamiltonian it belongs to."""
    if model.name == "ising":
        return r"$k_B T / J = 1/K$    ($H = -J\,\Sigma\,s s^\prime,\ s = \pm 1$)"
    return r"$k_B T / J = 1/\beta$    ($H = -J\,\Sigma\,\delta_{s s^\prime}$)"


def _draw_panel(axes: Axes, panel: ThermalPanel, *, against_size: bool) -> None:
    infinite = [exact.L is None for exact in panel.exact]
    for own, filled in ((panel.curves, True), (panel.hollow, False)):
        for curve, look, new in choose_looks(own):
            if not filled:
                look |= {"markerfacecolor": "white", "markersize": 5.0}
            axes.errorbar(
                [curve.L] if against_size else curve.temperature, curve.values,
                bars_if_known(curve.errors), **({"markersize": 2.8} | look),
                linestyle="-" if all(infinite) and filled else "none", linewidth=0.6,
                elinewidth=0.8, capsize=1.5, zorder=3 if filled else 2,
                label=size_label(curve.L, {}) if new and filled else None,
            )  # fmt: skip
    _draw_exact(axes, panel, against_size=against_size)
    axes.set_ylabel(panel.label)
    values = np.concatenate([curve.values for curve in panel.curves])
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    if panel.logarithmic and low > 0 and high > 20 * low:
        axes.set_yscale("log")
    elif any(infinite):
        # A divergence of the infinite lattice does not stretch the axis.
        axes.set_ylim(low - 0.06 * (high - low or 1), high + 0.12 * (high - low or 1))


def _draw_exact(axes: Axes, panel: ThermalPanel, *, against_size: bool) -> None:
    """Draw the exact values: of each torus in the colour of its size, of one temperature dashes."""
    label = "exact, torus of each size"
    if against_size:
        for curve in panel.curves:
            if curve.exact is not None:
                axes.plot(
                    np.full(curve.exact.size, curve.L), curve.exact, linestyle="none", marker="_",
                    markersize=14, color="black", zorder=1, label=label,
                )  # fmt: skip
                label = "_nolegend_"
        return
    colours = {curve.L: look["color"] for curve, look, _ in choose_looks(panel.curves)}
    for exact in panel.exact:
        line: dict[str, Any]
        if exact.L is None:
            line = {"color": "black", "linewidth": 0.9, "label": "exact, infinite lattice"}
        else:
            line = {"color": colours[exact.L], "linewidth": 0.8}
        axes.plot(exact.temperature, exact.values, zorder=1, **line)
    if any(exact.L is not None for exact in panel.exact):
        axes.plot([], [], color="0.45", linewidth=0.8, label=label)


def _draw_deviations(axes: Axes, curves: Sequence[ThermalCurve], *, against_size: bool) -> None:
    """Draw measured less exact values, in standard errors."""
    series = []
    for curve, look, _ in choose_looks(curves):
        if curve.exact is not None:
            known = curve.errors > 0
            away = (curve.values - curve.exact)[known] / curve.errors[known]
            x = np.full(away.size, curve.L) if against_size else curve.temperature[known]
            series.append((x, away, look))
    draw_residuals(axes, series, of="exact")


def _draw_critical(axes: Axes, critical: Exact | None, fitted: tuple[float, float] | None) -> None:
    """Draw the published critical temperature where the axis shows it, and the fitted as a band."""
    low, high = axes.get_xlim()
    if critical is not None and low < critical[0] < high:
        label = f"$k_B T_c / J = {critical[0]:.8g}$ {typeset(critical[1])}"
        axes.axvline(critical[0], label=label, zorder=0, **EXACT_LINE)
    if fitted is not None:
        value, error = fitted
        label = f"$k_B T_c / J = {format_with_error(value, error)}$, fit of all sizes"
        axes.axvspan(value - error, value + error, label=label, zorder=0, **BAND)


def _problem(figures: StudyView, name: str) -> str | None:
    for item in compute_thermodynamics(figures.results):
        if not np.isfinite(item.values[name][np.isfinite(item.temperature)]).any():
            return f"L = {item.L} has no {name} at any finite temperature"
    return None


def _draw_susceptibility(figures: StudyView, into: Target) -> Drawn:
    squares = r"\langle M^2 \rangle" if figures.model.states == 2 else r"\langle |M|^2 \rangle"
    whole = _make_panel(
        figures,
        "improved_susceptibility",
        r"$\langle M^2 \rangle / N$ (sites); hollow: by the spins",
        hollow="susceptibility",
        logarithmic=True,
    )
    label = rf"$({squares} - \langle |M| \rangle^2) / N$ (sites)"
    connected = _make_panel(figures, "connected_susceptibility", label, logarithmic=True)
    return _draw(figures, into, [whole, connected])


def _draw_binder(figures: StudyView, into: Target) -> Drawn:
    panels = [_make_panel(figures, "binder", _RATIO)]
    if all(item.has("sum_fourths") for item in list_spin_tasks(figures.results)):
        panels += [_make_panel(figures, "improved_binder", f"{_RATIO}, by the clusters")]
    label = f"$Q_m(T_c) = {BINDER_AT_CRITICALITY}$ [{BINDER_SOURCE}]"
    levels = [(BINDER_AT_CRITICALITY, label)] if _is_ising_torus(figures) else []
    return _draw(figures, into, panels, levels, with_fit=True)


def _draw_correlation_length(figures: StudyView, into: Target) -> Drawn:
    panels = [
        ThermalPanel(
            name=f"correlation_length_{letter}",
            label=rf"$\xi_{letter} / L_{letter}$",
            curves=_correlation_lengths(figures, axis),
            meaning=(
                f"second-moment correlation length along {letter} over the grid points along it"
            ),
        )
        for axis in _periodic_axes(figures)[:_MOST_AXES]
        for letter in AXIS_NAMES[axis]
    ]
    label = rf"$\xi / L = {_XI_AT_CRITICALITY:.6f}$ at $T_c$ [{_XI_SOURCE}]"
    levels = [(_XI_AT_CRITICALITY, label)] if _is_ising_torus(figures) else []
    return _draw(figures, into, panels, levels, with_fit=True)


def _periodic_axes(figures: StudyView) -> list[int]:
    return [axis for axis, kind in enumerate(figures.study.boundary) if kind == "periodic"]


def _correlation_lengths(figures: StudyView, axis: int) -> list[ThermalCurve]:
    """Return xi / L along a periodic axis of every task, where it is finite.

    There is none where S(k) exceeds S(0), as chance may have it far above the transition, and at
    infinite temperature.
    """
    found = []
    index = _periodic_axes(figures).index(axis)
    for item in list_spin_tasks(figures.results):
        task, p = item.task, np.array(item.task.p)
        values, errors = (
            each[index] / task.shape[axis] for each in compute_correlation_lengths(item)
        )
        temperature = describe_system(item).temperatures(p)
        kept = np.isfinite(values) & np.isfinite(temperature)
        arrays = (array[kept] for array in (p, temperature, values, errors))
        found.append(ThermalCurve(task.size, *arrays))
    return found


def _no_correlation_length(figures: StudyView) -> str | None:
    if not all("structure_factor" in item.datasets() for item in list_spin_tasks(figures.results)):
        return f"no structure factors: {figures.how_to_measure('correlation')}"
    for axis in _periodic_axes(figures):
        for curve in _correlation_lengths(figures, axis):
            if not curve.values.size:
                return f"L = {curve.L} has no correlation length at any finite temperature"
    return None


def _make_kind(name: str, label: str, **fields: Any) -> FigureKind:
    """Return the kind that draws one thermal mean of this name, unless fields say otherwise."""
    usual: dict[str, Any] = {
        "errors": "Error bars are one standard error, of a jackknife over chains.",
        "problems": (StudyView.no_spins, lambda figures: _problem(figures, name)),
        "draw": lambda figures, into: _draw(figures, into, [_make_panel(figures, name, label)]),
        "alt": describe_panels,
    }
    return FigureKind(**usual | fields)


BINDER = _make_kind(
    "binder",
    _RATIO,
    help="of spins: Binder's ratio, whose curves cross near T_c",
    meaning=(
        "Binder ratio of the order parameter by the spins, and by the clusters where their fourth "
        "powers are there (--measure sizes), against temperature, of one temperature against L; "
        "the band is T_c of the fit of all sizes (percolab fit) with its error; dotted, where it "
        "is known, the ratio's value at T_c."
    ),
    draw=_draw_binder,
)
ENERGY = _make_kind(
    "energy",
    r"energy per site $\langle E \rangle / (J N)$",
    help="of spins: the energy",
    meaning=(
        "Energy per site in units of J against temperature, of one temperature against L; lines "
        "are exact where they are known, with the deviations below in standard errors."
    ),
)
SPECIFIC_HEAT = _make_kind(
    "specific_heat",
    r"specific heat per site $C / (k_B N)$",
    help="of spins: the specific heat",
    meaning=(
        "Specific heat per site from the fluctuations of the energy, in units of k_B, against "
        "temperature, of one temperature against L; lines are exact where they are known, with the "
        "deviations below in standard errors."
    ),
)
ORDER = _make_kind(
    "order",
    r"order parameter $\langle |m| \rangle$",
    help="of spins: the order parameter",
    meaning=(
        "Order parameter, (q N_max / N - 1) / (q - 1) in the mean, against temperature, of one "
        "temperature against L; black, where it is known, the spontaneous one of the infinite "
        "lattice."
    ),
)
SUSCEPTIBILITY = _make_kind(
    "susceptibility",
    "",
    help="of spins: by spins, by clusters, and connected",
    meaning=(
        "Susceptibility without the factor 1 / k_B T: <M^2> / N by the clusters, which is <S_2> / "
        "N, and hollow by the spins; and with <|M|>^2 / N taken away; against temperature, of one "
        "temperature against L."
    ),
    draw=_draw_susceptibility,
)
CORRELATION_LENGTH = _make_kind(
    "correlation_length",
    "",
    help="of spins: the correlation length over L",
    meaning=(
        "Second-moment correlation length of the spins over the length of the lattice, in grid "
        "points, along every periodic axis (three at most), against temperature, of one "
        "temperature against L; the band is T_c of the fit of all sizes (percolab fit) with its "
        "error; dotted, where it is known, the ratio's value at T_c."
    ),
    problems=(StudyView.no_spins, _no_correlation_length),
    draw=_draw_correlation_length,
)
