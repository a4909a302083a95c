"""TableModel: an estimator behind an encoder of table columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from epicycle.automl.images._image_folder import places_of
from epicycle.automl.tables._columns import target_values
from epicycle.automl.tables._level_means import LevelMeans
from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._tables import as_table
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core._saved import Saved
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags


def _has(name: str) -> Any:
    def check(self: Any) -> bool:
        return hasattr(self.__dict__.get("model_", self.estimator), name)

    return check


class TableModel(Saved, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator behind a :class:`TableEncoder`, for tables with named columns.

    Parameters
    ----------
    estimator : regressor, classifier or clustering
        Trees get the indices of the categorical features.
    columns : "auto" or dict of str, default="auto"
        Kind of each column, as for :class:`TableEncoder`. A column of the kind "target" is the target where `fit` gets
        no y.
    form : {"auto", "trees", "linear", "compact"}, default="auto"
        "auto" is "trees" for estimators that take missing values.
    max_levels, sparse, dtype, absent, scale
        As for :class:`TableEncoder`.

    Attributes
    ----------
    encoder_ : TableEncoder
    model_ : estimator
        Fitted to the matrix that the encoder gives.
    classes_ : ndarray
        Of classifiers.
    certificate_, history_
        Those of `model_`.
    residuals_ : ndarray
        Sizes of the errors on rows that the fits had not seen, in ascending order: what `predict_interval` adds. Of
        regressions that :func:`epicycle.train` made.

    Examples
    --------
    >>> import epicycle as ep
    >>> table = ep.training.read_table("iris")
    >>> kinds = {**dict.fromkeys(table.column_names, "number"), "species": "target"}
    >>> model = ep.TableModel(ep.LogisticRegression(), kinds)
    >>> print(round(model.fit(table).score(table), 3))
    0.973
    """

    encoder_: TableEncoder
    model_: Any

    @stores_arguments
    def __init__(
        self,
        estimator: Any,
        columns: Any = "auto",
        *,
        form: str = "auto",
        max_levels: int | None = None,
        sparse: bool = False,
        dtype: str = "float64",
        absent: str = "error",
        scale: str = "each",
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), inner_tags(self, self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    @property
    def target(self) -> str | None:
        """Name of the target column, where `columns` has one."""
        if not isinstance(self.columns, dict):
            return None
        return next((name for name, kind in self.columns.items() if kind == "target"), None)

    def new_encoder(self) -> TableEncoder:
        """The encoder that `fit` uses, not fitted."""
        tags, form = inner_tags(self, self.estimator), self.form
        if form == "auto":
            # Trees take missing values and codes of levels; other models need numbers without gaps.
            form = "trees" if tags.input_tags.allow_nan else "linear"
        shared = {name: getattr(self, name) for name in ("columns", "max_levels", "sparse", "dtype", "absent", "scale")}
        return TableEncoder(form=form, **shared)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableModel:
        """Fit the encoder, then the model.

        Parameters
        ----------
        X : frame of pandas, polars or Arrow, or array
        y : array-like, optional
            By default the column of the kind "target"; rows where that is missing are then left out.
        sample_weight : array-like, optional

        Returns
        -------
        self
            The fitted model.
        """
        if y is None and self._has_target:
            table, y = self._with_target(X)
            X = table
        encoder = self.new_encoder().fit(X, sample_weight=sample_weight)
        target = None if y is None else np.asarray(y)
        return self.fit_encoded(encoder, encoder.transform(X), target, sample_weight)

    @property
    def _has_target(self) -> bool:
        """Whether the estimator learns a target, as a clustering does not."""
        return bool(inner_tags(self, self.estimator).target_tags.required)

    def fit_encoded(
        self, encoder: TableEncoder, features: Any, y: np.ndarray | None, sample_weight: Any = None
    ) -> TableModel:
        """Fit to features that were already encoded.

        Parameters
        ----------
        encoder : TableEncoder
            As :meth:`new_encoder` gives it, fitted.
        features : ndarray or csr_array
            Of the rows to learn from.
        y : ndarray, or None for a clustering
        sample_weight : array-like, optional

        Returns
        -------
        self
            The fitted model.
        """
        model = with_categories(clone(self.estimator), encoder)
        # One that transforms the target hands the weights on.
        if sample_weight is not None and not has_fit_parameter(innermost(model), "sample_weight"):
            raise ParameterError(f"sample_weight: {type(innermost(model)).__name__} takes none")
        weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight, dtype=np.float64)}
        self.model_ = model.fit(features, y, **weights)
        self.encoder_ = encoder
        self.n_features_in_ = encoder.n_features_in_
        return self

    def _with_target(self, X: Any) -> tuple[Any, np.ndarray]:
        if self.target is None:
            raise ParameterError("requires y to be passed, but the target y is None and columns names none")
        table = as_table(X)
        if self.target not in table.column_names:
            raise DataError(f"X: has no column {self.target!r}, the target")
        return table, target_values(table[self.target], classes=bool(is_classifier(self)), name=self.target)

    def _features(self, X: Any) -> Any:
        self._check_fitted()
        return self.encoder_.transform(X)

    def _check_fitted(self) -> None:
        try:
            check_is_fitted(self, "model_")
        except ValueError as error:
            raise NotFittedError(str(error)) from None

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        features = self._features(X)
        return np.asarray(self.model_.predict(features))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            A list of them where the model has several labels.
        """
        features = self._features(X)  # checks that there is a model
        probabilities = self.model_.predict_proba(features)
        return probabilities if isinstance(probabilities, list) else np.asarray(probabilities)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray
        """
        features = self._features(X)
        return np.asarray(self.model_.decision_function(features))

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Intervals that hold the targets of new rows with the probability `level` (split conformal prediction).

        The prediction, plus and minus the size of error that a share `level` of unseen rows stayed below. For rows like
        those of the training set, in any order, they hold as often as they say, whatever the model.

        Parameters
        ----------
        X : as for :meth:`fit`
        level : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Infinite where the errors are too few for the level.
        """
        half = half_width(self._residuals(), level)
        predicted = self.predict(X)
        return np.column_stack([predicted - half, predicted + half])

    def _residuals(self) -> np.ndarray:
        self._check_fitted()
        found = getattr(self, "residuals_", None)
        if found is None:
            raise ParameterError(
                "predict_interval: this model has no errors of unseen rows; expected a regression of epicycle train"
            )
        return np.asarray(found)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of classifiers, R2 of regressors; of a clustering what its own `score` says.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`

        Returns
        -------
        float
        """
        if y is None and not self._has_target:
            return float(self.model_.score(self._features(X)))
        if y is None:
            X, y = self._with_target(X)
        metric = accuracy_score if is_classifier(self) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    @property
    def classes_(self) -> Any:
        """The classes, in the order of the columns of probabilities."""
        self._check_fitted()
        classes = self.model_.classes_
        return classes if isinstance(classes, list) else np.asarray(classes)

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the model."""
        self._check_fitted()
        return getattr(self._solved, "certificate_", Certificate("none", np.nan, np.nan, "the model gives none"))

    @property
    def history_(self) -> History:
        """Iterations of the fit."""
        self._check_fitted()
        return getattr(self._solved, "history_", History())

    @property
    def _solved(self) -> Any:
        """The model whose optimum was computed, inside one that transforms the target."""
        return innermost(self.model_)


def innermost(model: Any) -> Any:
    """The method inside a model that takes means of levels or transforms the target; fitted where the model is."""
    if isinstance(model, LevelMeans):
        model = getattr(model, "estimator_", model.estimator)
    if isinstance(model, TransformedTargetRegressor):
        model = getattr(model, "regressor_", model.regressor)
    return model


def half_width(residuals: np.ndarray, level: float) -> float:
    """The least width that enough of n sorted errors stay below: the ceil((n + 1) level)-th of them."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise ParameterError(f"level={level!r}; expected a probability between 0 and 1")
    rank = int(np.ceil((len(residuals) + 1) * level - 1e-9))
    return float(residuals[rank - 1]) if rank <= len(residuals) else float("inf")


def with_categories(estimator: Any, encoder: TableEncoder) -> Any:
    """The estimator with the indices of the categorical features as a parameter, where it takes one.

    Where a category has too many levels for that it learns from the means of the target at each level too.
    """
    inner = getattr(estimator, "regressor", estimator)  # of one that transforms the target
    if encoder.form == "trees" and "categorical_features" in inner.get_params(deep=False):
        inner.set_params(categorical_features=list(encoder.categorical_) or None)
    if "places" in inner.get_params(deep=False):  # of a network of pixels
        inner.set_params(places=places_of(encoder.get_feature_names_out()))
    if encoder.form == "trees" and encoder.wide_ and (is_classifier(estimator) or is_regressor(estimator)):
        return LevelMeans(estimator, encoder.wide_)
    return estimator
