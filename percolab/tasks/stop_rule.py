"""When a study is finished: so many samples a size, or so small an error of p_c."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from percolab.errors import InputError
from percolab.tasks.study import Study


@dataclass(frozen=True)
class StopRule:
    """When a study is finished: samples a size, or the error of p_c, whichever comes first."""

    samples: Mapping[int, int] | None = None
    target_error: float | None = None

    def check(self, study: Study) -> None:
        if self.samples is None and self.target_error is None:
            raise InputError("give --samples or --target-error")
        if self.samples is not None and min(self.samples.values()) < 1:
            raise InputError("samples must be at least 1 for every size")
        if self.samples is not None and max(self.samples.values()) >= 2**63:
            raise InputError(
                "samples must be below 2^63 for every size: samples are numbered so far"
            )
        if self.target_error is not None:
            _check_target(study, self.target_error)

    def limit(self, size: int) -> float:
        return float("inf") if self.samples is None else self.samples[size]


def _check_target(study: Study, target: float) -> None:
    if not 0 < target < 1:
        raise InputError(f"target error {target} must be above 0 and below 1")
    if study.refusal("target_error"):
        raise InputError(f"{study.refusal('target_error')}: give the number of samples")
    if not study.structure.is_scalable:
        raise InputError(
            f"a target error is that of a p_c from the crossings of several sizes, which "
            f"{study.structure.name} does not have: give the number of samples"
        )
    if len(study.sizes) < 2:
        raise InputError("a target error on p_c needs at least two sizes L")
