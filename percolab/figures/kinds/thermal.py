"""Thermal means of spins against temperature, with known exact results: six kinds of figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.analysis import stored_spins
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_spins import THERMAL, Thermodynamics
from percolab.analysis.theory import ising
from percolab.analysis.value import format_with_error
from percolab.figures import elements, style
from percolab.figures.math_text import typeset
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView, describe_panels
from percolab.figures.style import Axes, choose_looks
from percolab.lattices.lattice import AXIS_NAMES

#: Number of temperatures of exact curves, and the range of couplings with accurate formulae.
_POINTS, _COUPLINGS = 160, (1e-3, 20.0)
#: The largest number of panels of correlation lengths.
_MOST_AXES = 3
#: xi / L at T_c of the Ising model on a large square torus.
_XI_AT_CRITICALITY, _XI_SOURCE = 0.9050488292, "Salas and Sokal 2000"
#: The Hamiltonian of the Ising model and of a Potts model, and the temperature axis with it.
_ISING = "-J sum s s'", r"$k_B T / J = 1/K$    ($H = -J\,\Sigma\,s s^\prime,\ s = \pm 1$)"
_POTTS = "-J sum delta(s, s')", r"$k_B T / J = 1/\beta$    ($H = -J\,\Sigma\,\delta_{s s^\prime}$)"
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
    hollow: a second estimator, drawn hollow.  logarithmic: if the vertical axis may be logarithmic.
    """

    name: str
    label: str
    curves: Sequence[ThermalCurve]
    hollow: Sequence[ThermalCurve] = ()
    exact: Sequence[ExactCurve] = ()
    logarithmic: bool = False
    meaning: str = ""


def _is_square_ising(figures: StudyView, *, on_torus: bool = False) -> bool:
    known = ising.is_square_ising(figures.study.structure, figures.model)
    return known and (not on_torus or set(figures.study.boundary) == {"periodic"})


def _make_panel(
    figures: StudyView, name: str, label: str, *, hollow: str | None = None, **options: Any
) -> ThermalPanel:
    """Return the panel of a thermal mean with its exact curves; hollow: a second estimator."""
    tasks = stored_spins.compute_thermodynamics(figures.results)
    on_torus = _is_square_ising(figures, on_torus=True)
    curves = [_make_curve(task, name, on_torus=on_torus) for task in tasks]
    seconds = [_make_curve(task, hollow) for task in tasks] if hollow is not None else ()
    temperatures = np.concatenate([curve.temperature for curve in curves])
    exact: list[ExactCurve] = []
    if _is_square_ising(figures) and temperatures.size and np.ptp(temperatures) > 0:
        grid = np.linspace(temperatures.min(), temperatures.max(), _POINTS)
        grid = grid[(_COUPLINGS[0] * grid <= 1) & (_COUPLINGS[1] * grid >= 1)]
        for size in (*(sorted({curve.L for curve in curves}) if on_torus else ()), None):
            values = [ising.exact_mean(name, figures.model, 1 / float(at), size) for at in grid]
            known = np.array([value is not None for value in values], bool)
            if known.any():
                exact.append(ExactCurve(size, grid[known], np.array(values)[known].astype(float)))
    return ThermalPanel(name, label, curves, seconds, exact, **options)


def _make_curve(task: Thermodynamics, name: str, *, on_torus: bool = False) -> ThermalCurve:
    """Return a thermal mean where temperature and value are finite."""
    kept = np.isfinite(task.temperature) & np.isfinite(task.values[name])
    exact = None
    if on_torus and name in ("energy", "specific_heat"):
        # The coupling is 0 at p = 0, and too large for the formulae near p = 1.
        kept &= (task.coupling >= _COUPLINGS[0]) & (task.coupling <= _COUPLINGS[1])
        couplings, model = task.coupling[kept].tolist(), task.system.model
        exact = np.array([ising.exact_mean(name, model, k, task.L) for k in couplings], float)
    arrays = (task.p, task.temperature, task.values[name], task.errors[name])
    p, temperature, values, errors = (array[kept] for array in arrays)
    return ThermalCurve(task.L, p, temperature, values, errors, exact)


def _draw(
    figures: StudyView,
    into: Target,
    panels: Sequence[ThermalPanel],
    level: tuple[float, str] | None = None,
    *,
    with_fit: bool = False,
) -> Drawn:
    """Draw thermal means against temperature in panels side by side, with one curve per task.

    At a single temperature they are drawn against L.  Below a panel with known exact curves are the
    deviations in standard errors.  level: a horizontal line for an Ising torus, as value and label.
    with_fit: whether the fitted T_c is drawn.
    """
    model, critical = figures.model, figures.critical_temperature
    fit = figures.spin_fit_or_problem if with_fit else ""
    fitted = None if isinstance(fit, str) or fit.temperature[1] is None else fit.temperature
    hamiltonian, axis = _ISING if model.name == "ising" else _POTTS
    curves = panels[0].curves
    against_size = elements.only_p(curves) is not None
    has_exact = any(curve.exact is not None for curve in curves)
    wide = len(panels) > 1
    width, height = (style.PAGE_WIDTH, 4.0) if wide else (style.COLUMN_WIDTH, 3.6)
    look = style.STYLE if wide else style.COLUMN_STYLE
    with into.sheet(width, height + 0.7 * has_exact, style=look) as sheet:
        grid: Any = sheet.subplots(
            2 if has_exact else 1, len(panels), squeeze=False, sharex="col",
            height_ratios=[3, 1] if has_exact else None,
        )  # fmt: skip
        for axes, panel in zip(grid[0], panels, strict=True):
            _draw_panel(axes, panel, against_size=against_size)
            if not against_size:
                _draw_critical(axes, critical, fitted)
            if level is not None and _is_square_ising(figures, on_torus=True):
                line: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 0.9}
                axes.axhline(level[0], label=level[1], **line)
        if has_exact:
            _draw_deviations(grid[1, 0], curves, against_size=against_size)
        for axes in grid.flat:
            elements.few_ticks(axes, number=5)
            if against_size:
                elements.place_sizes(axes, sorted({curve.L for curve in curves}))
            elements.plain_ticks(axes)
            axes.set_xlabel("")
        label = "$L$" if against_size else axis
        for axes in grid[-1]:
            # Three panels side by side have no space for long labels.
            axes.set_xlabel(label.replace("    ", "\n") if len(panels) > 2 else label)
        at = f", $k_B T / J = {curves[0].temperature[0]:.6g}$" if against_size else ""
        sheet.set_title(figures.title + at)
        elements.letter_panels(grid.flat)
        errors = (curve.errors for panel in panels for curve in panel.curves)
        about = elements.jackknife_title(errors, over="chains")
        sheet.add_legend(elements.legend_entries(grid[0, 0]), ncols=4 if wide else 3, title=about)
    return sheet.figure, {
        "hamiltonian": hamiltonian,
        "critical_temperature": elements.exact_record(critical),
        "fitted_temperature": list(fitted) if fitted is not None else None,
        "panels": [
            {
                "quantity": panel.name,
                "meaning": panel.meaning or THERMAL[panel.name].meaning,
                "curves": plain(panel.curves),
                "second_estimator": plain(panel.hollow),
                "exact": plain(panel.exact),
            }
            for panel in panels
        ],
    }


def _draw_panel(axes: Axes, panel: ThermalPanel, *, against_size: bool) -> None:
    infinite = [exact.L is None for exact in panel.exact]
    bars: dict[str, Any] = {"linewidth": 0.6, "capsize": 1.5}
    for curve, look, _ in choose_looks(panel.hollow):
        x = [curve.L] if against_size else curve.temperature
        look |= {"markerfacecolor": "white", "markersize": 5.0, "zorder": 2}
        elements.draw_bars(axes, x, curve.values, curve.errors, look, **bars)
    bars |= {"linestyle": "-" if all(infinite) else "none", "markersize": 2.8, "zorder": 3}
    for curve, look, new in choose_looks(panel.curves):
        x = [curve.L] if against_size else curve.temperature
        label = elements.size_label(curve.L, {}) if new else None
        elements.draw_bars(axes, x, curve.values, curve.errors, look, **bars, label=label)
    _draw_exact(axes, panel, against_size=against_size)
    axes.set_ylabel(panel.label)
    values = np.concatenate([curve.values for curve in panel.curves])
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    if panel.logarithmic and low > 0 and high > 20 * low:
        axes.set_yscale("log")
    elif any(infinite):
        # A divergence of the infinite lattice must not stretch the axis.
        axes.set_ylim(low - 0.06 * (high - low or 1), high + 0.12 * (high - low or 1))


def _draw_exact(axes: Axes, panel: ThermalPanel, *, against_size: bool) -> None:
    """Draw exact values: curves in the colour of each torus, or dashes for one temperature."""
    label = "exact, torus of each size"
    if against_size:
        dash: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 14, "zorder": 1}
        for curve in panel.curves:
            if curve.exact is not None:
                sizes = np.full(curve.exact.size, curve.L)
                axes.plot(sizes, curve.exact, color="black", label=label, **dash)
                label = "_nolegend_"
        return
    colours = {curve.L: look["color"] for curve, look, _ in choose_looks(panel.curves)}
    for exact in panel.exact:
        line: dict[str, Any] = {"color": "black", "linewidth": 0.9}
        if exact.L is None:
            line["label"] = "exact, infinite lattice"
        else:
            line = {"color": colours[exact.L], "linewidth": 0.8}
        axes.plot(exact.temperature, exact.values, zorder=1, **line)
    if any(exact.L is not None for exact in panel.exact):
        axes.plot([], [], color="0.45", linewidth=0.8, label=label)


def _draw_deviations(axes: Axes, curves: Sequence[ThermalCurve], *, against_size: bool) -> None:
    series = []
    for curve, look, _ in choose_looks(curves):
        if curve.exact is not None:
            known = curve.errors > 0
            away = (curve.values - curve.exact)[known] / curve.errors[known]
            x = np.full(away.size, curve.L) if against_size else curve.temperature[known]
            series.append((x, away, look))
    elements.draw_residuals(axes, series, of="exact")


def _draw_critical(
    axes: Axes, critical: elements.Exact | None, fitted: tuple[float, Any] | None
) -> None:
    """Draw the published critical temperature if the axis shows it, and the fitted as a band."""
    low, high = axes.get_xlim()
    if critical is not None and low < critical[0] < high:
        label = f"$k_B T_c / J = {critical[0]:.8g}$ {typeset(critical[1])}"
        axes.axvline(critical[0], label=label, zorder=0, **style.EXACT_LINE)
    if fitted is not None:
        label = f"$k_B T_c / J = {format_with_error(*fitted)}$, fit of all sizes"
        elements.draw_band(axes, *fitted, label=label)


def _draw_susceptibility(figures: StudyView, into: Target) -> Drawn:
    squares = r"\langle M^2 \rangle" if figures.model.states == 2 else r"\langle |M|^2 \rangle"
    labels = {
        "improved_susceptibility": r"$\langle M^2 \rangle / N$ (sites); hollow: by the spins",
        "connected_susceptibility": rf"$({squares} - \langle |M| \rangle^2) / N$ (sites)",
    }
    hollow = {"improved_susceptibility": "susceptibility"}
    panels = [
        _make_panel(figures, name, label, hollow=hollow.get(name), logarithmic=True)
        for name, label in labels.items()
    ]
    return _draw(figures, into, panels)


def _draw_binder(figures: StudyView, into: Target) -> Drawn:
    panels = [_make_panel(figures, "binder", _RATIO)]
    if all(task.has("sum_fourths") for task in stored_spins.list_spin_tasks(figures.results)):
        panels += [_make_panel(figures, "improved_binder", f"{_RATIO}, by the clusters")]
    at = ising.BINDER_AT_CRITICALITY
    label = f"$Q_m(T_c) = {at}$ [{ising.BINDER_SOURCE}]"
    return _draw(figures, into, panels, (at, label), with_fit=True)


def _draw_correlation_length(figures: StudyView, into: Target) -> Drawn:
    panels = []
    for axis in _periodic_axes(figures)[:_MOST_AXES]:
        x = AXIS_NAMES[axis]
        meaning = f"second-moment correlation length along {x} over the grid points along it"
        name, label = f"correlation_length_{x}", rf"$\xi_{x} / L_{x}$"
        curves = _correlation_lengths(figures, axis)
        panels.append(ThermalPanel(name, label, curves, meaning=meaning))
    label = rf"$\xi / L = {_XI_AT_CRITICALITY:.6f}$ at $T_c$ [{_XI_SOURCE}]"
    return _draw(figures, into, panels, (_XI_AT_CRITICALITY, label), with_fit=True)


def _periodic_axes(figures: StudyView) -> list[int]:
    return [axis for axis, kind in enumerate(figures.study.boundary) if kind == "periodic"]


def _correlation_lengths(figures: StudyView, axis: int) -> list[ThermalCurve]:
    """Return xi / L along a periodic axis of every task, where it is finite.

    It does not exist where S(k) exceeds S(0), which can happen by chance far above the transition,
    or at infinite temperature.
    """
    curves = []
    index = _periodic_axes(figures).index(axis)
    for task in stored_spins.list_spin_tasks(figures.results):
        p, lengths = np.array(task.task.p), stored_spins.compute_correlation_lengths(task)
        values, errors = (each[index] / task.task.shape[axis] for each in lengths)
        temperature = stored_spins.describe_system(task).temperatures(p)
        kept = np.isfinite(values) & np.isfinite(temperature)
        arrays = (array[kept] for array in (p, temperature, values, errors))
        curves.append(ThermalCurve(task.task.size, *arrays))
    return curves


def _no_correlation_length(figures: StudyView) -> str | None:
    tasks = stored_spins.list_spin_tasks(figures.results)
    if not all("structure_factor" in task.datasets() for task in tasks):
        return f"no structure factors: {figures.how_to_measure('correlation')}"
    for axis in _periodic_axes(figures):
        for curve in _correlation_lengths(figures, axis):
            if not curve.values.size:
                return f"L = {curve.L} has no correlation length at any finite temperature"
    return None


def _make_kind(name: str, label: str, **fields: Any) -> FigureKind:
    """Return the kind that draws the thermal mean of this name; fields override its defaults."""

    def problem(figures: StudyView) -> str | None:
        for task in stored_spins.compute_thermodynamics(figures.results):
            if not np.isfinite(task.values[name][np.isfinite(task.temperature)]).any():
                return f"L = {task.L} has no {name} at any finite temperature"
        return None

    usual: dict[str, Any] = {
        "errors": "Error bars are one standard error, of a jackknife over chains.",
        "problems": (StudyView.no_spins, problem),
        "draw": lambda figures, into: _draw(figures, into, [_make_panel(figures, name, label)]),
        "alt": describe_panels,
    }
    return FigureKind(**usual | fields)


BINDER = _make_kind(
    "binder",
    _RATIO,
    help="spins: Binder's ratio, whose curves cross near T_c",
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
    help="spins: the energy",
    meaning=(
        "Energy per site in units of J against temperature, of one temperature against L; lines "
        "are exact where they are known, with the deviations below in standard errors."
    ),
)
SPECIFIC_HEAT = _make_kind(
    "specific_heat",
    r"specific heat per site $C / (k_B N)$",
    help="spins: the specific heat",
    meaning=(
        "Specific heat per site from the fluctuations of the energy, in units of k_B, against "
        "temperature, of one temperature against L; lines are exact where they are known, with the "
        "deviations below in standard errors."
    ),
)
ORDER = _make_kind(
    "order",
    r"order parameter $\langle |m| \rangle$",
    help="spins: the order parameter",
    meaning=(
        "Order parameter, (q N_max / N - 1) / (q - 1) in the mean, against temperature, of one "
        "temperature against L; black, where it is known, the spontaneous one of the infinite "
        "lattice."
    ),
)
SUSCEPTIBILITY = _make_kind(
    "susceptibility",
    "",
    help="spins: susceptibility by spins, by clusters, and connected",
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
    help="spins: the correlation length over L",
    meaning=(
        "Second-moment correlation length of the spins over the length of the lattice, in grid "
        "points, along every periodic axis (three at most), against temperature, of one "
        "temperature against L; the band is T_c of the fit of all sizes (percolab fit) with its "
        "error; dotted, where it is known, the ratio's value at T_c."
    ),
    problems=(StudyView.no_spins, _no_correlation_length),
    draw=_draw_correlation_length,
)
