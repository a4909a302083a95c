r"""t-SNE:  minimise  KL(P | Q) = sum_ij P_ij log(P_ij / Q_ij)  over places y_i,  Q_ij = K(y_i - y_j) / Z.

With K(d) = (1 + d^2 / nu)^(-(nu + 1) / 2) and Z its sum over all pairs, the gradient with respect to y_i is

    2 (nu + 1) / nu  sum_j (P_ij - Q_ij) (y_i - y_j) / (1 + d_ij^2 / nu).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.manifold._neighbor_embedding_base import NeighborEmbeddingBase
from epicycle.manifold._tsne_affinities import Affinities, Search, conditional, gaussian, neighbor_count
from epicycle.manifold._tsne_descent import Repulsion, Stage, grid_step


class TSNE(NeighborEmbeddingBase):
    r"""t-distributed stochastic neighbour embedding: places in few dimensions that keep the neighbours of the rows.

    .. math:: \min_y \sum_{ij} P_{ij} \log \frac{P_{ij}}{Q_{ij}} , \qquad
              Q_{ij} = \frac{(1 + \|y_i - y_j\|^2)^{-1}}{\sum_{kl} (1 + \|y_k - y_l\|^2)^{-1}} , \qquad
              P_{ij} = \frac{p_{j|i} + p_{i|j}}{2n}

    with :math:`p_{j|i} \propto \exp(-\beta_i \|x_i - x_j\|^2)` of a given perplexity. For three components and more
    Q has one degree of freedom less than components. The attraction runs over the three perplexities nearest rows,
    found by an exact search; for the repulsion see `method`. Distances between clusters and sizes of clusters in the
    picture mean little. A fitted object keeps the training rows, among which new ones are placed.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        Length of a step along the gradient; "auto" is n / (4 early_exaggeration), at least 50, and n / 8 for fewer than
        400 rows, which longer steps would only shake.

    Attributes
    ----------
    kl_divergence_ : float
        KL(P | Q) in the end.
    history_ : History
        KL(P | Q) and the norm of the gradient every 50 iterations.
    certificate_ : Certificate
        The norm of the gradient relative to that of the attraction. The objective is not convex: it proves no optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import TSNE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TSNE(random_state=0).fit(X)
    >>> model.embedding_.shape, bool(model.kl_divergence_ < 0.2)
    ((150, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    kl_divergence_: float

    @stores_arguments
    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: Any = "auto",
        max_iter: int = 1000,
        n_iter_without_progress: int = 300,
        min_grad_norm: float = 1e-7,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "pca",
        verbose: int = 0,
        random_state: Any = None,
        method: str = "auto",
        angle: float = 0.5,
        n_jobs: int | None = None,
    ) -> None: ...

    def _check_size(self, n: int) -> None:
        super()._check_size(n)
        if self.perplexity >= n:
            raise DataError(f"perplexity ({self.perplexity}) must be less than n_samples ({n})")

    def _affinities(self, search: Search) -> Affinities:
        n = search.n_rows
        k = n - 1 if self.method == "exact" else neighbor_count(self.perplexity, n - 1)
        return gaussian(search, float(self.perplexity), k, self.n_jobs)

    def _conditional(self, distances: np.ndarray) -> np.ndarray:
        return conditional(distances, float(self.perplexity), self.n_jobs)

    def _new_neighbors(self, n: int) -> int:
        return neighbor_count(self.perplexity, n)

    def _repulsion(self, n: int) -> Repulsion:
        freedom = float(max(int(self.n_components) - 1, 1))
        return Repulsion(self.method_, freedom, float(self.angle), step=grid_step(n))

    def _stages(self, n: int) -> list[Stage]:
        if isinstance(self.learning_rate, str):
            self.learning_rate_ = max(n / float(self.early_exaggeration) / 4.0, min(50.0, n / 8.0))
        else:
            self.learning_rate_ = float(self.learning_rate)
        last, first = int(self.max_iter), min(self._EXPLORATION_MAX_ITER, int(self.max_iter))
        stages = [Stage(first, float(self.early_exaggeration), 0.5, self.learning_rate_, first)] if first else []
        return [*stages, Stage(last, 1.0, 0.8, self.learning_rate_, int(self.n_iter_without_progress))]

    def _finish(self, value: float) -> None:
        self.kl_divergence_ = value
