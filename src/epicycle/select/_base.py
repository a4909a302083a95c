"""Base of the feature selectors: a transformer, and a predictor by the model fitted to the chosen features."""

from __future__ import annotations

import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import CollinearityWarning, DataTypeError
from epicycle.core._parameters import (
    AnyOf,
    Boolean,
    Callable as CallableDomain,
    Described,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    Real,
)
from epicycle.core._plot_style import COLOURS, Axes, band
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.data import ArrayData, Data, as_data
from epicycle.data._categories import LevelEncoder, category_columns, learn_levels
from epicycle.data._frames import is_frame
from epicycle.linear import LinearRegression
from epicycle.select._fit_and_score import fitted
from epicycle.select._inputs import Rows, Split, check_weights_taken, folds_of, seeded, take
from epicycle.select._scorers import Scorer, scorer_of

F = TypeVar("F")


def _splits(value: Any) -> bool:
    return hasattr(value, "split") or (isinstance(value, Iterable) and not isinstance(value, str | bytes))


#: Domains of the arguments that all selectors have.
COMMON: Mapping[str, Domain] = {
    "estimator": NoneOr(InstanceOf(BaseEstimator)),
    "cv": AnyOf(Integer(2), Described("a splitter or splits", _splits)),
    # An unknown name is refused where the scorer is made.
    "scoring": NoneOr(AnyOf(Described("the name of a scorer", lambda v: isinstance(v, str)), CallableDomain())),
    "tol": Real(0),
    "one_standard_error": Boolean(),
}


def where_model_has(method: str) -> Callable[[F], F]:
    """Decorate a method that exists only where the model has one of that name."""

    def check(self: FeatureSelection) -> bool:
        getattr(getattr(self, "estimator_", None) or self._base(), method)  # raises the AttributeError of the model
        return True

    decorate: Callable[[F], F] = available_if(check)
    return decorate


class FeatureSelection(SelectorMixin, MetaEstimatorMixin, Estimator, ABC):  # type: ignore[misc]  # untyped mixins
    """A transformer that keeps some features, and a predictor by the model fitted to them."""

    _parameters: ClassVar[Mapping[str, Domain]] = COMMON
    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "estimator": "estimator : estimator, optional\n"
        "    The model, any regressor or classifier; by default :class:`LinearRegression`. It is cloned.",
        "cv": "cv : int, splitter or splits, default={default}\n"
        "    Number of folds, in random order and stratified for classifiers; or a splitter of scikit-learn.",
        "scoring": "scoring : str or callable, optional\n"
        "    A scorer of scikit-learn, larger is better; by default R2 or accuracy.",
        "tol": "tol : float, default={default}\n"
        "    Scores that differ by at most this count as equal, and the smaller set is taken.",
        "one_standard_error": "one_standard_error : bool, default={default}\n"
        "    Take the smallest set whose score is within one standard error of the best.",
        "n_jobs": "n_jobs : int, optional\n    Number of threads; None uses all. The result does not depend on it.",
        "random_state": "random_state : int, Generator, RandomState or None, default={default}\n"
        "    Seed of the folds, and of the model where its own is None.",
        "support_": "support_ : ndarray of shape (n_features,)\n    Mask of the chosen features.",
        "n_features_": "n_features_ : int\n    Number of chosen features.",
        "path_": "path_n_features_, path_scores_, path_std_errors_ : ndarray\n"
        "    For every number of features tried the best mean score over the folds, and its standard error.",
        "estimator_": "estimator_ : estimator\n    The model on the chosen features.",
        "metric_": "metric_ : str\n    Name of the score.",
    }

    estimator_: Any
    support_: np.ndarray
    n_features_: int
    metric_: str
    path_n_features_: np.ndarray
    path_scores_: np.ndarray
    path_std_errors_: np.ndarray
    _redundant_: bool

    def _base(self) -> Any:
        return LinearRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = inner_tags(self, self._base())
        tags.estimator_type = base.estimator_type
        tags.classifier_tags = base.classifier_tags
        tags.regressor_tags = base.regressor_tags
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.input_tags.categorical = base.input_tags.categorical
        tags.target_tags.required = True
        tags.target_tags.positive_only = base.target_tags.positive_only
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------------------------------------- fitting

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Select features and fit the model to them.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            For the fits of the model and for its scores.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are kept together by the folds.
        """
        base = self._base()
        if sample_weight is not None:
            check_weights_taken("estimator", base)
        rows = self._rows(X, y, sample_weight, groups)
        state = self._resume_state() or {}
        seed = int(state.get("seed", seed_of(self.random_state)))
        model = seeded(base, seed)
        scorer, self.metric_ = scorer_of(self.scoring, model)
        splits = folds_of(rows, self.cv, classifier=bool(is_classifier(model)), seed=seed)
        self._search(model, rows, splits, scorer, state, seed)
        return self

    @abstractmethod
    def _search(
        self, model: Any, rows: Rows, splits: list[Split], scorer: Scorer, state: Mapping[str, Any], seed: int
    ) -> None:
        """Choose the features and conclude the fit."""

    def _rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Rows:
        """X as the model gets it: frames stay frames, all else is a checked matrix."""
        base = self._base()
        target: Literal["labels", "numeric"] = "labels" if is_classifier(base) else "numeric"
        coded = self._coded(X)
        finite = not inner_tags(self, base).input_tags.allow_nan
        data = self._fit_data(coded, y, sample_weight, target=target, check_finite=finite)
        matrix = self._in_memory(data, X)
        if groups is not None:
            groups = np.asarray(groups)
            if groups.shape != (data.n_rows,):
                raise DataTypeError(f"groups: shape {groups.shape}; expected one group for each of {data.n_rows} rows")
        labels = np.asarray(matrix.y)
        labels = _of_one_kind(labels) if labels.dtype == object else labels
        return Rows(X if is_frame(X) else matrix.X, labels, matrix.weight, groups)

    def _coded(self, X: Any) -> Any:
        """A frame with columns of categories as numbers, where the model takes such columns; for checks alone."""
        if not (inner_tags(self, self._base()).input_tags.categorical and is_frame(X)):
            return X
        asked = getattr(self._base(), "categorical_features", "from_dtype")
        name = type(self).__name__
        return LevelEncoder(learn_levels(X, category_columns(X, asked), name), estimator_name=name).encode(X)

    def _in_memory(self, data: Data, X: Any) -> ArrayData:
        if not isinstance(data, ArrayData):
            raise DataTypeError(
                f"X: {type(self).__name__} takes data in memory, which it fits many times; got {type(X).__name__}"
            )
        return data

    def _fit_chosen(self, model: Any, rows: Rows, chosen: np.ndarray) -> dict[str, Any]:
        """Fit the model to the chosen features; returns the attributes for prediction."""
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[chosen] = True
        columns = np.flatnonzero(mask)
        part = Rows(take(rows.X, columns), rows.y, rows.weight)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator = fitted(model, part)
        for w in caught:
            # Features chosen for their score may be collinear; the certificate reports that with their names.
            if not issubclass(w.category, CollinearityWarning):
                self._run.notices.append(w.message if isinstance(w.message, Warning) else UserWarning(w.message))
        self._redundant_ = any(issubclass(w.category, CollinearityWarning) for w in caught)
        return {"support_": mask, "n_features_": len(columns), "estimator_": estimator}

    def _evidence(self, how: str) -> Certificate:
        """Certificate of a greedy search, with that of the model on the chosen features."""
        inner = getattr(self.estimator_, "certificate_", None)
        proven = "" if inner is None or inner.kind == "none" else f"; the model on these features: {inner}"
        doubled = "; the chosen features depend on each other linearly" if self._redundant_ else ""
        return Certificate("none", 0.0, 0.0, f"{how}: no distance from the best subset is known{doubled}{proven}")

    def _draw_sizes(self, ax: Axes, xlabel: str) -> Axes:
        """The cross-validated score against the number of features, with the choice."""
        sizes, scores = self.path_n_features_, self.path_scores_
        band(ax, sizes, scores, self.path_std_errors_, colour="blue", label="cross-validated")
        at = int(np.flatnonzero(sizes == self.n_features_)[0])
        ax.axvline(self.n_features_, color=COLOURS["vermilion"], ls="--", lw=1.2)
        ax.plot(self.n_features_, scores[at], "D", color=COLOURS["vermilion"], ms=7, label="chosen")
        ax.set(xlabel=xlabel, ylabel=self.metric_.replace("_", " "))
        ax.locator_params(axis="x", integer=True)
        ax.legend(loc="best")
        return ax

    # ------------------------------------------------------------------------------------------- selection

    def _get_support_mask(self) -> np.ndarray:
        self._check_fitted()
        return self.support_

    def transform(self, X: Any) -> Any:
        """The chosen features of X.

        Returns
        -------
        array, sparse matrix or data frame of shape (n_samples, n_features_)
        """
        chosen, matrix = self._chosen(X)
        kept = is_frame(X) and _get_output_config("transform", estimator=self)["dense"] != "default"
        return chosen if kept else matrix

    def _chosen(self, X: Any) -> tuple[Any, Any]:
        """The chosen columns in the container of X, and as a matrix."""
        self._check_fitted()
        columns = np.flatnonzero(self.support_)
        coded = self._coded(X)
        finite = not inner_tags(self, self._base()).input_tags.allow_nan
        sparse = get_tags(self).input_tags.sparse
        data = as_data(coded, estimator_name=type(self).__name__, accept_sparse=sparse, check_finite=finite)
        self._check_features(X if isinstance(X, np.ndarray) else coded, data, reset=False)
        matrix = self._in_memory(data, X).X[:, columns]
        if not is_frame(X):
            return matrix, matrix
        if not np.issubdtype(np.asarray(matrix[:0]).dtype, np.number) or coded is not X:
            return (part := take(X, columns)), np.asarray(part)
        return take(X, columns), matrix

    # ------------------------------------------------------------------------------------------- prediction

    @property
    def classes_(self) -> np.ndarray:
        """Classes of the model, where it has any."""
        self._check_fitted()
        return np.asarray(self.estimator_.classes_)

    def _call(self, method: str, X: Any, *args: Any, **given: Any) -> Any:
        chosen, _ = self._chosen(X)
        return getattr(self.estimator_, method)(chosen, *args, **given)

    @where_model_has("predict")
    def predict(self, X: Any) -> Any:
        """Predictions of the model from the chosen features."""
        return self._call("predict", X)

    @where_model_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes from the chosen features."""
        return self._call("predict_proba", X)

    @where_model_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of the classes from the chosen features."""
        return self._call("predict_log_proba", X)

    @where_model_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes from the chosen features."""
        return self._call("decision_function", X)

    @where_model_has("score")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The model's own score on the chosen features: R2 of regressors, accuracy of classifiers."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._call("score", X, y, **given))


def _of_one_kind(labels: np.ndarray) -> np.ndarray:
    """Labels in an array of objects as an array of their own type."""
    values = labels.tolist()
    if not (all(isinstance(v, str) for v in values) or all(isinstance(v, numbers.Number) for v in values)):
        raise DataTypeError("y: Unknown label type: expected strings or numbers, not both or others")
    return np.array(values)


def rounding(scores: np.ndarray) -> float:
    """Differences of scores that are rounding: two ways to add up the same rows differ by less."""
    return 1e-9 * float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))


def chosen_size(sizes: np.ndarray, scores: np.ndarray, errors: np.ndarray, tol: float, one_se: bool) -> int:
    """Index into the path: the fewest features within `tol`, or one standard error, of the best mean score."""
    best = int(np.argmax(scores))
    # The one-standard-error rule of Breiman et al.: the smallest set that is not clearly worse.
    slack = max(tol, rounding(scores), errors[best] if one_se and np.isfinite(errors[best]) else 0.0)
    near = np.flatnonzero(scores >= scores[best] - slack)
    return int(near[np.argmin(sizes[near])])
