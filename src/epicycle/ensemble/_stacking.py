"""Stacking: a final estimator learns from the predictions of others how to combine them.

The members' predictions for its training rows come from cross-validation: the prediction for a row is that of a member
that did not see it, so that the final estimator sees their errors on new rows. The members that predict later are
fitted to all rows.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.core.estimator._parts import misses_certificate, where_part_has
from epicycle.ensemble._base import (
    Ensemble,
    NamedEnsemble,
    checked_metadata,
    errors_of_ours,
    fit_member,
    greedy,
    label_table,
    routing_enabled,
)
from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.linear.ridge._ridge_cv import RidgeCV

# What "auto" takes of a member, the first that it has.
_METHODS = ("predict_proba", "decision_function", "predict")


class Stacking(TransformerMixin, NamedEnsemble, Ensemble):  # type: ignore[misc]  # the mixin is untyped
    """Members, and a final estimator of their cross-validated predictions."""

    _docs: ClassVar[dict[str, str]] = {
        "fit_y": "%(y)s",
        "cv": 'cv : int, splitter, iterable of splits or "prefit", optional\n'
        "    Folds of the cross-validated predictions; None is 5, stratified for a classifier.\n"
        '    "prefit" takes the members as they are, fitted, and their predictions for all rows: give it rows that\n'
        "    they have not seen.",
        "passthrough": "passthrough : bool, default=False\n    Whether the final estimator sees the features as well.",
        "stacking_attributes": "final_estimator_ : estimator\n    The fitted final estimator.\n"
        "stack_method_ : list of str\n    The method of each member that the final estimator sees.\n"
        "certificate_ : Certificate\n"
        "    That of the final estimator, or of the member that is furthest from its own.\n"
        "history_ : History\n"
        "    One row for each member: its last objective, iterations, certificate and seconds, as far as it has them,\n"
        "    and ``error``, that of its cross-validated predictions: the share of wrong classes of a classifier, the\n"
        "    mean squared error of a regressor; NaN where it is not one of these.\n"
        "n_iter_ : int\n    Number of members.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("stacking_attributes",)
    _parameters: ClassVar[dict[str, Domain]] = {
        **NamedEnsemble._parameters,
        "final_estimator": NoneOr(InstanceOf(object)),
        "cv": NoneOr(AnyOf(Integer(2), InstanceOf(object))),
        "passthrough": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="ensemble", catalogue=("D2",), engines=("memory",), certificate="that of the final estimator"
    )

    final_estimator: Any
    cv: Any
    stack_method: str
    passthrough: bool

    final_estimator_: Any
    stack_method_: list[str]
    _widths_: list[int]  # columns of each member's predictions

    def _final(self) -> Any:
        """The final estimator: fitted, given, or that of the class."""
        given = vars(self).get("final_estimator_", self.final_estimator)
        if given is not None:
            return given
        return LogisticRegression() if is_classifier(self) else RidgeCV()

    def _check_final(self) -> None:
        kind, is_of_kind = ("classifier", is_classifier) if is_classifier(self) else ("regressor", is_regressor)
        inner_tags(self, self._final(), "final_estimator")
        if not is_of_kind(self._final()):
            raise ParameterError(
                f"{type(self).__name__}: 'final_estimator' parameter should be a {kind}. Got {self._final()!r:.60}"
            )

    @fitting
    def fit(self, /, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members, and the final estimator to their predictions.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows for the members and the final estimator. Folds are counted in rows: for them a row of
            weight 2 is one row.
        """
        params = checked_metadata({"sample_weight": sample_weight, **fit_params}, self, "fit")
        named = self._checked_members()
        self._check_final()
        y = self._fit_data(X, y)
        routed = self._routed(params, [name for name, _ in named])
        cv = None if self._prefit else self._splits(y)

        def work(i: int) -> tuple[Any, Any]:
            name, member = named[i]
            if cv is None:
                _check_prefit(name, member)
                return member, getattr(member, self._method_of(name, member))(X)
            fitted, method = fit_member(clone(member), X, y, routed[name]), self._method_of(name, member)
            return fitted, cross_val_predict(clone(member), X, y, cv=deepcopy(cv), method=method, params=routed[name])

        def methods(n: int) -> list[str]:
            return [self._method_of(*pair) for pair in named[:n]]

        self.estimators_, predictions, solution = self._fit_members(
            len(named), work, lambda fitted: {"estimators_": fitted, "stack_method_": methods(len(fitted))}
        )
        self.stack_method_ = methods(len(self.estimators_))
        self._take_names()
        table = self._table(X, predictions)
        self.final_estimator_ = fit_member(clone(self._final()), table, y, params)
        errors = [self._error(m, p, y) for m, p in zip(self.estimators_, predictions, strict=True)]
        solution.history = History(**{**solution.history, "error": np.asarray(errors)})
        if not misses_certificate(solution):
            solution.certificate = self._final_certificate()
            solution.reason = "max_iter" if misses_certificate(self.final_estimator_) else solution.reason
        self._conclude(solution)
        return self

    @property
    def _prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _splits(self, y: np.ndarray) -> Any:
        with errors_of_ours():
            cv = check_cv(self.cv, y=y, classifier=is_classifier(self))
        if getattr(cv, "random_state", 0) is None:  # all members see the same folds
            cv.random_state = np.random.RandomState()
        return cv

    def _final_certificate(self) -> Certificate:
        found = getattr(self.final_estimator_, "certificate_", None)
        if found is None or found.kind == "none":
            return greedy("the final estimator gives no certificate; history_.error has the errors of the members")
        return Certificate(found.kind, found.value, found.tolerance, f"the final estimator: {found.meaning}")

    def _method_of(self, name: str, member: Any) -> str:
        asked = _METHODS if self.stack_method == "auto" else (self.stack_method,)
        found = next((method for method in asked if hasattr(member, method)), None)
        if found is None:
            raise ParameterError(
                f"{type(self).__name__}: Underlying estimator {name} does not implement the method "
                f"{' or '.join(asked)}."
            )
        return found

    def _error(self, member: Any, prediction: Any, y: np.ndarray) -> float:
        """The error of cross-validated predictions; NaN where they are neither classes nor numbers."""
        if isinstance(prediction, list) or y.ndim > 1:
            return np.nan
        prediction = np.asarray(prediction)
        if is_classifier(member):
            if prediction.ndim == 2:
                prediction = prediction.argmax(axis=1)
            elif prediction.dtype.kind == "f":
                prediction = (prediction > 0).astype(int)
            return float(np.mean(prediction != y)) if prediction.shape == y.shape else np.nan
        same = is_regressor(member) and prediction.shape == y.shape
        return float(np.mean((prediction - y) ** 2)) if same else np.nan

    def _table(self, X: Any, predictions: list[Any]) -> Any:
        """The predictions side by side, and with `passthrough` the features.

        Of the probabilities of two classes, or of each of several labels, the first is left out: it is one less the
        others.
        """
        columns: list[Any] = []
        widths = []
        for method, prediction in zip(self.stack_method_, predictions, strict=True):
            if isinstance(prediction, list):
                part = np.hstack([np.asarray(shares)[:, 1:] for shares in prediction])
            else:
                part = np.asarray(prediction)
                part = part.reshape(-1, 1) if part.ndim == 1 else part
                if method == "predict_proba" and self._two_classes() and part.shape[1] == 2:
                    part = part[:, 1:]
            columns.append(part)
            widths.append(part.shape[1])
        self._widths_ = widths
        if self.passthrough and sp.issparse(X):
            return sp.hstack([*columns, X], format=X.format)
        return np.hstack([*columns, X] if self.passthrough else columns)

    def _two_classes(self) -> bool:
        classes = getattr(self, "classes_", None)
        return isinstance(classes, np.ndarray) and len(classes) == 2

    # ------------------------------------------------------------------------------------------- prediction

    def transform(self, X: Any) -> Any:
        """Return the predictions of the members, as the final estimator sees them."""
        return self._inputs(X)

    def _inputs(self, X: Any) -> Any:
        """The same, an array also where :meth:`transform` gives frames."""
        self._check_fitted()
        found: list[Any] = []
        parts = list(zip(self.estimators_, self.stack_method_, strict=True))
        self._in_order(len(parts), lambda i: getattr(parts[i][0], parts[i][1])(X), found.append)
        return self._table(X, found)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of :meth:`transform`: class name, member, and number of the column."""
        self._check_fitted()
        features = _check_feature_names_in(self, input_features, generate_names=self.passthrough)
        kept = [name for name, member in self._named() if not isinstance(member, str)]
        prefix, names = type(self).__name__.lower(), []
        for name, width in zip(kept, self._widths_, strict=True):
            numbers = [""] if width == 1 else range(width)
            names += [f"{prefix}_{name}{i}" for i in numbers]
        return np.asarray([*names, *features] if self.passthrough else names, dtype=object)

    @where_part_has("predict", _final)
    def predict(self, X: Any, **predict_params: Any) -> Any:
        """Predict by the final estimator, whose `predict` gets further arguments."""
        self._check_fitted()
        if routing_enabled():
            predict_params = process_routing(self, "predict", **predict_params)["final_estimator_"]["predict"]
        return self._decoded(self.final_estimator_.predict(self._inputs(X), **predict_params))

    def _decoded(self, predicted: Any) -> Any:
        return predicted

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of metadata of the members and of the final estimator."""
        mapping = MethodMapping().add(caller="predict", callee="predict")
        return self._router().add(final_estimator_=self._final(), method_mapping=mapping)


def _check_prefit(name: str, member: Any) -> None:
    try:
        check_is_fitted(member)
    except SklearnNotFittedError as error:
        raise NotFittedError(f"estimators: {name}, with cv='prefit': {error}") from None


class StackingClassifier(ClassifierMixin, Stacking):  # type: ignore[misc]  # the mixin is untyped
    r"""A classifier of the predictions of other estimators.

    .. math:: \hat y(x) = g\bigl(f_1(x), \ldots, f_M(x)\bigr)

    The final classifier g learns from cross-validated predictions of the members, which are then fitted to all rows.

    Parameters
    ----------
    %(estimators)s
        Regressors are taken too.
    final_estimator : estimator, optional
        g; by default :class:`LogisticRegression`.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What the final estimator sees of the members; "auto" takes the first of these that a member has.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        The class labels, sorted; of a table of labels those of every column. Members are fitted to their numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import DecisionTreeClassifier, KNeighborsClassifier, StackingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> members = [("tree", DecisionTreeClassifier(max_depth=4)), ("neighbours", KNeighborsClassifier())]
    >>> model = StackingClassifier(members).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.92
    """

    _parameters: ClassVar[dict[str, Domain]] = {**Stacking._parameters, "stack_method": Choice("auto", *_METHODS)}

    @stores_arguments(n_jobs=None, verbose=0)
    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        passthrough: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    classes_: Any

    def _encoded(self, y: Any, n: int) -> np.ndarray:
        table = label_table(y)
        if table is not None:
            found = [np.unique(column, return_inverse=True) for column in table.T]
            self.classes_ = [labels for labels, _ in found]
            return np.stack([codes for _, codes in found], axis=1)
        return super()._encoded(y, n)

    def _decoded(self, predicted: Any) -> Any:
        if isinstance(self.classes_, list):
            columns = np.asarray(predicted).T.astype(np.intp)
            return np.stack([labels[codes] for labels, codes in zip(self.classes_, columns, strict=True)], axis=1)
        return self.classes_[np.asarray(predicted).astype(np.intp)]

    @where_part_has("predict_proba", Stacking._final)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the final estimator; of a table of labels, for each the share of its first."""
        self._check_fitted()
        shares = self.final_estimator_.predict_proba(self._inputs(X))
        return np.stack([one[:, 0] for one in shares], axis=1) if isinstance(shares, list) else np.asarray(shares)

    @where_part_has("decision_function", Stacking._final)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the final estimator."""
        self._check_fitted()
        return np.asarray(self.final_estimator_.decision_function(self._inputs(X)))


class StackingRegressor(RegressorMixin, Stacking):  # type: ignore[misc]  # the mixin is untyped
    r"""A regression on the predictions of other regressors.

    .. math:: \hat y(x) = g\bigl(f_1(x), \ldots, f_M(x)\bigr)

    The final regressor g learns from cross-validated predictions of the members, which are then fitted to all rows.

    Parameters
    ----------
    final_estimator : estimator, optional
        g; by default :class:`RidgeCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import KNeighborsRegressor, Ridge, StackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackingRegressor([("ridge", Ridge(alpha=0.1)), ("neighbours", KNeighborsRegressor())]).fit(X, y)
    >>> bool(model.history_.error.min() < y.var())
    True
    """

    _members_are = "regressor"
    stack_method = "predict"

    @stores_arguments(n_jobs=None, verbose=0)
    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        passthrough: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...
