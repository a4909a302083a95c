"""Classification by ridge regression: a target of +1 for a class and -1 for the others, one column for each class.

minimise  1/2 sum_i v_i |t_i - b - W x_i|^2 + alpha/2 |W|^2; two classes share one column, and a row belongs to the
class of the largest score. The rows of a class may weigh more than others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._dask_data import is_dask
from epicycle.linear.least_squares._base import SOLVER_PARAMETERS, LeastSquaresModel, fit_by_solver
from epicycle.linear.ridge._base import PENALTY_PARAMETERS, VALIDATION_PARAMETERS, BaseRidge
from epicycle.linear.ridge._validation import fit_by_validation
from epicycle.stats._class_scores import choose_class, linear_predictor, predictor_batch
from epicycle.stats._labels import class_weights, codes, encode_labels, label_table


def signed_columns(y: np.ndarray, n_classes: int) -> np.ndarray:
    """+1 in the column of a row's class and -1 elsewhere, from codes; one column, of the second, for two classes."""
    if n_classes <= 2:
        return np.where(y > 0, 1.0, -1.0)[:, None]
    columns = np.full((len(y), n_classes), -1.0)
    columns[np.arange(len(y)), np.asarray(y, dtype=np.intp)] = 1.0
    return columns


def label_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray, table: bool) -> np.ndarray:
    """The class of every row, or zeros and ones for every label."""
    scores = predictor_batch(batch, coef, intercept)
    return np.asarray(scores > 0, dtype=np.int64) if table else choose_class(scores, classes)


class RidgeLabels(ClassifierMixin, LeastSquaresModel):  # type: ignore[misc]
    """Base of the classifiers: labels become columns of +1 and -1, and scores become labels."""

    _docs: ClassVar[Mapping[str, str]] = {
        "fit_y": """y : array-like of shape (n_samples,), or table of zeros and ones of shape (n_samples, n_labels)
    Class labels; or a column for each of several labels.""",
        "class_weight": """class_weight : dict, "balanced" or None, default={default}
    Factors of the weights of rows, by class; "balanced" gives every class the same weight in all. For X in memory.""",
        "classes_": """classes_ : ndarray of shape (n_classes,)
    The classes, or the numbers of the columns of a table of labels.""",
        "coef_": """coef_ : ndarray of shape (n_features,) for two classes, else (n_classes, n_features)
intercept_ : ndarray of shape (1,) or (n_classes,); 0.0 without an intercept""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("classes_",)
    class_weight: Any
    classes_: np.ndarray
    #: Whether y was a table of labels.
    _multilabel_: bool
    _flattens: ClassVar[bool] = True
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"classifier_tags.multi_label": True}

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        table = None if is_dask(X) else label_table(y)
        self._multilabel_ = table is not None
        if table is not None:
            data = self._fit_data(X, table, sample_weight, target="numeric", multi_output=True)
            self.classes_ = np.arange(table.shape[1])
            signed: Data = self._reweighted(data.encode_target(_signed_table), table)
            return signed
        data = self._fit_data(X, y, sample_weight, target="labels")
        self.classes_, totals, coded = encode_labels(data, type(self).__name__, self.n_jobs, at_least=1)
        factors = class_weights(self.class_weight, self.classes_, totals)
        K = len(self.classes_)
        encoded = coded.encode_target(partial(signed_columns, n_classes=K), n_columns=1 if K <= 2 else K)
        if factors is None:
            return encoded
        if not isinstance(data, ArrayData):
            raise ParameterError(f"class_weight={self.class_weight!r}: is for X in memory; expected None")
        return _weighted(encoded, factors[codes(np.asarray(data.y), self.classes_)])

    def _reweighted(self, data: Any, table: np.ndarray) -> Any:
        """The rows of a table of labels, balanced column by column."""
        if self.class_weight is None:
            return data
        if self.class_weight != "balanced":
            raise ParameterError(
                f"class_weight={self.class_weight!r}: is for one label a row; expected 'balanced' or None for a table"
            )
        weight = np.ones(len(table)) if data.weight is None else data.weight
        factor = np.ones(len(table))
        for column in table.T:
            totals = np.bincount(column, weights=weight, minlength=2)
            factor *= np.where(totals > 0, totals.sum() / (2 * np.where(totals > 0, totals, 1.0)), 1.0)[column]
        return _weighted(data, factor)

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(W, b) of shapes (n_columns, n_features) and (n_columns,)."""
        coef = np.atleast_2d(self.coef_)
        return coef, np.full(len(coef), self.intercept_, dtype=coef.dtype)

    def decision_function(self, X: Any) -> Any:
        """Scores b + W x: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        scores = linear_predictor(self._predict_data(X), *self._linear(), self.n_jobs)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of the largest score of every row; zeros and ones for every label where y was a table."""
        data = self._predict_data(X)
        return engine.map(label_batch, data, *self._linear(), self.classes_, self._multilabel_, n_jobs=self.n_jobs)


def _signed_table(y: np.ndarray) -> np.ndarray:
    return 2.0 * y - 1.0


def _weighted(data: Any, factor: np.ndarray) -> ArrayData:
    weight = factor if data.weight is None else data.weight * factor
    return ArrayData(data.X, data.y, weight, feature_names=data.feature_names)


class RidgeClassifier(RidgeLabels, BaseRidge):
    r"""Classifier that fits +1 for a class and -1 for all others by ridge regression.

    .. math:: \min_{W, b} \; \tfrac12 \sum_i v_i \, \|t_i - b - W x_i\|^2 + \tfrac{\alpha}{2} \, \|W\|^2 , \qquad
              t_{ik} = \begin{cases} +1 & y_i = k \\ -1 & \text{otherwise} \end{cases}

    One factorisation serves all classes, so that it is fast for many of them. The scores are no probabilities.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.

    Attributes
    ----------
    effective_dof_ : ndarray
        Trace of the hat matrix, the intercept among it, for each column of targets; up to 2,000 features.

    See Also
    --------
    RidgeClassifierCV : chooses alpha by cross-validation.
    LogisticRegression : probabilities of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_.holds
    (0.853, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SOLVER_PARAMETERS,
        **PENALTY_PARAMETERS,
        "alpha": Real(minimum=0),
        "class_weight": NoneOr(AnyOf(Choice("balanced"), InstanceOf(dict))),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A6", "A10"),
        engines=("memory", "files", "dask"),
        certificate="newton decrement or duality gap",
    )

    @stores_arguments(fit_intercept=True, max_iter=1000, tol=1e-10, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty_weights: Any = None,
        penalty_matrix: Any = None,
        copy_X: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        positive: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        fit_by_solver(self, self._training_data(X, y, sample_weight))
        return self


class RidgeClassifierCV(RidgeLabels, BaseRidge):
    r"""Ridge classifier that chooses alpha by cross-validation, by default exact leave-one-out.

    .. math:: \min_{W, b} \; \tfrac12 \sum_i v_i \, \|t_i - b - W x_i\|^2 + \tfrac{\alpha}{2} \, \|W\|^2 , \qquad
              t_{ik} = \begin{cases} +1 & y_i = k \\ -1 & \text{otherwise} \end{cases}

    One factorisation serves all alphas and all classes.

    Parameters
    ----------
    scoring : str or callable, optional
        A scorer of scikit-learn's on rows that are left out. By default the squared errors of the columns of targets,
        and with `cv` the accuracy.
    cv : int, splitter or iterable of (train, test), optional
        Folds instead of leave-one-out; a number makes folds with all classes in each.
    store_cv_results : bool, default=False
        Whether `cv_results_` is kept, a number for each row, column of targets and alpha; for leave-one-out.

    Attributes
    ----------
    alpha_ : float
        What was chosen.
    best_score_ : float
        Its score.
    %(grid)s
    scores_ : ndarray of shape (n_alphas,)
        Score of every alpha, the larger the better.
    fold_scores_ : ndarray of shape (n_alphas, n_folds)
        With `cv`: the score of every fold.
    cv_results_ : ndarray of shape (n_samples, n_targets, n_alphas)
        With `store_cv_results`: squared errors of rows that are left out, times their weights; with `scoring` their
        scores.
    effective_dof_ : ndarray
        Those of the chosen one, for each column of targets; up to 2,000 features.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV().fit(X, y)
    >>> round(model.score(X, y), 3), model.coef_.shape
    (0.961, (30,))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **VALIDATION_PARAMETERS,
        "class_weight": NoneOr(AnyOf(Choice("balanced"), InstanceOf(dict))),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A6", "A10"), engines=("memory", "files", "dask"), certificate="newton decrement"
    )
    #: Every class has the same alpha: scores of classes are compared.
    alpha_per_target: ClassVar[bool] = False
    criterion = "loo"

    @stores_arguments(fit_intercept=True, tol=1e-10, n_jobs=None, verbose=0)
    def __init__(
        self,
        alphas: Any = None,
        *,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        penalty_weights: Any = None,
        penalty_matrix: Any = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose alpha and fit to all rows."""
        fit_by_validation(self, self._training_data(X, y, sample_weight))
        return self
