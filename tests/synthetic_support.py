"""Spanning curves drawn from a known R_L(p): to judge the estimator, or to plan a study.

Fitting a synthetic study tells what error bar a number of samples will buy before they are made.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.threshold import ThresholdFit


def study_view(data: ThresholdFit | Sequence[SpanningCurve], **known: Any) -> Any:
    """Return what figures ask of a study, with a fit or bare curves; known: in place of nothing."""
    fit = data if isinstance(data, ThresholdFit) else "no fit"
    own: dict[str, Any] = {"title": "honeycomb", "name": "spanning", "symbol": "R", "num_sites": {}}
    own |= {"exact": None, "median": None, "fit": fit, "fit_or_problem": fit, "curves": data}
    return SimpleNamespace(**own | known)


def synthetic_curve(
    L: int,
    p: ArrayLike,
    probability: ArrayLike,
    *,
    samples: int,
    blocks: int,
    rng: np.random.Generator,
) -> SpanningCurve:
    """Draw the coupled spanning counts of `samples` samples in each of `blocks` blocks.

    `p` and `probability` are float (m,); R_L(p) must not fall along p. Each block's spanning
    thresholds T are one multinomial draw over the intervals of p. Raises ValueError when
    `probability` is no distribution function on the grid.
    """
    cells = np.diff(np.concatenate([[0.0], np.asarray(probability, float), [1.0]]))
    if np.any(cells < 0):
        raise ValueError("probability must ascend inside [0, 1]")
    counts = rng.multinomial(samples, cells, size=blocks)
    spanning = counts.cumsum(axis=1)[:, :-1]
    return SpanningCurve(L, np.asarray(p, float), np.full(blocks, samples), spanning)


def synthetic_study(
    truth: ScalingFunction,
    sizes: Sequence[int],
    *,
    points: int = 9,
    reach: float = 1.0,
    samples: int = 250,
    blocks: int = 100,
    rng: np.random.Generator,
) -> list[SpanningCurve]:
    """Draw one curve for each size, at `points` values of p with |p - p_c| L^y_t <= reach.

    samples: in each of `blocks` blocks. Raises ValueError when the truth falls along p.
    """
    x = np.linspace(-reach, reach, points)
    grids = [truth.threshold + x / size**truth.y_t for size in sizes]
    return [
        synthetic_curve(
            size, p, truth.probability(p, size), samples=samples, blocks=blocks, rng=rng
        )
        for size, p in zip(sizes, grids, strict=True)
    ]
