"""Progressive validation of a model on a stream: every row is predicted before it is learnt.

The total online error of m rows is  sum_i l(y_i, yhat_i)  with yhat_i from the model that has learnt rows 1 .. i - 1
alone. No row has to be held out, and the curve shows how fast the model learns and when the stream changes.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from epicycle.core._checks import optional_import
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._parameters import Choice, Integer, check_parameter
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.core.estimator._progress import ProgressLine
from epicycle.data import Scan, as_data
from epicycle.stats._class_scores import ROW_LOSSES, row_losses

if TYPE_CHECKING:
    import pandas as pd

Losses = Callable[[Any, Any], np.ndarray]


def losses_of(model: Any, metric: Any) -> tuple[str, Losses, bool]:
    """Name and function of the losses of rows, and whether they need probabilities."""
    if metric is None:
        metric = "error" if is_classifier(model) or hasattr(model, "classes_") else "squared_error"
    if callable(metric):
        name = getattr(metric, "__name__", "metric")

        def checked(y: Any, predicted: Any) -> np.ndarray:
            values = np.asarray(metric(y, predicted), dtype=np.float64)
            if values.shape != (len(y),):
                raise ParameterError(
                    f"evaluate: metric={name} gave shape {values.shape} for {len(y)} rows, expected one each"
                )
            return values

        return name, checked, False
    check_parameter("evaluate", "metric", metric, Choice(*ROW_LOSSES))
    if metric == "log_loss":
        if not hasattr(model, "predict_proba"):
            raise ParameterError(f"evaluate: metric='log_loss' needs predict_proba, which {type(model).__name__} lacks")
        return metric, lambda y, p: row_losses("log_loss", y, p, model.classes_), True
    return metric, lambda y, predicted: row_losses(metric, y, predicted), False


@dataclass
class OnlineEvaluation:
    """The predict-then-learn error of a model on a stream.

    Attributes
    ----------
    metric : str
        Name of the loss of a row.
    n_rows : int
        Rows of the stream.
    n_scored : int
        Rows that were predicted before they were learnt: all but those before the first fit.
    total_error : float
        Sum of the losses over the scored rows; for the error of classification the number of mistakes.
    rows : ndarray
        Scored rows up to each point of the curve.
    cumulative : ndarray
        Mean loss of all rows up to each point.
    windowed : ndarray
        Mean loss of the rows since the previous point.
    seconds : float
        Time of the whole run.
    model : object
        The model after the stream.
    """

    metric: str
    model: Any
    n_rows: int = 0
    n_scored: int = 0
    total_error: float = 0.0
    seconds: float = 0.0
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    cumulative: np.ndarray = field(default_factory=lambda: np.zeros(0))
    windowed: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def mean_error(self) -> float:
        """Mean loss of the scored rows; nan without any."""
        return self.total_error / self.n_scored if self.n_scored else float("nan")

    @property
    def n_mistakes(self) -> int:
        """Number of wrong labels, where the metric is "error"."""
        if self.metric != "error":
            raise AttributeError(f"n_mistakes: the metric was {self.metric!r}, which counts none")
        return round(self.total_error)

    def to_frame(self) -> pd.DataFrame:
        """The curve as a pandas DataFrame: rows, cumulative, windowed."""
        pd = optional_import("pandas", "OnlineEvaluation.to_frame")
        return pd.DataFrame({"rows": self.rows, "cumulative": self.cumulative, "windowed": self.windowed})

    @styled
    def plot(self, *, ax: Axes | None = None, label: str | None = None, **line: Any) -> Axes:
        """Draw the mean loss up to each row, and that of each window as a fainter line."""
        ax = axes_of(ax)
        (drawn,) = ax.plot(self.rows, self.cumulative, label=label or type(self.model).__name__, **line)
        ax.plot(self.rows, self.windowed, color=drawn.get_color(), alpha=0.35, lw=1)
        ax.set(xlabel="rows of the stream", ylabel=f"mean {self.metric.replace('_', ' ')}")
        return ax

    def __repr__(self) -> str:
        left = self.n_rows - self.n_scored
        unscored = f" ({left} came before the first fit)" if left else ""
        return (
            f"OnlineEvaluation({type(self.model).__name__}: {self.metric} {self.mean_error:.4g} on {self.n_scored} "
            f"rows{unscored}, total {self.total_error:.6g}, {self.seconds:.3g} s)"
        )


class Curve:
    """Cumulative losses, with a point after every `window` rows."""

    def __init__(self, window: int) -> None:
        self.window, self.n, self.total = window, 0, 0.0
        self._sums: list[float] = []
        self._left: list[np.ndarray] = []
        self._waiting = 0

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else float("nan")

    def add(self, losses: np.ndarray) -> None:
        self.n += len(losses)
        self.total += float(losses.sum())
        self._left.append(losses)
        self._waiting += len(losses)
        if self._waiting < self.window:
            return
        rest = np.concatenate(self._left)
        whole = len(rest) // self.window
        self._sums += rest[: whole * self.window].reshape(whole, self.window).sum(axis=1).tolist()
        self._left, self._waiting = [rest[whole * self.window :]], len(rest) - whole * self.window

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums, counts = list(self._sums), [self.window] * len(self._sums)
        if self._waiting:
            sums.append(float(np.concatenate(self._left).sum()))
            counts.append(self._waiting)
        rows = np.cumsum(np.array(counts, dtype=np.int64))
        return rows, np.cumsum(sums) / np.maximum(rows, 1), np.array(sums) / np.maximum(counts, 1)


#: Rows of a call to a compiled learner, which predicts and learns them one by one: enough to hide the cost of the call.
_CHUNK = 4096
#: Points of the curve where the length of the stream is known: more cannot be seen in a figure.
_POINTS = 200


@in_catalogue("online", "A13", certificate="standard errors")
def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    metric: str | Callable[[np.ndarray, np.ndarray], Any] | None = None,
    batch_size: int = 1,
    window: int | None = None,
    classes: Any = None,
    delay: int = 0,
    verbose: int = 0,
) -> OnlineEvaluation:
    """Evaluate a model with `partial_fit` on a stream: every row is predicted, then learnt.

    Parameters
    ----------
    model : object with ``partial_fit`` and ``predict``
        It learns the stream in place, and may have been fitted before.
    X : array, sparse matrix, data frame, Scan, or an iterable of batches (X, y)
    y : array-like, optional
        Targets, where X is a table.
    metric : str or callable, optional
        "error" (of the label; the default for classifiers), "log_loss" (of ``predict_proba``), "squared_error"
        (the default for regressors), "absolute_error", or a function of (y, prediction) that gives one number for each
        row.
    batch_size : int, default=1
        Rows that are predicted and then learnt together, for tables. A model then sees labels up to so many rows late.
        Batches of an iterable are taken as they come. `Perceptron`, `SGDClassifier` and `SGDRegressor` predict and
        learn row by row in compiled code, and are fast at the default of 1.
    window : int, optional
        Rows between two points of the curve; by default a two-hundredth of a table, and 1000 of a stream.
    classes : array-like, optional
        All labels, for models whose first ``partial_fit`` needs them; by default those in y where X is a table.
    delay : int, default=0
        Batches that a label comes late: batch i is learnt after batch i + delay was predicted.
    verbose : int, default=0
        1 shows progress when it takes more than about two seconds.

    Returns
    -------
    OnlineEvaluation
        Total and mean error, and the curve. Rows before the first fit cannot be predicted: they are learnt, and do not
        count. Without delay this is the first batch, unless the model was fitted before.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import epicycle as ep
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = ep.online.evaluate(ep.SGDClassifier(loss="log_loss", alpha=0.01), scale(X), y)
    >>> result.n_scored, result.n_mistakes < 30
    (568, True)
    """
    _check_arguments(model, batch_size, window, delay)
    name, losses, probabilities = losses_of(model, metric)
    result = OnlineEvaluation(name, model)
    batches, total = _batches(model, X, y, batch_size, delay, losses is not None and not probabilities)
    if window is None:
        window = 1000 if total is None else max(1, -(-total // _POINTS))
    learner = _Learner(model, classes, y)
    curve = Curve(window)
    progress = ProgressLine("online.evaluate", total) if verbose else None
    began = time.perf_counter()
    # Batches that are predicted and wait for their labels.
    late: deque[tuple[Any, Any]] = deque()
    try:
        for X_rows, targets, one_by_one in batches:
            if one_by_one:
                predicted = learner.predict_then_learn(X_rows, targets)
                curve.add(losses(targets[len(targets) - len(predicted) :], predicted))
            else:
                if learner.ready():
                    predicted = model.predict_proba(X_rows) if probabilities else model.predict(X_rows)
                    curve.add(losses(targets, predicted))
                late.append((X_rows, targets))
                if len(late) > delay:
                    learner.learn(*late.popleft())
            result.n_rows += len(targets)
            if progress is not None:
                progress.update(result.n_rows, note=f"{name} {curve.mean:.4g}")
        while late:
            learner.learn(*late.popleft())
    finally:
        if progress is not None:
            progress.close()
    result.seconds = time.perf_counter() - began
    result.n_scored, result.total_error = curve.n, curve.total
    result.rows, result.cumulative, result.windowed = curve.points()
    return result


def _check_arguments(model: Any, batch_size: Any, window: Any, delay: Any) -> None:
    for name, value in (("batch_size", batch_size), ("window", window), ("delay", delay)):
        if value is not None:
            check_parameter("evaluate", name, value, Integer(0 if name == "delay" else 1))
    for method in ("partial_fit", "predict"):
        if not hasattr(model, method):
            raise ParameterTypeError(f"evaluate: model={model!r} has no method {method}")


class _Learner:
    """The model, and whether it is fitted yet."""

    def __init__(self, model: Any, classes: Any, y: Any) -> None:
        self.model, self._ready = model, False
        self._classes: Any = None
        accepts = "classes" in inspect.signature(model.partial_fit).parameters
        if classes is not None and not accepts:
            raise ParameterError(f"evaluate: classes: {type(model).__name__}.partial_fit does not take them")
        if accepts and not self.ready():
            # Classifiers of this package take new labels at any time.
            ours = hasattr(model, "_predict_then_learn")
            self._classes = classes if classes is not None or ours or y is None else np.unique(np.asarray(y))

    def ready(self) -> bool:
        """Whether the model can predict."""
        if not self._ready:
            try:
                check_is_fitted(self.model)
            except NotFittedError:
                return False
            except TypeError:  # no estimator of scikit-learn: it can predict after its first batch
                return False
            self._ready = True
        return True

    def learn(self, X: Any, y: Any) -> None:
        if self._classes is None:
            self.model.partial_fit(X, y)
        else:
            self.model.partial_fit(X, y, classes=self._classes)
            self._classes = None
        self._ready = True

    def predict_then_learn(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Predict and learn row by row in compiled code, interrupted by rows of new labels."""
        found = []
        start, n = 0, len(y)
        if not self.ready():
            self.learn(X[:1], y[:1])
            start = 1
        while start < n:
            known = getattr(self.model, "classes_", None)
            new = np.zeros(0, np.intp) if known is None else np.flatnonzero(~np.isin(y[start:], known))
            # Compiled code knows the classes so far: it runs up to the next new label.
            stop = start + int(new[0]) if new.size else n
            if stop > start:
                found.append(self.model._predict_then_learn(X[start:stop], y[start:stop]))
            if stop < n:  # a row of a new label: predicted among the known ones, then learnt
                found.append(self.model.predict(X[stop : stop + 1]))
                self.learn(X[stop : stop + 1], y[stop : stop + 1])
                stop += 1
            start = stop
        return np.concatenate(found) if found else y[:0]


def _batches(
    model: Any, X: Any, y: Any, batch_size: int, delay: int, labels: bool
) -> tuple[Iterator[tuple[Any, np.ndarray, bool]], int | None]:
    """Batches (X, y, whether to go row by row in compiled code), and the number of rows where it is known."""
    direct = (
        batch_size == 1
        and delay == 0
        and labels
        and hasattr(model, "_predict_then_learn")
        and model._predicts_with_last_weights()
    )
    size = _CHUNK if direct else batch_size
    if isinstance(X, Scan):
        data = as_data(X, y, target="labels" if is_classifier(model) else "numeric", estimator_name="evaluate")
        parts = (
            (b.X[i : i + size], np.asarray(b.y)[i : i + size], direct)
            for b in data.batches()
            for i in range(0, b.n_rows, size)
        )
        return parts, data.n_rows
    if y is None:
        if not isinstance(X, Iterable) or hasattr(X, "shape"):
            raise DataError("y: is None; expected targets, or batches (X, y) in place of X")
        return ((rows, _vector(targets), False) for rows, targets in map(_pair, X)), None
    targets = _vector(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(targets):
        raise DataError(f"y: X has {n} rows and y has {len(targets)}")
    if direct and not hasattr(X, "shape"):
        X = np.asarray(X)
    ranges = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    plain = isinstance(X, np.ndarray) or not hasattr(X, "columns")
    direct = direct and plain
    if not plain or isinstance(X, list):
        if size == _CHUNK:
            ranges = [slice(i, i + 1) for i in range(n)]
        return ((_safe_indexing(X, np.arange(c.start, c.stop)), targets[c], False) for c in ranges), n
    return ((X[c], targets[c], direct) for c in ranges), n


def _pair(batch: Any) -> tuple[Any, Any]:
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise DataError(f"X: expected an iterable of pairs (X, y), got {type(batch).__name__}")
    return batch[0], batch[1]


def _vector(y: Any) -> np.ndarray:
    values = np.asarray(y)
    if values.ndim != 1:
        raise DataError(f"y: should be a 1d array, got an array of shape {values.shape}")
    return values
