"""Classification by a vote of the nearest rows, or of those within a radius."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, MultiOutputMixin

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._parameters import AnyOf, ArrayLike, Domain, InstanceOf, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._target import as_labels
from epicycle.neighbors._base import NeighborsEstimator
from epicycle.neighbors._voters import KNeighborsPredictor, RadiusNeighborsPredictor, Voters
from epicycle.spatial._options import SearchArguments
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import codes, distinct


class _VotingClassifier(MultiOutputMixin, ClassifierMixin, NeighborsEstimator):  # type: ignore[misc]  # untyped mixins
    """Labels of the rows, one or several for each, and votes of neighbours."""

    _docs: ClassVar[Mapping[str, str]] = {
        "label_attributes": """classes_ : ndarray of shape (n_classes,), or list of them
    The labels; a list, one for each column, where y has several.
outputs_2d_ : bool
    Whether y has several columns.""",
        "probabilities": """Parameters
----------
%(left_out)s

Returns
-------
ndarray of shape (n_queries, n_classes), or list of them
    A list, one for each column of y, where it has several.""",
        "predictions": "ndarray of shape (n_queries,) or (n_queries, n_outputs)",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("label_attributes",)

    classes_: Any

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep rows X and labels y, of shape (n_samples,) or (n_samples, n_outputs)."""
        columns = None if y is None or sp.issparse(y) else np.asarray(y)
        if columns is None or columns.ndim != 2 or columns.shape[1] == 1:
            data = self._keep_rows(X, y, target="labels")
            labels = [np.asarray(data.y)]
            self.outputs_2d_ = False
        else:
            if columns.shape[1] == 0:
                raise DataError(f"y: has no columns (shape {columns.shape})")
            data = self._keep_rows(X, None, target="none")
            labels = [as_labels(column, data.n_rows, estimator_name=type(self).__name__) for column in columns.T]
            self.outputs_2d_ = True
        classes = [distinct(column) for column in labels]
        found = [_codes(column, known) for column, known in zip(labels, classes, strict=True)]
        self.classes_, self._codes_ = (classes, np.column_stack(found)) if self.outputs_2d_ else (classes[0], found[0])
        self._label_outliers()
        self._conclude_exact()
        return self

    def _label_outliers(self) -> None:
        """Choose the labels of queries without neighbours, where there can be any."""

    def _outputs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(classes, codes of the rows) of each column of y."""
        if not self.__dict__.get("outputs_2d_", False):
            return [(self.classes_, self._codes_)]
        return list(zip(self.classes_, self._codes_.T, strict=True))

    @abstractmethod
    def _voters(self, X: Any) -> Voters:
        """The neighbours of the queries."""

    def predict_proba(self, X: Any = None) -> Any:
        """Shares of the votes, in the order of `classes_`.

        %(probabilities)s
        """
        shares = self._shares(X)
        return shares if self.__dict__.get("outputs_2d_", False) else shares[0]

    def predict(self, X: Any = None) -> np.ndarray:
        """The class with the most votes.

        %(prediction)s
        """
        shares, chosen, outliers = self._shares(X), [], vars(self).get("outlier_label_")
        for column, ((classes, _), share) in enumerate(zip(self._outputs(), shares, strict=True)):
            labels = choose_class(share, classes)
            outside = ~share.any(axis=1)
            if outside.any() and outliers is not None:
                label = outliers[column]
                labels = labels.astype(np.result_type(labels, np.asarray(label)))
                labels[outside] = label
            chosen.append(labels)
        return np.column_stack(chosen) if self.__dict__.get("outputs_2d_", False) else chosen[0]

    def _shares(self, X: Any) -> list[np.ndarray]:
        voters = self._voters(X)
        alone, outliers = np.flatnonzero(voters.counts == 0), vars(self).get("outlier_label_")
        if len(alone) and outliers is None:
            raise DataError(
                f"No neighbors found for test samples {alone[:10]}: {len(alone)} rows of X have none within the "
                "radius; use a larger radius, or give outlier_label"
            )
        shares = [voters.shares(known, len(classes)) for classes, known in self._outputs()]
        if len(alone):
            for label, share, (classes, _) in zip(outliers or [], shares, self._outputs(), strict=True):
                place = np.flatnonzero(classes == label)
                share[alone[:, None], place[None, :1]] = 1.0
                if not len(place):
                    warnings.warn(
                        f"Outlier label {label} is not in training classes. All class probabilities of outliers will "
                        "be assigned with 0.",
                        stacklevel=4,
                    )
        return shares

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right predictions; X may be None for the rows of the fit, each predicted from the others."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.zeros(len(y), dtype=np.intp) if len(classes) == 1 else codes(y, labels=classes)


class KNeighborsClassifier(KNeighborsPredictor, _VotingClassifier):
    r"""A vote of the k nearest rows.

    .. math:: P(y = c \mid q) = \frac{\sum_{i \in N_k(q)} w_i \, [y_i = c]}{\sum_{i \in N_k(q)} w_i}

    Among classes with equally many votes the first in `classes_` wins. A fitted object keeps the training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier(n_neighbors=5).fit(X, y)
    >>> round(model.score(X, y), 3), round(model.score(None, y), 3)  # as fitted, and with every row left out
    (0.967, 0.967)
    """


class RadiusNeighborsClassifier(RadiusNeighborsPredictor, _VotingClassifier):
    r"""A vote of the rows within a radius.

    .. math:: P(y = c \mid q) = \frac{\sum_{i: d(x_i, q) \leq r} w_i \, [y_i = c]}{\sum_{i: d(x_i, q) \leq r} w_i}

    Among classes with equally many votes the first in `classes_` wins. A fitted object keeps the training rows.

    Parameters
    ----------
    outlier_label : label, list of labels, "most_frequent" or None, default=None
        The label of queries without a row in the radius, for each column of y. A label that is not in y has no
        probability. None: such queries are refused.

    Attributes
    ----------
    outlier_label_ : list of labels or None
        The label of queries without neighbours for each column of y.

    Examples
    --------
    >>> from epicycle import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(radius=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[1.5]]), model.predict_proba([[1.0]]).round(3)
    (array([0]), array([[0.667, 0.333]]))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **RadiusNeighborsPredictor._parameters,
        "outlier_label": NoneOr(AnyOf(InstanceOf(int, np.integer, str), ArrayLike())),
    }

    @stores_arguments(algorithm="auto", leaf_size=30, p=2, metric="minkowski", metric_params=None, n_jobs=None)
    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        outlier_label: Any = None,
        **shared: Unpack[SearchArguments],
    ) -> None: ...

    def _label_outliers(self) -> None:
        self.outlier_label_: list[Any] | None = None
        given, outputs = self.outlier_label, self._outputs()
        if given is None:
            return
        if isinstance(given, str) and given == "most_frequent":
            self.outlier_label_ = [classes[np.bincount(known).argmax()] for classes, known in outputs]
            return
        labels = list(given) if ArrayLike().accepts(given) else [given] * len(outputs)
        if len(labels) != len(outputs):
            raise ParameterError(f"outlier_label: has {len(labels)} elements; expected one for each of {len(outputs)}")
        for label, (classes, _) in zip(labels, outputs, strict=True):
            if ArrayLike().accepts(label) and np.ndim(label):
                raise ParameterTypeError(f"outlier_label: got {label!r:.60}; expected one label for each column of y")
            if np.append(classes, label).dtype != classes.dtype:
                raise ParameterTypeError(
                    f"outlier_label={label!r:.60}; expected the type of the labels, {classes.dtype}"
                )
        self.outlier_label_ = labels
