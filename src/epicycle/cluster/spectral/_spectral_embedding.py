"""Spectral embedding: the first eigenvectors of the graph Laplacian as coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.cluster.spectral._affinity import kernel_matrix
from epicycle.cluster.spectral._base import GraphModel
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import fitting, stores_arguments


class SpectralEmbedding(GraphModel):
    r"""Coordinates of rows in which neighbours in a graph are near to each other.

    .. math:: \min_{u' M u = 1} \; \tfrac12 \sum_{ij} W_{ij} (u_i - u_j)^2 ,
              \qquad M = \operatorname{diag}\Big( \sum_j W_{ij} \Big) ,

    solved by :math:`(M - W) u = \lambda M u`: the eigenvectors of the least eigenvalues but the first, which is
    constant. Signs are such that the entry of largest size is positive. The affinities :math:`W_{ij} \ge 0` do not
    count on the diagonal. A fitted object keeps the training rows' affinities.

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates.
    affinity : str or callable, default="nearest_neighbors"
        The graph. "nearest_neighbors": the mean of a matrix with 1 for the `n_neighbors` nearest rows and of its
        transpose; "radius": 1 for rows within `radius`; "rbf": :math:`\exp(-\gamma \|x - z\|^2)`; "precomputed": X is
        W; "precomputed_nearest_neighbors": X are distances of which the nearest count; a callable: what
        ``affinity(X)`` returns.
    gamma : float, optional
        Of "rbf"; None is 1 / n_features.
    n_neighbors : int, optional
        A row itself counts as one. None is a tenth of the rows.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        NaN for rows of weight 0.
    n_neighbors_ : int
    gamma_ : float
    certificate_ : Certificate
        The largest residual of an eigenvector. Its meaning encloses the conductance of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SpectralEmbedding
    >>> t = np.linspace(0, 4, 60)
    >>> spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    >>> u = SpectralEmbedding(1, n_neighbors=5, random_state=0).fit_transform(spiral)[:, 0]
    >>> bool(np.all(np.diff(u) > 0) or np.all(np.diff(u) < 0))  # the order along the curve
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **GraphModel._parameters,
        "n_components": Integer(minimum=1),
        "affinity": AnyOf(
            Choice("nearest_neighbors", "radius", "rbf", "precomputed", "precomputed_nearest_neighbors"), Callable()
        ),
        "gamma": NoneOr(Real(minimum=0)),
        "n_neighbors": NoneOr(Integer(minimum=1)),
    }

    n_components: int
    gamma: float | None

    @stores_arguments(random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: int = 2,
        *,
        affinity: Any = "nearest_neighbors",
        gamma: float | None = None,
        eigen_solver: str | None = None,
        eigen_tol: Any = "auto",
        n_neighbors: int | None = None,
        radius: float | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the coordinates of rows X, or of the nodes of a graph X."""
        rows, weight, kept = self._rows(X, sample_weight)
        n = rows.shape[0]
        self.n_neighbors_ = max(n // 10, 1) if self.n_neighbors is None else int(self.n_neighbors)
        self.gamma_ = 1.0 / rows.shape[1] if self.gamma is None else float(self.gamma)
        W = self._affinities(rows, self.n_neighbors_)
        if W is None:
            W = self.affinity(rows) if callable(self.affinity) else kernel_matrix(rows, "rbf", gamma=self.gamma_)
        self.affinity_matrix_ = W
        k = min(int(self.n_components), n - 1)
        graph, pairs = self._solve(rows, weight, k + 1, seed_of(self.random_state))
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        self.embedding_ = np.full((len(kept), k), np.nan, dtype=dtype)
        self.embedding_[kept] = pairs.vectors[:, 1 : k + 1]
        more = ""
        if graph.n_components == 1:
            second = float(self.eigenvalues_[1])
            more = f"; the conductance of the graph is between {second / 2:.2g} and {np.sqrt(2 * second):.2g}"
        self._conclude_directly(self._evidence(k + 1, more), objective=float(self.eigenvalues_[: k + 1].sum()))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return their coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_
