"""Callbacks for long fits, by scikit-learn's protocol: ``model.set_callbacks(TimeLimit(60), Checkpoint("run.epi"))``.

Any number of them can be set at once, next to scikit-learn's own (`ProgressBar`, `ScoringMonitor`). They act between
iterations, and one object may serve many fits, also at the same time.
"""

from __future__ import annotations

import copy
import math
import os
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from epicycle.core._exceptions import ModelFormatError, ParameterError, ParameterTypeError
from epicycle.core._parameters import (
    AnyOf,
    Callable,
    Choice,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    Real,
    check_parameter,
)
from epicycle.core.estimator._estimator import Estimator
from epicycle.core.estimator._progress import logger

S = TypeVar("S")


class _FitCallback(ABC, Generic[S]):
    """Base of the callbacks: checked arguments, and one state `S` for each running fit."""

    _parameters: ClassVar[dict[str, Domain]]

    def __init__(self) -> None:
        for name, domain in self._parameters.items():
            check_parameter(type(self).__name__, name, getattr(self, name), domain)
        # By the identity of the estimator: a search fits many at once, and all of them share its callbacks.
        self._running: dict[int, tuple[Any, S]] = {}

    @abstractmethod
    def _start(self, estimator: Any) -> S:
        """The state at the beginning of a fit."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin with a fit."""
        self._running[id(estimator)] = (context, self._start(estimator))

    def teardown(self, estimator: Any, context: Any) -> None:
        """Forget a fit, however it ended."""
        self._running.pop(id(estimator), None)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing happens before an iteration."""

    def _state(self, estimator: Any) -> S:
        return self._running[id(estimator)][1]

    def _is_whole_fit(self, estimator: Any, context: Any) -> bool:
        """Whether the task is the fit itself and not one of its iterations."""
        return self._running[id(estimator)][0] is context

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_running": {}}

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self._parameters)
        return f"{type(self).__name__}({', '.join(shown)})"


def _ask_to_stop(estimator: Any, why: str, *, ended_early: bool) -> bool:
    """Return True, for the solver, and keep the reason for the warning that a fit gives when it ends early."""
    logger.info("%s: %s", type(estimator).__name__, why)
    if isinstance(estimator, Estimator):
        estimator._run.stop_message = why
        estimator._run.ended_early = estimator._run.ended_early or ended_early
    return True


@dataclass
class _Best:
    """The best value so far and how many iterations ago it was reached."""

    value: float = math.inf
    since: int = 0

    def update(self, value: float, min_delta: float) -> None:
        # inf - min_delta is inf for any min_delta: the first finite value always counts as better.
        if value < self.value - min_delta or (math.isinf(self.value) and value < self.value):
            self.value, self.since = value, 0
        else:
            self.since += 1


class EarlyStopping(_FitCallback[_Best]):
    """Stop when the objective or the validation score no longer improves.

    A fit that ends this way keeps what its solver has reached, gives no warning and has ``converged_ = False``: its
    certificate says how far from the optimum it is.

    Parameters
    ----------
    monitor : {"objective", "validation score"}, default="objective"
        The quantity that has to improve: the training objective in the fit's `history_` (smaller is better), or the
        score on `X_val`, `y_val` (greater is better).
    patience : int, default=5
        Iterations without improvement before the fit is stopped.
    min_delta : float, default=0.0
        A change of at most this size is no improvement.
    X_val, y_val : array-like, optional
        The validation data; `y_val` may be left out where `score` needs none.
    scoring : str or callable, optional
        A scikit-learn scorer for the validation data; None is the estimator's own `score`.

    Examples
    --------
    >>> from epicycle import EarlyStopping
    >>> EarlyStopping(patience=3, min_delta=1e-4)
    EarlyStopping(monitor='objective', patience=3, min_delta=0.0001, scoring=None)
    """

    _parameters: ClassVar[dict[str, Domain]] = {
        "monitor": Choice("objective", "validation score"),
        "patience": Integer(1),
        "min_delta": Real(0),
        "scoring": NoneOr(AnyOf(InstanceOf(str), Callable())),
    }

    def __init__(
        self,
        monitor: str = "objective",
        *,
        patience: int = 5,
        min_delta: float = 0.0,
        X_val: Any = None,
        y_val: Any = None,
        scoring: Any = None,
    ) -> None:
        self.monitor = monitor
        self.patience = patience
        self.min_delta = min_delta
        self.X_val = X_val
        self.y_val = y_val
        self.scoring = scoring
        super().__init__()
        if (monitor == "validation score") != (X_val is not None):
            given = "is missing" if X_val is None else "was given"
            raise ParameterError(
                f"EarlyStopping: monitor={monitor!r} but X_val {given}; "
                "expected X_val with monitor='validation score', and only then."
            )

    def _start(self, estimator: Any) -> _Best:
        if self.monitor == "objective" and not isinstance(estimator, Estimator):
            raise ParameterTypeError(
                f"EarlyStopping: {type(estimator).__name__} records no history_; "
                "expected monitor='validation score' with X_val and y_val."
            )
        return _Best()

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        """Look at an iteration; True asks to stop."""
        if fitted_estimator is None or self._is_whole_fit(estimator, context):
            return False
        best = self._state(estimator)
        best.update(self._loss(fitted_estimator), self.min_delta)
        if best.since < self.patience:
            return False
        why = f"EarlyStopping: no better {self.monitor} in {self.patience} iterations"
        return _ask_to_stop(estimator, why, ended_early=False)

    def _loss(self, fitted: Any) -> float:
        if self.monitor == "objective":
            return float(fitted.history_.objective[-1])
        from sklearn.metrics import check_scoring

        return -float(check_scoring(fitted, scoring=self.scoring)(fitted, self.X_val, self.y_val))


class TimeLimit(_FitCallback[float]):
    """Stop a fit that takes too long, after the iteration in which its time runs out.

    The fit keeps what its solver has reached, warns that the time ran out, and has ``converged_ = False``
    (``ep.config(on_nonconvergence=...)`` applies).

    Parameters
    ----------
    seconds : float
        Wall-clock time of one fit.

    Examples
    --------
    >>> from epicycle import TimeLimit
    >>> TimeLimit(60)
    TimeLimit(seconds=60)
    """

    _parameters: ClassVar[dict[str, Domain]] = {"seconds": Real(0, inclusive=(False, True))}

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__()

    def _start(self, estimator: Any) -> float:
        return time.monotonic()

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Look at the clock; True asks to stop."""
        if self._is_whole_fit(estimator, context) or time.monotonic() - self._state(estimator) < self.seconds:
            return False
        return _ask_to_stop(estimator, f"the time limit of {self.seconds:g} s ran out", ended_early=True)


@dataclass
class _Written:
    """Number of iterations that a checkpoint has seen, and the time of its last write."""

    iterations: int = 0
    at: float = field(default_factory=time.monotonic)


class Checkpoint(_FitCallback[_Written]):
    """Write the model to a file while it is being fitted, so that an interrupted fit can go on.

    The file is written atomically: there is always a whole one. It holds the model after some iteration, ready to
    predict, and the state of its solver. ``Checkpoint.resume(path)`` gives the model back, and its `fit` on the same
    data goes on from there to the same optimum (for stochastic solvers to the same bits) as a fit that was never
    interrupted. A clone of it starts afresh. When a fit ends, the file holds the final model; one that did not
    converge can be resumed with, say, a larger `max_iter`.

    Parameters
    ----------
    path : str or path-like
        Where to write, usually with the ending ``.epi``; its folder exists.
    every : int, default=1
        Iterations between two writes.
    seconds : float, optional
        At least so many seconds between two writes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import epicycle as ep
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = X[:, 0] > 0
    >>> file = tempfile.mkdtemp() + "/run.epi"
    >>> with ep.config(on_nonconvergence="ignore"):
    ...     model = ep.LogisticRegression(max_iter=2).set_callbacks(ep.Checkpoint(file)).fit(X, y)
    >>> model = ep.Checkpoint.resume(file)
    >>> model.set_params(max_iter=100).fit(X, y).converged_
    True
    """

    _parameters: ClassVar[dict[str, Domain]] = {
        "path": InstanceOf(str, os.PathLike),
        "every": Integer(1),
        "seconds": NoneOr(Real(0)),
    }

    def __init__(self, path: str | os.PathLike[str], *, every: int = 1, seconds: float | None = None) -> None:
        self.path = path
        self.every = every
        self.seconds = seconds
        super().__init__()

    def _start(self, estimator: Any) -> _Written:
        if not isinstance(estimator, Estimator):
            raise ParameterTypeError(f"Checkpoint: expected an epicycle estimator, got {type(estimator).__name__}.")
        folder = Path(self.path).resolve().parent
        if not folder.is_dir():
            raise ParameterError(
                f"Checkpoint: path={os.fspath(self.path)!r}; expected an existing folder, {folder} is none."
            )
        return _Written()

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        """Write if it is time to; never asks to stop."""
        if fitted_estimator is None:
            return False
        written = self._state(estimator)
        if not self._is_whole_fit(estimator, context):
            written.iterations += 1
            waited = time.monotonic() - written.at
            if written.iterations % self.every or (self.seconds is not None and waited < self.seconds):
                return False
        self._write(fitted_estimator)
        written.at = time.monotonic()
        return False

    def _write(self, fitted: Estimator) -> None:
        from epicycle.io import save

        # A function: the state is copied only when a checkpoint is really written.
        state = vars(fitted).get("_solver_state")
        model = copy.copy(fitted).set_callbacks()  # other callbacks hold `fitted` too
        if state is not None:
            model.solver_state_ = dict(state())
        save(model, self.path)

    @staticmethod
    def resume(path: str | os.PathLike[str]) -> Estimator:
        """The model of a checkpoint; its `fit` goes on where the file was written.

        Parameters
        ----------
        path : str or path-like
            A file that a checkpoint wrote.

        Returns
        -------
        Estimator
            Ready to predict; `set_callbacks` anew, callbacks are not kept in the file.
        """
        from epicycle.io import load

        model = load(path)
        if not isinstance(model, Estimator):
            raise ModelFormatError(
                f"{os.fspath(path)}: holds a {type(model).__name__}; expected the checkpoint of a fit."
            )
        return model
