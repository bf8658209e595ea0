"""Progress of a sweep: work done, rate, time left, and the current p_c; on stderr or in a log."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from percolab.cli.terminal import COLOUR, echo, has_colour
from percolab.errors import AnalysisError, InputError
from percolab.run.request import Observer
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock

#: What the library logs where nothing is printed: INFO what differs from the request and
#: what takes time, DEBUG every save.
LOGGER = logging.getLogger("percolab")

# The fit is refreshed after this many seconds, or ten times what it took.
_FIT_EVERY = 3.0


class ProgressBar(Observer):
    """Draws a bar in samples and keeps the current estimate of p_c next to it.

    estimate: returns it as a text.
    """

    def __init__(
        self, *, silent: bool = False, estimate: Callable[[StoredResults], str] | None = None
    ) -> None:
        self._silent = silent
        self._estimate = estimate or _current_threshold
        self._lock = threading.Lock()
        self._bar: Any = None
        self._next_fit = 0.0
        # Sites of blocks that are not finished, which the bar has moved by.
        self._ahead = 0

    def described(self, text: str) -> None:
        self._say(text)

    noted = described

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        self._say(f"pilot: L = {size}: {len(p)} p values from {p[0]} to {p[-1]}")

    def compiling(self) -> None:
        """Say why nothing moves yet."""
        self._say("compiling kernels (first run only) ...")

    def _say(self, text: str) -> None:
        if not self._silent:
            echo(text, err=True)

    def _new_bar(self, **options: Any) -> Any:
        return tqdm(**options)

    def started(self, sites: int, done: int) -> None:
        # Where stderr was closed before Python began there is none.
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._bar = self._new_bar(
            total=sites,
            initial=done,
            unit=" sites",
            unit_scale=True,
            file=sys.stderr,
            disable=self._silent or sys.stderr is None,
            mininterval=0.2 if terminal else 10.0,
            dynamic_ncols=True,
            colour=COLOUR if has_colour(sys.stderr) else None,
        )
        self._next_fit = time.monotonic() + _FIT_EVERY

    def labeled(self, sites: int) -> None:
        with self._lock:
            self._ahead += sites
            if self._bar is not None:
                self._bar.update(sites)

    def advanced(self, results: StoredResults, result: TaskResult, blocks: list[AnyBlock]) -> None:
        """Move the bar, and refresh p_c now and then."""
        if self._bar is None or self._silent:
            return
        with self._lock:
            made = sum(block.count for block in blocks)
            sites = result.task.sites_per_block * made
            seen = min(self._ahead, sites)
            self._ahead -= seen
            self._bar.update(sites - seen)
        start = time.monotonic()
        if start < self._next_fit:
            return
        self._bar.set_postfix_str(self._estimate(results))
        end = time.monotonic()
        self._next_fit = end + max(_FIT_EVERY, 10 * (end - start))

    def finished(self) -> None:
        if self._bar is not None:
            self._bar.close()


class LoggedProgress(ProgressBar):
    """Logs progress to "percolab", and draws a bar on request.

    bar: a bar of :mod:`tqdm.auto`, which is a notebook's own where one runs
    """

    def __init__(
        self, *, bar: bool = False, estimate: Callable[[StoredResults], str] | None = None
    ) -> None:
        super().__init__(silent=not bar, estimate=estimate)

    def _say(self, text: str) -> None:
        LOGGER.info(text)

    def _new_bar(self, **options: Any) -> Any:
        if self._silent:  # tqdm.auto warns in a notebook without ipywidgets
            return super()._new_bar(**options)
        from tqdm.auto import tqdm as bar_of_notebook

        return bar_of_notebook(**options)


def _current_threshold(results: StoredResults) -> str:
    from percolab.analysis.stored_fits import fit_results
    from percolab.analysis.value import format_with_error

    samples = sum(result.num_samples for result in results.tasks.values())
    try:
        fit = fit_results(results)
    except (AnalysisError, InputError):
        return f"{samples} samples"
    if fit.problem is not None:
        return f"{samples} samples, no p_c yet"
    return f"{samples} samples, p_c {format_with_error(fit.threshold, fit.threshold_error)}"


def root_text(results: StoredResults) -> str:
    """Return p_c as what is sampled gives it, by roots or by the fit of all sizes."""
    from percolab.analysis.roots import fit_roots, why_no_roots

    try:
        if why_no_roots(results.study):
            from percolab.analysis.wrapping_fit import WrappingEstimate

            return f"p_c {WrappingEstimate.of(results).threshold}"
        return f"p_c {fit_roots(results).threshold}"
    except (AnalysisError, InputError):
        return "no p_c yet"
