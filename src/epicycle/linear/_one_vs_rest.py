"""One classifier for each class against all others, or for each label of a table of labels.

A row gets the class whose classifier gives it the largest score; its probabilities are those of the classifiers,
divided by their sum. With a table of labels every classifier speaks for itself.
"""

from __future__ import annotations

import copy
import inspect
import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import Domain, InstanceOf, NoneOr
from epicycle.core._settings import config
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.core.estimator._parts import (
    certificate_value,
    last_iteration,
    last_objective,
    misses_certificate,
    where_part_has,
    worst_certificate,
)
from epicycle.data import ArrayData, Scan
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.optim import Solution
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import encode_labels, label_table


class OneVsRest(MetaEstimatorMixin, ClassifierMixin, Estimator):  # type: ignore[misc]
    """Several classes by one two-class classifier for each, against all others; also several labels at once.

    Parameters
    ----------
    estimator : estimator, optional
        A classifier for two classes, with `decision_function` or `predict_proba`; by default
        :class:`LogisticRegression`. It is cloned, and stays as it is.
    n_jobs : int, optional
        Threads, one class each; None follows the processors. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, or the numbers of the columns of a table of labels.
    estimators_ : list
        One classifier for each class, of "this class" (1) against "any other" (0); one in all for two classes. None
        stands for a label that all rows have, or none.
    constant_ : ndarray of shape (n_estimators,)
        The label where there is no classifier, otherwise nan.
    multilabel_ : bool
        Whether y was a table of labels.
    certificate_ : Certificate
        The worst of the classifiers'; "none" where they have none.
    history_ : History
        One row for each classifier: its last objective, iterations, certificate and seconds, as far as it has them.
    n_iter_ : int
        Number of classifiers.

    See Also
    --------
    LogisticRegression : fits several classes together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import LogisticRegression, OneVsRest
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRest(LogisticRegression(C=10)).fit(X, y)
    >>> len(model.estimators_), model.certificate_.holds
    (3, True)
    >>> round(model.score(X, y), 3)
    0.967
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "estimator": NoneOr(InstanceOf(BaseEstimator)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A10",), engines=("memory", "files", "dask"), certificate="worst of the parts"
    )

    @stores_arguments
    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None, verbose: int = 0) -> None: ...

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = inner_tags(self, self._base())
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.classifier_tags.multi_label = True
        return tags

    # ------------------------------------------------------------------------------------------- fitting

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one classifier for each class.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            Files and collections need a classifier that takes them, as :class:`LogisticRegression` does.
        y : array-like of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_labels)
            Labels of any kind; or a table of zeros and ones, one column for each label. A scan brings its own.
        """
        if self._takes_batches(X):
            return self._fit_batches(X, y, sample_weight)
        targets, weight = self._targets(X, y, sample_weight)
        base = self._base()
        parts: list[Any] = [None] * len(targets)

        def work(k: int) -> tuple[int, Any, float]:
            began = time.perf_counter()
            part = None
            if np.isnan(self.constant_[k]):
                part = clone(base)
                _quietly(part.fit, X, targets[k], weight)
            return k, part, time.perf_counter() - began

        seconds = np.zeros(len(targets))

        def consume(result: tuple[int, Any, float]) -> None:
            k, parts[k], seconds[k] = result

        threads = min(n_threads(float("inf"), self.n_jobs), len(targets))
        # Around the threads, not inside them: what catch_warnings changes belongs to the whole process.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SklearnConvergenceWarning)
            in_order(range(len(targets)), work, consume, threads)
        self.estimators_ = parts
        self._collect(seconds)
        return self

    def _takes_batches(self, X: Any) -> bool:
        """Whether X is not in memory and the classifier is one of ours that takes it."""
        source = "files" if isinstance(X, Scan) else "dask" if type(X).__module__.split(".")[0] == "dask" else ""
        card = getattr(self._base(), "_card", None)
        return bool(source) and card is not None and source in card.engines

    def _fit_batches(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """One classifier after the other, each by passes over the rows with the labels of its class."""
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, _, _ = encode_labels(data, type(self).__name__, self.n_jobs)
        self.multilabel_ = False
        shown = self._shown()
        self.constant_ = np.full(len(shown), np.nan)
        self.estimators_, seconds = [], []
        for label in shown:
            began, part = time.perf_counter(), clone(self._base())
            with config(on_nonconvergence="ignore"):
                part.fit(data.encode_target(partial(_is_label, label=label)))
            self.estimators_.append(part)
            seconds.append(time.perf_counter() - began)
        self._collect(np.array(seconds))
        return self

    @where_part_has("partial_fit", _base)
    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with further rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or array of shape (n_samples, n_labels)
        classes : array-like, optional
            All classes there will ever be; needed in the first call unless y has all of them.
        """
        first = not hasattr(self, "estimators_")
        known = None if first and classes is None else np.unique(classes) if first else self.classes_
        targets, weight = self._targets(X, y, sample_weight, known=known, reset=first)
        self.constant_ = np.full(len(targets), np.nan)
        base = self._base()
        before = [clone(base) for _ in targets] if first else copy.deepcopy(self.estimators_)
        began = time.perf_counter()
        for part, target in zip(before, targets, strict=True):
            given = {} if weight is None else {"sample_weight": weight}
            if "classes" in inspect.signature(part.partial_fit).parameters:
                given["classes"] = np.array([0, 1])
            part.partial_fit(X, target, **given)
        self.estimators_ = before
        self._collect(np.full(len(targets), (time.perf_counter() - began) / len(targets)))
        return self

    def _targets(
        self, X: Any, y: Any, sample_weight: Any, known: np.ndarray | None = None, *, reset: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Zeros and ones of shape (n_estimators, n_samples), and the weights."""
        finite = not inner_tags(self, self._base()).input_tags.allow_nan
        table = label_table(y)
        if table is not None:
            data = self._fit_data(X, None, sample_weight, target="none", reset=reset, check_finite=finite)
            in_memory = self._in_memory(data)
            if len(table) != in_memory.n_rows:
                raise DataError(
                    f"y: Found input variables with inconsistent numbers of samples: [{in_memory.n_rows}, {len(table)}]"
                )
            self.classes_, self.multilabel_ = np.arange(table.shape[1]), True
            targets = np.ascontiguousarray(table.T)
        else:
            data = self._fit_data(X, y, sample_weight, target="labels", reset=reset, check_finite=finite)
            in_memory = self._in_memory(data)
            labels = np.asarray(in_memory.y)
            if known is None:
                self.classes_, _, _ = encode_labels(in_memory, type(self).__name__, self.n_jobs)
            else:
                strange = np.setdiff1d(labels, known)
                if len(strange):
                    raise DataError(
                        f"y: has the label {strange.tolist()[0]!r}, which is not among classes={known.tolist()!r}"
                    )
                self.classes_ = known
            self.multilabel_ = False
            shown = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
            targets = np.array([labels == label for label in shown], dtype=np.int64)
        weight = in_memory.weight
        if weight is not None and not has_fit_parameter(self._base(), "sample_weight"):
            raise ParameterError(f"sample_weight: {type(self._base()).__name__} takes none")
        used = targets if weight is None else targets[:, weight > 0]
        self.constant_ = np.where(used.min(axis=1) == used.max(axis=1), used[:, 0].astype(np.float64), np.nan)
        return targets, weight

    def _in_memory(self, data: Any) -> ArrayData:
        if not isinstance(data, ArrayData):
            raise DataError(
                f"{type(self).__name__}: X has to be in memory; for files or Dask fit LogisticRegression, which takes "
                "several classes"
            )
        return data

    def _collect(self, seconds: np.ndarray) -> None:
        """The evidence of all classifiers, and the worst of it."""
        parts = self.estimators_
        objectives = [last_objective(part) for part in parts]
        history = History(
            objective=objectives,
            iterations=[0.0 if part is None else last_iteration(part) for part in parts],
            seconds=seconds,
            certificate=[certificate_value(part) for part in parts],
        )
        converged = not any(misses_certificate(part) for part in parts)
        fitted = [part for part in parts if part is not None]
        certificate = worst_certificate(fitted, "classifiers")
        if not fitted:
            certificate = Certificate("none", 0.0, 0.0, "every label is constant: no distance from an optimum is known")
        value = float(np.nansum(objectives))
        reason = "converged" if converged else "max_iter"
        if not converged:
            missed = [str(c) for c, part in zip(self._shown(), parts, strict=True) if misses_certificate(part)]
            self._conclude(
                Solution(np.zeros(0), value, history, certificate, len(parts), reason, f"class {', '.join(missed)}")
            )
            return
        self.history_, self.certificate_ = history, certificate
        self.n_iter_, self.converged_ = len(parts), True

    def _shown(self) -> np.ndarray:
        return self.classes_[1:] if len(self.classes_) == 2 and not self.multilabel_ else self.classes_

    # ------------------------------------------------------------------------------------------- prediction

    def _checked(self, X: Any) -> int:
        """The number of rows, with the features that the fit saw."""
        if inner_tags(self, self._base()).input_tags.allow_nan:
            self._check_fitted()
            return int(X.shape[0]) if hasattr(X, "shape") else len(X)
        return self._predict_data(X).n_rows or 0

    def _scores(self, X: Any, *, probabilities: bool) -> np.ndarray:
        """One column for each classifier: the probability of a one, or its score."""
        n = self._checked(X)
        columns = []
        for part, constant in zip(self.estimators_, self.constant_, strict=True):
            if part is None:
                columns.append(np.full(n, constant if probabilities else np.inf * (2 * constant - 1)))
            elif probabilities:
                columns.append(np.asarray(part.predict_proba(X))[:, 1])
            elif hasattr(part, "decision_function"):
                columns.append(np.asarray(part.decision_function(X)).ravel())
            else:
                columns.append(np.asarray(part.predict_proba(X))[:, 1] - 0.5)
        return np.column_stack(columns)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score for every row; a table of zeros and ones where y was one."""
        self._check_fitted()
        scores = self._scores(X, probabilities=False)
        if self.multilabel_:
            return np.asarray(scores > 0, dtype=np.int64)
        return choose_class(scores, self.classes_)

    @where_part_has("decision_function", _base)
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes: one a row for two classes, else one for each class or label."""
        self._check_fitted()
        scores = self._scores(X, probabilities=False)
        return scores[:, 0] if len(self.classes_) == 2 and not self.multilabel_ else scores

    @where_part_has("predict_proba", _base)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, which sum to one; of every label by itself where y was a table."""
        self._check_fitted()
        P = self._scores(X, probabilities=True)
        if self.multilabel_:
            return P
        if len(self.classes_) == 2:
            return np.column_stack([1 - P[:, 0], P[:, 0]])
        total = P.sum(axis=1, keepdims=True)
        return np.where(total > 0, P / np.where(total > 0, total, 1.0), 1 / P.shape[1])


def _is_label(y: np.ndarray, label: Any) -> np.ndarray:
    return np.asarray(y == label, dtype=np.int64)


def _quietly(fit: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Fit without a warning of its own: there is one warning for all classes."""
    with config(on_nonconvergence="ignore"):
        if weight is None:
            fit(X, y)
        else:
            fit(X, y, sample_weight=weight)
