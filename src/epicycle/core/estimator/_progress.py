"""A running fit: its state, its progress line, and callbacks after every iteration."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._history import History
from epicycle.core._monitor import Monitor

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from sklearn.base import BaseEstimator

logger = logging.getLogger("epicycle")

#: Work that ends sooner shows nothing: the time after which people begin to wonder.
PATIENCE_SECONDS = 2.0


class ProgressLine:
    """One line on the terminal (or in the notebook) that appears once the work has lasted about two seconds.

    Parameters
    ----------
    title : str
        Name of the work.
    total : int, optional
        Number of steps; None shows a moving bar.
    delay : float, optional
        Seconds before the line appears, two unless given.
    """

    def __init__(self, title: str, total: int | None = None, *, delay: float | None = None) -> None:
        self.title = title
        self.total = total
        self._done = 0
        self._note = ""
        self._display: Progress | None = None
        self._task: TaskID | None = None
        self._closed = False
        self._began = time.monotonic()
        self._lock = threading.Lock()
        # A timer, and not a check in `update`: the first iteration alone may take minutes.
        self._timer = threading.Timer(PATIENCE_SECONDS if delay is None else delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    @property
    def visible(self) -> bool:
        """Whether the line has appeared."""
        return self._display is not None

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._closed:
                return
            self._display = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._task = self._display.add_task(self.title, total=self.total, completed=self._done, note=self._note)
            # The clock shows the whole of the work, not the time since the line appeared.
            self._display.tasks[0].start_time = self._display.get_time() - (time.monotonic() - self._began)
            self._display.start()

    def update(self, done: int, *, total: int | None = None, note: str = "") -> None:
        """Show how far the work is."""
        with self._lock:
            self._done, self._note = done, note
            self.total = self.total if total is None else total
            if self._display is not None and self._task is not None:
                self._display.update(self._task, completed=done, total=self.total, note=note)

    def close(self) -> None:
        """Take the line away for good; a line that never appeared never will."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._display is not None:
                self._display.stop()


class _Columns:
    """Columns that grow at amortised constant cost and are read as views: entries once written never change."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}
        self.n_rows = 0

    def append(self, row: Mapping[str, float]) -> None:
        for name in row:
            if name not in self._buffers:
                self._buffers[name] = np.full(max(16, 2 * self.n_rows), np.nan)
        for name, buffer in self._buffers.items():
            if self.n_rows == len(buffer):
                buffer = self._buffers[name] = np.concatenate([buffer, np.full(len(buffer), np.nan)])
            buffer[self.n_rows] = row.get(name, np.nan)
        self.n_rows += 1

    def history(self) -> History:
        return History(**{name: buffer[: self.n_rows] for name, buffer in self._buffers.items()})


class FitMonitor(Monitor):
    """The monitor of a fit with callbacks or progress: it calls scikit-learn's callbacks and writes progress and log.

    Parameters
    ----------
    estimator : BaseEstimator
        What is being fitted.
    run : Run
        The state of this fit.
    context : object or None
        The root of scikit-learn's tree of tasks; None without callbacks.
    max_iter : int or None
        Maximum number of iterations, None when not known.
    reconstruct : callable
        x -> the fitted attributes that belong to the solver's vector x.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        run: Run,
        context: Any,
        max_iter: int | None,
        reconstruct: Callable[[np.ndarray], Mapping[str, Any]],
    ) -> None:
        super().__init__()
        self._estimator = estimator
        self._run = run
        self._max_iter = max_iter
        self._reconstruct = reconstruct
        self._columns = _Columns()
        self._context = context
        self._task: Any = None
        self._begin_task()
        self._logs = getattr(estimator, "verbose", 0) >= 2
        self._resumed, self._entered = 0, time.perf_counter()

    def resume(self, history: History) -> None:
        """Go on after the iterations of an earlier, interrupted fit."""
        self._rows = [{name: float(history[name][i]) for name in history} for i in range(history.n_iter)]
        self._resumed = history.n_iter
        self._began -= self._rows[-1].get("seconds", 0.0) if self._rows else 0.0

    def __call__(
        self,
        iteration: int,
        x: np.ndarray,
        *,
        objective: float,
        state: Callable[[], Mapping[str, Any]] | None = None,
        **columns: float,
    ) -> bool:
        super().__call__(iteration, x, objective=objective, state=state, **columns)
        if self._logs:
            shown = ", ".join(f"{name} {value:.6g}" for name, value in columns.items())
            logger.info("%s iteration %d: objective %.10g, %s", self._run.name, iteration, objective, shown)
        if self._run.progress is not None:
            self._run.progress.update(iteration, total=self._max_iter, note=self._note(iteration, objective, columns))
        return self._context is not None and self._end_task(iteration, x, state)

    def _note(self, iteration: int, objective: float, columns: Mapping[str, float]) -> str:
        """The text of the line; for the training of a network, whose end is known, with the time left."""
        if "learning_rate" not in columns or self._max_iter is None:
            return f"objective {objective:.6g}"
        done = iteration - self._resumed
        left = (time.perf_counter() - self._entered) / max(done, 1) * (self._max_iter - iteration)
        minutes, seconds = divmod(math.ceil(left), 60)
        return f"loss {objective:.4g}, rate {columns['learning_rate']:.2g}, {minutes}:{seconds:02d} left"

    def history(self) -> History:
        """Everything recorded so far, at a cost that does not grow with it."""
        for row in self._rows[self._columns.n_rows :]:
            self._columns.append(row)
        return self._columns.history()

    def close(self) -> None:
        """End the task that was begun for an iteration which the solver did not need."""
        if self._task is not None:
            self._task.call_on_fit_task_end(estimator=self._estimator)
            self._task = None

    def _begin_task(self, attributes: Callable[[], dict[str, Any]] | None = None) -> None:
        root = self._context
        if root is None:
            return
        if root.max_subtasks is not None and len(root._children_map) >= root.max_subtasks:
            root.max_subtasks += 1  # a solver that reports its starting point too has one row more than iterations
        self._task = root.subcontext(task_name="iteration")
        self._task.call_on_fit_task_begin(
            estimator=self._estimator, **self._run.inputs, reconstruction_attributes=attributes
        )

    def _end_task(self, iteration: int, x: np.ndarray, state: Callable[[], Mapping[str, Any]] | None) -> bool:
        if self._task is None:
            self._begin_task()
        task, self._task = self._task, None

        def attributes() -> dict[str, Any]:
            # Evaluated only for callbacks that ask for the fitted estimator.
            return {
                **self._reconstruct(np.array(x)),
                "history_": self.history(),
                "n_iter_": iteration,
                "converged_": False,
                "certificate_": Certificate("none", np.nan, 0.0, "the fit was still running"),
                "_solver_state": state,
            }

        stop = bool(
            task.call_on_fit_task_end(
                estimator=self._estimator, **self._run.inputs, reconstruction_attributes=attributes
            )
        )
        if not stop and (self._max_iter is None or iteration < self._max_iter):
            self._begin_task(attributes)
        return stop


@dataclass
class Run:
    """State of one running fit; it is gone when the fit ends."""

    name: str
    began: float
    #: X, y and metadata as callbacks receive them; empty without callbacks, so that a fit keeps no data alive for them.
    inputs: dict[str, Any] = field(default_factory=dict)
    #: All attributes before the fit, for those that start from the earlier one.
    earlier: Mapping[str, Any] = field(default_factory=dict)
    resume_state: Mapping[str, Any] | None = None
    resume_history: History | None = None
    resume_features: int | None = None
    progress: ProgressLine | None = None
    monitor: FitMonitor | None = None
    #: Why a callback asked to stop, and whether that ended the fit before it was done (a time limit).
    stop_message: str = ""
    ended_early: bool = False
    #: The warning that `fitting` gives at the end, from a frame where it points at the user's line.
    warning: str = ""
    #: Further warnings, given at the same place: about the data rather than about convergence.
    notices: list[Warning] = field(default_factory=list)
    final_state: Mapping[str, Any] | None = None
    #: Attributes that are set although the fit fails: what it counted until then.
    after_failure: dict[str, Any] = field(default_factory=dict)
