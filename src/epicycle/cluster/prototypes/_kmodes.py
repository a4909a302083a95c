"""K-modes (Huang 1998):  minimise  J = sum_i v_i min_a #{j: x_ij != c_aj}  over k prototypes of categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.cluster.prototypes._bins import Bins, cut, learn_bins
from epicycle.cluster.prototypes._categories import CategoryModel
from epicycle.cluster.prototypes._rounds import Dissimilarity
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer
from epicycle.core.estimator._estimator import fitting, stores_arguments


class KModes(CategoryModel):
    r"""Clusters of rows of categories around k modes.

    .. math:: \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \sum_j [ x_{ij} \ne c_{aj} ]

    Every row goes to the prototype that it differs from in the fewest columns, and every prototype takes the most
    frequent category of its rows in each column (of equally frequent ones the first in their order), until nothing
    changes. Categories may be strings, pandas categories, or whole numbers, which are compared and not ordered; a
    missing one is a category of its own, and so is one that the fit did not see. A cluster that loses all its rows
    takes the row that differs most from its own prototype. Two prototypes may become equal; then the second stays
    empty.

    Parameters
    ----------
    n_clusters : int, default=8
        k.
    init : {"cao", "huang", "random"} or array (n_clusters, n_features), default="cao"
        First prototypes: rows of frequent categories that differ from each other ("cao", without chance), rows nearest
        to draws of each category by its frequency ("huang"), rows at random, or given ones.
    n_init : int, default=1
        Number of starts, of which the best is kept; 1 for "cao" and given prototypes.
    n_bins : int, default=3
        Columns of numbers that are not all whole are cut into so many bins of equal weight (low, middle, high), and
        the largest number of a bin stands for it. Rows that share few bins have no modes: many bins need many rows.

    Attributes
    ----------
    bins_ : dict
        Upper ends of the bins of each column that was cut, by its number.
    cluster_centers_ : ndarray of object of shape (n_clusters, n_features)
        The modes; None where the most frequent is that a category is missing.
    categories_ : dict
        The categories of every column, by its number.

    Examples
    --------
    >>> from epicycle import KModes
    >>> X = [["red", "small"], ["red", "small"], ["red", "big"], ["blue", "big"], ["blue", "huge"], ["blue", "big"]]
    >>> model = KModes(n_clusters=2).fit(X)
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([['blue', 'big'], ['red', 'small']], 2.0)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_clusters": Integer(minimum=1),
        "init": AnyOf(Choice("cao", "huang", "random"), ArrayLike()),
        "n_init": Integer(minimum=1),
        "n_bins": Integer(minimum=2),
    }

    _allows_nan = True
    bins_: Bins

    @stores_arguments(max_iter=100, verbose=0, random_state=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "cao",
        n_init: int = 1,
        n_bins: int = 3,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the modes of rows X."""
        data = self._coded(X, sample_weight)
        self._fit_rows(data, self._with_codes(data.X))
        return self

    def _cut(self, X: Any, sample_weight: Any = None, *, fit: bool = False) -> Any:
        if fit:
            self.bins_ = learn_bins(X, sample_weight, self.n_bins)
        return cut(X, self.bins_)

    def _category_columns(self, X: Any) -> list[int]:
        return list(range(X.shape[1])) if len(getattr(X, "shape", ())) == 2 else []

    def _dissimilarity(self) -> Dissimilarity:
        return Dissimilarity(np.array(sorted(self.categories_), dtype=np.int64), 1.0, squared=True)
