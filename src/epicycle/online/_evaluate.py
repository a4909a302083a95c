"""Learning from a stream, judged as it goes: every row is predicted before its label is learnt.

The total online error of m rows is  sum_i l(y_i, yhat_i)  with yhat_i from the model that has learnt rows 1 .. i - 1
alone. No row has to be held out, and the curve shows how fast the model learns and when the stream changes.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._parameters import Integer, check_parameter
from epicycle.core.estimator._progress import ProgressLine
from epicycle.data import Scan, as_data
from epicycle.online._losses import losses_of
from epicycle.online._result import Curve, OnlineEvaluation

__all__ = ["evaluate"]

#: Rows that a compiled learner is given at a time; it predicts and learns them one by one.
_CHUNK = 4096
#: Points of the curve where the length of the stream is known.
_POINTS = 200


def evaluate(  # noqa: C901 - checks of its arguments
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
    """Predict, then learn: the online error of any model with `partial_fit`.

    Parameters
    ----------
    model : object with ``partial_fit`` and ``predict``
        It learns the stream, in place. It may have learnt before.
    X : array, sparse matrix, data frame, Scan, or an iterable of batches (X, y)
    y : array-like, optional
        Targets, where X is a table.
    metric : str or callable, optional
        "error" (is the label wrong; the default for classifiers), "log_loss" (of ``predict_proba``), "squared_error"
        (the default for regressors), "absolute_error", or a function of (y, prediction) that gives one number for each
        row.
    batch_size : int, default=1
        Rows that are predicted and then learnt together, for tables. A model then sees labels up to so many rows late.
        Batches of an iterable are taken as they come. `Perceptron`, `SGDClassifier` and `SGDRegressor` predict and
        learn row by row in compiled code, and are fast at the default of 1.
    window : int, optional
        Rows between two points of the curve; by default a two-hundredth of a table, and 1000 of a stream.
    classes : array-like, optional
        All labels, for models whose first ``partial_fit`` asks for them; by default those in y where X is a table.
    delay : int, default=0
        Batches that a label comes late: batch i is learnt after batch i + delay was predicted.
    verbose : int, default=0
        1 shows progress when it takes more than about two seconds.

    Returns
    -------
    OnlineEvaluation
        Total and mean error, and the curve. Rows that come before the model has learnt anything cannot be predicted:
        they are learnt, and do not count. With labels on time this is the first batch, unless the model was fitted
        before.

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
    for name, value in (("batch_size", batch_size), ("window", window), ("delay", delay)):
        if value is not None:
            check_parameter("evaluate", name, value, Integer(0 if name == "delay" else 1))
    for method in ("partial_fit", "predict"):
        if not hasattr(model, method):
            raise ParameterTypeError(f"evaluate: model={model!r} has no method {method}")
    name, losses, probabilities = losses_of(model, metric)
    result = OnlineEvaluation(name, model)
    batches, total = _batches(model, X, y, batch_size, delay, losses is not None and not probabilities)
    if window is None:
        window = 1000 if total is None else max(1, -(-total // _POINTS))
    learner = _Learner(model, classes, y)
    curve = Curve(window)
    progress = ProgressLine("online.evaluate", total) if verbose else None
    began = time.perf_counter()
    late: deque[tuple[Any, Any]] = deque()
    try:
        for X_rows, targets, one_by_one in batches:
            if one_by_one:
                predicted = learner.predict_then_learn(X_rows, targets)
                curve.add(losses(targets[len(targets) - len(predicted) :], predicted))
            else:
                if learner.ready():
                    shown = model.predict_proba(X_rows) if probabilities else model.predict(X_rows)
                    curve.add(losses(targets, shown))
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


class _Learner:
    """The model, and whether it has learnt anything yet."""

    def __init__(self, model: Any, classes: Any, y: Any) -> None:
        self.model, self._ready = model, False
        self._classes: Any = None
        accepts = "classes" in inspect.signature(model.partial_fit).parameters
        if classes is not None and not accepts:
            raise ParameterError(f"evaluate: classes: {type(model).__name__}.partial_fit does not take them")
        if accepts and not self.ready():
            # Our own classifiers meet new labels as they come.
            ours = hasattr(model, "_predict_then_learn")
            self._classes = classes if classes is not None or ours or y is None else np.unique(np.asarray(y))

    def ready(self) -> bool:
        """Whether the model can predict."""
        if not self._ready:
            try:
                check_is_fitted(self.model)
            except NotFittedError:
                return False
            except TypeError:  # not an estimator of scikit-learn's kind: it can after its first batch
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
        """Row by row in compiled code, up to each label that is new; a first row without a model has no prediction."""
        found = []
        start, n = 0, len(y)
        if not self.ready():
            self.learn(X[:1], y[:1])
            start = 1
        while start < n:
            known = getattr(self.model, "classes_", None)
            new = np.zeros(0, np.intp) if known is None else np.flatnonzero(~np.isin(y[start:], known))
            stop = start + int(new[0]) if new.size else n
            if stop > start:
                found.append(self.model._predict_then_learn(X[start:stop], y[start:stop]))
            if stop < n:  # the row of a label that was never seen: predicted among the others, then learnt
                found.append(self.model.predict(X[stop : stop + 1]))
                self.learn(X[stop : stop + 1], y[stop : stop + 1])
                stop += 1
            start = stop
        return np.concatenate(found) if found else y[:0]


def _batches(
    model: Any, X: Any, y: Any, batch_size: int, delay: int, labels: bool
) -> tuple[Iterator[tuple[Any, np.ndarray, bool]], int | None]:
    """((X, y, whether to go through them row by row) of every batch, number of rows where it is known)."""
    direct = (
        batch_size == 1 and delay == 0 and labels and hasattr(model, "_predict_then_learn")
        and model._predicts_with_last_weights()
    )  # fmt: skip
    size = _CHUNK if direct else batch_size
    if isinstance(X, Scan):
        data = as_data(X, y, target="labels" if is_classifier(model) else "numeric", estimator_name="evaluate")
        parts = ((b.X[i : i + size], np.asarray(b.y)[i : i + size], direct) for b in data.batches()
                 for i in range(0, b.n_rows, size))  # fmt: skip
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
    cuts = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    plain = isinstance(X, np.ndarray) or not hasattr(X, "columns")
    direct = direct and plain
    if not plain or isinstance(X, list):
        if size == _CHUNK:
            cuts = [slice(i, i + 1) for i in range(n)]
        return ((_safe_indexing(X, np.arange(c.start, c.stop)), targets[c], False) for c in cuts), n
    return ((X[c], targets[c], direct) for c in cuts), n


def _pair(batch: Any) -> tuple[Any, Any]:
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise DataError(f"X: expected an iterable of pairs (X, y), got {type(batch).__name__}")
    return batch[0], batch[1]


def _vector(y: Any) -> np.ndarray:
    values = np.asarray(y)
    if values.ndim != 1:
        raise DataError(f"y: should be a 1d array, got an array of shape {values.shape}")
    return values
