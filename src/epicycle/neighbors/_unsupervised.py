"""The search for neighbours by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from epicycle.core._parameters import Domain
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.neighbors._base import NEIGHBOUR_PARAMETERS, NeighboursEstimator

__all__ = ["NearestNeighbors"]


class NearestNeighbors(NeighboursEstimator):
    r"""The k nearest rows, exactly.

    .. math:: N_k(q) = \text{the } k \text{ rows } x_i \text{ of least } d(x_i, q)

    in float32 products of matrices that rule out nearly all rows, and exact distances of the few that are left. A
    fitted object keeps the training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
    algorithm : {"auto", "brute", "kd_tree"}, default="auto"
        "auto" takes a tree for up to eight columns. The result is the same.
    metric : str, default="minkowski"
        "euclidean" ("l2"), "manhattan" ("l1", "cityblock"), "chebyshev", "cosine", or "minkowski" with its `p`.
    p : float, default=2
        Power of Minkowski's distance, at least 1; infinity for the largest difference.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.

    Attributes
    ----------
    X_fit_ : array or CSR matrix of shape (n_samples_fit_, n_features)
        The rows.
    n_samples_fit_ : int
    certificate_ : Certificate
        The search is exact.
    history_ : History
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from epicycle import NearestNeighbors
    >>> model = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0], [7.0]])
    >>> distances, rows = model.kneighbors([[2.0]])
    >>> distances, rows  # a tie, in the order of the rows
    (array([[1., 1.]]), array([[1, 2]]))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = NEIGHBOUR_PARAMETERS
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C5",), engines=("memory",), certificate="exact search", keeps_rows=True
    )

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        algorithm: str = "auto",
        metric: str = "minkowski",
        p: float = 2,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.metric = metric
        self.p = p
        self.n_jobs = n_jobs

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : ignored
        """
        self._keep_rows(X, None, target="none")
        self._conclude_exact()
        return self
