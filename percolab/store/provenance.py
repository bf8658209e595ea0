"""What made a run's numbers: versions, device, command line and times, as plain JSON values."""

import math
import platform
import sys
import tomllib
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "numba", "numba-cuda", "h5py", "scipy")


def own_version() -> str:
    """Return the version of the package installed, or of the checkout; else "unknown"."""
    try:
        return version("percolab")
    except PackageNotFoundError:
        project = Path(__file__).parents[2] / "pyproject.toml"
    try:
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, ValueError, KeyError):
        return "unknown"


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter; absent ones are left out."""
    versions = {"python": platform.python_version(), "percolab": own_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def processor_name() -> str:
    """Return the CPU's model name where the system has it."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


#: The entries of a run's record, and their types.
_RUN_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("started", "system", "processor", "device", "device_name", "labeler"), (str,)),
    "command": (list,),
    "versions": (dict,),
    "workers": (int,),
    "seconds": (int, float),
    "blocks": (dict,),
}


def check_run(record: Any) -> None:
    """Raise ValueError unless a stored record is one that :func:`run_record` could have begun."""
    if not isinstance(record, dict) or not isinstance(record.get("blocks"), dict):
        raise ValueError("a run's record has no table of blocks")
    from percolab.store.reading import check_kinds  # imports h5py

    check_kinds(record, _RUN_KINDS, "a run's record")
    if not all(type(text) is str for text in (*record["command"], *record["versions"].values())):
        raise ValueError("a run's record has a command or versions that are not text")
    if not all(type(count) is int and count >= 0 for count in record["blocks"].values()):
        raise ValueError("a run's record has invalid numbers of blocks")
    if not (math.isfinite(record["seconds"]) and record["seconds"] >= 0):
        raise ValueError(f"a run's record has seconds = {record['seconds']}")


def run_record(
    *, device: str, device_label: str, labeler: str, executor: str, workers: int
) -> dict[str, Any]:
    """Return the provenance of a run that starts now."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [sys.argv[0].rpartition("/")[2], *sys.argv[1:]],
        "versions": dict(package_versions()),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": device,
        "device_name": device_label,
        "labeler": labeler,
        "executor": executor,
        "workers": workers,
        "seconds": 0.0,
        "blocks": {},
    }
