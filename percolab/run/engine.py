"""The engine that samples a study: a device, a labeler and workers; how it is chosen and warmed up.

Numba compiles a kernel when it is first called and keeps it on the disk.  A sweep calls them with a
single sample before it starts to count, so that its rate is that of sampling.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from percolab.errors import InputError
from percolab.kernels.device import Device, begin_context, device_names, gpu_name
from percolab.kinds.memory import check_memory
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.graph import Graph
from percolab.lattices.structure import Structure
from percolab.parts.slab_partition import SlabDivision
from percolab.run import executors, parts_sampler
from percolab.run.calls import ThisWorker, be_worker, stop
from percolab.run.compiling import make_first_calls, report_compiling
from percolab.run.executors import is_worker_too
from percolab.run.measured import Callers, WorkerPool
from percolab.run.parts_sampler import PartsSampler
from percolab.run.processes import Hooks, Processes
from percolab.run.rank_group import RankGroup, make_rank_group
from percolab.run.request import Observer, Opened, SweepOptions
from percolab.store.provenance import processor_name, run_record
from percolab.tasks.kind import BlockSampler, make_sampler
from percolab.tasks.study import Study, Task

# On the CPU kernels do not depend on the size of a lattice, so the smallest from this L on will do.
_SMALL = 4
# As many p as a pilot places, so close that one labeling serves them all.  A study with more p uses
# the same kernels.
_NEAR_P = tuple(0.5 + 1e-5 * n for n in range(9))


@dataclass(frozen=True)
class Engine:
    """The means to sample a study: devices, a labeler, an executor and the number of workers.

    devices: those that make blocks; pilots measure on the first.  labeler: or the tree method.
    workers: threads or processes of the CPU, threads of each GPU, or calls that a given executor
    makes at a time.  given: "threads", "processes", or an executor.  slabs: their layers, by size,
    where samples are measured in slabs.  report: is called with the number of sites labeled in
    slabs.  ranks: those that measure every sample together, or None.
    """

    devices: tuple[Device, ...]
    labeler: str
    workers: int
    given: str | Executor = "threads"
    slabs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    report: Callable[[int], None] | None = None
    ranks: RankGroup | None = None

    @property
    def device(self) -> Device:
        """The device of pilots."""
        return self.devices[0]

    @property
    def processes(self) -> int:
        if self.given != "processes":
            return 1
        return len(self.devices) if self.device.is_shared else self.workers

    @property
    def threads(self) -> int:
        is_single = self.given == "processes" and not self.device.is_shared
        return 1 if is_single else self.workers

    @property
    def pythons(self) -> int:
        """Processes of this host that have loaded Python, this one among them."""
        if self.ranks is not None:
            return self.ranks.processes
        if self.given != "processes":
            return 1
        return self.processes + int(not is_worker_too(self.devices))

    @property
    def at_once(self) -> int:
        """Jobs that are worked on at a time: one on each GPU, or one by each worker."""
        return self.processes if self.device.is_shared else self.workers

    def sampler(self, task: Task, *, share: float = 0.9, **hints: Any) -> BlockSampler:
        """Return a task's sampler; options as for :func:`percolab.tasks.kind.make_sampler`."""
        if self.ranks is not None:
            return PartsSampler(task, self.ranks, self.report)
        if task.size in self.slabs:
            own = parts_sampler.alone(self.slabs[task.size], task.size, self.device)
            return PartsSampler(task, own, self.report)
        return make_sampler(task, device=self.device, labeler=self.labeler, share=share, **hints)

    @contextmanager
    def opened(self, structure: Structure) -> Iterator[Executor]:
        """Open the executor that makes the blocks of a study, until the end of the context.

        A given executor is left open.  Threads suffice on the CPU, whose kernels release the GIL,
        and for one GPU.  Processes start at once, so that they are ready after a pilot, and get a
        graph when they start; where they drive several GPUs, this process drives the first.
        """
        if self.ranks is not None:
            with self.ranks.opened() as executor:
                yield executor
        elif self.given == "threads":
            name = f"percolab-{self.device.kind}"
            often = _switching_often() if self.device.is_shared else nullcontext()
            with often, ThreadPoolExecutor(self.workers, thread_name_prefix=name) as threads:
                yield threads
        elif isinstance(self.given, str):
            graph = structure if isinstance(structure, Graph) else None
            names = tuple(map(str, self.devices))
            early = partial(begin_context, names) if self.device.is_shared else None
            hooks = Hooks(be_worker, stop, (names, graph), early=early)
            this = ThisWorker(graph) if is_worker_too(self.devices) else None
            counts = self.processes, self.threads
            with Processes(*counts, hooks, on_progress=self.report, this=this) as pool:
                pool.start()
                yield pool
        else:
            yield self.given

    def make_pool(self, samplers: Mapping[str, BlockSampler], executor: Executor) -> WorkerPool:
        """Return the workers that make the blocks of these tasks with the opened executor."""
        workers = self.processes * self.threads
        if self.given == "threads":
            return WorkerPool(samplers, executor, workers, self.at_once)
        devices = tuple(map(str, self.devices))
        return Callers(samplers, executor, workers, self.at_once, devices)

    def record(self) -> dict[str, Any]:
        record = run_record(
            device=device_names(self.devices),
            device_label=", ".join(map(device_label, self.devices)),
            labeler=self.labeler,
            executor=self.given if isinstance(self.given, str) else type(self.given).__name__,
            workers=self.processes * self.threads,
        )
        if self.ranks is not None:
            return record | self.ranks.record()
        slabs = {str(size): len(layers) for size, layers in self.slabs.items()}
        return record | ({"slabs": slabs} if slabs else {})


@contextmanager
def _switching_often() -> Iterator[None]:
    """Have Python switch threads after 0.1 ms, not 5 ms, which is longer than kernels run.

    After every kernel, the thread that launches them waits for those that make blocks meanwhile.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def choose_engine(opened: Opened, options: SweepOptions, observer: Observer) -> Engine:
    """Return the engine of the requested study; InputError: nothing can sample it, or p is missing.

    A GPU that was not requested is not used where it has no kernels for the study, or too little
    memory.
    """
    study, device, is_split = opened.requested, options["device"], options.get("split") is not None
    if what := _on_cpu_alone(study):
        if device.kind == "cuda":
            raise InputError(f"{what} is sampled only on the CPU: use --device cpu")
        device = Device("cpu")
    devices = device.resolve_all()
    if is_split and study.functions:
        raise InputError("observables: functions of labels need whole samples: leave out split")
    make = _engine_of_ranks if is_split else _engine_on
    try:
        engine = make(devices, study, options, observer)
    except InputError as error:
        # Parts that a GPU which was not requested cannot measure may be measured on the CPU.
        is_whole = not is_split and options.get("slabs") is None
        if is_whole or options["device"].kind != "auto" or not devices[0].is_shared:
            raise
        note = f"measuring on the CPU, as {devices[0]} cannot: {error}"
        engine = make((Device("cpu"),), study, options, observer)
        observer.noted(note)
    if (engine.slabs or is_split) and None in opened.missing.values():
        option = "--split lattice" if is_split else "slabs"
        raise InputError(f"{option}: give p (-p); the pilot that finds p needs whole samples")
    return engine


def _on_cpu_alone(study: Study) -> str:
    """Return what, in a study, is sampled on the CPU alone, whatever devices there are, or ""."""
    if study.draw.on_cpu_alone:
        return f"model {study.model}"
    # Each graph of an ensemble has too little work for a GPU.
    return study.structure.name if isinstance(study.structure, Ensemble) else ""


def _engine_of_ranks(
    devices: tuple[Device, ...], study: Study, options: SweepOptions, observer: Observer
) -> Engine:
    names = "executor", "workers", "slabs", "labeler", "blocks", "merge"
    given: dict[str, Any] = {name: options.get(name) for name in names}
    ranks = make_rank_group(list(study.tasks.values()), devices, **given)
    labeler = parts_sampler.LABELERS[ranks.device.kind]
    return Engine(ranks.devices, labeler, 1, report=observer.labeled, ranks=ranks)


def _engine_on(
    usable: tuple[Device, ...], study: Study, options: SweepOptions, observer: Observer
) -> Engine:
    """Return the engine that measures whole samples of a study, or its slabs, on devices."""
    device, *others = usable
    slabs: Any = options.get("slabs")
    if study.functions and slabs is not None:
        raise InputError("observables: functions of labels need whole samples: leave out slabs")
    if study.functions and (options.get("executor") not in (None, "threads") or others):
        raise InputError(
            "observables: Python functions run in threads on one device: give one device and no "
            "executor"
        )
    labeler, note = study.kind.algorithms.choose(
        options.get("labeler"), device.kind, study.structure
    )
    if note:
        observer.noted(note)
    executor = options.get("executor") or ("processes" if others else "threads")
    executors.check_processes(executor)
    devices = (device,) if executor == "threads" else (device, *others)
    workers = options.get("workers")
    if workers is None and not isinstance(executor, str):
        workers = executors.count_workers(executor)
    elif workers is None:
        workers = executors.default_workers(device, len(devices))
    executors.check_workers(workers)
    engine = Engine(devices, labeler, workers, executor)
    in_use, share = 0, memory_share(len(study.sizes))
    layers: dict[int, tuple[int, ...]] = {}
    for size, task in study.tasks.items():
        limits: dict[str, Any] = {"in_use": in_use, "share": share}
        problem = ""
        if slabs in (None, "auto"):
            try:
                task.structure.check_size(size, task.boundary)
                counts = engine.threads, engine.processes
                in_use += check_memory(task, labeler, device, *counts, **limits)
                continue
            except InputError as error:
                if slabs is None:
                    advice = parts_sampler.advice(task) if "slabs" in options else ""
                    raise InputError(f"{error}{advice}") from error
                problem = f"{error}; "
        try:
            layers[size] = parts_sampler.choose_slabs(
                task, slabs, engine.at_once, device=device, **limits
            )
        except InputError as error:
            raise InputError(f"{problem}{error}") from error
    if layers:
        parts_sampler.check_labeler(options.get("labeler"), device)
    if len(layers) == len(study.sizes) and device.is_shared and options.get("workers") is None:
        # A GPU measures one sample in slabs at a time; other workers would only wait for it.
        engine = replace(engine, workers=1)
    return replace(engine, slabs=layers, report=observer.labeled)


def memory_share(tasks: int) -> float:
    """Return the part of a CUDA device's free memory that each of several tasks may take."""
    return 0.9 / max(tasks, 1)


def device_label(device: Device) -> str:
    return processor_name() if device.kind == "cpu" else gpu_name(device.number)


def warm_up(study: Study, engine: Engine, observer: Observer, *, with_pilot: bool) -> None:
    """Call once, for one sample, the kernels of a study, and of its pilot if there is one."""
    small, ranks = _small_task(study), engine.ranks
    tasks = [small] if engine.device.kind == "cpu" else [_task(study, size) for size in study.sizes]
    in_parts = ranks is not None or bool(engine.slabs)
    with report_compiling(observer.compiling, engine.device):
        if in_parts:
            division = SlabDivision({}, (str(engine.device),)) if ranks is None else ranks.division
            parts_sampler.warm_up_parts(small, division)
        if ranks is None and len(engine.slabs) < len(study.sizes):
            # A share of 0: memory for one sample.
            samplers = [engine.sampler(t, share=0.0) for t in tasks if t.size not in engine.slabs]
            make_first_calls(samplers, engine.device, with_pilot=with_pilot)


def _small_task(study: Study) -> Task:
    # A smaller lattice may lack the sites that are given by number.
    for size in range(_SMALL, study.sizes[0]) if not study.ends else ():
        with suppress(InputError):
            return _task(study, size)
    return _task(study, study.sizes[0])


def _task(study: Study, size: int) -> Task:
    """Return a task of one sample a block, at as many p as the study has, nine at most."""
    p = study.some_p
    if study.kind.fixed_p is None and len(study.p or ()) != 1:
        p = _NEAR_P[: len(study.p or _NEAR_P)]
    task = replace(study.task(size, p), block_size=1, functions=())
    short: Task = study.kind.shorten(task)
    return short
