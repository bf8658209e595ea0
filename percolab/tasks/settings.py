"""The one table of a sweep's settings: each is declared here, and nowhere else.

A declaration is a key of :class:`Settings`: its name, its type, and a :class:`Setting` with the
default, the help and the checks.  From it come

* the option of the command line (:func:`percolab.cli.setting_options.setting_option`),
* the key of a study file (:mod:`percolab.tasks.study_file`),
* the argument of :func:`percolab.sweep`, with default and documentation (:func:`takes_settings`),
* where it is part of a study, how a results file has it (:meth:`Study.description`).
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypedDict, TypeVar, get_type_hints

from percolab.bonds.model import Model
from percolab.bonds.models import MODELS
from percolab.bonds.words import GENERATORS
from percolab.errors import InputError, nearest
from percolab.kernels.registry import list_names
from percolab.labelers import LABELERS
from percolab.lattices.removal import GIVEN, ORDERS, RANDOM
from percolab.lattices.structure import Structure
from percolab.lattices.toml_table import shown
from percolab.measure.functions import Function
from percolab.spins.update import Update
from percolab.tasks import values
from percolab.tasks.kind_registry import METHODS
from percolab.tasks.part import WHOLE, JobPart
from percolab.tasks.setting_groups import HOW_MUCH, LATTICE, MACHINE, MEASURED, OUTPUT, SPINS, WHAT
from percolab.tasks.values import AUTO, check_one_of, take_integer, take_integer_in

DEFAULT_LATTICE = "honeycomb"
#: By dimension; more than five have those of five.  A study takes about a minute on two cores.
DEFAULT_SIZES = {
    1: (32, 64, 128, 256),
    2: (32, 64, 128, 256),
    3: (8, 16, 32, 64),
    4: (8, 12, 16, 24),
    5: (6, 8, 10, 12),
}
DEFAULT_SAMPLES = 10_000
DEFAULT_OUT = "results.h5"
#: Sweeps of spins before a single configuration, unless given.
SHOWN_SWEEPS = 100
MAX_SEED = 2**63 - 1
#: Who can make blocks, in addition to executors given in Python; by MPI those of a command alone.
EXECUTORS = ("threads", "processes")
MPI, DASK = "mpi", "dask:"
#: What the workers of an executor can share in place of the samples of a study.
SPLITS = ("lattice",)
_NO_TERMINALS = "a lattice has it only for flow, which only method grid measures"
_NO_SPINS = "{model} percolation has no spins (--model ising)"


def _taken_as_it_is(_: Any, value: Any) -> Any:
    return value


def _unless_none(take: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda key, value: None if value is None else take(key, value)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a setting is given, and its default.

    group: of :mod:`percolab.tasks.setting_groups`, where the help of a long command lists it.
    default: where it is not given.  shown_default: its text in the help, where it is decided
    later.  help: of the option.  doc: of the argument in Python, where it takes other forms.

    flags: of the option, --name unless given; () for no option.  kind: of the option's value: str,
    int, float, Path, tuple for integers with commas between them, or bool for a flag.  low, high:
    of an integer.  repeated: the option may be given several times.

    in_file: whether it is a key of a study file, whose value is then taken as Python's is.
    resolve: makes the path of such a value, if it names a file, which is in the folder of the study
    file.
    take: converts what an option or Python gives to the setting's value, for a study or a request.
    check: of a task's value, which it returns in its usual form.
    All of them raise InputError.

    refusal: of a setting that only some kinds of study have, why the others do not; {model} stands
    for their model.
    """

    help: str
    group: str = WHAT
    default: Any = None
    shown_default: str = ""
    doc: str = ""
    flags: tuple[str, ...] | None = None
    kind: type = str
    low: int | None = None
    high: int | None = None
    repeated: bool = False
    in_file: bool = True
    resolve: Callable[[Path, Any], Any] = _taken_as_it_is
    take: Callable[[str, Any], Any] = _taken_as_it_is
    check: Callable[[str, Any], Any] = _taken_as_it_is
    refusal: str = ""
    name: str = ""
    annotation: Any = None

    @property
    def option_help(self) -> str:
        """The help of the option, with its default."""
        default = self.shown_default or self.default
        return f"{self.help}  [default: {default}]" if default else self.help


def _order(key: str, value: Any) -> str:
    names = (*ORDERS, GIVEN)
    return value if value in names else check_one_of(names)(key, value)


def _slabs(key: str, value: Any) -> int | str:
    if isinstance(value, str) and value == "auto":
        return "auto"
    digits = value.isascii() and value.isdigit() if isinstance(value, str) else True
    number = int(value) if isinstance(value, str) and digits and len(value) < 19 else value
    if type(number) is not int or number < 1:
        raise InputError(f"slabs = {value!r}, but it must be auto or an integer of at least 1")
    return number


def _text(example: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{key} = {shown(value)}, but it must be text, as {example}")
    return value


def _executor(key: str, value: Any) -> str | Executor:
    if isinstance(value, Executor):
        return value
    name = value if isinstance(value, str) else ""
    if name == MPI:
        raise InputError(
            "executor = 'mpi': mpiexec can start the command percolab sweep, but not Python code; "
            "in Python give an executor of mpi4py.futures (docs/clusters.md)"
        )
    is_dask = name.startswith(DASK) and name != DASK
    if not is_dask and name not in EXECUTORS:
        raise InputError(
            f"executor = {shown(value)}, but it must be {', '.join(EXECUTORS)}, {MPI} or "
            f"{DASK}ADDRESS"
        )
    return name


def _chains(key: str, value: int) -> int:
    if value not in (0, 1):
        raise InputError(
            f"chains = {value}, but it can only be 1 (one long chain); without it every block is a "
            "separate chain"
        )
    return value


def _coupling(name: str, meaning: str) -> Setting:
    return Setting(
        group=SPINS,
        help=f"In place of p, for {meaning}",
        flags=(f"-{name}" if len(name) == 1 else f"--{name}",),
        refusal="{model} percolation has no temperature (--model ising)",
    )


def _integer_of_spins(text: str, **more: Any) -> Setting:
    own: dict[str, Any] = {"kind": int, "low": 1, "take": take_integer} | more
    return Setting(group=SPINS, help=f"For spins: {text}", refusal=_NO_SPINS, **own)


_of_lattice = partial(Setting, group=LATTICE)
_of_amount = partial(Setting, group=HOW_MUCH)
_of_measures = partial(Setting, group=MEASURED)
_of_machine = partial(Setting, group=MACHINE, in_file=False)


class LatticeSetting(TypedDict, total=False):
    """The one setting that Python takes by position, too."""

    lattice: Annotated[
        str | Path | Structure | None,
        _of_lattice(
            help="A name (percolab lattices), a .toml file, bethe:z, or random graphs: er:k=4.",
            shown_default=DEFAULT_LATTICE,
            doc='a name, a path to a .toml file, a :class:`Lattice`, "bethe:z", '
            'or random graphs ("er:k=4" or an :class:`Ensemble`); '
            f'"{DEFAULT_LATTICE}" by default.',
            resolve=values.resolve_lattice,
        ),
    ]


class Settings(TypedDict, total=False):
    """All other settings, in the order in which the help lists them."""

    graph: Annotated[
        Any,
        _of_lattice(
            help="Graph file: edge list, .mtx, .npz, .graphml or .gml.",
            doc="in place of a lattice: a graph file (docs/graph-files.md), a :class:`Graph`, a "
            "networkx graph, a scipy.sparse matrix, a pandas.DataFrame of edges, an edge array "
            "(n, 2), a list of edges or a tuple (edges, weights); pass a dense matrix as "
            "scipy.sparse.csr_array(matrix).",
            kind=Path,
            resolve=values.resolve_graph,
        ),
    ]
    source: Annotated[
        str | Path | int | Sequence[int] | Sequence[str] | None,
        _of_lattice(
            help="Source sites of the graph: 0,5,17, or their names, or a file with one per line; "
            "of a lattice, where the flow begins: a side (y-, top), sides (all open ones), "
            "centre, or 0,5,17.",
            doc="sites of the graph by number or name, or a file with one per line: a sample spans "
            "if one cluster has a site of the source and one of the target.  For a lattice, the "
            'terminal at which the flow begins: a side ("y-" or "top"), all open "sides", the '
            'site at the "centre", or sites by number.',
            resolve=values.resolve_terminals,
            take=_unless_none(values.take_terminal),
            refusal=_NO_TERMINALS,
        ),
    ]
    target: Annotated[
        str | Path | int | Sequence[int] | Sequence[str] | None,
        _of_lattice(
            help="The sites that a spanning cluster connects to the source; of a lattice, where "
            "the flow ends.",
            resolve=values.resolve_terminals,
            take=_unless_none(values.take_terminal),
            refusal=_NO_TERMINALS,
        ),
    ]
    multi: Annotated[
        bool,
        _of_lattice(
            default=False,
            help="Keep parallel edges of the graph as separate bonds.",
            kind=bool,
            take=values.take_flag,
        ),
    ]
    columns: Annotated[
        str | Sequence[str] | None,
        _of_lattice(
            help="Column names of an edge list with a header: both sites, then optionally the "
            "weight: source,target,weight.",
            doc="column names of a data frame, or of an edge list with a header: the two sites, "
            'then optionally the weight: "source,target,weight", or a list of names.',
        ),
    ]
    L: Annotated[
        int | str | Sequence[int | str | tuple[int, ...]] | None,
        _of_lattice(
            help="Linear sizes: 64,128,256, or from:to:count in equal ratios: 64:512:4; or shapes "
            "of one aspect ratio: 32x64,64x128. A Bethe lattice counts its shells, random graphs "
            "their sites.",
            shown_default="; ".join(
                f"in {dimension} dimensions {','.join(map(str, sizes))}"
                for dimension, sizes in DEFAULT_SIZES.items()
                if dimension > 1
            )
            + "; or multiples of the cell near them",
            doc="linear sizes, or a list or range as text, in the unit that the lattice counts "
            "(grid points or cells along each axis); or shapes of one aspect ratio, "
            '[(32, 64), (64, 128)] or "32x64,64x128".  A Bethe lattice counts its shells, random '
            "graphs their sites.",
            flags=("-L", "--size"),
            take=values.take_sizes,
        ),
    ]
    p: Annotated[
        float | str | Sequence[float] | None,
        Setting(
            help="Values of p: 0.5,0.6 or from:to:count.",
            shown_default="found by a pilot",
            flags=("-p",),
            take=values.take_probabilities,
        ),
    ]
    model: Annotated[
        str,
        Setting(
            default="bond",
            help="; ".join(each.examples for each in MODELS.values() if each.examples) + ".",
            check=lambda key, value: str(Model.parse(value)),
        ),
    ]
    beta: Annotated[
        float | str | Sequence[float] | None,
        _coupling(
            "beta",
            "spins: J / kT.  potts: H = -J sum delta(s, s'), p = 1 - exp(-beta); ising: H = -J sum "
            "s s', p = 1 - exp(-2 beta).  So beta of potts:q=2 is twice that of ising.",
        ),
    ]
    T: Annotated[float | str | Sequence[float] | None, _coupling("T", "spins: kT / J, 1 / beta.")]
    K: Annotated[
        float | str | Sequence[float] | None,
        _coupling("K", "ising: K = J / kT, p = 1 - exp(-2 K)."),
    ]
    update: Annotated[
        str,
        Setting(
            group=SPINS,
            default="sw",
            help="For spins: clusters that get new spins: sw (all), wolff (that of one site), "
            "few:8,flip=0.5 (those of 8 sites, each with probability 0.5).",
            check=lambda key, value: str(Update.parse(value)),
            refusal=_NO_SPINS,
        ),
    ]
    sweeps: Annotated[
        int,
        _integer_of_spins(
            "updates per chain, including the burn-in.",
            default=0,
            shown_default="chosen from the burn-in and the samples",
        ),
    ]
    burn_in: Annotated[
        int | str,
        Setting(
            group=SPINS,
            default=AUTO,
            help="For spins: unmeasured updates at the start of every chain, or auto.",
            shown_default="auto: 20 autocorrelation times, found by a pilot",
            take=values.take_burn_in,
            refusal=_NO_SPINS,
        ),
    ]
    every: Annotated[
        int,
        _integer_of_spins(
            "measure only every n-th update, which pays where wolff clusters are small.",
            default=1,
            check=partial(take_integer_in, 1, 10**9, shown_high="10^9"),
        ),
    ]
    chains: Annotated[
        int,
        _integer_of_spins(
            "1 runs one long chain at every size and p; each block continues the previous one.",
            default=0,
            shown_default="a chain for every block",
            check=_chains,
        ),
    ]
    method: Annotated[
        str,
        _of_measures(
            default="grid",
            help="grid: measure at the values of p; threshold: find T, the p at which each sample "
            "begins to span; tree: find its minimum spanning tree; microcanonical: open bonds (or "
            "sites) one by one, for every observable at any p (CPU).  The last three take no -p.",
            check=check_one_of(METHODS),
        ),
    ]
    order: Annotated[
        Any,
        Setting(
            default=RANDOM,
            help="Order in which sites (or bonds) of a graph are removed: degree, betweenness or "
            "weight, largest first, or with :ascending smallest first; degree:adaptive, "
            "betweenness:adaptive or, for sites, influence:adaptive (collective influence), "
            "recomputed after every removal; or a file with one per line in the order of removal, "
            "or with scores.  Needs --method microcanonical.",
            doc="order in which sites, or bonds, of a graph are removed, with method "
            '"microcanonical": "degree", "betweenness" or "weight", largest first, or with '
            '":ascending" appended smallest first; "degree:adaptive", "betweenness:adaptive" or, '
            'for sites, "influence:adaptive", recomputed after every removal; a file '
            "(docs/networks.md); a list of sites in the order of removal; or a mapping of sites to "
            "scores.",
            resolve=values.resolve_order,
            check=_order,
            refusal="it works only with --method microcanonical",
        ),
    ]
    measure: Annotated[
        str | Sequence[str],
        _of_measures(
            default=(),
            help="What to measure in addition to the observables: sizes (cluster numbers n_s), "
            "gyration (radii), openings (open bonds or occupied sites), source (sites of the "
            "source's clusters), wrapping (on a torus, nothing else, which is faster on a GPU "
            "where it is small), and flow: connected, bridges, bridge_free, backbone, path, "
            "path_lengths, conductance, currents; for spins also series (for reweighting) and "
            "correlation (correlation length). May be repeated.",
            repeated=True,
            take=values.take_measure,
        ),
    ]
    observables: Annotated[
        Mapping[str, Function] | str | Sequence[str] | None,
        _of_measures(
            help="Additional observable of an installed package, by name (percolab observables). "
            "May be repeated.",
            doc="functions of your own, by name.  Each takes the labels of a sample, int32 as "
            ":func:`percolab.label` returns them, and returns a number.  A parameter called bonds "
            "receives the open bonds as pairs of sites, int64 (m, 2).  The sum over each block's "
            "samples is stored as a column of that name, and tabulated with the others.  This is "
            "exact but slow: every sample is labeled again at every p, on the CPU.  A name stands "
            "for its function: only the same names continue a results file.  Or only the names of "
            "observables that installed packages declare (docs/own-code.md).",
            flags=("--observable",),
            repeated=True,
        ),
    ]
    boundary: Annotated[
        str | Sequence[str] | None,
        _of_lattice(help="open, periodic, or one per axis: open,periodic.", shown_default="open"),
    ]
    samples: Annotated[
        int | Sequence[int] | None,
        _of_amount(
            help="Samples of each size: one number, or one per size: 2000,1000,500; for spins, "
            "measured sweeps of all chains together.",
            shown_default=str(DEFAULT_SAMPLES),
            doc="samples of each size, one number or one per size; for spins, measured sweeps of "
            "all chains together.",
            kind=tuple,
            low=1,
        ),
    ]
    target_error: Annotated[
        float | None,
        _of_amount(
            help="Sample until the error of p_c is this small.",
            kind=float,
            take=_unless_none(values.take_number),
        ),
    ]
    seed: Annotated[
        int,
        Setting(
            default=1,
            help="Seed of the random numbers; the same seed gives the same samples.",
            kind=int,
            low=0,
            high=MAX_SEED,
            take=take_integer,
            check=partial(take_integer_in, 0, MAX_SEED, shown_high="2^63 - 1"),
        ),
    ]
    rng: Annotated[
        str,
        Setting(
            default="xorwow",
            help="Random numbers: xorwow or philox.",
            check=check_one_of(GENERATORS),
        ),
    ]
    block_size: Annotated[
        int,
        _of_amount(
            default=0,
            help="Samples that are stored together as one block; 0 lets percolab choose.",
            flags=(),
            take=take_integer,
        ),
    ]
    device: Annotated[
        str,
        _of_machine(
            default="auto",
            help="auto (GPUs, if there are any), cpu, cuda (all GPUs), cuda:n or cuda:n,m. Results "
            "are the same on all.",
        ),
    ]
    labeler: Annotated[
        str | None,
        _of_machine(
            help="Algorithm that finds clusters; the results are the same with all: "
            f"{list_names(LABELERS)}.",
            shown_default="the device's fastest",
        ),
    ]
    workers: Annotated[
        int | None,
        _of_machine(
            help="Threads or processes on the CPU; with CUDA, threads per GPU.",
            shown_default="all cores",
            kind=int,
            low=1,
            take=_unless_none(take_integer),
        ),
    ]
    executor: Annotated[
        str | Executor | None,
        _of_machine(
            help="Workers: threads, processes of this machine, mpi (under mpiexec), or "
            "dask:ADDRESS.",
            shown_default="threads; with several GPUs one process for each",
            doc='"threads", "processes", "dask:ADDRESS", or any ``concurrent.futures.Executor``, '
            "which is left open; by default threads, with several GPUs one process for each.",
            take=_unless_none(_executor),
        ),
    ]
    part: Annotated[
        str | None,
        _of_amount(
            help="k/n: sample only part k of n of the study, for job arrays; percolab merge joins "
            "the parts.",
            in_file=False,
            take=lambda _, value: WHOLE if value is None else JobPart.parse(value),
        ),
    ]
    slabs: Annotated[
        int | str | None,
        _of_machine(
            help="Cut every sample into this many slabs and measure one after the other, in the "
            "memory of one slab; auto cuts only samples that do not fit.",
            shown_default="whole samples",
            take=_unless_none(_slabs),
        ),
    ]
    split: Annotated[
        str | None,
        _of_machine(
            help="lattice: all workers (threads, processes or mpi) measure each sample together, "
            "one part each.",
            shown_default="each worker measures its own samples",
            take=_unless_none(check_one_of(SPLITS)),
        ),
    ]
    blocks: Annotated[
        str | None,
        _of_machine(
            help="With --split lattice: number of boxes along each axis, one per worker: 4x4x2.",
            shown_default="slabs along the last axis",
            take=_unless_none(partial(_text, "4x4x2")),
        ),
    ]
    merge: Annotated[
        str | None,
        _of_machine(
            help="With --split lattice, how parts are joined: tree or quad, with options after a "
            "colon (bubbles, runs or shorter): quad:bubbles,runs (docs/domains.md).",
            shown_default="tree",
            take=_unless_none(partial(_text, "quad:bubbles,runs")),
        ),
    ]
    out: Annotated[
        str | Path | None,
        Setting(
            group=OUTPUT,
            help="Results file to write or to continue.",
            shown_default=DEFAULT_OUT,
            doc="results file to write or to continue; without it results stay in memory.",
            flags=("-o", "--out"),
            kind=Path,
        ),
    ]


def _declared(table: Any) -> dict[str, Setting]:
    """Return the settings that a typed dictionary declares, with their names and types."""
    hints = get_type_hints(table, include_extras=True)
    return {
        name: replace(hint.__metadata__[0], name=name, annotation=hint.__origin__)
        for name, hint in hints.items()
    }


#: Every setting by its name.
SETTINGS = _declared(LatticeSetting) | _declared(Settings)
#: Those that only some kinds of study have.
KIND_SETTINGS = tuple(name for name, setting in SETTINGS.items() if setting.refusal)
#: Those that a study file may have.
FILE_KEYS = tuple(name for name, setting in SETTINGS.items() if setting.in_file)


_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_some_settings(*names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator like :func:`takes_settings` for the settings of these names alone."""
    return lambda function: takes_settings(function, names)


def takes_settings(
    function: Callable[_P, _R], names: Sequence[str] = tuple(SETTINGS)
) -> Callable[_P, _R]:
    """Return a function of a lattice and ``**Unpack[Settings]`` that shows them one by one.

    Its signature has every setting with its type and default, where it had ``**``; in its
    documentation a line "{settings}" becomes the list of their meanings.
    """
    own = dict(signature(function).parameters)
    own.popitem()  # **settings
    arguments = []
    for setting in (SETTINGS[name] for name in names):
        usual = Parameter(setting.name, Parameter.KEYWORD_ONLY, default=setting.default)
        argument = own.pop(setting.name, usual)
        arguments.append(argument.replace(annotation=setting.annotation))
    arguments = sorted([*arguments, *own.values()], key=lambda argument: argument.kind)
    known = {argument.name for argument in arguments}

    @wraps(function)
    def checked(*args: _P.args, **given: _P.kwargs) -> _R:
        for name in (name for name in given if name not in known):
            message = f"{function.__name__}() got an unexpected keyword argument {name!r}"
            hint = nearest(name, known)
            raise TypeError(f"{message}; {hint}" if hint.startswith("did") else message)
        return function(*args, **given)

    shown = Signature(arguments, return_annotation=signature(function).return_annotation)
    checked.__signature__ = shown  # type: ignore[attr-defined]
    text = cleandoc(function.__doc__ or "")
    checked.__doc__ = text.replace("{settings}", settings_text(names))
    return checked


def settings_text(names: Iterable[str] = tuple(SETTINGS)) -> str:
    """Return what settings mean in Python, a paragraph each."""
    return "\n".join(
        textwrap.fill(
            f"{name}: {SETTINGS[name].doc or SETTINGS[name].option_help}",
            width=92,
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        for name in names
    )
