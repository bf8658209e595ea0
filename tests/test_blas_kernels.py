"""Which kernels of OpenBLAS the tests of fits are run under, and what becomes of a failure."""

import platform
import sys

import pytest
from helpers import script

blas_kernels = script("blas_kernels")


def test_tests_of_fits_are_there():
    for name in (*blas_kernels.TESTS, *blas_kernels.SLOW_TOO):
        path, _, test = name.partition("::")
        assert (blas_kernels.ROOT / path).exists(), path
        assert not test or f"def {test}(" in (blas_kernels.ROOT / path).read_text(), test


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a kernel of x86-64")
def test_the_kernel_of_numpy_and_that_of_scipy_are_chosen_by_name():
    kernels = blas_kernels.python(blas_kernels.USE, {"OPENBLAS_CORETYPE": "Nehalem"})
    if not kernels:
        pytest.skip("NumPy and SciPy have no OpenBLAS here")
    assert kernels == "Nehalem Nehalem"


def test_an_instruction_that_the_processor_lacks_ends_no_run():
    illegal = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    assert blas_kernels.python(illegal, {}) is None


@pytest.fixture
def processor(monkeypatch):
    """A processor of Haswell's time, whose NumPy has instructions later than Nehalem's."""
    known = {"Nehalem": "Nehalem", "Sandybridge": "Sandybridge", "SkylakeX": None}

    def python(code, variables):
        if code == blas_kernels.SIMD:
            return "SSE42 AVX2 FMA3"
        kernel = known.get(variables.get("OPENBLAS_CORETYPE"), "Haswell")
        return kernel and f"{kernel} {kernel}"

    monkeypatch.setattr(blas_kernels, "python", python)
    monkeypatch.setattr(sys, "argv", ["blas_kernels.py"])


def test_every_other_kernel_is_tried_once_with_the_instructions_of_its_time(
    processor, monkeypatch, capsys
):
    tried = []
    monkeypatch.setattr(blas_kernels, "passes", lambda variables: tried.append(variables) or True)
    blas_kernels.main()
    assert tried == [{"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}]
    output = capsys.readouterr().out
    assert output.startswith("Haswell Haswell: tried by make test")
    assert "\nSkylakeX: not on this processor\n" in output


@pytest.mark.slow
def test_a_test_that_fails_under_one_kernel_is_shown_and_the_others_are_tried(
    processor, monkeypatch, capfd, tmp_path
):
    test = tmp_path / "test_fit.py"
    test.write_text(
        "import os\n\ndef test_fit():\n    assert os.environ['OPENBLAS_CORETYPE'] != 'Nehalem'\n"
    )
    monkeypatch.setattr(blas_kernels, "TESTS", (str(test),))
    slow = tmp_path / "test_slow.py"
    slow.write_text("import pytest\n\n@pytest.mark.slow\ndef test_slow():\n    pass\n")
    monkeypatch.setattr(blas_kernels, "SLOW_TOO", (str(slow),))
    monkeypatch.setattr(blas_kernels, "WORKERS", "0")
    monkeypatch.setattr(blas_kernels, "GENERATIONS", {"Nehalem": (), "Sandybridge": ()})
    with pytest.raises(SystemExit) as ended:
        blas_kernels.main()
    assert ended.value.code.startswith("tests fail under\nNehalem Nehalem: ")
    output = capfd.readouterr().out
    assert "FAILED" in output
    assert (
        output.index("1 failed")
        < output.index("1 passed")
        < output.index("Sandybridge Sandybridge: {")
        < output.rindex("1 passed")
    )
    assert output.count("1 passed") == 3
