r"""Stochastic neighbour embedding:  minimise  F(y) = sum_ij p_j|i log(p_j|i / q_j|i),  q_j|i ~ exp(-|y_i - y_j|^2).

The gradient with respect to y_i is  2 sum_j (p_j|i - q_j|i + p_i|j - q_i|j) (y_i - y_j).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import _native, optim
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Domain
from epicycle.core._random import seed_of, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.manifold._base import Embedding
from epicycle.manifold._neighbor_embedding_base import NeighborEmbeddingBase, quality_of
from epicycle.manifold._tsne_affinities import Search, conditional, require_square
from epicycle.manifold._tsne_start import start
from epicycle.spatial._metrics import is_precomputed

_SPREAD = 1e-2  # of the start


class _Divergence(optim.Objective):
    """F as a function of the places, one after the other."""

    lower_bound = 0.0

    def __init__(self, P: np.ndarray, n_components: int, n_jobs: int | None) -> None:
        self.P, self.both, self.n_components = P, P + P.T, n_components
        self.size = len(P) * n_components
        seen = P[P > 0]
        self.entropy = float(seen @ np.log(seen))
        self.threads = n_threads(50.0 * P.size, n_jobs)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        places = np.ascontiguousarray(x.reshape(len(self.P), self.n_components))
        value, gradient = _native.manifold.sne(self.P, self.both, places, self.threads)
        return value + self.entropy, gradient.ravel()


class SNE(Embedding):
    r"""Stochastic neighbour embedding of Hinton and Roweis, from all pairs.

    .. math:: \min_y \sum_i \sum_{j \ne i} p_{j|i} \log \frac{p_{j|i}}{q_{j|i}} , \qquad
              q_{j|i} = \frac{\exp(-\|y_i - y_j\|^2)}{\sum_{k \ne i} \exp(-\|y_i - y_k\|^2)}

    with :math:`p_{j|i} \propto \exp(-\beta_i \|x_i - x_j\|^2)` of a given perplexity. It is the ancestor of
    :class:`TSNE`: the Gaussian leaves no room for rows at a moderate distance, so that clusters crowd in the middle.
    It is minimised by L-BFGS; time and memory are those of all pairs. A fitted object keeps the training rows' places.

    Parameters
    ----------
    tol : float, default=1e-5
        Norm of the gradient at which the fit ends, relative to the divergence.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the rows.
    kl_divergence_ : float
        The objective in the end.
    certificate_ : Certificate
        The gradient in the end. The objective is not convex: it proves no optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import SNE
    >>> model = SNE(random_state=0).fit(load_iris().data)
    >>> model.embedding_.shape, model.converged_
    ((150, 2), True)
    """

    _docs: ClassVar[Mapping[str, str]] = {
        name: NeighborEmbeddingBase._docs[name] for name in ("X", "perplexity", "metric", "metric_params", "init")
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        name: NeighborEmbeddingBase._parameters[name]
        for name in ("n_components", "perplexity", "metric", "metric_params", "init")
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="manifold", catalogue=("E12",), engines=("memory",), certificate="gradient norm", keeps_rows=True
    )
    _takes_sparse = True
    _takes_any_size = True

    n_components: int
    perplexity: float
    metric: Any
    metric_params: Any
    init: Any
    tol: float
    max_iter: int
    random_state: Any
    n_jobs: int | None
    kl_divergence_: float

    @stores_arguments(tol=1e-5, max_iter=1000, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "pca",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find places for the rows X."""
        data = self._table(X)
        n, k = data.n_rows, int(self.n_components)
        if is_precomputed(self.metric):
            require_square(data.X)
            if isinstance(self.init, str) and self.init == "pca":
                raise ParameterError('The parameter init="pca" cannot be used with metric="precomputed".')
        if n < 2:
            raise DataError(f"Found array with {n} sample(s) while a minimum of 2 is required by SNE.")
        if self.perplexity >= n:
            raise DataError(f"perplexity ({self.perplexity}) must be less than n_samples ({n})")
        require_memory(40.0 * n * n, f"affinities of all pairs of {n:,} rows", "TSNE")
        search = Search.among(data.X, self.metric, self.metric_params, self.n_jobs)
        distances, rows = search.of_rows(n - 1)
        P = np.zeros((n, n))
        np.put_along_axis(P, rows, conditional(distances, float(self.perplexity), self.n_jobs), axis=1)
        places = start(self.init, search.rows, k, stream(seed_of(self.random_state), "embedding", "start"), _SPREAD)
        solution = optim.solve(
            "lbfgs",
            _Divergence(P, k, self.n_jobs),
            places.ravel(),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            monitor=self._monitor(int(self.max_iter), lambda x: {"embedding_": x.reshape(n, k)}),
            state=self._resume_state(),
        )
        self.embedding_ = solution.x.reshape(n, k)
        self.kl_divergence_ = float(solution.value)
        found, quality = solution.certificate, quality_of(self, data.X)
        meaning = f"{found.meaning}; no proof of optimality; {quality}"
        solution.certificate = Certificate(found.kind, found.value, found.tolerance, meaning)
        self._conclude(solution)
        return self
