"""A threshold to the requested precision: what is sampled next, until the error is small enough.

In the plane p_c is the root of P(two directions) - P(no direction) on tori
(:mod:`percolab.analysis.roots`).  A pilot finds a p near it, where samples are made: there the
difference is a straight line, so its value and its slope give the root.  The slope comes from the
covariance with the number of open bonds or occupied sites; where some of these do not open with p,
from two further p at a twentieth of the samples.  Where p is so far from the root that the line
bends, further samples are made next to the root.  Two sizes are sampled, so that the larger can
contradict the smaller: the smallest whose drift is small enough, as for equal work the error grows
as L^(1/4).  Elsewhere p_c comes from a fit of several sizes (:mod:`percolab.run.scaling_search`).

Work is counted in sites, so that the same target gives about the same samples on every machine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, inf, log2, sqrt
from pathlib import Path
from typing import Any, NoReturn, Unpack

import numpy as np

from percolab.analysis import roots
from percolab.analysis.roots import SizeRoot, fit_roots, has_slopes, read_difference
from percolab.analysis.theory.critical import critical_probability
from percolab.analysis.value import Value
from percolab.bonds.model import Model
from percolab.bonds.words import p_to_threshold
from percolab.errors import AnalysisError, InputError
from percolab.kernels.device import Device
from percolab.kernels.registry import load
from percolab.lattices.graph import Graph
from percolab.lattices.graph_files.objects import is_graph_object
from percolab.lattices.lattice import Lattice
from percolab.lattices.one_piece import has_lines, unreached
from percolab.lattices.structure import Structure, load_structure
from percolab.measure.columns import WRAPPING
from percolab.measure.rows import OPENINGS
from percolab.run.engine import Engine, choose_engine, memory_share, warm_up
from percolab.run.executors import connected
from percolab.run.placement import pilot_conditions, with_tasks
from percolab.run.request import Observer, SweepOptions, continue_results
from percolab.run.search_steps import (
    Goal,
    Round,
    Search,
    axis_length,
    refuse_end,
    rounded,
    whole_size,
)
from percolab.run.stored import Saver, with_blocks
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.kind import BlockSampler
from percolab.tasks.study import StopRule, Study, Task
from percolab.tasks.study_file import SweepRequest, make_request

#: Sizes are near these numbers of grid points along an axis.
_LADDER = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
#: The least of these on a CPU and on a GPU, where rows of samples dominate the time on small tori.
_SHORTEST = {False: 8, True: 16}
#: The larger of the two sizes over the smaller one, at least.
_RATIO = 4 / 3
#: Most drift of the smaller size over the target; the error that is aimed at over the target.
_DRIFT_SHARE, _AIM = 0.5, 0.98
#: Blocks of a size when the target is met, samples of a block, and sites of all its samples.
_BLOCKS, _LEAST_BLOCK, _MOST_BLOCK, _MOST_SITES = 256, 2**8, 2**18, 2**29
#: Part of the samples that is made at each of the two p that give the slope.
_SLOPE_SHARE = 0.05
#: Fractions of the whole work of a size after each round.
_ROUNDS = (0.1, 0.4, 1.0)
#: Part of the error that the curvature of D may make up before p is moved.
_BEND_SHARE = 0.2
#: |D| at the two p: this factor times its value at the p between, but from 0.03 to 0.3.
_SIDE_FACTOR, _LEAST_SIDE, _MOST_SIDE = 4.0, 0.03, 0.3
#: Samples at the first p of a pilot, and at its last one.
_FIRST_PILOT, _LAST_PILOT = 2**9, 2**15
#: The least slope of D, over that of lattices that are isotropic.
_FLAT = 0.15
#: Sites a second on a CPU and on a GPU, roughly: for forecasts, and first rounds in a given time.
_RATES = {False: 2e8, True: 5e10}
#: The rate with spins, over that of percolation.
_SPIN_RATE = 1 / 16
#: Measured sweeps of a pilot's chain, after as many that are not; most sweeps of a block; least
#: sweeps of a block over the burn-in.
_PILOT_SWEEPS, _MOST_SWEEPS, _LEAST_SWEEPS = 64, 2**14, 4
#: Forecasts of more seconds than this are reported.
_LONG = 900.0


def request_threshold(lattice: str | Path | Structure, goal: Goal, **given: Any) -> SweepRequest:
    """Return the request of a threshold: a study on tori, and how it is sampled.

    given: settings of :func:`percolab.sweep`, without p, samples and boundary.  Without ``L`` the
    two sizes are chosen.  InputError: settings that are wrong, or a lattice without such roots.
    """
    structure = load_structure(str(lattice)) if isinstance(lattice, str | Path) else lattice
    if isinstance(structure, Graph) or is_graph_object(structure):
        refuse_graph(structure)
    if not isinstance(structure, Lattice):
        name = getattr(structure, "name", type(structure).__name__)
        raise InputError(f"{name}: p_c is found on tori, which only lattices have")
    if structure.dimension == 1:
        raise InputError(f"{structure.name}: p_c is 1 in one dimension: any gap cuts the chain")
    boundary = ("periodic",) * structure.dimension
    sizes: Any = given.pop("L", None)
    # Any size will do in the plane until the right ones are known.
    own = (whole_size(structure, _LADDER[0]),) if sizes is None else sizes
    if sizes is None and structure.dimension > 2:
        own = load("run.scaling_search:first_sizes")(structure, universal=goal.universal)
    request = make_request(structure, boundary=boundary, L=own, **given)
    study = request.study
    if isinstance(study.structure, Lattice) and study.structure.aspect:
        raise InputError(f"{study.structure.name}: p_c is found on tori whose sides are equal")
    model = study.draw
    _check_fixed(structure, model)
    if goal.universal and not critical_probability(structure, boundary, "wrapping_z", study.model):
        raise InputError(
            f"{structure.name}, {study.model}: universal = known is for bonds and sites in three "
            "dimensions, on tori that are cubes; leave it out"
        )
    if not roots.why_no_roots(study) and (model.chains or model.openings_have_p):
        request = replace(request, study=_measure_wrapping(study, OPENINGS))
        study = request.study
    reason = roots.why_no_roots(study)
    if reason and model.chains:
        raise InputError(f"{study.model}: {reason}; for other spins use percolab sweep")
    if reason:
        _check_scaling(study)
        return replace(request, study=_measure_wrapping(study))
    if sizes is not None:
        _check_drift(study, goal)
        return request
    return replace(request, study=_with_sizes(study, goal, request.options["device"]))


def refuse_graph(graph: Any) -> NoReturn:
    """Raise InputError on a graph, which has other numbers than p_c; graph: in any form."""
    is_file = isinstance(graph, str | Path)
    name = graph if is_file else getattr(graph, "name", "") or "the graph"
    raise InputError(
        f"{name}: a finite graph has no p_c, a limit of growing sizes; percolab sweep --graph "
        f"{graph if is_file else 'FILE'} --order random --method microcanonical finds its critical "
        "share"
    )


def _measure_wrapping(study: Study, *words: str) -> Study:
    """Return a study that measures wrapping and these words; without spins no cluster sizes."""
    more = (WRAPPING,) if study.kind.independent else ()
    return replace(study, measure=(*words, *more))


def _check_fixed(lattice: Lattice, model: Model) -> None:
    """Raise InputError where classes of bonds that are never, or always, open leave no p_c."""
    fixed: dict[str, float] = getattr(model, "fixed", {})
    ends = [(bond.name, (at, bond.offset)) for bond in lattice.bonds for at in bond.at]
    left = [end for name, end in ends if fixed.get(name) != 0]
    names = {value: ", ".join(sorted(n for n in fixed if fixed[n] == value)) for value in (0, 1)}
    reason = ""
    if names[0] and unreached(lattice.cell, lattice.sites, left) is not None:
        reason = f"has no p_c: without bonds {names[0]} the lattice is in pieces"
    wires = [end for name, end in ends if fixed.get(name) == 1]
    if has_lines(lattice.cell, lattice.sites, wires):
        reason = f"p_c is 0: bonds {names[1]}, which are always open, form infinite lines"
    if reason:
        raise InputError(f"{lattice.name}, {model}: {reason}")


def _check_scaling(study: Study) -> None:
    """Raise InputError unless a fit of several sizes can give the threshold of a study."""
    # Imported here, because that takes longer than a search in the plane.
    from percolab.analysis.averaging import LEAST_SIZES
    from percolab.analysis.wrapping_fit import why_no_wrapping

    if reason := why_no_wrapping(study):
        raise InputError(f"{study.structure.name}: its threshold cannot be found: {reason}")
    if len(study.sizes) < LEAST_SIZES:
        raise InputError(
            f"L = {', '.join(map(str, study.sizes))}: in three or more dimensions p_c needs at "
            f"least {LEAST_SIZES} sizes; give more, or leave out -L"
        )


def _check_drift(study: Study, goal: Goal) -> None:
    """Raise InputError where the drift of a given size alone is above the error."""
    size, *others = study.sizes
    drift = roots.choose_drift(study).of_length(axis_length(study.structure, size))
    if not others and goal.error is not None and drift > _AIM * goal.error:
        raise InputError(
            f"L = {size}: the estimate of so small a torus may be off by {drift:.1e}, more than "
            f"the error {goal.error:g} allows; give larger sizes, or leave out -L"
        )


def _with_sizes(study: Study, goal: Goal, device: Device) -> Study:
    """Return a study of the two sizes whose roots give p_c as precisely as a goal requires."""
    drift, is_gpu, error = roots.choose_drift(study), device.resolve_all()[0].is_shared, goal.error
    if error is None:
        # About what a torus of 32 points gives in this time.
        rate, states = _rate(study, is_gpu), study.states
        slope, scatter = roots.forecast(32, states)
        error = scatter / slope * 32 / sqrt(rate * (goal.seconds or 0))
    sizes: list[int] = []
    ladder = (points for points in _LADDER if points >= _SHORTEST[is_gpu])
    for size in dict.fromkeys(whole_size(study.structure, points) for points in ladder):
        if sizes:
            if size >= _RATIO * sizes[0]:
                return replace(study, sizes=(sizes[0], size))
        elif drift.of_length(axis_length(study.structure, size)) <= _DRIFT_SHARE * error:
            sizes.append(size)
    raise InputError(
        f"{study.structure.name}: an error of {error:g} needs tori of more than {_LADDER[-1]} "
        "points along an axis, as smaller ones may be off by more; give a larger error"
    )


def _rate(study: Study, is_gpu: bool) -> float:
    """Return roughly how many sites a second are sampled."""
    return _RATES[is_gpu] * (1.0 if study.kind.independent else _SPIN_RATE)


def find_threshold(study: Study, goal: Goal, **options: Unpack[SweepOptions]) -> StoredResults:
    """Sample a study of :func:`request_threshold` until its threshold is found.

    As for :func:`percolab.run.runner.run_study`, a file is continued; errors are the same.
    """
    options.pop("slabs", None)  # A search has no slabs.
    writer, observer = options.get("writer"), options.get("observer") or Observer()
    stored, path = (None, None) if writer is None else (writer.load(), writer.path)
    opened = continue_results(study, StopRule(dict.fromkeys(study.sizes, 1)), stored, path)
    results = opened.results
    is_fitted = bool(roots.why_no_roots(study))
    make_search = load("run.scaling_search:ScalingSearch") if is_fitted else _Search
    search: Search = make_search(study, goal)
    p = search.known_p(results)
    if p is not None and goal.error is not None and search.next_round(results, p) is None:
        return results
    with connected(options.get("executor")) as options["executor"]:
        engine = choose_engine(opened, options, observer)
        with engine.opened(study.structure) as executor:
            warm_up(opened.requested, engine, observer, with_pilot=True)
            search.begin(results, engine, observer)
            if p is None:
                p = search.find_p(engine)
            seconds = search.forecast(results)
            if seconds > _LONG:
                hours = float(f"{seconds / 3600:.2g}")
                observer.noted(f"this takes about {hours:g} hours, by a rough forecast")
            saver = Saver(writer, every_run=False)
            samplers: dict[str, BlockSampler] = {}
            try:
                while (step := search.next_round(results, p)) is not None:
                    sizes = {*results.study.sizes, *(task.size for task in step.tasks)}
                    study_now = replace(results.study, sizes=tuple(sorted(sizes)))
                    results = replace(results, study=study_now)
                    results = with_tasks(results, step.tasks)
                    share = memory_share(len(step.blocks))
                    for key in step.blocks.keys() - samplers.keys():
                        samplers[key] = engine.sampler(results.tasks[key].task, share=share)
                    pool = engine.make_pool(samplers, executor)
                    record = engine.record() | {"asked": goal.record()}
                    results = with_blocks(
                        results, step.blocks, record, pool, saver, observer, until=step.until
                    )
            finally:
                saver.end()
    return results


def find_p(study: Study, engine: Engine) -> float:
    """Return p near the root of the smallest size, from samples that are used for nothing else.

    D rises from p = 0 to p = 1, so the interval is halved until |D| is small; then secants are
    followed, with eight times the samples each time, until D is 0 within its error.

    AnalysisError: D has no root, or hardly changes next to it, as some bonds or sites are fixed.
    """
    size, states = min(study.sizes), study.states
    measure = _sample_reader(study, size, engine)
    if not study.kind.independent:
        measure = _chain_reader(study, size, engine)
    low, high, begun, first = 0.0, 1.0, 0, int(_FIRST_PILOT * states**2)
    expected, scatter = roots.forecast(axis_length(study.structure, size), states)
    samples, slope = first, expected
    before = 0.0, -1.0
    while True:
        p, error = (low + high) / 2, scatter / sqrt(samples)
        value = measure(p, begun, samples)
        begun += samples
        if abs(value) > 0.5 and low < high and high - low > 1e-9:
            low, high = (low, p) if value > 0 else (p, high)
            continue
        if (p > 1 - 1e-6 and value < 0) or (p < 1e-6 and value > 0):
            refuse_end(study, size, p)
        if abs(before[1]) < 0.7 and abs(value - before[1]) > 5 * error and p != before[0]:
            slope = max((value - before[1]) / (p - before[0]), 0.3 * slope)
        before = p, value
        p = min(max(p - value / slope, 0.0), 1.0)
        if (samples == _LAST_PILOT and abs(value) < 3 * error) or begun > 8 * _LAST_PILOT:
            break
        low = high = p
        samples = min(8 * samples, _LAST_PILOT)
    low, high = max(p - 0.5 / expected, 0.0), min(p + 0.5 / expected, 1.0)
    change = measure(high, begun, first) - measure(low, begun, first)
    if change < _FLAT * expected * (high - low):
        raise AnalysisError(
            f"{study.structure.title}, {study.model}: wrapping around tori of L = {size} hardly "
            "depends on p, as one axis is easier to cross; use percolab sweep with longer sides "
            "along it (-L 32x8,64x16)"
        )
    return rounded(p, error / slope)


def _sample_reader(study: Study, size: int, engine: Engine) -> Callable[[float, int, int], float]:
    """Return a function that finds D at p from samples: their first number, and how many."""
    task = replace(study.task(size, (0.5,)), purpose="pilot", block_size=1)
    sampler: Any = engine.sampler(task)
    columns = {column.name: column for column in task.observables}

    def measure(p: float, first: int, samples: int) -> float:
        numbers = np.arange(first, first + samples, dtype=np.uint64)
        threshold = np.array([p_to_threshold(p)], np.uint64)
        rows = sampler.grid_rows(numbers, threshold)[:, 0]
        two, none = (columns[f"wrapping_{word}"].of_rows(rows) for word in ("two", "none"))
        return float((two - none).mean())

    return measure


def _chain_reader(study: Study, size: int, engine: Engine) -> Callable[[float, int, int], float]:
    """Return a function that finds D at p from chains: their first sweep, and sweeps in all."""

    def measure(p: float, first: int, sweeps: int) -> float:
        task = replace(
            study.task(size, (p,)), purpose="pilot", burn_in=_PILOT_SWEEPS, block_size=_PILOT_SWEEPS
        )
        sampler: Any = engine.sampler(task)
        numbers = range(first // _PILOT_SWEEPS, (first + sweeps) // _PILOT_SWEEPS)
        blocks = {block.number: block for block in sampler.sample(numbers)}
        return read_difference(TaskResult(task, blocks))

    return measure


class _Search(Search):
    """Decides what is sampled next; work is that of each size, about half of all."""

    def __init__(self, study: Study, goal: Goal) -> None:
        super().__init__(study, goal, _rate(study, False) / 2)
        self._sizes, self._drift = study.sizes, roots.choose_drift(study)
        self._states = study.states
        self._lengths = {size: axis_length(study.structure, size) for size in self._sizes}
        self._place: Callable[[Task], Task] = lambda task: task

    def known_p(self, results: StoredResults) -> float | None:
        try:
            threshold = fit_roots(results).threshold
            return rounded(threshold.value, threshold.error)
        except AnalysisError:
            # The p with most samples.
            own = {task.id: task.p[0] for task in results.own_tasks if len(task.p) == 1}
            most = max(own, key=lambda key: results.tasks[key].num_samples, default=None)
            return None if most is None else own[most]

    def find_p(self, engine: Engine) -> float:
        return find_p(self._study, engine)

    def begin(self, results: StoredResults, engine: Engine, observer: Observer) -> None:
        study, pilot = results.study, pilot_conditions(engine, observer)
        self._rate = _rate(study, engine.device.is_shared) / 2
        super().begin(results, engine, observer)
        self._place = lambda task: study.kind.place_task(study, task, None, pilot)

    def forecast(self, results: StoredResults) -> float:
        if self._goal.error is None:
            return 0.0
        left = len(self._sizes) * max(self._work(results) - self._done(results), 0.0)
        return left / (2 * self._rate)

    def next_round(self, results: StoredResults, p: float) -> Round | None:
        centres = self._centres(results)
        new = [size for size in self._sizes if size not in centres]
        if new and self._is_reached(results):
            return None
        if new:
            needed = self._work(results)
            placed = (self._place(results.study.task(size, (p,))) for size in new)
            tasks = [_in_blocks(task, needed) for task in placed]
            first = _ROUNDS[0] * needed
            return Round(tuple(tasks), {task.id: _blocks_with(task, first) for task in tasks})
        stored, done = results.tasks, self._done(results)
        sides = {
            size: () if has_slopes(stored[task.id]) else _side_tasks(results, task)
            for size, task in centres.items()
        }
        every_side = [side for pair in sides.values() for side in pair]
        fewest = min(len(stored[task.id].blocks) for task in centres.values())
        are_begun = all(side.id in stored and stored[side.id].blocks for side in every_side)
        if are_begun and fewest >= roots.LEAST_BLOCKS:
            work, until = self._next_work(results, done), self._end
            if work is None:
                return None
            away = self._bent_away(results, centres)
            if away:
                blocks = {task.id: _blocks_with(task, 0.5 * work) for task in away}
                return Round(away, blocks, self._end)
        else:
            work, until = done, inf
        blocks = {}
        for size, task in centres.items():
            count = max(_blocks_with(task, work), stored[task.id].num_blocks)
            blocks[task.id] = count
            for side in sides[size]:
                share = max(ceil(_SLOPE_SHARE * count), roots.LEAST_BLOCKS)
                blocks[side.id] = max(
                    min(share, count), stored[side.id].num_blocks if side.id in stored else 0
                )
        new_sides = tuple(side for side in every_side if side.id not in stored)
        return Round(new_sides, blocks, until)

    def _centres(self, results: StoredResults) -> dict[int, Task]:
        """Return for each size the task of one p with most samples, or next to a known root."""
        own = [task for task in results.own_tasks if len(task.p) == 1]
        own.sort(key=lambda task: results.tasks[task.id].num_samples)
        own = [task for task in own if task.size in self._sizes]
        centres = {task.size: task for task in own}
        for size, root in self._own_roots(results).items():
            if has_slopes(results.tasks[centres[size].id]):
                near = (task for task in own if task.size == size)
                centres[size] = min(near, key=lambda task: abs(task.p[0] - root.value.value))
        return centres

    def _roots(self, results: StoredResults) -> dict[int, SizeRoot]:
        try:
            return {root.size: root for root in fit_roots(results).roots}
        except AnalysisError:
            return {}

    def _is_reached(self, results: StoredResults) -> bool:
        """Return whether a file with as many other sizes has the requested error already."""
        try:
            fit = fit_roots(results)
        except AnalysisError:
            return False
        error = fit.threshold.error
        enough = len(fit.roots) >= len(self._sizes) and fit.problem is None
        return enough and self._goal.error is not None and error <= self._goal.error

    def _own_roots(self, results: StoredResults) -> dict[int, SizeRoot]:
        """Return the roots of the sizes of this search; a file may have others from one before."""
        return {size: r for size, r in self._roots(results).items() if size in self._sizes}

    def _bent_away(self, results: StoredResults, centres: Mapping[int, Task]) -> tuple[Task, ...]:
        """Return new tasks next to the roots of sizes whose p is too far from theirs.

        There the prior of the curvature of D makes up much of the error, which more samples at the
        same p do not reduce.
        """
        tasks = []
        for size, root in self._own_roots(results).items():
            task, target = centres[size], self._goal.error or root.value.error
            away = root.slope * (root.value.value - task.p[0])
            known = root.slope * root.value.error
            is_bent = roots.bend_of(away, self._states) / root.slope > _BEND_SHARE * target
            if is_bent and known < abs(away) / 3 and has_slopes(results.tasks[task.id]):
                p = rounded(root.value.value, root.value.error)
                tasks.append(replace(task, p=(p,)))
        return tuple(tasks)

    def _done(self, results: StoredResults) -> float:
        tasks = self._centres(results).values()
        if len(tasks) < len(self._sizes):
            return 0.0
        return float(min(results.tasks[t.id].num_samples * t.num_points for t in tasks))

    def _next_work(self, results: StoredResults, done: float) -> float | None:
        """Return the sites of each size at the end of the next round; None after the last."""
        if self._goal.error is None:
            return self._work_in_time(done)
        if fit_roots(results).threshold.error <= self._goal.error:
            return None
        needed = self._work(results)
        steps = [part * needed for part in _ROUNDS if part * needed > 1.2 * done]
        return steps[0] if steps else 1.1 * done

    def _work(self, results: StoredResults) -> float:
        """Return the sites of all samples of each size when the goal is reached."""
        if self._goal.error is None:
            return self._rate * (self._goal.seconds or 0.0)
        forecasts = {size: roots.forecast(n, self._states) for size, n in self._lengths.items()}
        deviations = {size: scatter / slope for size, (slope, scatter) in forecasts.items()}
        found = self._roots(results)
        for root in found.values():
            deviations[root.size] = root.value.error * sqrt(root.samples)
        others = [root for size, root in found.items() if size not in self._sizes]
        # Bisection gives the same digits on every machine, whatever the last ones of a fit are.
        low, high = 1.0, 1e30
        while high > 1.02 * low:
            work = sqrt(low * high)
            if self._error_after(work, deviations, others) <= _AIM * self._goal.error:
                high = work
            else:
                low = work
        return high

    def _error_after(
        self, work: float, deviations: Mapping[int, float], others: Sequence[SizeRoot]
    ) -> float:
        """Return the whole error of p_c when the samples of each size have ``work`` sites in all.

        others: the roots of sizes that are not sampled further.
        """
        of_sizes = [*others]
        for size, length in self._lengths.items():
            value = Value(0.5, deviations[size] * length / sqrt(work))
            of_sizes.append(SizeRoot(size, length, value, 1.0, 0))
        return roots.combine_roots(of_sizes, self._drift).threshold.error


def _in_blocks(task: Task, work: float) -> Task:
    """Return a task in a few hundred blocks; chains are several times as long as their burn-in."""
    samples = work / task.num_points / _BLOCKS
    most = max(min(_MOST_BLOCK, _MOST_SITES // task.num_points), _LEAST_BLOCK)
    least = _LEAST_BLOCK
    if not task.kind.independent:
        least = 2 ** ceil(log2(max(_LEAST_SWEEPS * task.burn_in, least)))
        most = max(min(most, _MOST_SWEEPS), least)
    chosen = 2 ** max(int(log2(max(samples, 1))), 0)
    return replace(task, block_size=min(max(chosen, least), most))


def _blocks_with(task: Task, work: float) -> int:
    """Return the blocks that have ``work`` sites; chains need more, for the error of their mean."""
    least = (2 if task.kind.independent else 4) * roots.LEAST_BLOCKS
    return max(ceil(work / (task.num_points * task.block_size)), least)


def _side_tasks(results: StoredResults, centre: Task) -> tuple[Task, Task]:
    """Return the tasks at p below and above that of a task; existing ones, or new ones."""
    (p,) = centre.p
    own = [
        task
        for task in results.own_tasks
        if task.size == centre.size and len(task.p) == 1 and task.block_size == centre.block_size
    ]
    below = max((t for t in own if t.p[0] < p), key=lambda t: t.p[0], default=None)
    above = min((t for t in own if t.p[0] > p), key=lambda t: t.p[0], default=None)
    if below is not None and above is not None:
        return below, above
    difference = read_difference(results.tasks[centre.id])
    side = min(max(_SIDE_FACTOR * abs(difference), _LEAST_SIDE), _MOST_SIDE)
    step = side / roots.forecast(axis_length(centre.structure, centre.size))[0]
    step = rounded(step, step)
    low, high = (replace(centre, p=(round(p + sign * step, 12),)) for sign in (-1, 1))
    return below or low, above or high
