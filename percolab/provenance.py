"""What made a run's numbers: versions, device, command line and times, as plain JSON values."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("percolab", "numpy", "numba", "numba-cuda", "h5py", "scipy")


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter; absent ones are left out."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor_name() -> str:
    """Return the CPU's model name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def run_record(*, device: str, device_label: str, labeler: str, workers: int) -> dict[str, Any]:
    """Return the provenance of a run that starts now."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [sys.argv[0].rpartition("/")[2], *sys.argv[1:]],
        "versions": package_versions(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": device,
        "device_name": device_label,
        "labeler": labeler,
        "workers": workers,
        "seconds": 0.0,
        "blocks": {},
    }
