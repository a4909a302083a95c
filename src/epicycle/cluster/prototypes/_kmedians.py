"""K-medians:  minimise  J = sum_i v_i min_a |x_i - c_a|_1  over k centres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.cluster.prototypes._base import PrototypeModel
from epicycle.cluster.prototypes._rounds import Dissimilarity
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.stats._class_scatter import dense_rows


class KMedians(PrototypeModel):
    r"""Clusters of rows around k centres, by sums of absolute differences.

    .. math:: \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \sum_j | x_{ij} - c_{aj} |

    Every row goes to its nearest centre, and every centre to the medians of its rows, until nothing changes. A cluster
    that loses all its rows takes the row that is farthest from its own centre. Sparse rows are made dense.

    Parameters
    ----------
    init : {"k-medians++", "random"} or array (n_clusters, n_features), default="k-medians++"
        First centres: rows drawn with a probability proportional to the distance from those before, rows at random, or
        given centres.
    n_init : int, default=1
        Number of starts, of which the best is kept; 1 for given centres.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KMedians
    >>> X = np.array([[0.0], [1.0], [2.0], [90.0], [10.0], [11.0], [12.0]])
    >>> sorted(KMedians(n_clusters=3, random_state=0).fit(X).cluster_centers_.ravel().tolist())
    [1.0, 11.0, 90.0]
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "fit_X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)"
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "init": AnyOf(Choice("k-medians++", "random"), ArrayLike()),
    }
    _takes_sparse = True

    @stores_arguments(max_iter=300, verbose=0, random_state=None)
    def __init__(
        self, n_clusters: int = 8, *, init: Any = "k-medians++", n_init: int = 1, **shared: Unpack[SharedArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres of rows X."""
        data = self._memory(self._fit_data(X, None, sample_weight, target="none"))
        self._fit_rows(data, dense_rows(data.X))
        return self

    @property
    def cluster_centers_(self) -> np.ndarray:
        return self._prototypes_

    def _dissimilarity(self) -> Dissimilarity:
        return Dissimilarity(np.zeros(0, dtype=np.int64), 0.0, squared=False)

    def _given_prototypes(self) -> np.ndarray | None:
        return None if isinstance(self.init, str) else np.array(self.init, dtype=np.float64, ndmin=2)

    def _numbers(self, X: Any) -> np.ndarray:
        return dense_rows(self._memory(self._predict_data(X)).X)
