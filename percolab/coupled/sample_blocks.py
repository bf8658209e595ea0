"""Blocks of samples that are summed where they are measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SampleBlocks(NamedTuple):
    """Blocks of consecutive samples."""

    starts: NDArray[np.uint64]  # uint64 (n,), the first sample of every block
    size: int  # samples of a block
