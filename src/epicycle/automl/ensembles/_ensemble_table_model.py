"""EnsembleTableModel: the weighted mean of several models of the same table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from epicycle.automl.tables._table_encoder import TableEncoder
from epicycle.automl.tables._table_model import TableModel, innermost
from epicycle.automl.tables._tables import as_table
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import NotFittedError, ParameterError
from epicycle.core._history import History
from epicycle.core.estimator._estimator import stores_arguments


class EnsembleTableModel(TableModel):
    """The weighted mean of the predictions, or of the probabilities, of several :class:`TableModel`.

    Parameters
    ----------
    members : list of TableModel
        Of the same columns and target, the heaviest first.
    weights : list of float
        Positive, with the sum 1.

    Attributes
    ----------
    models_ : list of TableModel
        The members, fitted.
    residuals_ : ndarray
        As of a :class:`TableModel`: sizes of the errors of the mean on rows that the fits had not seen.

    Examples
    --------
    >>> import epicycle as ep
    >>> table = ep.training.read_table("iris")
    >>> kinds = {**dict.fromkeys(table.column_names, "number"), "species": "target"}
    >>> members = [ep.TableModel(one, kinds) for one in (ep.LogisticRegression(), ep.KNeighborsClassifier())]
    >>> model = ep.training.EnsembleTableModel(members, [0.7, 0.3]).fit(table)
    >>> print(round(model.score(table), 3))
    0.967
    """

    members: Any
    weights: Any
    models_: list[TableModel]

    @stores_arguments
    def __init__(self, members: Any, weights: Any) -> None: ...

    # What a table model stores of itself is here that of the first member.

    @property
    def estimator(self) -> Any:
        """The method of the first member."""
        return self.members[0].estimator

    @property
    def columns(self) -> Any:
        """Kinds of the columns of the first member."""
        return self.members[0].columns

    @property
    def encoder_(self) -> TableEncoder:  # type: ignore[override]
        """The encoder of the first member."""
        self._check_fitted()
        return self.models_[0].encoder_

    @property
    def model_(self) -> Any:
        """The fitted method of the first member."""
        self._check_fitted()
        return self.models_[0].model_

    def _check_fitted(self) -> None:
        if "models_" not in self.__dict__:
            raise NotFittedError("this EnsembleTableModel is not fitted yet; call fit first")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EnsembleTableModel:
        """Fit all members.

        Parameters
        ----------
        X, y, sample_weight : as for :class:`TableModel`

        Returns
        -------
        self
            The fitted ensemble.
        """
        check_members(self.members, self.weights)
        table = as_table(X)
        models = []
        for member in self.members:
            takes = sample_weight is None or has_fit_parameter(innermost(member.estimator), "sample_weight")
            models.append(clone(member).fit(table, y, sample_weight if takes else None))
        return self.of_fitted(models)

    def of_fitted(self, models: Sequence[TableModel]) -> EnsembleTableModel:
        """Take members that are fitted already.

        Parameters
        ----------
        models : list of TableModel
            In the order of `members`.

        Returns
        -------
        self
            The fitted ensemble.
        """
        self.models_ = list(models)
        self.n_features_in_ = models[0].n_features_in_
        return self

    def _mean(self, method: str, X: Any) -> np.ndarray:
        self._check_fitted()
        table = as_table(X)
        parts = [weight * getattr(one, method)(table) for one, weight in zip(self.models_, self.weights, strict=True)]
        return np.asarray(sum(parts))

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows: the mean of the members, or the class with the largest mean probability.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if not is_classifier(self):
            return self._mean("predict", X)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(lambda self: is_classifier(self))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean probabilities of the classes.

        Parameters
        ----------
        X : as for :meth:`fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._mean("predict_proba", X)

    @available_if(lambda _: False)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Margins of different methods have no common scale: there is none."""
        raise NotImplementedError

    @property
    def certificate_(self) -> Certificate:
        """None of the whole: a mean minimises nothing. Each member has its own."""
        self._check_fitted()
        held = sum(one.certificate_.kind != "none" and one.certificate_.holds for one in self.models_)
        meaning = f"a weighted mean of {len(self.models_)} models minimises nothing; the certificates of {held} hold"
        return Certificate("none", np.nan, np.nan, meaning)

    @property
    def history_(self) -> History:
        """Iterations of the first member."""
        self._check_fitted()
        return self.models_[0].history_


def check_members(members: Any, weights: Any) -> None:
    """Refuse members that are no table models, and weights that are not theirs."""
    if not isinstance(members, list | tuple) or not members or not all(isinstance(m, TableModel) for m in members):
        raise ParameterError(f"members={members!r:.60}; expected a list of TableModel")
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(members),) or not (values > 0).all() or abs(values.sum() - 1) > 1e-9:
        raise ParameterError(f"weights={weights!r:.60}; expected {len(members)} positive numbers whose sum is 1")
    if len({bool(is_classifier(member)) for member in members}) > 1:
        raise ParameterError("members: some classes and some numbers are predicted; expected one of the two")
