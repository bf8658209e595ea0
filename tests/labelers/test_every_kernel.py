"""Every CUDA kernel is launched by what scripts/kernel_report.py runs on host arrays."""

import pytest
from kernel_report_support import load_linking_report


@pytest.mark.slow
def test_every_kernel_is_launched_by_a_labeler():
    report = load_linking_report()
    assert {launch.name for launch in report.all_launches()} == report.all_kernels()
