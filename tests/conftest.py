"""Fixtures of many files; tests marked ``gpu`` are skipped where none can be used."""

import functools
import gc
import signal
from types import SimpleNamespace

import pytest
from matplotlib.mathtext import MathTextParser

# What is loaded and collected stays: looking for garbage in it takes a quarter of the time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Look for garbage from now on, in what tests make."""
    gc.freeze()
    gc.enable()


# Where tests run in the background of a shell they inherit that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Half of a figure's time is the parsing of its mathematics, of which matplotlib remembers fifty
# lines a renderer: here every line is parsed once.
MathTextParser.__hash__ = lambda parser: hash(parser._output_type)
MathTextParser.__eq__ = lambda parser, other: parser._output_type == other._output_type
MathTextParser._parse_cached = functools.cache(MathTextParser._parse_cached.__wrapped__)


#: Tests of fits of given numbers, which compile no kernel.
WITHOUT_KERNELS = (
    "test_autocorrelation", "test_calibration", "test_exponents", "test_quantity_fits",
    "test_table_fit", "test_wrapping_fit",
)  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put tests without kernels into the middle, where the second of two workers begins.

    It loads the kernels of every sweep, then, which the first one compiles in the meantime.
    """
    late = [item for item in items if item.path.stem in WITHOUT_KERNELS]
    others = [item for item in items if item.path.stem not in WITHOUT_KERNELS]
    middle = len(items) // 2
    items[:] = others[:middle] + late + others[middle:]
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from percolab.kernels.device import cuda_problem

    problem = cuda_problem()
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=problem))


def pytest_make_parametrize_id(val):
    """Name a case by the options that it is given, as they are written."""
    text = str(val) if isinstance(val, tuple | list | dict) else ""
    return text if 0 < len(text) < 200 and " at 0x" not in text else None


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    """Nothing is written outside a test's directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def without_gpu(request, monkeypatch):
    """Machines without a GPU and with one agree, but in the tests of GPUs."""
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda *_: "no GPU here")


@pytest.fixture
def file(tmp_path):
    """The small results, stored as results.h5 in the test's directory."""
    from cli_support import stored

    return stored(tmp_path / "results.h5")


@pytest.fixture
def free_memory(monkeypatch):
    """Return what lets so many bytes of memory be free."""

    def let(available):
        free = SimpleNamespace(available=available)
        monkeypatch.setattr("psutil.virtual_memory", lambda: free)

    return let


@pytest.fixture
def one_block_calls(monkeypatch):
    """Small lattices are measured block by block, so that small studies have many calls."""
    monkeypatch.setattr("percolab.kinds.workplace._LABELINGS_PER_CPU_CALL", 1)


@pytest.fixture
def interrupting(one_block_calls):
    """An observer that interrupts a study at its first finished blocks; others are left to do."""
    from process_support import Interrupting

    return Interrupting()
