"""K-prototypes (Huang 1998):  minimise  J = sum_i v_i min_a (|x_i - c_a|^2 + gamma #{j: x_ij != c_aj})."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.cluster.prototypes._categories import CategoryModel, text_columns
from epicycle.cluster.prototypes._rounds import Dissimilarity
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._categories import category_columns


class KPrototypes(CategoryModel):
    r"""Clusters of rows of numbers and categories around k prototypes.

    .. math::

       \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \Bigl( \sum_{j \text{ number}} (x_{ij} - c_{aj})^2
       + \gamma \sum_{j \text{ category}} [ x_{ij} \ne c_{aj} ] \Bigr)

    Every row goes to its nearest prototype, which takes the mean of its rows in columns of numbers and the most
    frequent category in the others, until nothing changes. A missing category is one of its own; missing numbers are
    refused. A cluster that loses all its rows takes the row that is farthest from its own prototype.

    Parameters
    ----------
    categorical_features : "from_dtype" or list of names, numbers or truth values, default="from_dtype"
        Columns of categories; "from_dtype" takes those of a frame, or of an array of objects, that hold no numbers.
    gamma : "auto" or float, default="auto"
        What a category that differs counts for. "auto" is half the mean standard deviation of the columns of numbers,
        so that it follows their units (Huang's advice); 1 where there are none. Columns of numbers are not scaled.
    init : {"cao", "huang", "k-prototypes++", "random"} or array (n_clusters, n_features), default="k-prototypes++"
        First prototypes: rows drawn with a probability proportional to the dissimilarity from those before, rows of
        frequent categories that differ from each other ("cao", without chance), rows nearest to draws of each category
        by its frequency ("huang"), rows at random, or given ones.
    n_init : int, default=1
        Number of starts, of which the best is kept; 1 for "cao" and given prototypes.

    Attributes
    ----------
    cluster_centers_ : ndarray of object of shape (n_clusters, n_features)
        The prototypes; None where the most frequent is that a category is missing.
    categories_ : dict
        The categories of every column that has them, by its number.
    gamma_ : float

    Examples
    --------
    >>> import pandas as pd
    >>> from epicycle import KPrototypes
    >>> colours = ["red", "red", "blue", "blue", "blue", "red"]
    >>> X = pd.DataFrame({"size": [1.0, 1.2, 0.9, 5.0, 5.1, 4.8], "colour": colours})
    >>> model = KPrototypes(n_clusters=2, random_state=0).fit(X)
    >>> sorted([round(size, 2), colour] for size, colour in model.cluster_centers_)
    [[1.03, 'red'], [4.97, 'blue']]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "categorical_features": AnyOf(Choice("from_dtype"), ArrayLike()),
        "gamma": AnyOf(Choice("auto"), Real(minimum=0)),
        "init": AnyOf(Choice("cao", "huang", "k-prototypes++", "random"), ArrayLike()),
    }

    gamma_: float

    @stores_arguments(max_iter=100, verbose=0, random_state=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        categorical_features: Any = "from_dtype",
        gamma: float | str = "auto",
        init: Any = "k-prototypes++",
        n_init: int = 1,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the prototypes of rows X."""
        data = self._coded(X, sample_weight)
        rows = self._with_codes(data.X)
        numbers = np.setdiff1d(np.arange(rows.shape[1]), sorted(self.categories_))
        self.gamma_ = self._gamma(rows[:, numbers], data.weight)
        self._fit_rows(data, rows)
        return self

    def _gamma(self, numbers: np.ndarray, weight: np.ndarray | None) -> float:
        if self.gamma != "auto":
            return float(self.gamma)
        if not numbers.shape[1]:
            return 1.0
        mean = np.average(numbers, axis=0, weights=weight)
        return float(0.5 * np.sqrt(np.average((numbers - mean) ** 2, axis=0, weights=weight)).mean())

    def _category_columns(self, X: Any) -> list[int]:
        if isinstance(self.categorical_features, str):
            return text_columns(X)
        return category_columns(X, self.categorical_features)

    def _dissimilarity(self) -> Dissimilarity:
        return Dissimilarity(np.array(sorted(self.categories_), dtype=np.int64), self.gamma_, squared=True)
