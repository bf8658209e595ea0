"""Every CUDA kernel is launched, compiles for sm_90, keeps its variables in registers, and fits."""

import pytest
from kernel_report_support import load_linking_report

#: All kernels take two minutes of processor time.
pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]

#: Shared memory that a kernel may declare statically.
STATIC_SHARED = 48 * 1024
#: Where it is not 64: the kernels that give clusters their spins, that weigh trees, and that sum
#: places of sites (shared memory has room for six blocks of 128 threads, as registers then have).
MOST_REGISTERS = {
    "paint_tiles_kernel": 72,
    "repaint_tiles_kernel": 80,
    "weigh_kernel": 72,
    "tile_moments_kernel": 80,
}
#: Bytes of those that need a stack: halves of the sums of blocks that wait for the others.
STACKS = {"add_groups_kernel": 256}


@pytest.fixture(scope="module")
def report():
    return load_linking_report()


@pytest.fixture(scope="module")
def usages(report, request):
    found = [report.usage_of(launch) for launch in report.all_launches()]
    # Registers and spills belong into the log of every run, also of one that passes.
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n" + report.table_of(found))
    return found


def test_no_kernel_spills_registers_or_uses_a_stack(usages):
    bad = [each for each in usages if each.spills or each.stack > STACKS.get(each.name, 0)]
    assert not bad, bad


def test_every_kernel_fits_in_registers_and_shared_memory(usages):
    assert usages
    for usage in usages:
        assert 0 < usage.registers <= MOST_REGISTERS.get(usage.name, 64), usage
        assert usage.shared <= STATIC_SHARED, usage


def test_every_kernel_is_launched_by_a_labeler(report):
    assert {launch.name for launch in report.all_launches()} == report.all_kernels()
