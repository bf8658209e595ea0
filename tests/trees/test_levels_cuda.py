"""Levels on CUDA equal those on the CPU, with saddles and paths: in the simulator and on a GPU."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import needs_cuda, run_simulated, slow
from kernel_report_support import Peak, load_report
from tree_support import CASES, call, given_values, record

import percolab
from percolab import InputError, load_lattice

QUICK = ("short", "thin", "signs", "tied bonds")


def simulated(*names):
    done = run_simulated("simulated_levels.py", *names)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs_cuda
@pytest.mark.parametrize("name", [n if n in QUICK else slow(n) for n in CASES])
def test_simulated_levels_are_those_of_the_cpu(name):
    (found,) = simulated(name)
    assert found == record(percolab.threshold(**call(name)))


@needs_cuda
def test_what_has_no_levels_and_what_does_not_fit_is_refused_on_cuda_too():
    refused, memory, of_array = simulated("refused", "memory", "device array")
    assert refused == [
        "a weight is nan, but it must be finite, or inf if it never opens",
        "a weight is -inf, but it must be finite, or inf if it never opens",
        "a weight is inf, but it must be finite, or -inf if it never opens",
    ]
    assert memory == "6 sites need 0.0 GB of GPU memory; 0.0 GB are free"
    assert of_array == record(percolab.threshold(**call("open")))


@needs_cuda
def test_bonds_that_are_made_on_the_device_are_those_of_the_lattice():
    (count,) = simulated("bonds of lattices")
    assert count > 50


@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize("name", ["kagome", "cubic"])
def test_the_memory_that_is_checked_is_that_of_the_arrays(name, boundary, monkeypatch):
    report, asked, peak = load_report(), [], Peak()
    from percolab.trees import level_labeler_cuda

    def check(what, needed, free=None, of=""):
        if what.endswith("sites need") and of:
            asked.append(needed)

    monkeypatch.setattr(level_labeler_cuda, "check_free", check)
    monkeypatch.setattr(level_labeler_cuda, "free_memory", lambda cuda: 2**62)
    item = load_lattice(name)
    topology = item.topology((40,) * item.dimension, (boundary,) * item.dimension)
    periodic = topology.num_periodic_bonds
    # Bonds are counted on the device; those across boundaries are the first that are listed.
    read = level_labeler_cuda.CudaLevelLabeler._read

    def counted(self, array):
        found = read(self, array)
        if not hasattr(self, "_periodic"):
            found[:1] = periodic
        return found

    monkeypatch.setattr(level_labeler_cuda.CudaLevelLabeler, "_read", counted)
    values = np.zeros(topology.num_points, np.float32)
    with report.on_host([], "case", peak.add):
        level_labeler_cuda.CudaLevelLabeler(topology, values, above=False)
    assert 0.8 * asked[0] < peak.most <= asked[0] + 20_000


def test_a_device_that_is_not_there_or_has_no_use_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda *_: "no GPU here")
    with pytest.raises(InputError, match=r"^device cuda: no GPU here$"):
        percolab.threshold(weights=np.ones((3, 3)), device="cuda")
    found = percolab.threshold(weights=np.ones((3, 3)), device="auto")
    assert found.axes["x"].level == 1
    monkeypatch.setattr("percolab.kernels.device.open_device", lambda name: SimpleNamespace())
    edges = [("a", "b", 4)]
    with pytest.raises(InputError, match=r"^device cuda: levels of a graph's weights are found"):
        percolab.threshold(graph=edges, weights="file", source="a", target="b", device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_small_levels_on_a_gpu_are_those_of_the_cpu(name, seed):
    found = percolab.threshold(**call(name, seed), device="cuda")
    assert record(found) == record(percolab.threshold(**call(name, seed)))


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", ["open", "periodic", "open,periodic,open"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "u1", "solid"])
@pytest.mark.parametrize("above", [False, True])
def test_large_levels_on_a_gpu_are_those_of_the_cpu(boundary, kind, above, monkeypatch):
    from numba import cuda

    from percolab.trees import level_labeler_cuda

    # Copied in parts, and searched by 99 blocks.
    monkeypatch.setattr(level_labeler_cuda, "_PART_BYTES", 2**18)
    monkeypatch.setattr(level_labeler_cuda, "_POINTS_A_BLOCK", 2**12)
    values = given_values((70, 61, 95), kind, above=above)
    if kind == "u1":
        values = (values // 4).astype(np.uint8)
    options = {"boundary": boundary, "above": above}
    found = record(percolab.threshold(weights=values, device="cuda", **options))
    assert found == record(percolab.threshold(weights=values, **options))
    assert found == record(percolab.threshold(weights=cuda.to_device(values), **options))


@pytest.mark.gpu
def test_what_a_gpu_array_must_be_is_said():
    from numba import cuda

    values = cuda.to_device(np.zeros((8, 8)))
    with pytest.raises(InputError, match="must be contiguous"):
        percolab.threshold(weights=values[:, ::2])
    with pytest.raises(InputError, match="holds complex"):
        percolab.threshold(weights=cuda.to_device(np.zeros((8, 8), complex)))
