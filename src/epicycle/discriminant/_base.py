"""Common parts of discriminant analyses:  P(c | x)  is proportional to  P(c) N(x; m_c, C_c).

A fit is one pass that adds up weight, mean and scatter of each class, and linear algebra on p x p matrices. So it is
the same in memory, from files and on a cluster, and more rows only add to the statistic. With entries missing the pass
is repeated by EM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import ArrayLike, Domain, NoneOr, Real
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import ArrayData, Data
from epicycle.discriminant._incomplete import Structure, complete
from epicycle.discriminant._scores import Normals, Scores, score_batch
from epicycle.discriminant._whitening import Whitening
from epicycle.stats._class_scatter import ClassScatter, scatter_statistic
from epicycle.stats._class_scores import choose_class, log_probabilities, probabilities
from epicycle.stats._labels import classes_of, codes, joined_classes, labels_among

#: How far W'CW may be from the identity: directions down to a standard deviation of 1e-4 lose eight digits.
_TOLERANCE = 1e-6
#: Step of EM, in standard deviations, at which the likelihood counts as stationary.
_EM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Solved:
    """The covariances of a fit, whitened: one for all classes or one for each."""

    covariance: np.ndarray
    whitenings: list[Whitening]


class DiscriminantAnalysis(ClassifierMixin, Estimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Classes that are normal distributions."""

    _docs: ClassVar[Mapping[str, str]] = {
        "priors": """priors : array-like of shape (n_classes,), optional
    Probabilities of the classes; by default their shares of the weight.""",
        "max_iter": """max_iter : int, default={default}
    Maximum number of steps of EM, where entries are missing.""",
        "n_jobs": """n_jobs : int, optional
    Threads. None: all processors.""",
        "covariance_estimator": """covariance_estimator : estimator, optional
    An object with `fit` and `covariance_`, such as those of :mod:`sklearn.covariance`, that estimates covariances
    in the place of the formula; for rows in memory.""",
        "discriminant_attributes": """means_ : ndarray of shape (n_classes, n_features)
priors_ : ndarray of shape (n_classes,)
classes_ : ndarray of shape (n_classes,)
class_count_ : ndarray of shape (n_classes,)
    Weight of the rows of every class.
certificate_ : Certificate
    The estimates are the maximum of the likelihood in closed form; what is measured is how far the covariance is
    from the identity in the coordinates that predictions use, which is the gradient of the likelihood there. With
    entries missing: the gradient of the likelihood of what was observed.
history_ : History
    The negative logarithm of the joint density of rows and classes, per unit of weight; it never rises.
n_iter_ : int
converged_ : bool""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("discriminant_attributes",)
    _parameters: ClassVar[Mapping[str, Domain]] = {"priors": NoneOr(ArrayLike()), "tol": Real(minimum=0)}
    _card: ClassVar[MethodCard] = MethodCard(
        family="discriminant", catalogue=("B1",), engines=("memory", "files", "dask"), certificate="closed form"
    )
    _takes_sparse: ClassVar[bool] = True
    #: What the message about too few classes says, or None where one class is enough.
    _single_class: ClassVar[str | None] = None

    priors: Any
    tol: float
    max_iter: int
    n_jobs: int | None
    classes_: np.ndarray
    class_count_: np.ndarray
    priors_: np.ndarray
    means_: np.ndarray
    _moments_: dict[str, Any] | None
    _covariance_: np.ndarray
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    # ------------------------------------------------------------------------------------------- what a class adds

    @abstractmethod
    def _structure(self) -> Structure:
        """Which covariances are assumed equal."""

    @abstractmethod
    def _needs(self) -> tuple[bool, bool]:
        """(whether the scatter of all classes together is enough, whether fourth moments are needed)."""

    @abstractmethod
    def _learn(self, moments: ClassScatter, data: Data) -> Solved:
        """Set the fitted attributes."""

    @abstractmethod
    def _scorer(self) -> tuple[Scores, tuple[Any, ...]]:
        """(function, parameters) with function(X, *parameters) the scores of rows; module-level."""

    def _check_arguments(self, moments: ClassScatter) -> None:
        """Refuse arguments that do not fit together, or to the data."""

    def _log_prior(self, weight: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._prior_probabilities(weight)))

    def _prior_probabilities(self, weight: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return np.asarray(weight / weight.sum())
        prior = np.array(self.priors, dtype=np.float64)
        if prior.shape != weight.shape:
            raise ParameterError(f"priors: has shape {prior.shape}; expected one for each of {len(weight)} classes")
        if not (prior >= 0).all():
            raise ParameterError(f"priors: one is {prior.min():g}; priors must be non-negative")
        if not np.isfinite(prior).all() or prior.sum() <= 0:
            raise ParameterError("priors: expected finite numbers of which one is positive")
        if abs(prior.sum() - 1.0) > 1e-5:
            self._run.notices.append(UserWarning(f"The priors do not sum to 1 but to {prior.sum():g}. Renormalizing"))
            prior = prior / prior.sum()
        return prior

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y; NaN in X is a missing entry."""
        data = self._training_data(X, y, sample_weight, reset=True)
        self._conclude_fit(classes_of(data, self.n_jobs), data, None)
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit: the result is that of one fit to all of them. No entry may be missing.

        Parameters
        ----------
        classes : array-like of shape (n_classes,), optional
            Classes to come, for the first call; until a class has rows it is not among `classes_`.
        """
        first = not hasattr(self, "classes_")
        data = self._training_data(X, y, sample_weight, reset=first)
        if not first and self._moments_ is None:
            raise DataError("partial_fit: the fit before it completed missing entries, to which rows cannot be added")
        known = None if first else self.classes_
        seen = labels_among(data, classes, self.n_jobs)
        together = joined_classes(seen.labels[seen.weights > 0], None, known)
        before = None if first else (self.classes_, ClassScatter(**self._moments_))  # type: ignore[arg-type]
        self._conclude_fit(together, data, before, incremental=True)
        return self

    def _training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Data:
        return self._fit_data(X, y, sample_weight, target="labels", reset=reset, check_finite=False, missing=True)

    def _conclude_fit(
        self,
        classes: np.ndarray,
        data: Data,
        before: tuple[np.ndarray, ClassScatter] | None,
        *,
        incremental: bool = False,
    ) -> None:
        if self._single_class is not None and len(classes) < 2:
            raise DataError(self._single_class.format(len(classes)))
        K, p = len(classes), data.n_features
        coded = data.encode_target(partial(codes, labels=classes))
        pooled, fourth = self._needs()
        tables = (1 if pooled else K) * (3 if fourth else 1)
        require_memory(8.0 * p * p * tables * 4, f"{tables} matrices of {p} x {p}", "use fewer columns")
        (moments,) = engine.sum(scatter_statistic, coded, K, pooled, fourth, n_jobs=self.n_jobs)
        evidence: Solution | None = None
        if not moments.finite:
            _refuse_infinity(data)
            if incremental:
                raise DataError("X: contains NaN (missing entries); partial_fit adds up complete rows only, use fit")
            evidence, moments = self._complete(coded, K, pooled=pooled, fourth=fourth)
            self._moments_ = None
        else:
            if before is not None:
                at = np.searchsorted(classes, before[0])
                moments = before[1].placed(at, K) + moments
            self._moments_ = _as_arrays(moments)
        if not moments.finite:
            raise DataError("X: sums of squares of its columns overflow; scale them down")
        self.classes_, self.class_count_ = classes, moments.weight
        self._check_arguments(moments)
        self.priors_ = self._prior_probabilities(moments.weight)
        self.means_ = moments.mean
        solved = self._learn(moments, data)
        self._covariance_ = solved.covariance
        deviation = max((found.deviation for found in solved.whitenings), default=0.0)
        meaning = "the covariance is the identity in the coordinates of predictions, largest deviation"
        certificate = Certificate("closed form", deviation, _TOLERANCE, meaning)
        if evidence is None or not certificate.holds:
            self._conclude_directly(certificate, objective=self._objective(moments, solved))
        else:
            self._conclude(evidence)

    def _complete(self, data: Data, K: int, *, pooled: bool, fourth: bool) -> tuple[Solution, ClassScatter]:
        """EM over rows with missing entries."""
        if fourth:
            raise ParameterError(
                f"shrinkage={getattr(self, 'shrinkage', None)!r} needs fourth moments, which rows with missing entries "
                "do not have; expected None, a number or 'oas' where X has NaN"
            )
        if getattr(self, "covariance_estimator", None) is not None:
            raise DataError("X: contains NaN, and covariance_estimator takes complete rows only")
        monitor = self._monitor(self.max_iter, lambda _x: {})
        found = complete(
            data,
            K,
            self._structure(),
            pooled=pooled,
            log_prior=self._log_prior,
            tol=_EM_TOLERANCE,
            max_iter=self.max_iter,
            monitor=monitor,
            n_jobs=self.n_jobs,
        )
        meaning = "the gradient of the likelihood of what was observed, in standard deviations"
        certificate = Certificate("stationarity", found.step, _EM_TOLERANCE, meaning)
        history = monitor.history()
        x = found.moments.mean.ravel()
        return Solution(x, history.objective[-1], history, certificate, found.n_iter, found.reason), found.moments

    def _objective(self, moments: ClassScatter, solved: Solved) -> float:
        """-1/w sum_i w_i log P(x_i, c_i), on the directions that are not left out."""
        shared = len(solved.whitenings) == 1 and len(moments.weight) > 1
        parts = moments.within() if shared else moments
        value = 0.0
        for weight, S, found in zip(parts.weight, parts.scatter, solved.whitenings, strict=True):
            square = float(np.einsum("ij,ij->", found.W, S @ found.W))
            value += 0.5 * (weight * (found.rank * np.log(2 * np.pi) + found.log_det) + square)
        prior = np.where(moments.weight > 0, self.priors_, 1.0)
        log_prior = np.log(np.maximum(prior, np.finfo(np.float64).tiny))
        return float((value - moments.weight @ log_prior) / moments.weight.sum())

    def _own_covariances(self, data: Data, estimator: Any, *, total: bool = False) -> list[np.ndarray]:
        """The covariance of every class (or of all rows) by an estimator of the user."""
        if not isinstance(data, ArrayData):
            raise DataError(f"X: covariance_estimator needs rows in memory, got {type(data).__name__}")
        if data.weight is not None and not np.all(data.weight == data.weight[0]):
            raise DataError("sample_weight: a covariance_estimator takes no weights; expected equal ones")
        rows = data.X.toarray() if sp.issparse(data.X) else data.X
        parts = [rows] if total else [rows[data.y == c] for c in self.classes_]
        out = []
        for part in parts:
            estimator.fit(part)
            if not hasattr(estimator, "covariance_"):
                raise ParameterError(f"{type(estimator).__name__} does not have a covariance_ attribute")
            out.append(np.atleast_2d(np.asarray(estimator.covariance_, dtype=np.float64)))
        return out

    # ------------------------------------------------------------------------------------------- use of a fit

    def _map(self, X: Any, last: Any) -> Any:
        data = self._predict_data(X, missing=True)
        function, parameters = self._scorer()
        return engine.map(score_batch, data, function, parameters, self._normals(), last, n_jobs=self.n_jobs)

    def _normals(self) -> Normals:
        with np.errstate(divide="ignore"):
            return Normals(self.means_, self._covariance_, np.log(self.priors_), self._rank_tol())

    def _rank_tol(self) -> float:
        return self.tol

    def decision_function(self, X: Any) -> Any:
        """Log-posterior up to a constant of the row; for two classes the log-odds of ``classes_[1]``."""
        scores = self._map(X, np.asarray)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The most probable class of every row; missing entries are integrated out."""
        self._check_fitted()
        return self._map(X, partial(choose_class, classes=self.classes_))

    def predict_proba(self, X: Any) -> Any:
        """P(c | x) of every row and class, in the order of `classes_`."""
        self._check_fitted()
        return self._map(X, partial(_of_classes, function=probabilities, n_classes=len(self.classes_)))

    def predict_log_proba(self, X: Any) -> Any:
        """log P(c | x) of every row and class, exact also where the probability underflows."""
        self._check_fitted()
        return self._map(X, partial(_of_classes, function=log_probabilities, n_classes=len(self.classes_)))


def _of_classes(scores: np.ndarray, function: Any, n_classes: int) -> np.ndarray:
    if n_classes == 1:
        return np.zeros((len(scores), 1)) if function is log_probabilities else np.ones((len(scores), 1))
    return np.asarray(function(scores))


def _as_arrays(moments: ClassScatter) -> dict[str, Any]:
    names = ("weight", "rows", "mean", "scatter", "third", "fourth")
    return dict(zip(names, moments.terms, strict=True))


def _refuse_infinity(data: Data) -> None:
    if isinstance(data, ArrayData) and np.isinf(data.X.data if data.sparse else data.X).any():
        raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
